//! Plays a sequence of calls that bytes spell: handles and jobs that are right, stale, foreign, null or made up, and
//! any text. The bytes are random ones in a test and libFuzzer's in `fuzz/fuzz_targets/c_interface.rs`.
//!
//! The learned scheduler is left out: starting it simulates the set, which takes longer than all other calls together.

use std::ffi::{CStr, CString, c_char};
use std::ptr::{null, null_mut};

use arbitrary::Unstructured;
use temponet_c::*;

/// What a program has been given so far, by kind of handle.
#[derive(Default)]
struct Given {
    sets: Vec<u64>,
    models: Vec<u64>,
    loops: Vec<u64>,
    texts: Vec<u64>,
    jobs: Vec<tn_job>,
}

/// Numbers of calls that returned an error, and of those that succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcomes {
    pub errors: usize,
    pub successes: usize,
}

const WHOLE: &str = "[[task]]\nname = \"a\"\nperiod = \"4ms\"\nwcet = \"1ms\"\n[[task]]\nname = \"b\"\nperiod = \"5ms\"\n\
    wcet = \"3ms\"\ncriticality = 1\n";
const PIECES: [&str; 15] = [
    "[[task]]\n",
    "name = \"a\"\n",
    "name = \"b\"\n",
    "period = \"4ms\"\n",
    "wcet = \"1ms\"\n",
    "criticality = 1\n",
    "after = [\"a\"]\n",
    "cores = 2\n",
    "{",
    "}",
    "\"tasks\": [",
    "name,period,wcet\n",
    "a,4ms,1ms\n",
    "<simulation",
    "\u{feff}µ\0",
];
const SCHEDULERS: [&str; 12] = [
    "edf",
    "llf",
    "mh-edf",
    "shield:srpt",
    "shield:fcfs",
    "rm",
    "muf",
    "look-ahead",
    "dp-wrap",
    "p-edf:fit=best",
    "llf:quantum=0",
    "no-such",
];

fn number(data: &mut Unstructured<'_>, below: usize) -> usize {
    // Bytes that have run out are zeros.
    data.int_in_range(0..=below - 1).unwrap_or(0)
}

fn any<T: for<'a> arbitrary::Arbitrary<'a> + Default>(data: &mut Unstructured<'_>) -> T {
    data.arbitrary().unwrap_or_default()
}

/// A handle of the kind, of another kind, null, made up, or with a wrong bit.
fn handle(data: &mut Unstructured<'_>, own: &[u64], other: &[u64]) -> u64 {
    let among = |data: &mut Unstructured<'_>, list: &[u64]| match list.len() {
        0 => 0,
        count => list[number(data, count)],
    };
    match number(data, 20) {
        0 => 0,
        1 => among(data, other),
        2 => any(data),
        3 => among(data, own) ^ (1 << number(data, 64)),
        _ => among(data, own),
    }
}

/// Text of a file: a task set, random pieces of some, or any bytes.
fn file(data: &mut Unstructured<'_>) -> Vec<u8> {
    match number(data, 4) {
        0 | 1 => WHOLE.into(),
        2 => (0..number(data, 12)).map(|_| PIECES[number(data, PIECES.len())]).collect::<String>().into(),
        _ => {
            let length = number(data, 400).min(data.len());
            data.bytes(length).unwrap_or_default().to_vec()
        }
    }
}

/// A name out of a list, or any text.
fn name(data: &mut Unstructured<'_>, usual: &[&str]) -> CString {
    if number(data, 8) > 0 {
        return CString::new(usual[number(data, usual.len())]).unwrap_or_default();
    }
    let length = number(data, 40).min(data.len());
    CString::new(data.bytes(length).unwrap_or_default()).unwrap_or_default()
}

/// Whether a name asks for the learned scheduler, or for one that is found by simulating.
fn is_slow(name: &CStr) -> bool {
    let name = name.to_string_lossy();
    ["temponet", "tuned", "planner"].iter().any(|slow| name.contains(slow))
}

