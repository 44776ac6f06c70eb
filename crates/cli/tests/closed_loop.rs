//! Contract of the way from a running system to one with better settings: a known set runs, is recorded, imported and given
//! advice on, its settings are applied, and it is counted again. What the trace tells of the set is what the set is, and
//! more jobs are in time afterwards.
//!
//! By default the simulator stands for the machine. On real threads the same is a measurement of the machine as well, which
//! nothing else may load meanwhile, so that it runs only if it is asked for (`--ignored`); where a tool or a right is missing
//! then, it says "skipped". The program of the known set is this test program itself, called again with one of its tests.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::folder::Folder;

/// Tasks of the known set: name, period and execution time in milliseconds. Load 0.75: fair shares give `control` less
/// than a third of the processor while the others are busy.
const TASKS: [(&str, u64, u64); 4] =
    [("control", 10, 3), ("camera", 200, 30), ("planner", 200, 30), ("mapper", 200, 30)];

/// Length of a run and time before it in milliseconds, in the environment of the program.
const LENGTH: &str = "TEMPONET_KNOWN_SET_MS";
const DELAY: &str = "TEMPONET_KNOWN_SET_DELAY_MS";

/// What a thread counted: releases, jobs in time, longest processor time of a job.
type Counted = (u64, u64, Duration);

/// Processor time of the calling thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Runs the jobs of a task until `end`. A late job goes on, and releases that pass meanwhile are skipped and missed, as with
/// the timers of most programs.
fn run_task(period: Duration, work: Duration, begin: Instant, end: Instant) -> Counted {
    let (mut released, mut met, mut longest) = (0, 0, Duration::ZERO);
    let mut release = begin;
    while release + period <= end {
        std::thread::sleep(release.saturating_duration_since(Instant::now()));
        let before = processor_time();
        while processor_time() - before < work {
            std::hint::black_box((0..200).fold(0u64, |sum, k| sum ^ k));
        }
        longest = longest.max(processor_time() - before);
        released += 1;
        met += u64::from(Instant::now() <= release + period);
        release += period;
        while release < Instant::now() && release + period <= end {
            released += 1;
            release += period;
        }
    }
    (released, met, longest)
}

/// The program. Without a length it is a test of itself, with threads of other names: a recording at the same time holds
/// the threads of the whole machine.
#[test]
fn the_program_of_the_known_set_runs_every_job() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let length = number(LENGTH).unwrap_or(400);
    let begin = Instant::now() + Duration::from_millis(number(DELAY).unwrap_or(50));
    let end = begin + Duration::from_millis(length);
    let ms = Duration::from_millis;
    let is_recorded = std::env::var_os(LENGTH).is_some();
    let start = |(name, period, work): (&'static str, u64, u64)| {
        let run = move || run_task(ms(period), ms(work), begin, end);
        let thread = if is_recorded { name.to_string() } else { format!("own {name}") };
        (name, period, std::thread::Builder::new().name(thread).spawn(run).unwrap())
    };
    for (name, period, thread) in TASKS.map(start) {
        let (released, met, longest) = thread.join().unwrap();
        println!("\nran {name} {released} {met} {}", longest.as_nanos());
        assert_eq!(released, length / period, "{name}");
    }
}

/// The call of the program, on one processor: a run of four seconds after a delay in milliseconds.
fn program(cpu: usize, delay: u64) -> Vec<String> {
    let own = std::env::current_exe().unwrap().display().to_string();
    let test = "closed_loop::the_program_of_the_known_set_runs_every_job";
    let [length, delay] = [format!("{LENGTH}=4000"), format!("{DELAY}={delay}")];
    let call = ["env", &length, &delay, "taskset", "-c", &cpu.to_string(), &own, test, "--exact", "--nocapture"];
    call.map(String::from).into()
}

/// What the program printed, by task.
fn counted(printed: &str) -> BTreeMap<String, Counted> {
    let rows = printed.lines().filter_map(|line| line.strip_prefix("ran "));
    let row = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        (words[0].to_string(), (number(1), number(2), Duration::from_nanos(number(3))))
    };
    rows.map(row).collect()
}

