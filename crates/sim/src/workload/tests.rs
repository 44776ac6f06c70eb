//! Tests of arrivals, jitter, bursts and modes.

use super::*;
use temponet_task::{Mode, TaskId};

fn releases(set: &TaskSet, seed: u64, until: Time) -> Vec<ReleasedJob> {
    let mut workload = Workload::new(set, seed);
    std::iter::from_fn(|| if workload.next_time() < until { workload.pop() } else { None }).collect()
}

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

#[test]
fn periodic_releases_come_by_time_then_task() {
    let tasks = vec![Task::periodic("a", ms(6), ms(1)), Task::periodic("b", ms(4), ms(1))];
    let set = TaskSet::new("s", tasks, 1);
    let seen: Vec<_> = releases(&set, 0, ms(13)).iter().map(|r| (r.time, r.task.0, r.number)).collect();
    assert_eq!(
        seen,
        [(ms(0), 0, 0), (ms(0), 1, 0), (ms(4), 1, 1), (ms(6), 0, 1), (ms(8), 1, 2), (ms(12), 0, 2), (ms(12), 1, 3)]
    );
}

#[test]
fn jitter_longer_than_the_period_delays_releases_and_not_deadlines() {
    let task = Task::periodic("a", ms(10), ms(1)).with_jitter(ms(25));
    let set = TaskSet::new("s", vec![task], 1);
    let seen = releases(&set, 3, ms(10_000));
    assert!(seen.windows(2).all(|pair| pair[0].time <= pair[1].time));
    assert!(seen.windows(2).any(|pair| pair[0].number > pair[1].number), "long jitter swaps jobs");
    for release in &seen {
        let arrival = ms(10) * release.number;
        assert_eq!(release.deadline, arrival + ms(10));
        assert!(release.time >= arrival && release.time <= arrival + ms(25));
    }
}

/// Without the horizon, a jitter of years with a period of a microsecond would draw the arrivals of years before the
/// first release.
#[test]
fn jitter_beyond_the_horizon_draws_only_the_arrivals_before_it() {
    let task = Task::periodic("a", Time(1_000), Time(1)).with_jitter(Time::MAX_INPUT);
    let set = TaskSet::new("s", vec![task], 1);
    let horizon = ms(1);
    let mut workload = Workload::until(&set, 1, horizon);
    assert!(workload.next_time() >= horizon);
    assert_eq!(workload.streams[0].next_number, 1_000);
    // The deadline of the last job is the horizon itself.
    assert_eq!(workload.still_delayed(horizon).len(), 1_000);
    assert_eq!(Workload::counted(&set, 1, horizon).len(), 1_000);
    workload.extend(ms(2));
    assert_eq!(workload.streams[0].next_number, 2_000);
}

#[test]
fn sporadic_gaps_keep_the_minimum_and_the_mean() {
    let gap = Gap::Exponential { mean: ms(15) };
    let task = Task::periodic("a", ms(10), ms(1)).with_arrival(Arrival::Sporadic { minimum: ms(10), gap });
    let set = TaskSet::new("s", vec![task], 1);
    let seen = releases(&set, 3, Time::from_secs(300));
    let gaps: Vec<_> = seen.windows(2).map(|pair| pair[1].time - pair[0].time).collect();
    assert!(gaps.iter().all(|gap| *gap >= ms(10)));
    let mean = gaps.iter().map(|gap| gap.as_ms_f64()).sum::<f64>() / gaps.len() as f64;
    assert!((mean - 15.0).abs() < 0.3, "{mean}");
}

#[test]
fn bursts_release_many_at_once_and_end() {
    let arrival = Arrival::Burst { jobs: 3, every: ms(20), until: ms(50) };
    let task = Task::periodic("peak", ms(5), ms(1)).with_arrival(arrival).with_offset(ms(10));
    let set = TaskSet::new("s", vec![task], 1);
    let times: Vec<_> = releases(&set, 0, ms(1_000)).iter().map(|r| r.time.0 / 1_000_000).collect();
    assert_eq!(times, [10, 10, 10, 30, 30, 30]);
}

