//! Contract: a null, stale or foreign handle, a wrong pointer, and a value out of range are error codes with a message,
//! and nothing has changed.

use std::ptr::{null, null_mut};
use std::sync::Barrier;

use temponet_c::*;

use crate::texts::{IDLE, NULL_MODEL, UNDECIDED, built_in, c, content, message, parsed, ready};

const NO_JOB: tn_job = tn_job { of: 0, value: 0 };

fn release(ready: tn_ready, task: usize) -> tn_job {
    let mut job = NO_JOB;
    assert_eq!(unsafe { tn_ready_release(ready, task, &mut job) }, tn_result::Ok, "{}", message());
    job
}

fn ready_count(ready: tn_ready) -> usize {
    let mut count = usize::MAX;
    assert_eq!(unsafe { tn_ready_jobs(ready, null_mut(), 0, &mut count) }, tn_result::Ok);
    count
}

fn decide(ready: tn_ready) -> (tn_core, tn_decision) {
    let (mut cores, mut decision) = ([IDLE; 8], UNDECIDED);
    assert_eq!(unsafe { tn_ready_decide(ready, cores.as_mut_ptr(), 8, &mut decision) }, tn_result::Ok, "{}", message());
    (cores[0], decision)
}

#[test]
fn handles_that_name_nothing_are_errors() {
    let set = built_in("robot");
    let ready = ready(set, "edf");
    let mut count = 0;
    for (value, expected) in [
        (0, tn_result::NullHandle),
        (ready.value, tn_result::WrongHandle),
        (set.value + (1 << 32), tn_result::StaleHandle),
        (set.value | 0xff_ffff, tn_result::StaleHandle),
        (u64::MAX, tn_result::StaleHandle),
        (1, tn_result::StaleHandle),
    ] {
        assert_eq!(unsafe { tn_set_task_count(tn_set { value }, &mut count) }, expected, "{value:#x}");
        assert!(message().contains("task set"), "{}", message());
    }
    assert_eq!(tn_set_free(set), tn_result::Ok);
    assert_eq!(tn_set_free(set), tn_result::StaleHandle);
    assert_eq!(unsafe { tn_set_task_count(set, &mut count) }, tn_result::StaleHandle);
    // The place is used again, and the old handle stays stale.
    let others: Vec<tn_set> = (0..20).map(|_| built_in("robot")).collect();
    assert_eq!(unsafe { tn_set_task_count(set, &mut count) }, tn_result::StaleHandle);
    assert_eq!(count, 0);
    assert_eq!(tn_set_free(tn_set { value: ready.value }), tn_result::WrongHandle);
    assert_eq!(ready_count(ready), 0);
    assert_eq!(tn_ready_free(ready), tn_result::Ok);
    assert_eq!(tn_ready_advance(ready, 1), tn_result::StaleHandle);
    assert!(others.into_iter().all(|set| tn_set_free(set) == tn_result::Ok));
    assert_eq!([tn_set_free(tn_set { value: 0 }), tn_model_free(NULL_MODEL)], [tn_result::Ok; 2]);
    assert_eq!(tn_text_free(tn_text { value: 0 }), tn_result::Ok);
    assert_eq!(tn_ready_free(tn_ready { value: 0 }), tn_result::Ok);
}

#[test]
fn pointers_that_are_null_or_not_aligned_are_errors() {
    let set = built_in("robot");
    let ready = ready(set, "edf");
    let job = release(ready, 0);
    unsafe {
        assert_eq!(tn_set_built_in(c("robot").as_ptr(), null_mut()), tn_result::Pointer);
        assert_eq!(tn_set_parse(null(), 5, 0, null(), &mut { set }), tn_result::Pointer);
        assert_eq!(tn_set_load(null(), &mut { set }), tn_result::Pointer);
        assert_eq!(tn_set_task_count(set, null_mut()), tn_result::Pointer);
        assert_eq!(tn_set_task_count(set, 9 as *mut usize), tn_result::Pointer);
        assert_eq!(tn_set_task(set, 0, null_mut()), tn_result::Pointer);
        assert_eq!(tn_set_guarantee(set, null_mut()), tn_result::Pointer);
        assert_eq!(tn_model_from_bytes(null(), 8, &mut { NULL_MODEL }), tn_result::Pointer);
        assert_eq!(tn_ready_new(set, null(), NULL_MODEL, &mut { ready }), tn_result::Pointer);
        assert_eq!(tn_ready_release(ready, 0, null_mut()), tn_result::Pointer);
        assert_eq!(tn_ready_release_with(ready, 0, null(), &mut { NO_JOB }), tn_result::Pointer);
        assert_eq!(tn_ready_decide(ready, null_mut(), 1, &mut { UNDECIDED }), tn_result::Pointer);
        assert_eq!(tn_ready_decide(ready, &mut { IDLE }, 1, null_mut()), tn_result::Pointer);
        assert_eq!(tn_ready_job(ready, job, null_mut()), tn_result::Pointer);
        assert_eq!(tn_ready_now(ready, null_mut()), tn_result::Pointer);
        assert!(message().contains("now_ns"), "{}", message());
        assert_eq!(tn_ready_complete(ready, job, null_mut()), tn_result::Ok, "it is optional there");
    }
    assert_eq!(ready_count(ready), 0, "nothing was released");
    assert_eq!([tn_ready_free(ready), tn_set_free(set)], [tn_result::Ok; 2]);
}