fn share(counted: &BTreeMap<String, Counted>) -> f64 {
    let sum = |of: fn(&Counted) -> u64| counted.values().map(of).sum::<u64>() as f64;
    sum(|(_, met, _)| *met) / sum(|(released, ..)| *released)
}

/// One loop at a time: they share a processor, and settings are applied by the names of threads.
pub static ALONE: Mutex<()> = Mutex::new(());

/// Why the loop cannot be closed here.
pub fn missing(folder: &Folder) -> Option<String> {
    for (tool, args) in [("taskset", ["-c", "0", "true"]), ("chrt", ["-f", "10", "true"])] {
        let works = Command::new(tool).args(args).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !works {
            return Some(format!("{tool} {} does not work here", args.join(" ")));
        }
    }
    let probe = folder.run(&["record", "-o", "probe.txt", "--for", "300ms"]);
    (!probe.status.success()).then(|| String::from_utf8_lossy(&probe.stderr).trim().to_string())
}

/// Share of the processors' time that the host has taken so far, in ticks, and all of it.
pub fn stolen() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: Vec<u64> =
        text.lines().next().unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect();
    (ticks.get(7).copied().unwrap_or(0), ticks.iter().take(8).sum())
}

/// The known set on one processor whose threads take turns of 3 ms, as a recording, with the share of its jobs in time. A late
/// job goes on, and releases that pass meanwhile are skipped and missed.
fn fair_shares() -> (String, f64) {
    let mut text = String::from("# tracer: nop\n");
    let mut say = |ms: u64, event: String| {
        writeln!(text, "x-1 [000] d..2. {}.{:03}000: sched_{event}", 100 + ms / 1_000, ms % 1_000).unwrap();
    };
    let party = |task: Option<usize>| match task {
        Some(task) => format!("{}:{} [120]", TASKS[task].0, 10 + task),
        None => "swapper/0:0 [120]".into(),
    };
    let mut releases = [0; TASKS.len()];
    let mut left = [0; TASKS.len()];
    let (mut released, mut met) = (0, 0);
    let mut ready = VecDeque::new();
    let (mut running, mut turn) = (None, 0);
    for ms in 0..4_000 {
        for (task, (_, _, work)) in TASKS.into_iter().enumerate() {
            if left[task] == 0 && releases[task] == ms {
                say(ms, format!("waking: {} CPU:000", party(Some(task))));
                (left[task], released) = (work, released + 1);
                ready.push_back(task);
            }
        }
        let is_done = running.is_some_and(|task: usize| left[task] == 0);
        let is_over = turn == 0 && !ready.is_empty();
        if running.is_none() || is_done || is_over {
            let state = if is_done { "S" } else { "R" };
            ready.extend(running.filter(|_| !is_done));
            let next = ready.pop_front();
            if next != running || is_done {
                say(ms, format!("switch: {} {state} ==> {}", party(running), party(next)));
            }
            (running, turn) = (next, 3);
        }
        let Some(task) = running else { continue };
        (left[task], turn) = (left[task] - 1, turn - 1);
        if left[task] == 0 {
            let (now, period) = (ms + 1, TASKS[task].1);
            met += u32::from(now <= releases[task] + period);
            releases[task] += period;
            while releases[task] < now {
                (releases[task], released) = (releases[task] + period, released + 1);
            }
        }
    }
    (text, f64::from(met) / f64::from(released))
}

#[test]
fn advice_on_a_simulated_system_brings_all_of_its_jobs_in_time() {
    let folder = Folder::new("closed-loop-simulated");
    let (trace, before) = fair_shares();
    assert!(before < 0.7, "{before}");
    folder.write("trace.txt", &trace);
    let found = folder.json(&["import", "trace.txt", "-o", "set.toml", "--json"]);
    for (name, period, work) in TASKS {
        let task = found["tasks"].as_array().unwrap().iter().find(|task| task["name"] == name);
        let task = task.unwrap_or_else(|| panic!("{name} was not found: {found}"));
        assert_eq!(task["period_ns"].as_u64().unwrap(), period * 1_000_000, "{task}");
        assert_eq!(task["max_ns"].as_u64().unwrap(), work * 1_000_000, "{task}");
    }
    let advice = folder.json(&["advise", "set.toml", "--json"]);
    let best = advice["lines"].as_array().unwrap().iter().find(|line| line["by"] == "linux").unwrap();
    assert_eq!((&best["verdict"], &best["name"]), (&"proved".into(), &"FIFO".into()), "{advice}");
    folder.stdout(&["advise", "set.toml", "--for", "toml", "-o", "advised.toml"]);
    let call = ["simulate", "advised.toml", "--horizon", "4s", "--scheduler", "fp", "--json"];
    assert_eq!(folder.json(&call)["compliance"], 1.0);
}

