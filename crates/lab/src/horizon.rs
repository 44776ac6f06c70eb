//! The length of a run if the user does not give one, and estimates of the number of jobs up to a time.

use temponet_task::{Arrival, Preemption, Task, TaskId, TaskSet, Time};
use temponet_wording::behind_noun;

/// Approximate number of jobs of a default run: enough for stable figures, few enough for an immediate answer.
const JOBS: f64 = 10_000.0;

/// Factor by which rare tasks, late modes and bursts may increase the number of jobs. Without a limit, a task with a
/// period of a microsecond beside one of a day would mean 10¹¹ jobs.
const MOST_LONGER: f64 = 20.0;

/// Further factor if otherwise no deadline would lie within the run, as with a burst of a million jobs.
const MOST_FOR_ANY: f64 = 10.0;

/// Number of preemption points, locks and unlocks for each of the wanted jobs that a default run does not exceed. Every
/// one of them takes about as long as a decision, and a job can have a million.
const MOST_POINTS: f64 = 100.0;

/// Returns the horizon of about 10 000 jobs; see [`horizon_of`].
pub fn default_horizon(set: &TaskSet) -> Time {
    horizon_of(set, JOBS)
}

/// Returns a horizon of about `jobs` jobs.
///
/// It is a whole number of hyperperiods if they are short. A set of listed jobs alone runs to its last deadline. Mode
/// switches, bursts, listed jobs beside other tasks, and a job of every task are included as long as that takes at most
/// 20 times as many jobs; [`unseen`] names the tasks that are not. Jobs with more than 100 preemption points, locks
/// and unlocks on average make the run shorter.
pub fn horizon_of(set: &TaskSet, jobs: f64) -> Time {
    let listed = set.tasks().iter().filter_map(|task| match &task.arrival {
        Arrival::Listed(jobs) => jobs.iter().map(|job| job.deadline).max(),
        _ => None,
    });
    let last_listed = listed.max().unwrap_or_default();
    let rate = jobs_per_second(set);
    let few_points = |date| bounded(set, date, jobs * MOST_POINTS, expected_points);
    if rate == 0.0 {
        return few_points(last_listed);
    }
    let enough = Time((jobs / rate * 1e9) as u64);
    let longest_deadline = set.tasks().iter().map(|task| task.offset + task.deadline).max().unwrap_or_default();
    let horizon = match set.hyperperiod() {
        // Every task should have a job that counts.
        Some(hyperperiod) if hyperperiod <= enough => {
            hyperperiod * (enough.0 / hyperperiod.0).max(longest_deadline.0.div_ceil(hyperperiod.0))
        }
        _ => enough.max(longest_deadline),
    };
    let last_mode = set.modes().last().map_or(Time::ZERO, |mode| mode.at + mode.at);
    let last_burst = set.tasks().iter().map(|task| match task.arrival {
        Arrival::Burst { until, .. } if until != Time::NEVER => until + task.deadline,
        _ => Time::ZERO,
    });
    let wanted = horizon.max(last_listed).max(last_mode).max(last_burst.max().unwrap_or_default()).min(Time::MAX_INPUT);
    few_points(bounded(set, wanted, jobs * MOST_LONGER, expected_jobs))
}

/// Returns `date`, or an earlier time up to which `count` finds at most about `most`.
fn bounded(set: &TaskSet, date: Time, most: f64, count: fn(&TaskSet, Time) -> f64) -> Time {
    if count(set, date) <= most {
        return date;
    }
    let latest = |most: f64| latest(date, |date| count(set, date) <= most);
    let first = set.tasks().iter().filter_map(first_deadline).min().unwrap_or_default();
    match latest(most) {
        early if early < first => latest(most * MOST_FOR_ANY),
        late => late,
    }
}

/// Returns the latest time, at most `date`, that is still early enough.
fn latest(date: Time, is_early: impl Fn(Time) -> bool) -> Time {
    let (mut low, mut high) = (1, date.0.saturating_add(1));
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if is_early(Time(middle)) { low = middle } else { high = middle }
    }
    Time(low)
}

fn first_deadline(task: &Task) -> Option<Time> {
    match &task.arrival {
        Arrival::Listed(jobs) => jobs.iter().map(|job| job.deadline).min(),
        _ => Some(task.offset + task.deadline),
    }
}

/// Greatest number of tasks that a note names.
const MOST_NAMED: usize = 3;

