//! Necessary conditions: a reason why no scheduler can meet every deadline that needs no test.
//!
//! The conditions count what the cores of a task can do for it. They are not complete: a set without such a reason may still be infeasible.

use temponet_task::{CoreId, CoreSet, TaskId, Time};

use super::fractions::MARGIN;
use super::worst_case::WorstCase;

/// A reason why no scheduler can meet every deadline if jobs arrive as often and take as long as they may.
#[derive(Clone, Debug, PartialEq)]
pub enum Impossible {
    /// A job alone takes longer than its deadline.
    Job {
        /// Its task.
        task: TaskId,
        /// Time that the job takes on the fastest core that it may use.
        time: Time,
    },
    /// Tasks that may use no other cores overload these.
    Cores {
        /// The cores, ascending.
        cores: Vec<CoreId>,
        /// Utilization of the tasks that may use no other cores, as work at full speed.
        utilization: f64,
        /// Total speed of the cores.
        speed: f64,
    },
}

/// Returns a reason why no scheduler can meet every deadline; `None` if neither a job alone nor the tasks bound to the same cores show one.
pub fn impossible(worst_case: &WorstCase) -> Option<Impossible> {
    hopeless_job(worst_case).or_else(|| overloaded_cores(worst_case))
}

fn hopeless_job(worst_case: &WorstCase) -> Option<Impossible> {
    worst_case.tasks.iter().enumerate().find_map(|(place, task)| {
        let own = CoreId::all(worst_case.cores).filter(|core| worst_case.may_use(place, *core));
        let fastest = own.map(|core| worst_case.speed(core)).max_by_key(|speed| speed.0)?;
        let time = fastest.time_for(task.wcet - worst_case.switching);
        (time > task.deadline).then_some(Impossible::Job { task: task.id, time })
    })
}

fn overloaded_cores(worst_case: &WorstCase) -> Option<Impossible> {
    if worst_case.has_end || !worst_case.is_bound() {
        return None;
    }
    // Utilization by the cores that tasks may use, switching not included.
    let mut loads: Vec<(&CoreSet, f64)> = Vec::new();
    for (task, allowed) in worst_case.tasks.iter().zip(&worst_case.allowed) {
        let work = (task.wcet - worst_case.switching).0 as f64 * f64::from(task.jobs);
        let utilization = work / task.period.0 as f64;
        match loads.iter_mut().find(|(known, _)| *known == allowed) {
            Some((_, load)) => *load += utilization,
            None => loads.push((allowed, utilization)),
        }
    }
    let all = worst_case.cores;
    loads.iter().find_map(|(cores, _)| {
        let is_within = |other: &CoreSet| other.iter(all).all(|core| cores.contains(core));
        let utilization: f64 = loads.iter().filter(|(other, _)| is_within(other)).map(|(_, load)| load).sum();
        let cores: Vec<CoreId> = cores.iter(all).collect();
        let speed: f64 = cores.iter().map(|core| worst_case.speed(*core).as_f64()).sum();
        (utilization > speed * (1.0 + MARGIN)).then_some(Impossible::Cores { cores, utilization, speed })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{Core, Speed, Task, TaskSet};

    /// Two cores, the second of them with a tenth of the speed of the first.
    fn machine(tasks: Vec<Task>) -> TaskSet {
        let core = |name: &str, speed: u32| Core { name: name.into(), speed: Speed(speed) };
        TaskSet::new("s", tasks, 2).with_machine(vec![core("big", 1000), core("lit", 100)])
    }

    fn bound(name: &str, wcet: u64, cores: &[u32]) -> Task {
        Task::periodic(name, Time(100), Time(wcet)).with_cores(CoreSet::of(cores.iter().copied().map(CoreId)))
    }

    fn found(tasks: Vec<Task>) -> Option<Impossible> {
        impossible(&WorstCase::of(&machine(tasks)).unwrap())
    }

    #[test]
    fn a_job_that_is_too_long_for_its_fastest_core_is_hopeless() {
        let free = || Task::periodic("free", Time(100), Time(50));
        assert_eq!(found(vec![free(), bound("a", 10, &[1])]), None, "all of the slow core");
        let late = Some(Impossible::Job { task: TaskId(1), time: Time(110) });
        assert_eq!(found(vec![free(), bound("a", 11, &[1])]), late);
        assert_eq!(found(vec![free(), bound("a", 11, &[0, 1])]), None, "the other core is fast enough");
    }

    #[test]
    fn tasks_that_share_their_only_cores_overload_them_together() {
        let two = |a: u64, b: u64| found(vec![bound("a", a, &[1]), bound("b", b, &[1]), bound("c", 50, &[0, 1])]);
        assert_eq!(two(5, 5), None);
        let Some(Impossible::Cores { cores, utilization, speed }) = two(5, 6) else { panic!("not found") };
        assert_eq!((cores, (100.0 * utilization).round(), speed), (vec![CoreId(1)], 11.0, 0.1));
    }
}
