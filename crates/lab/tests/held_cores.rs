//! Contract: every scheduler that users can name runs sets whose jobs hold their cores, or says that it does not. None
//! takes a job off the core it holds, which the simulator would report as an error of the scheduler.

use temponet::{ExecutionModel, Model, OnMiss, Preemption, Task, TaskSet, Time};
use temponet_lab::roster::Roster;
use temponet_sim::{Unobserved, simulate};

fn set(cores: usize, on_miss: OnMiss) -> TaskSet {
    let ms = Time::from_ms;
    let task = |k: u64| {
        let preemption = [Preemption::None, Preemption::Free, Preemption::Every(ms(2))][k as usize % 3];
        let task = Task::periodic(format!("t{k}"), ms(9 + 4 * k), ms(4 + k));
        task.with_bcet(ms(1))
            .with_execution(ExecutionModel::Uniform)
            .with_criticality((k % 2) as u8)
            .with_preemption(preemption)
    };
    let mut set = TaskSet::new("held", (0..4 * cores as u64).map(task).collect(), cores);
    set.system.set_on_miss(on_miss);
    set
}

#[test]
fn no_scheduler_takes_a_job_off_the_core_it_holds() {
    let roster = Roster::with(Model::built_in().unwrap());
    let slow = ["planner:futures=2".to_string()];
    let mut ran = 0;
    for (cores, on_miss) in [(1, OnMiss::Abort), (2, OnMiss::Abort), (2, OnMiss::Continue)] {
        let set = set(cores, on_miss);
        for name in roster.names().into_iter().chain(slow.clone()) {
            let mut scheduler = roster.build(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
            match simulate(&set, 1, Time::from_ms(300), &mut *scheduler, &mut Unobserved) {
                Ok(metrics) => ran += usize::from(metrics.jobs.released > 20),
                Err(error) => {
                    let words = error.to_string();
                    let is_known = words.contains("which task \"t0\" does not allow")
                        || words.contains("it is for tasks that come after each other");
                    assert!(is_known, "{name}: {error}")
                }
            }
        }
    }
    assert!(ran > 3 * 30, "{ran}");
}