/// Names what a run up to `horizon` says nothing about, a sentence each without its full stop: tasks whose first
/// deadline lies beyond it, and modes that begin beyond it.
pub fn unseen(set: &TaskSet, horizon: Time) -> Vec<String> {
    let modes = set.modes().iter().filter(|mode| mode.at >= horizon);
    let modes: Vec<String> = modes.map(|mode| format!("{} (at {})", mode.name, mode.at)).collect();
    let modes = (!modes.is_empty()).then(|| {
        let names = behind_noun("mode", modes.iter().map(String::as_str), MOST_NAMED);
        format!("nothing was run in {names}, beyond the horizon of {horizon}")
    });
    uncounted(set, horizon).into_iter().chain(modes).collect()
}

fn uncounted(set: &TaskSet, horizon: Time) -> Option<String> {
    let whole = set.tasks().iter().filter(|task| !task.is_part);
    let beyond = whole.filter_map(|task| Some((task, first_deadline(task)?)));
    let beyond: Vec<(&Task, Time)> = beyond.filter(|(_, deadline)| *deadline > horizon).collect();
    let longest = beyond.iter().map(|(_, deadline)| *deadline).max()?;
    let names: Vec<String> = beyond.iter().take(MOST_NAMED).map(|(task, _)| format!("{:?}", task.name)).collect();
    let others = beyond.len() - names.len();
    let names = match (&names[..], others) {
        ([one], 0) => format!("task {one}"),
        ([some @ .., last], 0) => format!("tasks {} and {last}", some.join(", ")),
        (some, others) => format!("tasks {} and {others} more", some.join(", ")),
    };
    Some(format!(
        "no job of {names} counts: the first deadline is beyond the horizon of {horizon}; a horizon of {longest} is about {:.0} jobs",
        expected_jobs(set, longest)
    ))
}

/// Returns the approximate number of jobs released before `date`. Bursts count as a whole.
pub fn expected_jobs(set: &TaskSet, date: Time) -> f64 {
    set.whole_tasks().map(|task| jobs_of(set, task, date)).sum()
}

/// Returns the approximate number of preemption points, locks and unlocks of the jobs released before `date`, if all of
/// them execute.
fn expected_points(set: &TaskSet, date: Time) -> f64 {
    let of_job = |task: &Task| {
        let points = match task.preemption {
            Preemption::Every(every) => task.wcet.0 / every.0.max(1),
            _ => 0,
        };
        (points + 2 * task.sections.len() as u64) as f64
    };
    set.task_ids().map(|id| of_job(&set.tasks()[id]) * jobs_of(set, id, date)).sum()
}

fn jobs_of(set: &TaskSet, id: TaskId, date: Time) -> f64 {
    let task = &set.tasks()[id];
    if let Arrival::Listed(jobs) = &task.arrival {
        return jobs.iter().filter(|job| job.release < date).count() as f64;
    }
    let end = match task.arrival {
        Arrival::Burst { until, .. } => date.min(until),
        _ => date,
    };
    // Interval by interval, from the start of one mode to that of the next. Before the first mode, none applies.
    let mut arrivals = 0.0;
    for number in 0..=set.modes().len() {
        let mode = number.checked_sub(1).map(|before| &set.modes()[before]);
        let is_silent = mode.is_some_and(|mode| mode.stops(id));
        let from = mode.map_or(Time::ZERO, |mode| mode.at).max(task.offset);
        let to = set.modes().get(number).map_or(end, |next| next.at.min(end));
        if !is_silent && from < to {
            arrivals +=
                (to - from).as_secs_f64() * arrivals_per_second(task) * mode.map_or(1.0, |mode| mode.rate_of(id));
        }
    }
    match task.arrival {
        Arrival::Burst { jobs, .. } => f64::from(jobs) * arrivals.ceil(),
        _ => arrivals,
    }
}

/// Returns the number of jobs per second of all recurring tasks, in the long run and without modes.
pub fn jobs_per_second(set: &TaskSet) -> f64 {
    set.tasks().iter().filter(|task| !task.is_part).map(Task::jobs_per_second).sum()
}

