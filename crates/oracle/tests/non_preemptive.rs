//! The optimum without preemption, held against all permutations of small instances, and against the optimum with
//! preemption.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_oracle::{OracleJob, Sequence, optimum, optimum_without_preemption};
use temponet_task::Time;

const STEPS: u64 = 4_000_000;

fn random_jobs(rng: &mut Pcg64, most: usize, span: u64, weighted: bool) -> Vec<OracleJob> {
    (0..rng.random_range(1..=most))
        .map(|_| {
            let (release, execution) = (rng.random_range(0..span), rng.random_range(1..=8));
            // Some windows are too short for their jobs.
            let deadline = release + rng.random_range(execution.max(2) - 1..execution + 14);
            let weight = if weighted { f64::from(rng.random_range(1..=9)) } else { 1.0 };
            OracleJob { release: Time(release), deadline: Time(deadline), execution: Time(execution), weight }
        })
        .collect()
}

/// Greatest weight over all orders of the jobs: each job that can still be in time runs as soon as it can, or is left
/// out.
fn by_permutations(jobs: &[OracleJob], done: &mut Vec<bool>, free: Time) -> f64 {
    let mut best = 0.0f64;
    for index in 0..jobs.len() {
        let job = &jobs[index];
        let end = job.release.max(free) + job.execution;
        if !done[index] && end <= job.deadline {
            done[index] = true;
            best = best.max(job.weight + by_permutations(jobs, done, end));
            done[index] = false;
        }
    }
    best
}

/// Checks that the pieces are a schedule of the chosen jobs without preemption.
fn check(jobs: &[OracleJob], cores: usize, found: &Sequence) {
    let mut free = vec![Time::ZERO; cores];
    let mut seen = vec![false; jobs.len()];
    for piece in &found.pieces {
        let job = &jobs[piece.job];
        assert!(piece.start >= job.release && piece.end <= job.deadline, "{piece:?} {job:?}");
        assert!(piece.start >= free[piece.core] && piece.end - piece.start == job.execution, "{piece:?} {job:?}");
        assert!(!std::mem::replace(&mut seen[piece.job], true));
        free[piece.core] = piece.end;
    }
    assert_eq!(seen, found.optimum.chosen);
    let weight: f64 = jobs.iter().zip(&seen).filter(|(_, seen)| **seen).map(|(job, _)| job.weight).sum();
    assert_eq!(weight, found.optimum.lower);
    assert!(found.optimum.upper >= found.optimum.lower);
}

#[test]
fn the_search_agrees_with_all_permutations() {
    let mut rng = Pcg64::seed_from_u64(3);
    let (mut overloaded, mut preemption_helps) = (0, 0);
    for round in 0..3_000 {
        let jobs = random_jobs(&mut rng, 7, 20, round % 2 == 1);
        let expected = by_permutations(&jobs, &mut vec![false; jobs.len()], Time::ZERO);
        let found = optimum_without_preemption(&jobs, 1, STEPS);
        check(&jobs, 1, &found);
        assert!(found.optimum.is_exact(), "{jobs:?}");
        assert_eq!(found.optimum.lower, expected, "{jobs:?}");
        let with_preemption = optimum(&jobs, 1, STEPS);
        assert!(with_preemption.upper >= expected);
        overloaded += usize::from(expected < jobs.iter().map(|job| job.weight).sum());
        preemption_helps += usize::from(with_preemption.lower > expected);
    }
    assert!(overloaded > 1_000 && preemption_helps > 100, "{overloaded} {preemption_helps}");
}

#[test]
fn longer_instances_are_proved_or_bounded_and_cut_where_no_window_reaches_across() {
    let mut rng = Pcg64::seed_from_u64(4);
    let mut exact = 0;
    for round in 0..60 {
        let jobs = random_jobs(&mut rng, 60, 200, round % 2 == 1);
        let found = optimum_without_preemption(&jobs, 1, STEPS);
        check(&jobs, 1, &found);
        assert!(found.optimum.upper <= optimum(&jobs, 1, STEPS).upper + 1e-6);
        exact += usize::from(found.optimum.is_exact());
        // The same jobs twice, far apart: twice the answer.
        let again = jobs.iter().map(|job| OracleJob {
            release: job.release + Time(10_000),
            deadline: job.deadline + Time(10_000),
            ..*job
        });
        let both: Vec<OracleJob> = jobs.iter().copied().chain(again).collect();
        let twice = optimum_without_preemption(&both, 1, 2 * STEPS);
        check(&both, 1, &twice);
        if found.optimum.is_exact() && twice.optimum.is_exact() {
            assert_eq!(twice.optimum.lower, 2.0 * found.optimum.lower);
        }
    }
    assert!(exact > 40, "{exact}");
}

#[test]
fn several_cores_have_a_schedule_and_the_bound_with_preemption() {
    let mut rng = Pcg64::seed_from_u64(5);
    let mut met = 0.0;
    for _ in 0..300 {
        let (jobs, cores) = (random_jobs(&mut rng, 20, 30, false), rng.random_range(2..4));
        let found = optimum_without_preemption(&jobs, cores, STEPS / 10);
        check(&jobs, cores, &found);
        met += found.optimum.lower / found.optimum.upper.max(1.0);
    }
    assert!(met > 240.0, "{met}");
}

/// Too little effort gives bounds, not a wrong optimum.
#[test]
fn without_effort_there_are_still_valid_bounds() {
    let mut rng = Pcg64::seed_from_u64(6);
    for _ in 0..200 {
        let jobs = random_jobs(&mut rng, 7, 20, true);
        let expected = by_permutations(&jobs, &mut vec![false; jobs.len()], Time::ZERO);
        for steps in [0, 1, 10, 100] {
            let found = optimum_without_preemption(&jobs, 1, steps);
            check(&jobs, 1, &found);
            assert!(found.optimum.lower <= expected && expected <= found.optimum.upper + 1e-9, "{steps}: {jobs:?}");
        }
    }
}