/// One call and its result, with what it gave.
struct Played {
    result: tn_result,
    set: tn_set,
    model: tn_model,
    ready: tn_ready,
    text: tn_text,
    job: tn_job,
}

fn call(data: &mut Unstructured<'_>, given: &Given) -> Option<Played> {
    let set = tn_set { value: handle(data, &given.sets, &given.loops) };
    let ready = tn_ready { value: handle(data, &given.loops, &given.sets) };
    let model = match number(data, 4) {
        0 => tn_model { value: handle(data, &given.models, &given.texts) },
        _ => tn_model { value: 0 },
    };
    let text = tn_text { value: handle(data, &given.texts, &given.loops) };
    let job = match given.jobs.len() {
        0 => tn_job { of: any(data), value: any(data) },
        count => given.jobs[number(data, count)],
    };
    let (task, at) = (number(data, 3), any::<u64>(data) >> 30);
    let mut made = Played {
        result: tn_result::Ok,
        set: tn_set { value: 0 },
        model: tn_model { value: 0 },
        ready: tn_ready { value: 0 },
        text: tn_text { value: 0 },
        job: tn_job { of: 0, value: 0 },
    };
    let mut buffer = [0u8; 64];
    let (buffer, room) = (buffer.as_mut_ptr().cast::<c_char>(), number(data, buffer.len() + 1));
    let (mut now, mut count) = (0, 0);
    // SAFETY: every pointer is null or points to a local value with the room that is stated, and every name ends with a
    // zero.
    made.result = unsafe {
        match number(data, 42) {
            0..=2 => {
                let source = file(data);
                let origin = name(data, &["mine.toml", "a.csv", ""]);
                let origin = if number(data, 4) == 0 { null() } else { origin.as_ptr() };
                tn_set_parse(source.as_ptr().cast(), source.len(), number(data, 6) as u32, origin, &mut made.set)
            }
            3 => tn_set_built_in(name(data, &["standard-125", "standard-145", "robot"]).as_ptr(), &mut made.set),
            4 if number(data, 3) == 0 => tn_set_free(set),
            5..=7 => {
                let scheduler = name(data, &SCHEDULERS);
                if is_slow(&scheduler) {
                    return None;
                }
                tn_ready_new(set, scheduler.as_ptr(), model, &mut made.ready)
            }
            8 if number(data, 3) == 0 => tn_ready_free(ready),
            9 => {
                let scheduler = name(data, &SCHEDULERS);
                if is_slow(&scheduler) {
                    return None;
                }
                tn_ready_start(ready, scheduler.as_ptr(), model)
            }
            10 => tn_set_guarantee(set, &mut made.text),
            11 => tn_set_analysis(set, &mut made.text),
            12 => tn_set_notes(set, &mut made.text),
            13 => tn_set_write(set, number(data, 6) as u32, &mut made.text),
            14 => tn_set_task_count(set, &mut count),
            15 => tn_set_core_count(set, &mut count),
            16 => tn_set_task(set, task, &mut std::mem::zeroed()),
            17 => tn_set_task_name(set, task, buffer, room, &mut count),
            18 => tn_set_find_task(set, name(data, &["a", "b", ""]).as_ptr(), &mut count),
            19 => tn_text_copy(text, buffer, room, &mut count),
            20 => tn_text_free(text),
            21 => {
                let bytes = file(data);
                tn_model_from_bytes(bytes.as_ptr(), bytes.len(), &mut made.model)
            }
            22 if number(data, 8) == 0 => tn_model_built_in(&mut made.model),
            23 => tn_model_free(model),
            24 => tn_ready_job(ready, job, &mut std::mem::zeroed()),
            25 => tn_ready_abort(ready, job),
            26 | 27 => tn_ready_complete(ready, job, null_mut()),
            28 => {
                tn_ready_now(ready, &mut now);
                tn_ready_advance(ready, now.saturating_add(at >> 10))
            }
            29 => tn_ready_advance(ready, at),
            30 => tn_ready_set_executed(ready, job, at),
            31 => {
                let mut release = std::mem::zeroed();
                tn_ready_now(ready, &mut now);
                tn_ready_usual_release(ready, task, now, &mut release);
                release.wcet_ns ^= number(data, 3) as u64;
                release.deadline_ns ^= if number(data, 4) == 0 { any(data) } else { 0 };
                release.value = if number(data, 4) == 0 { any(data) } else { release.value };
                release.estimate_median_ns = number(data, 4) as u64;
                release.estimate_high_ns = number(data, 4) as u64;
                tn_ready_release_with(ready, task, &release, &mut made.job)
            }
            32..=34 => tn_ready_release(ready, task, &mut made.job),
            35 => tn_ready_skip(ready, task),
            36 => tn_ready_stopped(ready, task, &mut std::mem::zeroed()),
            37 => tn_ready_late(ready, task, &mut made.job),
            38 => {
                let mut jobs = [tn_job { of: 0, value: 0 }; 8];
                tn_ready_jobs(ready, jobs.as_mut_ptr(), number(data, jobs.len() + 1), &mut count)
            }
            39 => tn_ready_counters(ready, &mut made.text),
            _ => {
                let mut cores = [tn_core { job: tn_job { of: 0, value: 0 }, task: 0, speed: 0 }; 4];
                let mut decision = tn_decision { next_ns: 0, stopped: 0, late: 0, cores: 0 };
                tn_ready_decide(ready, cores.as_mut_ptr(), number(data, cores.len() + 1), &mut decision)
            }
        }
    };
    Some(made)
}

