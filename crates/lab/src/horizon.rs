//! How long to simulate when the user does not say.

use temponet_task::{Arrival, Gap, Task, TaskSet, Time};

/// Enough jobs for a stable figure, few enough for an answer at once.
const JOBS: f64 = 10_000.0;

/// The horizon of about 10 000 jobs.
pub fn default_horizon(set: &TaskSet) -> Time {
    horizon_of(set, JOBS)
}

/// A whole number of hyperperiods where they are short, else enough time for about `jobs` jobs; a list of single jobs to
/// its last deadline. Mode switches, bursts and lists beside other tasks are always included.
pub fn horizon_of(set: &TaskSet, jobs: f64) -> Time {
    let listed = set.tasks.iter().filter_map(|task| match &task.arrival {
        Arrival::Listed(jobs) => jobs.iter().map(|job| job.deadline).max(),
        _ => None,
    });
    let last_listed = listed.max().unwrap_or_default();
    let rate: f64 = set.tasks.iter().map(jobs_per_second).sum();
    if rate == 0.0 {
        return last_listed;
    }
    let enough = Time((jobs / rate * 1e9) as u64);
    let longest_deadline = set.tasks.iter().map(|task| task.offset + task.deadline).max().unwrap_or_default();
    let horizon = match set.hyperperiod() {
        // Every task must have a job that counts.
        Some(hyperperiod) if hyperperiod <= enough => {
            hyperperiod * (enough.0 / hyperperiod.0).max(longest_deadline.0.div_ceil(hyperperiod.0))
        }
        _ => enough.max(longest_deadline),
    };
    let last_mode = set.modes.last().map_or(Time::ZERO, |mode| mode.at + mode.at);
    let last_burst = set.tasks.iter().map(|task| match task.arrival {
        Arrival::Burst { until, .. } if until != Time::NEVER => until + task.deadline,
        _ => Time::ZERO,
    });
    horizon.max(last_listed).max(last_mode).max(last_burst.max().unwrap_or_default()).min(Time::MAX_INPUT)
}

/// About how many jobs are released before `date`.
pub fn expected_jobs(set: &TaskSet, date: Time) -> f64 {
    let listed: usize = set
        .tasks
        .iter()
        .map(|task| match &task.arrival {
            Arrival::Listed(jobs) => jobs.iter().filter(|job| job.release < date).count(),
            _ => 0,
        })
        .sum();
    listed as f64 + set.tasks.iter().map(jobs_per_second).sum::<f64>() * date.as_secs_f64()
}

fn jobs_per_second(task: &Task) -> f64 {
    match &task.arrival {
        Arrival::Periodic { period } => 1.0 / period.as_secs_f64(),
        Arrival::Sporadic { gap: Gap::Exponential { mean }, .. } => 1.0 / mean.as_secs_f64(),
        Arrival::Sporadic { minimum, gap: Gap::Uniform { max } } => 2.0 / (minimum.as_secs_f64() + max.as_secs_f64()),
        Arrival::Burst { jobs, every, .. } => f64::from(*jobs) / every.as_secs_f64(),
        Arrival::Listed(_) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::ListedJob;

    fn set(periods_us: &[u64]) -> TaskSet {
        let task = |period: &u64| Task::periodic(format!("t{period}"), Time::from_us(*period), Time(1));
        TaskSet::new("s", periods_us.iter().map(task).collect(), 1)
    }

    #[test]
    fn short_hyperperiods_are_kept_whole() {
        let horizon = default_horizon(&set(&[40_000, 60_000, 100_000]));
        assert_eq!(horizon.0 % Time::from_ms(600).0, 0);
        assert!((expected_jobs(&set(&[40_000, 60_000, 100_000]), horizon) - JOBS).abs() < 100.0);
    }

    #[test]
    fn the_longest_deadline_is_always_within() {
        let mut set = set(&[10_000, 20_000]);
        (set.tasks[1].deadline, set.tasks[1].offset) = (Time::from_secs(900), Time::from_ms(5));
        assert!(default_horizon(&set) >= set.tasks[1].deadline + set.tasks[1].offset);
        assert_eq!(default_horizon(&set).0 % Time::from_ms(20).0, 0);
    }

    #[test]
    fn long_hyperperiods_are_cut_at_ten_thousand_jobs() {
        let awkward = set(&[99_991, 99_989, 99_971]);
        assert!((expected_jobs(&awkward, default_horizon(&awkward)) - JOBS).abs() < 10.0);
    }

    #[test]
    fn single_jobs_beside_recurring_tasks_do_not_cut_them_short() {
        let mut set = set(&[40_000, 60_000]);
        let (release, deadline) = (Time::from_ms(1), Time::from_ms(9));
        let job = ListedJob { release, deadline, execution: Time(1), wcet: Time(1), criticality: 0, value: 1.0 };
        set.tasks[1].arrival = Arrival::Listed([job].into());
        assert!(expected_jobs(&set, default_horizon(&set)) > JOBS / 2.0);
        let late = ListedJob { deadline: Time::from_secs(9_000), ..job };
        set.tasks[1].arrival = Arrival::Listed([late].into());
        assert_eq!(default_horizon(&set), late.deadline);
        set.tasks.remove(0);
        assert_eq!(default_horizon(&set), late.deadline);
    }
}