#[test]
fn modes_scale_work_and_rate_and_silence_tasks() {
    let tasks = vec![Task::periodic("a", ms(10), ms(2)), Task::periodic("b", ms(10), ms(1))];
    let mut set = TaskSet::new("s", tasks, 1);
    let hot = Mode::new("hot", ms(20)).with_work(1.5).with_rate(2.0).with_stop(vec![TaskId(1)]);
    set.set_modes(vec![hot, Mode::new("calm", ms(40))]);
    let of = |task| {
        let seen = releases(&set, 0, ms(60)).into_iter().filter(move |r| r.task == task);
        seen.map(|r| (r.time.0 / 1_000_000, r.execution.0 / 1_000_000, (r.deadline - r.time).0 / 1_000_000))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of(TaskId(0)),
        [(0, 2, 10), (10, 2, 10), (20, 3, 5), (25, 3, 5), (30, 3, 5), (35, 3, 5), (40, 2, 10), (50, 2, 10)]
    );
    assert_eq!(of(TaskId(1)), [(0, 1, 10), (10, 1, 10), (40, 1, 10), (50, 1, 10)]);
}

#[test]
fn a_mode_slows_speeds_and_stops_single_tasks_and_the_rest_goes_on() {
    let task = |name: &str| Task::periodic(name, ms(10), ms(1));
    let mut set = TaskSet::new("s", ["slow", "fast", "off", "rest", "after"].map(task).into(), 1);
    set.system.tasks_mut()[4].after = vec![TaskId(0)];
    set.system.follow_sources().unwrap();
    let factors = vec![(TaskId(0), 1.5), (TaskId(1), 0.5), (TaskId(4), 1.5)];
    let mode = Mode::new("m", ms(20)).with_slower(factors).with_stop(vec![TaskId(2)]);
    set.set_modes(vec![mode, Mode::new("again", ms(50))]);
    assert_eq!(set.stretch(), 1.5);
    let of = |task| {
        let seen = releases(&set, 0, ms(70)).into_iter().filter(move |r| r.task == TaskId(task));
        seen.map(|r| (r.time.0 / 1_000_000, (r.deadline - r.time).0 / 1_000_000)).collect::<Vec<_>>()
    };
    assert_eq!(of(0), [(0, 10), (10, 10), (20, 15), (35, 15), (50, 10), (60, 10)]);
    assert_eq!(of(1), [(0, 10), (10, 10), (20, 5), (25, 5), (30, 5), (35, 5), (40, 5), (45, 5), (50, 10), (60, 10)]);
    assert_eq!(of(2), [(0, 10), (10, 10), (50, 10), (60, 10)]);
    assert_eq!(of(3), [0, 10, 20, 30, 40, 50, 60].map(|time| (time, 10)));
    assert_eq!(of(4), of(0));
}

#[test]
fn a_silent_last_mode_ends_the_releases() {
    let task = Task::periodic("a", Time(1), Time(1));
    let mut set = TaskSet::new("s", vec![task], 1);
    set.set_modes(vec![Mode::new("off", Time(3)).with_stop(vec![TaskId(0)])]);
    assert_eq!(releases(&set, 0, Time::NEVER).len(), 3);
    // A mode of years without jobs is skipped in one step.
    set.push_mode(Mode::new("on", Time::MAX_INPUT));
    assert_eq!(releases(&set, 0, Time::MAX_INPUT + Time(2)).len(), 5);
}

#[test]
fn one_seed_is_one_list_of_jobs() {
    let mut task = Task::periodic("a", ms(10), ms(5));
    task.bcet = ms(1);
    task.execution = temponet_task::ExecutionModel::Uniform;
    let set = TaskSet::new("s", vec![task], 1);
    assert_eq!(releases(&set, 5, ms(500)), releases(&set, 5, ms(500)));
    assert_ne!(releases(&set, 5, ms(500)), releases(&set, 6, ms(500)));
}