/// Makes calls until the bytes run out, and checks each. In the end everything is freed.
pub fn play(data: &mut Unstructured<'_>) -> Outcomes {
    let (mut given, mut outcomes) = (Given::default(), Outcomes::default());
    while !data.is_empty() {
        let Some(played) = call(data, &given) else { continue };
        let result = played.result;
        let mut message = [0u8; 256];
        // SAFETY: the buffer has the room that is stated.
        let length = unsafe { tn_last_error(message.as_mut_ptr().cast(), message.len()) };
        assert!(
            !matches!(result, tn_result::Panic | tn_result::Broken | tn_result::Assignment),
            "{result:?}: {}",
            String::from_utf8_lossy(&message)
        );
        if result == tn_result::Ok {
            outcomes.successes += 1;
        } else {
            outcomes.errors += 1;
            assert!(length > 0, "{result:?} has no message");
            let made = [played.set.value, played.model.value, played.ready.value, played.text.value, played.job.of];
            assert_eq!(made, [0; 5], "{result:?}");
        }
        let keep = |list: &mut Vec<u64>, value: u64| list.extend(Some(value).filter(|value| *value > 0));
        keep(&mut given.sets, played.set.value);
        keep(&mut given.models, played.model.value);
        keep(&mut given.loops, played.ready.value);
        keep(&mut given.texts, played.text.value);
        given.jobs.extend(Some(played.job).filter(|job| job.of > 0));
    }
    // What has been freed stays freed.
    for value in given.sets {
        tn_set_free(tn_set { value });
        assert_eq!(tn_set_free(tn_set { value }), tn_result::StaleHandle);
    }
    for value in given.models {
        tn_model_free(tn_model { value });
        assert_eq!(tn_model_free(tn_model { value }), tn_result::StaleHandle);
    }
    for value in given.loops {
        tn_ready_free(tn_ready { value });
        assert_eq!(tn_ready_advance(tn_ready { value }, 0), tn_result::StaleHandle);
    }
    for value in given.texts {
        tn_text_free(tn_text { value });
        assert_eq!(tn_text_free(tn_text { value }), tn_result::StaleHandle);
    }
    outcomes
}