#[test]
fn jobs_that_left_or_belong_to_others_are_errors() {
    let set = built_in("robot");
    let (one, other) = (ready(set, "edf"), ready(set, "edf"));
    let (job, foreign) = (release(one, 0), release(other, 0));
    assert_eq!(job.value, foreign.value, "only their owners differ");
    assert_eq!(tn_ready_abort(one, foreign), tn_result::ForeignJob);
    assert_eq!(tn_ready_abort(one, NO_JOB), tn_result::JobLeft);
    assert_eq!(tn_ready_abort(one, tn_job { value: 99, ..job }), tn_result::JobLeft);
    assert_eq!(tn_ready_abort(one, tn_job { value: u64::MAX, ..job }), tn_result::JobLeft);
    assert_eq!(tn_ready_abort(one, job), tn_result::Ok);
    for result in [tn_ready_abort(one, job), tn_ready_set_executed(one, job, 5), unsafe {
        tn_ready_complete(one, job, null_mut())
    }] {
        assert_eq!(result, tn_result::JobLeft);
    }
    // Its id is used again after a decision; the handle is not.
    decide(one);
    let next = release(one, 0);
    assert!(next != job);
    assert_eq!(tn_ready_abort(one, job), tn_result::JobLeft);
    assert_eq!([tn_ready_abort(one, next), tn_ready_abort(other, foreign)], [tn_result::Ok; 2]);
    assert_eq!([tn_ready_free(one), tn_ready_free(other), tn_set_free(set)], [tn_result::Ok; 3]);
}

#[test]
fn values_out_of_range_are_errors() {
    let set = built_in("robot");
    let ready = ready(set, "edf");
    let mut text = tn_text { value: 3 };
    unsafe {
        assert_eq!(tn_ready_release(ready, 1000, &mut { NO_JOB }), tn_result::OutOfRange);
        assert_eq!(tn_ready_release(ready, usize::MAX, &mut { NO_JOB }), tn_result::OutOfRange);
        assert_eq!(tn_set_task_name(set, usize::MAX, null_mut(), 0, null_mut()), tn_result::OutOfRange);
        assert_eq!(tn_set_write(set, 77, &mut text), tn_result::OutOfRange);
        assert_eq!(text.value, 0);
        assert_eq!(tn_set_parse(c("").as_ptr(), usize::MAX, 0, null(), &mut { set }), tn_result::TooLarge);
        assert_eq!(tn_model_from_bytes([0].as_ptr(), usize::MAX, &mut { NULL_MODEL }), tn_result::TooLarge);
        assert_eq!(tn_set_load(c(&"a".repeat(5000)).as_ptr(), &mut { set }), tn_result::TooLarge);
        let bytes = [0xffu8, 0];
        assert_eq!(tn_set_load(bytes.as_ptr().cast(), &mut { set }), tn_result::NotUtf8);
        assert_eq!(tn_ready_decide(ready, &mut { IDLE }, 0, &mut { UNDECIDED }), tn_result::SmallBuffer);
        assert_eq!(tn_ready_stopped(ready, 0, &mut std::mem::zeroed()), tn_result::OutOfRange);
        assert_eq!(tn_ready_late(ready, usize::MAX, &mut { NO_JOB }), tn_result::OutOfRange);
    }
    assert_eq!(tn_ready_skip(ready, 1 << 40), tn_result::OutOfRange);
    assert_eq!(tn_ready_advance(ready, u64::MAX), tn_result::Time);
    assert_eq!(tn_ready_advance(ready, 50), tn_result::Ok);
    assert_eq!(tn_ready_advance(ready, 49), tn_result::Time);
    assert!(message().contains("must not go back"), "{}", message());
    let mut release = unsafe { std::mem::zeroed() };
    assert_eq!(unsafe { tn_ready_usual_release(ready, 0, 50, &mut release) }, tn_result::Ok);
    for wrong in [
        tn_release { release_ns: 51, ..release },
        tn_release { deadline_ns: 50, ..release },
        tn_release { deadline_ns: u64::MAX, ..release },
        tn_release { bcet_ns: 0, ..release },
        tn_release { wcet_ns: u64::MAX, ..release },
        tn_release { value: f64::NAN, ..release },
        tn_release { estimate_median_ns: 5, estimate_high_ns: 4, ..release },
    ] {
        assert_eq!(
            unsafe { tn_ready_release_with(ready, 0, &wrong, &mut { NO_JOB }) },
            tn_result::Release,
            "{wrong:?}"
        );
    }
    let usual = unsafe { tn_ready_usual_release(ready, 0, u64::MAX, &mut release) };
    assert_eq!((usual, release.deadline_ns), (tn_result::Ok, u64::MAX));
    assert_eq!([ready_count(ready), decide(ready).1.stopped], [0; 2]);
    assert_eq!([tn_ready_free(ready), tn_set_free(set)], [tn_result::Ok; 2]);
}

