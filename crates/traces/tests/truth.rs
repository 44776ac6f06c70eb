//! A set whose tasks are known, as our simulator runs it: what the importers are held against.

use temponet_sim::{JobRecord, Recorder, simulate};
use temponet_task::{ExecutionModel, Task, TaskSet, Time};

/// An event of the kernel.
pub enum Kernel {
    /// A thread is woken; by its index.
    Wake(usize),
    /// A core goes from one thread to another; none is the idle one. The number is the state that the kernel writes.
    Switch { core: usize, from: Option<usize>, is_done: bool, to: Option<usize> },
}

/// A run of a known set.
pub struct Truth {
    pub set: TaskSet,
    pub jobs: Vec<JobRecord>,
    /// Events in the order of time.
    pub events: Vec<(u64, Kernel)>,
}

/// Date of the beginning, so that nothing depends on a trace that begins at zero.
pub const START: u64 = 5_000_123_456_789;
pub const FIRST_TID: usize = 1000;
/// Kernel priority of the thread with this index: 39 is FIFO 60.
pub fn priority(task: usize) -> i32 {
    39 + task as i32
}

/// Three tasks on two cores for ten seconds, with jitter, varying times and preemptions. Every job ends before the next one of its task.
pub fn truth() -> Truth {
    let ms = Time::from_ms;
    let task = |name: &str, period, bcet, wcet| {
        Task::periodic(name, period, wcet).with_bcet(bcet).with_execution(ExecutionModel::Uniform)
    };
    let tasks = vec![
        task("control", ms(5), ms(1), ms(2)),
        task("camera: a b", Time(33_333_333), ms(6), ms(14)).with_jitter(ms(2)),
        task("planner", ms(50), ms(20), ms(30)).with_offset(ms(7)),
    ];
    let set = TaskSet::new("known", tasks, 2);
    let horizon = Time::from_secs(10);
    let mut recorder = Recorder::until(horizon);
    let mut scheduler = temponet_sched::build("edf").unwrap();
    simulate(&set, 3, horizon, &mut *scheduler, &mut recorder).unwrap();
    let events = events(&recorder);
    Truth { set, jobs: recorder.jobs, events }
}

fn events(recorder: &Recorder) -> Vec<(u64, Kernel)> {
    let ends = |task: usize, end: Time| {
        recorder.jobs.iter().any(|job| job.task.index() == task && job.completion() == Some(end))
    };
    // Wake-ups come before the switches of their date, and switches of one core in order.
    let mut events: Vec<(u64, u8, Kernel)> =
        recorder.jobs.iter().map(|job| (START + job.release.0, 1, Kernel::Wake(job.task.index()))).collect();
    for core in 0..2 {
        let mut slices: Vec<_> = recorder.slices.iter().filter(|slice| slice.core.index() == core).collect();
        slices.sort_by_key(|slice| slice.start);
        let mut running: Option<(usize, Time)> = None;
        for slice in slices {
            let task = slice.task.index();
            match running {
                Some((before, end)) if end == slice.start && before == task && !ends(before, end) => {}
                Some((before, end)) if end == slice.start => {
                    let is_done = ends(before, end);
                    events.push((
                        START + end.0,
                        2,
                        Kernel::Switch { core, from: Some(before), is_done, to: Some(task) },
                    ));
                }
                _ => {
                    if let Some((before, end)) = running {
                        let is_done = ends(before, end);
                        events.push((START + end.0, 0, Kernel::Switch { core, from: Some(before), is_done, to: None }));
                    }
                    let start = START + slice.start.0;
                    events.push((start, 2, Kernel::Switch { core, from: None, is_done: false, to: Some(task) }));
                }
            }
            running = Some((task, slice.end));
        }
        if let Some((before, end)) = running {
            let is_done = ends(before, end);
            events.push((START + end.0, 0, Kernel::Switch { core, from: Some(before), is_done, to: None }));
        }
    }
    // A thread leaves one core before it comes to another.
    let rank = |kernel: &Kernel| matches!(kernel, Kernel::Switch { from: None, .. });
    events.sort_by_key(|(time, order, kernel)| (*time, *order, rank(kernel)));
    events.into_iter().map(|(time, _, kernel)| (time, kernel)).collect()
}
