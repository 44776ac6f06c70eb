//! Contract: the clairvoyant optimum is the optimum. Brute force, Lawler's dynamic program and theory agree with it, and no scheduler beats it.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_sched::oracle::{OracleJob, Piece, lawler, optimum, schedule};
use temponet_task::Time;

const STEPS: u64 = 40_000_000;

fn job(release: u64, execution: u64, deadline: u64) -> OracleJob {
    OracleJob { release: Time(release), deadline: Time(deadline), execution: Time(execution), weight: 1.0 }
}

/// Random jobs of a few ticks; every third list is bursty: many released together.
fn random_jobs(n: usize, span: u64, rng: &mut Pcg64) -> Vec<OracleJob> {
    let burst = rng.random_range(0..3) == 0;
    let draw = |rng: &mut Pcg64| {
        let release = if burst { rng.random_range(0..3) * span / 3 } else { rng.random_range(0..span) };
        let execution = rng.random_range(1..8);
        job(release, execution, release + execution + rng.random_range(0..10))
    };
    (0..n).map(|_| draw(rng)).collect()
}

/// Whether these jobs can be in time together, by the plainest max-flow there is: unit steps of work, one at a time.
fn fits(jobs: &[OracleJob], cores: usize) -> bool {
    let end = jobs.iter().map(|job| job.deadline.0).max().unwrap_or(0) as usize;
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); end];
    fn place(job: usize, jobs: &[OracleJob], cores: usize, users: &mut [Vec<usize>], seen: &mut [bool]) -> bool {
        for tick in jobs[job].release.0 as usize..jobs[job].deadline.0 as usize {
            if seen[tick] || users[tick].contains(&job) {
                continue;
            }
            seen[tick] = true;
            if users[tick].len() < cores {
                users[tick].push(job);
                return true;
            }
            for index in 0..users[tick].len() {
                let other = users[tick][index];
                if place(other, jobs, cores, users, seen) {
                    users[tick][index] = job;
                    return true;
                }
            }
        }
        false
    }
    for (index, job) in jobs.iter().enumerate() {
        for _ in 0..job.execution.0 {
            if !place(index, jobs, cores, &mut users, &mut vec![false; end]) {
                return false;
            }
        }
    }
    true
}

fn brute_force(jobs: &[OracleJob], cores: usize) -> f64 {
    let subset = |mask: u32| -> Vec<OracleJob> {
        (0..jobs.len()).filter(|index| mask >> index & 1 == 1).map(|index| jobs[index]).collect()
    };
    let mut subsets: Vec<(f64, u32)> =
        (0..1 << jobs.len()).map(|mask| (subset(mask).iter().map(|job| job.weight).sum(), mask)).collect();
    subsets.sort_by(|a, b| b.0.total_cmp(&a.0));
    subsets.into_iter().find(|(_, mask)| fits(&subset(*mask), cores)).map_or(0.0, |(weight, _)| weight)
}

/// The schedule does what it says: whole jobs, inside their windows, one core each, one job a core.
fn assert_legal(jobs: &[OracleJob], chosen: &[bool], cores: usize, pieces: &[Piece]) {
    for (index, job) in jobs.iter().enumerate() {
        let mut own: Vec<&Piece> = pieces.iter().filter(|piece| piece.job == index).collect();
        own.sort_by_key(|piece| piece.start);
        let done: u64 = own.iter().map(|piece| (piece.end - piece.start).0).sum();
        assert_eq!(done, if chosen[index] { job.execution.0 } else { 0 });
        assert!(own.iter().all(|piece| piece.start >= job.release && piece.end <= job.deadline));
        assert!(own.windows(2).all(|pair| pair[0].end <= pair[1].start), "a job on two cores at once");
    }
    for core in 0..cores {
        let mut own: Vec<&Piece> = pieces.iter().filter(|piece| piece.core == core).collect();
        own.sort_by_key(|piece| piece.start);
        assert!(own.windows(2).all(|pair| pair[0].end <= pair[1].start), "two jobs on one core at once");
    }
    assert!(pieces.iter().all(|piece| piece.core < cores));
}

#[test]
fn it_agrees_with_brute_force_on_small_instances() {
    let mut rng = Pcg64::seed_from_u64(1);
    let mut missed = 0;
    for case in 0..6_000 {
        let cores = 1 + case % 3;
        let n = rng.random_range(1..=8);
        let mut jobs = random_jobs(n, 12 / cores as u64, &mut rng);
        match case % 4 {
            1 => jobs.iter_mut().for_each(|job| job.weight = f64::from(rng.random_range(1..10))),
            2 => jobs.iter_mut().for_each(|job| job.weight = rng.random_range(0.1..5.0)),
            _ => {}
        }
        let found = optimum(&jobs, cores, STEPS);
        let best = brute_force(&jobs, cores);
        assert!(found.is_exact(), "{cores} cores, {jobs:?}: {found:?}");
        assert!((found.lower - best).abs() < 1e-9, "{cores} cores, {jobs:?}: {found:?}, not {best}");
        let pieces = schedule(&jobs, &found.chosen, cores).expect("the chosen jobs fit");
        assert_legal(&jobs, &found.chosen, cores, &pieces);
        missed += usize::from(best + 1e-9 < jobs.iter().map(|job| job.weight).sum());
    }
    assert!(missed > 1_200, "the instances are overloaded: {missed}");
}

#[test]
fn it_agrees_with_lawlers_dynamic_program_on_larger_ones() {
    let mut rng = Pcg64::seed_from_u64(2);
    for _ in 0..150 {
        let n = rng.random_range(10..=24);
        let jobs = random_jobs(n, 40, &mut rng);
        let found = optimum(&jobs, 1, STEPS);
        assert!(found.is_exact() && found.lower == lawler(&jobs) as f64, "{jobs:?}: {found:?}");
    }
}