#[test]
fn a_life_of_jobs() {
    let text = "cores = 1\n[[task]]\nname = \"control\"\nperiod = \"10ms\"\nwcet = \"4ms\"\n[[task]]\nname = \"vision\"\nperiod = \"40ms\"\nwcet = \"22ms\"\nbcet = \"2ms\"\n";
    let set = parsed(text, tn_format::Auto as u32).unwrap();
    let mut index = 9;
    assert_eq!(unsafe { tn_set_find_task(set, c("vision").as_ptr(), &mut index) }, tn_result::Ok);
    assert_eq!(index, 1);
    assert_eq!(unsafe { tn_set_find_task(set, c("visoin").as_ptr(), &mut index) }, tn_result::OutOfRange);
    assert!(message().contains("did you mean \"vision\""), "{}", message());
    let ready = ready(set, "edf");
    let (control, vision) = (release(ready, 0), release(ready, 1));
    let (core, decision) = decide(ready);
    assert_eq!((core.job, core.task, core.speed, decision.next_ns), (control, 0, 1000, 10_000_000));
    assert_eq!(tn_ready_advance(ready, 3_000_000), tn_result::Ok);
    let mut on_time = false;
    assert_eq!(unsafe { tn_ready_complete(ready, control, &mut on_time) }, tn_result::Ok);
    assert!(on_time);
    assert_eq!(decide(ready).0.job, vision);
    // It is late at 40 ms, and the set aborts late jobs.
    assert_eq!(tn_ready_advance(ready, 40_000_000), tn_result::Ok);
    let mut state = unsafe { std::mem::zeroed::<tn_job_state>() };
    assert_eq!(unsafe { tn_ready_job(ready, vision, &mut state) }, tn_result::Ok);
    assert_eq!((state.executed_ns, state.core, state.is_running, state.bcet_ns), (37_000_000, 0, true, 2_000_000));
    let (core, decision) = decide(ready);
    assert_eq!((core.job, decision.stopped, decision.next_ns), (NO_JOB, 1, u64::MAX));
    let mut stopped = unsafe { std::mem::zeroed::<tn_stopped>() };
    assert_eq!(unsafe { tn_ready_stopped(ready, 0, &mut stopped) }, tn_result::Ok);
    assert_eq!((stopped.job, stopped.is_late, stopped.state.task), (vision, true, 1));
    assert_eq!(unsafe { tn_ready_job(ready, vision, &mut state) }, tn_result::JobLeft);
    // Another scheduler goes on with the jobs that are ready, and one that does not exist changes nothing.
    let job = release(ready, 0);
    assert_eq!(unsafe { tn_ready_start(ready, c("edff").as_ptr(), NULL_MODEL) }, tn_result::Scheduler);
    assert!(message().contains("did you mean \"edf\""), "{}", message());
    assert_eq!(unsafe { tn_ready_start(ready, c("temponet").as_ptr(), NULL_MODEL) }, tn_result::Ok);
    assert_eq!(decide(ready).0.job, job);
    let mut text = tn_text { value: 0 };
    assert_eq!(unsafe { tn_ready_counters(ready, &mut text) }, tn_result::Ok);
    let counters: serde_json::Value = serde_json::from_str(&content(text)).unwrap();
    assert!(counters.as_object().is_some_and(|counters| !counters.is_empty()), "{counters}");
    let mut jobs = [NO_JOB; 2];
    let mut count = 0;
    assert_eq!(unsafe { tn_ready_jobs(ready, jobs.as_mut_ptr(), 2, &mut count) }, tn_result::Ok);
    assert_eq!((count, jobs), (1, [job, NO_JOB]));
    assert_eq!([tn_ready_free(ready), tn_set_free(set)], [tn_result::Ok; 2]);
}

