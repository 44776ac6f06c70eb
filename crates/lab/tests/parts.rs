//! Contract on tasks with parts: every scheduler that users can name runs them or says that it does not, and none meets
//! more jobs, value or critical jobs than the clairvoyant bound, which counts each job once.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet::{ExecutionModel, Model, OnMiss, Task, TaskSet, Time};
use temponet_lab::clairvoyant::{clairvoyant, equal_optimum};
use temponet_lab::roster::Roster;
use temponet_sim::{Unobserved, Workload, simulate};
use temponet_task::{Core, CoreId, CoreSet, Preemption, Speed, TaskId};

/// A random set on two processors and a GPU, with more work than time.
fn drawn(rng: &mut Pcg64) -> TaskSet {
    let (ms, mut tasks) = (Time::from_ms, Vec::<Task>::new());
    for number in 0..rng.random_range(2..6) {
        let (period, count) = (rng.random_range(10..40), rng.random_range(1..4));
        let before = tasks.len().checked_sub(1).map(TaskId::new).filter(|_| rng.random_bool(0.3));
        let (deadline, level) = (ms(rng.random_range(period / 2..period + 10)), rng.random_range(0..3));
        for place in 0..count {
            let is_part = place + 1 < count;
            let name = if is_part { format!("t{number} (part {place})") } else { format!("t{number}") };
            let mut task = Task::periodic(name, ms(period), ms(rng.random_range(1..2 + period / 4)));
            (task.is_part, task.deadline, task.criticality, task.value) =
                (is_part, deadline, level, 1.0 + f64::from(level));
            if place == 1 {
                task.cores = CoreSet::of([CoreId(2)]);
                task.preemption = if number % 2 == 0 { Preemption::None } else { Preemption::Free };
            }
            if rng.random_bool(0.5) {
                (task.bcet, task.execution) = (Time(task.wcet.0 / 3), ExecutionModel::Uniform);
            }
            task.after = if place > 0 { vec![TaskId::new(tasks.len() - 1)] } else { before.into_iter().collect() };
            tasks.push(task);
        }
    }
    let mut set = TaskSet::new("drawn", tasks, 3);
    let cpu = || Core::new("cpu", Speed::FULL);
    let gpu = Core::new("gpu", Speed(rng.random_range(1..4) * 500)).with_only(true);
    set.system.set_machine(vec![cpu(), cpu(), gpu]);
    set.system.follow_sources().unwrap();
    set.system.set_on_miss(if rng.random_bool(0.5) { OnMiss::Abort } else { OnMiss::Continue });
    assert_eq!(set.system.validate(), Ok(()));
    set
}

#[test]
fn nobody_meets_more_than_the_clairvoyant_bound() {
    let roster = Roster::with(Model::built_in().unwrap());
    let mut rng = Pcg64::seed_from_u64(21);
    let (mut ran, mut tight, horizon) = (0, 0, Time::from_ms(400));
    for case in 0..40 {
        let set = drawn(&mut rng);
        let bound = clairvoyant(&set, horizon, case, 1, 0.2).unwrap();
        let jobs = Workload::counted(&set, case, horizon).len() as u64;
        assert_eq!(bound.released, jobs);
        let equal = equal_optimum(&set, case, horizon, 2_000_000).unwrap();
        assert_eq!(equal.1, jobs);
        // Few sets are run by all.
        let names: Vec<String> = match case {
            0..4 => roster.names(),
            _ => ["edf", "srpt", "mh-edf", "look-ahead", "shield:srpt", "edf-chain"].map(String::from).to_vec(),
        };
        let mut best = 0;
        for name in names {
            let mut scheduler = roster.build(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
            let Ok(metrics) = simulate(&set, case, horizon, &mut *scheduler, &mut Unobserved) else { continue };
            ran += 1;
            assert_eq!(metrics.jobs.released, jobs, "{name}: {set:?}");
            let [met, critical] = [metrics.jobs.met, metrics.critical().met].map(|count| count as f64);
            assert!(met <= bound.met.upper && met <= equal.0.upper, "{name}: {met} > {:?}: {set:?}", bound.met);
            assert!(metrics.value <= bound.value.map_or(f64::MAX, |range| range.upper) + 1e-6, "{name}: {set:?}");
            assert!(critical <= bound.critical.map_or(f64::MAX, |range| range.upper), "{name}: {set:?}");
            best = best.max(metrics.jobs.met);
        }
        tight += usize::from(best as f64 >= 0.9 * bound.met.upper);
    }
    assert!(ran > 300 && tight > 10, "{ran} runs, {tight} of 40 bounds within a tenth of the best");
}
