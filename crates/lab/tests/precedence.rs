//! Contract: the clairvoyant bound of tasks that come after each other is at least what the best of all schedules
//! meets, and so at least what any scheduler meets. The best schedule of tiny instances is found by trying every choice
//! at every nanosecond.

use std::collections::HashMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use temponet_lab::clairvoyant::{clairvoyant, counted};
use temponet_sim::{ReleasedJob, Unobserved, Workload, simulate};
use temponet_task::{ExecutionModel, OnMiss, Task, TaskId, TaskSet, Time};

const HORIZON: Time = Time(14);

fn tiny(rng: &mut Pcg32) -> TaskSet {
    let count = rng.random_range(2..5);
    let period = rng.random_range(5..8);
    let mut tasks: Vec<Task> = Vec::new();
    for index in 0..count {
        let wcet = rng.random_range(1..4);
        let mut task = Task::periodic(format!("t{index}"), Time(period), Time(wcet));
        task.deadline = Time(rng.random_range(wcet..8));
        task.offset = Time(rng.random_range(0..3));
        (task.bcet, task.execution) = (Time(1), ExecutionModel::Uniform);
        task.after = TaskId::all(index).filter(|_| rng.random_bool(0.5)).collect();
        tasks.push(task);
    }
    let mut set = TaskSet::new("tiny", tasks, rng.random_range(1..3));
    set.system.set_on_miss(if rng.random_bool(0.5) { OnMiss::Abort } else { OnMiss::Continue });
    set.system.follow_sources().unwrap();
    set
}

/// All choices from a date on: the greatest number of jobs that count and are met.
struct Search<'a> {
    set: &'a TaskSet,
    jobs: &'a [ReleasedJob],
    known: HashMap<(u64, Vec<u64>), usize>,
}

/// Work left of a job that has been removed.
const REMOVED: u64 = u64::MAX;

impl Search<'_> {
    fn best(&mut self, now: u64, left: &[u64]) -> usize {
        if now >= HORIZON.0 {
            return 0;
        }
        let mut left = left.to_vec();
        if self.set.on_miss() == OnMiss::Abort {
            for (job, left) in self.jobs.iter().zip(&mut left) {
                if job.deadline.0 <= now && *left > 0 {
                    *left = REMOVED;
                }
            }
        }
        if let Some(known) = self.known.get(&(now, left.clone())) {
            return *known;
        }
        let is_done = |task: usize, number: u64| {
            let before = self.jobs.iter().position(|job| job.task.index() == task && job.number == number);
            before.is_some_and(|before| left[before] == 0)
        };
        let is_ready = |index: &usize| {
            let job = &self.jobs[*index];
            let released = job.time.0 <= now && (1..REMOVED).contains(&left[*index]);
            released && self.set.tasks()[job.task].after.iter().all(|before| is_done(before.index(), job.number))
        };
        let ready: Vec<usize> = (0..self.jobs.len()).filter(is_ready).collect();
        let mut best = 0;
        for chosen in 0..1u32 << ready.len() {
            if chosen.count_ones() as usize > self.set.cores() {
                continue;
            }
            let mut after = left.clone();
            let mut met = 0;
            for (_, index) in ready.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1) {
                after[*index] -= 1;
                let deadline = self.jobs[*index].deadline;
                met += usize::from(after[*index] == 0 && now < deadline.0 && deadline <= HORIZON);
            }
            best = best.max(met + self.best(now + 1, &after));
        }
        self.known.insert((now, left), best);
        best
    }
}

#[test]
fn no_schedule_beats_the_bound() {
    let mut rng = Pcg32::seed_from_u64(9);
    let (mut reached, mut cases) = (0, 0);
    for seed in 0..400 {
        let set = tiny(&mut rng);
        if !set.has_precedence() {
            continue;
        }
        let mut workload = Workload::until(&set, seed, HORIZON);
        let mut jobs = Vec::new();
        while workload.next_time() < HORIZON {
            jobs.push(workload.pop().unwrap());
        }
        let left: Vec<u64> = jobs.iter().map(|job| job.execution.0).collect();
        let best = Search { set: &set, jobs: &jobs, known: HashMap::new() }.best(0, &left);
        let bound = clairvoyant(&set, HORIZON, seed, 1, 0.1).unwrap();
        assert!(best as f64 <= bound.met.upper + 1e-9, "{best} > {:?}: {set:?}", bound.met);
        assert_eq!(
            (bound.met.lower, bound.met.is_exact()),
            (0.0, bound.met.upper == 0.0),
            "only the upper end is claimed"
        );
        cases += 1;
        reached += usize::from(best as f64 >= bound.met.upper - 1e-9);
        for scheduler in ["edf", "edf-chain", "hlfet", "egs", "srpt", "mh-edf"] {
            let mut scheduler = temponet_sched::build(scheduler).unwrap();
            let metrics = simulate(&set, seed, HORIZON, &mut *scheduler, &mut Unobserved).unwrap();
            assert!(metrics.jobs.met as usize <= best, "the search is not exhaustive");
        }
    }
    assert!(cases > 200 && reached * 2 > cases, "the bound is reached in {reached} of {cases} cases");
}

#[test]
fn heads_count_the_longest_path_and_keep_the_places_of_jobs() {
    let ms = Time::from_ms;
    let mut tasks: Vec<Task> = [3, 4, 5, 1]
        .iter()
        .enumerate()
        .map(|(index, wcet)| Task::periodic(format!("t{index}"), ms(20), ms(*wcet)))
        .collect();
    (tasks[1].after, tasks[2].after, tasks[3].after) = (vec![TaskId(0)], vec![TaskId(0)], vec![TaskId(1), TaskId(2)]);
    tasks[3].deadline = ms(8);
    let mut set = TaskSet::new("s", tasks, 2);
    set.system.follow_sources().unwrap();
    let jobs = counted(&set, 0, ms(20));
    let of = |task: u32| jobs.iter().find(|job| job.task == TaskId(task)).unwrap();
    assert_eq!((of(1).time, of(2).time), (ms(3), ms(3)));
    assert!(of(3).time + of(3).execution > of(3).deadline, "8 ms of path leave no time");
    assert_eq!(jobs.len(), 4);
}