#[test]
fn task_sets_of_every_format_and_their_errors() {
    let set = built_in("robot");
    for format in [tn_format::Toml, tn_format::Json] {
        let mut text = tn_text { value: 0 };
        assert_eq!(unsafe { tn_set_write(set, format as u32, &mut text) }, tn_result::Ok, "{}", message());
        let text = content(text);
        for format in [format, tn_format::Auto] {
            let again = parsed(&text, format as u32).unwrap();
            let count = |set| {
                let mut count = 0;
                assert_eq!(unsafe { tn_set_task_count(set, &mut count) }, tn_result::Ok);
                count
            };
            assert_eq!(count(again), count(set));
            assert_eq!(tn_set_free(again), tn_result::Ok);
        }
    }
    let (result, why) = parsed("[[task]]\nname = \"a\"\nperiod = \"10ms\"\nwcet = \"-4ms\"\n", 0).unwrap_err();
    assert_eq!(result, tn_result::TaskSet);
    assert!(why.starts_with("mine.toml:4: ") && why.contains("-4ms"), "{why}");
    assert_eq!(parsed("a\nb\n", 9).unwrap_err().0, tn_result::OutOfRange);
    let mut model = NULL_MODEL;
    assert_eq!(unsafe { tn_model_load(c("/no/such/file").as_ptr(), &mut model) }, tn_result::Model);
    assert_eq!(unsafe { tn_model_from_bytes([1u8; 20].as_ptr(), 20, &mut model) }, tn_result::Model);
    assert_eq!(tn_set_free(set), tn_result::Ok);
}

#[test]
fn guarantee_and_analysis_are_those_of_the_command_line() {
    let set = built_in("rosace");
    let mut report = tn_text { value: 0 };
    assert_eq!(unsafe { tn_set_analysis(set, &mut report) }, tn_result::Ok, "{}", message());
    let analysis: serde_json::Value = serde_json::from_str(&content(report)).unwrap();
    let own = temponet_formats::builtin::Builtin::find("rosace").unwrap().load().unwrap();
    let expected = temponet_lab::analysis::Analysis::of(own.set.clone(), None);
    assert_eq!(analysis, temponet_lab::analysis::json::report(&expected, &own.notes, None));
    assert_eq!(unsafe { tn_set_guarantee(set, &mut report) }, tn_result::Ok);
    let guarantee: serde_json::Value = serde_json::from_str(&content(report)).unwrap();
    assert_eq!(guarantee, analysis["guarantee"]);
    assert_eq!(tn_set_free(set), tn_result::Ok);
}

#[test]
fn a_buffer_that_is_too_small_holds_a_beginning() {
    let set = built_in("robot");
    let (mut buffer, mut length) = ([7u8; 4], 0);
    let result = unsafe { tn_set_task_name(set, 0, buffer.as_mut_ptr().cast(), 4, &mut length) };
    assert_eq!((result, buffer[3]), (tn_result::SmallBuffer, 0));
    assert!(length > 3 && buffer[..3].iter().all(|byte| byte.is_ascii_alphabetic()));
    // A message is cut between two characters.
    assert_eq!(unsafe { tn_set_find_task(set, c("µµµµ").as_ptr(), &mut length) }, tn_result::OutOfRange);
    let whole = message();
    let at = whole.find('µ').unwrap();
    let mut buffer = vec![7u8; at + 2];
    assert_eq!(unsafe { tn_last_error(buffer.as_mut_ptr().cast(), buffer.len()) }, whole.len());
    assert_eq!((&buffer[..at], buffer[at]), (&whole.as_bytes()[..at], 0));
    assert_eq!(tn_set_free(set), tn_result::Ok);
}

/// Threads that share ready jobs never disturb each other: each call succeeds or finds them busy.
#[test]
fn a_second_call_at_the_same_time_is_refused() {
    let set = built_in("robot");
    let (ready, start) = (ready(set, "edf"), Barrier::new(4));
    let counted = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| {
            scope.spawn(|| {
                start.wait();
                let (mut released, mut busy) = (0, 0);
                while released < 2000 {
                    let mut job = NO_JOB;
                    match unsafe { tn_ready_release(ready, 0, &mut job) } {
                        tn_result::Ok => released += 1,
                        tn_result::Busy => busy += 1,
                        other => panic!("{other:?}: {}", message()),
                    }
                }
                busy
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(ready_count(ready), 8000, "{counted:?} calls were refused");
    assert_eq!(tn_ready_free(ready), tn_result::Ok);
    assert_eq!(tn_set_free(set), tn_result::Ok);
}
