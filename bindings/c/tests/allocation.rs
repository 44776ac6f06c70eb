//! Contract: once a load has been seen, nothing that a program reports or asks allocates memory. This test is a binary
//! of its own because it counts all allocations.
#![allow(unsafe_code, reason = "calls of the C interface")]

#[path = "../../../crates/infer/tests/allocation/counting.rs"]
mod counting;
#[path = "suite/texts.rs"]
mod texts;

use counting::allocations;
use temponet_c::*;
use texts::{IDLE, UNDECIDED, message, parsed, ready};

/// Twenty tasks on two cores, of whose utilization this is the sum. Their periods divide 40 ms.
fn set(utilization: f64) -> tn_set {
    let mut text = String::from("cores = 2\n");
    for task in 0..20u64 {
        let period = [5_000, 8_000, 10_000, 20_000, 40_000][task as usize % 5];
        let wcet = (period as f64 * utilization / 20.0) as u64;
        text += &format!("[[task]]\nname = \"t{task}\"\nperiod = \"{period}us\"\nwcet = \"{wcet}us\"\n");
    }
    parsed(&text, 0).unwrap()
}

/// Number of decisions, of allocations in the first 100 ms, and of allocations in the 400 ms after them.
fn run(set: tn_set, scheduler: &str) -> (u64, u64, u64) {
    let ready = ready(set, scheduler);
    let (mut decisions, mut first, mut later) = (0, 0, 0);
    let mut cores = [IDLE; 2];
    for now in (0..500_000_000u64).step_by(1_000_000) {
        let before = allocations();
        unsafe {
            assert_eq!(tn_ready_advance(ready, now), tn_result::Ok);
            for core in cores.iter().filter(|core| core.job.of != 0) {
                let mut state = std::mem::zeroed::<tn_job_state>();
                // A job that its deadline has passed leaves with the next decision.
                assert_eq!(tn_ready_job(ready, core.job, &mut state), tn_result::Ok, "{}", message());
                if state.executed_ns >= state.wcet_ns {
                    assert_eq!(tn_ready_complete(ready, core.job, std::ptr::null_mut()), tn_result::Ok);
                }
            }
            for task in 0..20 {
                let period = [5, 8, 10, 20, 40][task % 5] * 1_000_000;
                if now % period == 0 {
                    let mut job = tn_job { of: 0, value: 0 };
                    assert_eq!(tn_ready_release(ready, task, &mut job), tn_result::Ok);
                }
            }
            let mut decision = UNDECIDED;
            assert_eq!(tn_ready_decide(ready, cores.as_mut_ptr(), 2, &mut decision), tn_result::Ok, "{}", message());
            for place in 0..decision.stopped {
                let mut stopped = std::mem::zeroed::<tn_stopped>();
                assert_eq!(tn_ready_stopped(ready, place, &mut stopped), tn_result::Ok);
                assert!(stopped.is_late);
            }
        }
        *if now < 100_000_000 { &mut first } else { &mut later } += allocations() - before;
        decisions += 1;
    }
    assert_eq!(tn_ready_free(ready), tn_result::Ok);
    (decisions, first, later)
}

#[test]
fn a_decision_does_not_allocate() {
    for utilization in [1.2, 2.6] {
        let set = set(utilization);
        for scheduler in ["edf", "mh-edf", "shield:srpt", "temponet", "temponet-unshielded"] {
            let (decisions, first, later) = run(set, scheduler);
            assert_eq!((decisions, later), (500, 0), "{scheduler} at {utilization}");
            assert!(first > 0, "{scheduler} at {utilization}: the counter counts");
        }
        assert_eq!(tn_set_free(set), tn_result::Ok);
    }
}
