//! The schedule of a built-in set over the Rust library, in the lines of `tests/c/schedule.c`:
//! `cargo run --example schedules -- SET SCHEDULER DECISIONS`.

use std::fmt::Write as _;

use temponet::{JobHandle, Model, ReadyJobs, TaskId, Time};
use temponet_formats::builtin::Builtin;
use temponet_lab::roster::Roster;

/// Execution time of a job: from half its worst case to all of it, by its number.
fn takes(wcet: Time, number: u64) -> Time {
    Time(wcet.0 - wcet.0 / 2 * ((7 * number + 3) % 5) / 5)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [set, scheduler, decisions] = &words[..] else { return Err("usage: schedules SET SCHEDULER DECISIONS".into()) };
    let set = Builtin::find(set).ok_or("there is no such set")?.load()?.set;
    let mut scheduler = Roster::with(Model::built_in()?).build(scheduler)?;
    let mut ready = ReadyJobs::new(set.system.clone())?;
    ready.start(&mut *scheduler)?;
    let mut next_release: Vec<Time> = set.tasks().iter().map(|task| task.offset).collect();
    let (mut running, mut latest): (Vec<(JobHandle, Time)>, Option<Time>) = (Vec::new(), None);
    for _ in 0..decisions.parse::<u32>()? {
        let ends = running.iter().map(|(_, end)| *end);
        let now = next_release.iter().copied().chain(ends).chain(latest).min().ok_or("the set has no tasks")?;
        ready.advance(now)?;
        for (job, _) in running.iter().filter(|(_, end)| *end == now) {
            ready.complete(*job)?;
        }
        for (task, date) in next_release.iter_mut().enumerate().filter(|(_, date)| **date == now) {
            ready.release(TaskId::new(task))?;
            let task = &set.tasks()[task];
            *date = now + task.period().unwrap_or(task.deadline);
        }
        let decision = ready.decide(&mut *scheduler)?;
        latest = decision.next();
        let mut end = String::new();
        for stopped in decision.stopped() {
            write!(end, " stop:{}.{}", stopped.job.task, stopped.job.number)?;
        }
        let cores = decision.cores().to_vec();
        let mut line = now.0.to_string();
        running.clear();
        for core in cores {
            match core.and_then(|handle| Some((handle, ready.job(handle)?))) {
                None => line += " -",
                Some((handle, job)) => {
                    write!(line, " {}.{}", job.task, job.number)?;
                    running.push((handle, now + takes(job.wcet, job.number).saturating_sub(job.executed)));
                }
            }
        }
        println!("{line}{end} next:{}", latest.map_or(u64::MAX, |date| date.0));
    }
    Ok(())
}