#[test]
#[ignore = "measures on real threads for twelve seconds: nothing else may run meanwhile"]
fn advice_on_a_recorded_system_brings_more_of_its_jobs_in_time() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("closed-loop");
    if let Some(why) = missing(&folder) {
        eprintln!("skipped: {why}");
        return;
    }
    let cpu = std::thread::available_parallelism().map_or(0, |count| count.get() - 1);
    let stolen_before = stolen();
    let call = program(cpu, 50);
    let call: Vec<&str> = call.iter().map(String::as_str).collect();
    let printed = folder.stdout(&[&["record", "-o", "trace.txt", "--"], &call[..]].concat());
    let before = counted(&printed);
    assert_eq!(before.len(), TASKS.len(), "{printed}");

    // What was found is what ran.
    let names = TASKS.map(|(name, ..)| name).join("|");
    let found = folder.json(&["import", "trace.txt", "--threads", &format!("^({names})$"), "-o", "set.toml", "--json"]);
    for (name, period, work) in TASKS {
        let task = found["tasks"].as_array().unwrap().iter().find(|task| task["name"] == name);
        let task = task.unwrap_or_else(|| panic!("{name} was not found: {found}"));
        // A task that is always late skips releases, and nobody can tell from a trace that it should not.
        let (released, met, _) = before[name];
        let periods = task["period_ns"].as_f64().unwrap() / 1e6 / period as f64;
        let whole = if 2 * met >= released { 1.0 } else { periods.round().max(1.0) };
        assert!(task["kind"] == "sporadic" && 2 * met < released || (periods / whole - 1.0).abs() < 1e-3, "{task}");
        // What a job takes is what it was made to take; the longest one may include what the machine added.
        let [median, longest] = ["median_ns", "max_ns"].map(|key| task[key].as_f64().unwrap());
        assert!((median - work as f64 * 1e6).abs() < 0.02 * work as f64 * 1e6 + 5e4, "{task}");
        assert!(longest > 0.98 * before[name].2.as_nanos() as f64 - 5e4, "{task} {:?}", before[name]);
    }

    let advice = folder.json(&["advise", "set.toml", "--json"]);
    let best = advice["lines"].as_array().unwrap().iter().find(|line| line["by"] == "linux").unwrap();
    assert_eq!(best["verdict"], "proved", "{advice}");
    // Line numbers of both calls are the same.
    folder.stdout(&["advise", "set.toml", "--for", "chrt", "-o", "apply.sh"]);

    let call = program(cpu, 2_000);
    let begun = Instant::now();
    let again = Command::new(&call[0]).args(&call[1..]).stdout(Stdio::piped()).spawn().unwrap();
    let applied = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        Command::new("sh").arg("apply.sh").current_dir(&folder.0).stderr(Stdio::null()).status().unwrap().success()
    });
    assert!(applied, "{}", folder.read("apply.sh"));
    let was_in_time = begun.elapsed() < Duration::from_secs(2);
    let printed = String::from_utf8(again.wait_with_output().unwrap().stdout).unwrap();
    let after = counted(&printed);
    eprintln!("in time: {:.4} before, {:.4} after; {before:?} {after:?}", share(&before), share(&after));

    let (taken, all) = stolen();
    let stolen = (taken - stolen_before.0) as f64 / (all - stolen_before.1).max(1) as f64;
    if stolen > 0.03 || !was_in_time {
        eprintln!("skipped: the host took {:.1}% of the processors' time, or the machine is too slow", 100.0 * stolen);
        return;
    }
    assert!(share(&after) >= share(&before), "{before:?} {after:?}");
    // Every deadline is proved. A virtual machine stands still now and then all the same.
    assert!(share(&after) > 0.99, "{after:?}");
}