fn arrivals_per_second(task: &Task) -> f64 {
    match task.arrival {
        Arrival::Burst { every, .. } => 1.0 / every.as_secs_f64(),
        _ => task.jobs_per_second(),
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
        (set.system.tasks_mut()[1].deadline, set.system.tasks_mut()[1].offset) =
            (Time::from_secs(600), Time::from_ms(5));
        assert!(default_horizon(&set) >= set.tasks()[1].deadline + set.tasks()[1].offset);
        assert_eq!(default_horizon(&set).0 % Time::from_ms(20).0, 0);
    }

    /// Period, offset, mode and burst of a day beside a task of a microsecond: without a limit, each would ask for 10¹¹
    /// jobs or more.
    #[test]
    fn mixed_time_scales_do_not_ask_for_endless_runs() {
        let day = Time::from_secs(86_400);
        let fast_and = |slow: Task| TaskSet::new("s", vec![Task::periodic("fast", Time(1_000), Time(100)), slow], 1);
        let mut late_mode = set(&[1]);
        let mode = |at, rate| temponet_task::Mode::new("m", at).with_rate(rate);
        late_mode.set_modes(vec![mode(day, 1.0)]);
        let mut quick_mode = set(&[1_000]);
        quick_mode.set_modes(vec![mode(Time::from_ms(1), 1e6)]);
        let burst = Arrival::Burst { jobs: 10, every: Time::from_ms(1), until: day };
        let sets = [
            fast_and(Task::periodic("slow", day, Time(1))),
            fast_and(Task::periodic("late", Time::from_ms(1), Time(1)).with_offset(day)),
            fast_and(Task::periodic("peak", Time::from_ms(1), Time(1)).with_arrival(burst)),
            late_mode,
            quick_mode,
        ];
        for set in sets {
            let horizon = default_horizon(&set);
            let jobs = expected_jobs(&set, horizon);
            assert!(jobs > JOBS / 2.0 && jobs <= JOBS * MOST_LONGER, "{jobs} jobs until {horizon}");
        }
    }

    #[test]
    fn a_burst_of_a_million_still_counts() {
        let arrival = Arrival::Burst { jobs: 1_000_000, every: Time::from_secs(1), until: Time::NEVER };
        let task = Task::periodic("peak", Time::from_ms(500), Time(1)).with_arrival(arrival);
        assert_eq!(default_horizon(&TaskSet::new("s", vec![task], 1)), Time::from_ms(500));
    }

    #[test]
    fn preemption_points_count_like_decisions() {
        let every = |every: Time| {
            let mut set = set(&[40_000, 60_000]);
            set.system.tasks_mut()[0].wcet = Time::from_ms(10);
            set.system.tasks_mut()[0].preemption = Preemption::Every(every);
            set
        };
        assert_eq!(default_horizon(&every(Time::from_us(100))), default_horizon(&set(&[40_000, 60_000])));
        let many = every(Time(10));
        let horizon = default_horizon(&many);
        assert!(expected_points(&many, horizon) <= MOST_POINTS * JOBS * MOST_FOR_ANY, "{horizon}");
        assert!(horizon >= Time::from_ms(40), "a deadline is within {horizon}");
    }

    #[test]
    fn tasks_without_a_job_that_counts_are_named() {
        let set = set(&[1, 86_400_000_000]);
        let note = uncounted(&set, default_horizon(&set)).unwrap();
        assert!(note.starts_with("no job of task \"t86400000000\" counts"), "{note}");
        assert_eq!(uncounted(&set, Time::from_secs(86_400)), None);
    }

    #[test]
    fn modes_that_never_begin_are_named() {
        let mut set = TaskSet::new("s", vec![Task::periodic("a", Time::from_ms(10), Time::from_ms(1))], 1);
        set.set_modes(vec![temponet_task::Mode::new("rush", Time::from_ms(500))]);
        let notes = unseen(&set, Time::from_ms(100));
        assert_eq!(notes, ["nothing was run in mode rush (at 500ms), beyond the horizon of 100ms"]);
        assert!(unseen(&set, Time::from_secs(1)).is_empty());
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
        let job = ListedJob::new(release, deadline, Time(1));
        set.system.tasks_mut()[1].arrival = Arrival::Listed([job].into());
        assert!(expected_jobs(&set, default_horizon(&set)) > JOBS / 2.0);
        let late = job.with_deadline(Time::from_secs(6_000));
        set.system.tasks_mut()[1].arrival = Arrival::Listed([late].into());
        assert_eq!(default_horizon(&set), late.deadline);
        set.system.tasks_mut().remove(0);
        assert_eq!(default_horizon(&set), late.deadline);
    }
}
