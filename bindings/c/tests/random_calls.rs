//! Contract: no sequence of calls, with handles and jobs that are right, stale, foreign, null or made up, does anything
//! but succeed or return an error of the kind; what has been freed stays freed.
//!
//! A test binary of its own: handles that are made up may name what other tests have made.
#![allow(unsafe_code, reason = "calls of the C interface")]

#[path = "suite/texts.rs"]
mod texts;

use std::ptr::null_mut;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_c::*;

use texts::{IDLE, NULL_MODEL, UNDECIDED, c, message};

/// A value of the list, of another one, or made up.
fn any(rng: &mut Pcg64, own: &[u64], other: &[u64]) -> u64 {
    let among = |rng: &mut Pcg64, list: &[u64]| if list.is_empty() { 0 } else { list[rng.random_range(0..list.len())] };
    match rng.random_range(0..20) {
        0 => 0,
        1 => among(rng, other),
        2 => rng.random(),
        3 => among(rng, own) ^ (1 << rng.random_range(0..64)),
        _ => among(rng, own),
    }
}

/// Files of random pieces, some of which are task sets.
fn text(rng: &mut Pcg64) -> String {
    const PIECES: [&str; 12] = [
        "[[task]]\n",
        "name = \"a\"\n",
        "name = \"b\"\n",
        "period = \"4ms\"\n",
        "wcet = \"1ms\"\n",
        "cores = 2\n",
        "{",
        "}",
        "\"tasks\": [",
        "name,period,wcet\n",
        "<simulation",
        "\u{feff}µ\0",
    ];
    match rng.random_range(0..3) {
        0 => "[[task]]\nname = \"a\"\nperiod = \"4ms\"\nwcet = \"1ms\"\n[[task]]\nname = \"b\"\nperiod = \"5ms\"\nwcet = \"3ms\"\n".into(),
        _ => (0..rng.random_range(0..12)).map(|_| PIECES[rng.random_range(0..PIECES.len())]).collect(),
    }
}

fn play(seed: u64, calls: usize) -> [usize; 2] {
    let mut rng = Pcg64::seed_from_u64(seed);
    let (mut sets, mut loops, mut texts, mut jobs): (Vec<u64>, Vec<u64>, Vec<u64>, Vec<tn_job>) = Default::default();
    let mut outcomes = [0; 2];
    for _ in 0..calls {
        let set = tn_set { value: any(&mut rng, &sets, &loops) };
        let ready = tn_ready { value: any(&mut rng, &loops, &sets) };
        let shown = tn_text { value: any(&mut rng, &texts, &loops) };
        let job = match jobs.len() {
            0 => tn_job { of: rng.random(), value: rng.random() },
            count => jobs[rng.random_range(0..count)],
        };
        let (task, at) = (rng.random_range(0..3), rng.random_range(0u64..1 << 34));
        let mut made_set = tn_set { value: 0 };
        let mut made_loop = tn_ready { value: 0 };
        let mut made_text = tn_text { value: 0 };
        let mut made_job = tn_job { of: 0, value: 0 };
        let (mut cores, mut decision, mut now) = ([IDLE; 4], UNDECIDED, 0);
        let result = unsafe {
            match rng.random_range(0..24) {
                0 | 1 => {
                    let source = text(&mut rng);
                    let format = rng.random_range(0..6);
                    tn_set_parse(source.as_ptr().cast(), source.len(), format, std::ptr::null(), &mut made_set)
                }
                2 if rng.random_range(0..3) == 0 => tn_set_free(set),
                3 | 4 => {
                    let names = ["edf", "llf", "mh-edf", "shield:srpt", "rm", "no-such", "p-edf:fit=best"];
                    let name = c(names[rng.random_range(0..names.len())]);
                    tn_ready_new(set, name.as_ptr(), NULL_MODEL, &mut made_loop)
                }
                5 if rng.random_range(0..3) == 0 => tn_ready_free(ready),
                6 => tn_set_guarantee(set, &mut made_text),
                7 => tn_text_free(shown),
                8 => tn_text_copy(shown, cores.as_mut_ptr().cast(), size_of_val(&cores), null_mut()),
                9 => tn_ready_job(ready, job, &mut std::mem::zeroed()),
                10 => tn_ready_abort(ready, job),
                11 | 12 => tn_ready_complete(ready, job, null_mut()),
                13 => {
                    tn_ready_now(ready, &mut now);
                    tn_ready_advance(ready, now.saturating_add(at >> 10))
                }
                14 => tn_ready_advance(ready, at),
                15 => tn_ready_set_executed(ready, job, at),
                16 => {
                    let mut release = std::mem::zeroed();
                    tn_ready_now(ready, &mut now);
                    tn_ready_usual_release(ready, task, now, &mut release);
                    release.wcet_ns ^= rng.random_range(0..3);
                    release.estimate_median_ns = rng.random_range(0..4);
                    release.estimate_high_ns = rng.random_range(0..4);
                    tn_ready_release_with(ready, task, &release, &mut made_job)
                }
                17 | 18 => tn_ready_release(ready, task, &mut made_job),
                19 => tn_ready_start(ready, c("llf").as_ptr(), NULL_MODEL),
                _ => tn_ready_decide(ready, cores.as_mut_ptr(), rng.random_range(0..5), &mut decision),
            }
        };
        assert!(
            !matches!(result, tn_result::Panic | tn_result::Broken | tn_result::Assignment),
            "{result:?}: {}",
            message()
        );
        outcomes[usize::from(result == tn_result::Ok)] += 1;
        if result != tn_result::Ok {
            assert!(!message().is_empty());
            assert_eq!((made_set.value, made_loop.value, made_text.value, made_job.of), (0, 0, 0, 0), "{result:?}");
        }
        sets.extend(Some(made_set.value).filter(|value| *value > 0));
        loops.extend(Some(made_loop.value).filter(|value| *value > 0));
        texts.extend(Some(made_text.value).filter(|value| *value > 0));
        jobs.extend(Some(made_job).filter(|job| job.of > 0));
    }
    for value in sets {
        tn_set_free(tn_set { value });
        assert_eq!(tn_set_free(tn_set { value }), tn_result::StaleHandle);
    }
    for value in loops {
        tn_ready_free(tn_ready { value });
        assert_eq!(tn_ready_advance(tn_ready { value }, 0), tn_result::StaleHandle);
    }
    for value in texts {
        tn_text_free(tn_text { value });
    }
    outcomes
}

#[test]
fn random_sequences_of_calls() {
    let mut outcomes = [0; 2];
    for seed in 0..40 {
        let [errors, successes] = play(seed, 1500);
        outcomes = [outcomes[0] + errors, outcomes[1] + successes];
    }
    assert!(outcomes.iter().all(|count| *count > 10_000), "errors and successes: {outcomes:?}");
}
