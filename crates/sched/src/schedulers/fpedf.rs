//! fpEDF: up to m − 1 tasks of highest utilization always go first, as long as each uses more than half a core; EDF
//! orders the rest. It has the best utilization bound of any scheduler with fixed job priorities: U ≤ (m + 1)/2
//! (implicit deadlines).
//!
//! Reference: Baruah, Optimal Utilization Bounds for the Fixed-Priority Scheduling of Periodic Task Systems on
//! Identical Multiprocessors, IEEE TC 53(6), 2004. Ties: equal utilizations by task index; among heavy tasks and among
//! equal deadlines the earlier release, then the lower task index.

use temponet_task::{Assignment, Job, NotApplicable, Scheduler, System, SystemView, Task, Time};

use crate::shared::ranked::Ranked;

pub(crate) struct FpEdf {
    goes_first: Vec<bool>,
    ranked: Ranked<Time>,
}

impl FpEdf {
    pub fn new() -> FpEdf {
        FpEdf { goes_first: Vec::new(), ranked: Ranked::new() }
    }
}

/// Returns, for each task, whether it goes before all others.
pub(crate) fn heavy(tasks: &[Task], cores: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by(|a, b| tasks[*b].utilization().total_cmp(&tasks[*a].utilization()));
    let mut heavy = vec![false; tasks.len()];
    for index in order.into_iter().take(cores - 1) {
        heavy[index] = tasks[index].utilization() > 0.5;
    }
    heavy
}

impl Scheduler for FpEdf {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.ranked.clear();
        self.goes_first = heavy(system.tasks(), system.cores());
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let goes_first = |job: &Job| self.goes_first[job.task];
        self.ranked.follow(view, |job| if goes_first(job) { Time::ZERO } else { job.deadline });
        self.ranked.assign(view, assignment);
    }

    fn most_ready(&self) -> usize {
        usize::MAX
    }
}
