//! Two worlds that differ only in what comes after a date, in arrivals and in execution times that no job has reached.
//! A scheduler that knows no more than it may decides the same in both until then.

use std::sync::Arc;
use temponet_task::TaskId;

use temponet::{Arrival, Assignment, ExecutionModel, ListedJob, Scheduler, SystemView, Task, TaskSet, Time};
use temponet_sim::{Unobserved, simulate};

fn ms(time: u64) -> Time {
    Time::from_ms(time)
}

/// Task and number of the job on each core.
type Choice = Vec<Option<(TaskId, u64)>>;

/// Keeps what a scheduler decides up to a time.
struct Noting {
    inner: Box<dyn Scheduler>,
    until: Time,
    decisions: Vec<(Time, Choice)>,
}

impl temponet::Wrapper for Noting {
    temponet_task::wraps!(inner: Box<dyn Scheduler>);

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        Scheduler::decide(&mut self.inner, view, assignment);
        if view.now < self.until {
            let name = |id: &temponet::JobId| (view.job(*id).task, view.job(*id).number);
            self.decisions.push((view.now, assignment.cores().iter().map(|id| id.as_ref().map(name)).collect()));
        }
    }
}

/// Checks that a scheduler decides the same in both worlds up to the date at which they part.
pub fn assert_same_decisions(scheduler: impl Fn() -> Box<dyn Scheduler>) {
    let until = ms(300);
    let job = |k: u64, is_other: bool| {
        let is_late = 7 * k >= 300 && is_other;
        ListedJob::new(
            ms(7 * k + if is_late { 3 } else { 0 }),
            ms(7 * k + 19),
            Time::from_us(if is_late { 900 } else { 3_000 + 700 * (k % 9) }),
        )
        .with_wcet(ms(if is_late { 1 } else { 9 }))
        .with_bcet(Time(1))
    };
    let decisions = |is_other: bool| {
        let jobs: Arc<[ListedJob]> = (0..90).map(|k| job(k, is_other)).collect();
        let listed = Task::periodic("list", ms(7), ms(9)).with_arrival(Arrival::Listed(jobs));
        // Short jobs that recur decide how long a future is; the listed ones must not.
        let samples = [1, 1, 1, 1, 1, 1, 1, 1, 1, 40].map(|quarters| Time::from_us(225 * quarters)).into();
        let short =
            Task::periodic("p", ms(10), ms(9)).with_bcet(Time(1)).with_execution(ExecutionModel::Empirical { samples });
        let set = TaskSet::new("list", vec![listed, short.clone(), short.with_name("q".into())], 1);
        let mut noting = Noting { inner: scheduler(), until, decisions: Vec::new() };
        simulate(&set, 1, ms(600), &mut noting, &mut Unobserved).unwrap();
        noting.decisions
    };
    let (one, other) = (decisions(false), decisions(true));
    assert!(one.len() > 60);
    assert_eq!(one, other);
}
