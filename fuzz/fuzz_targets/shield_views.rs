//! No view, however malformed, makes the shield panic, assign a job that is not active, or ask for a decision in the
//! past.
#![no_main]

use libfuzzer_sys::fuzz_target;
use temponet_sched::shield::Shield;
use temponet_task::{
    Assignment, Core, CoreId, CoreSet, Costs, Estimate, Event, Job, JobId, NotApplicable, Preemption, Scheduler, Speed,
    System, SystemView, Task, TaskId, TaskSet, Time,
};

/// Number of job ids in a view.
const JOBS: u8 = 8;

/// Proposes the jobs with the numbers in its list, and abandons one if the list is long enough.
struct Scripted(Vec<u8>);

impl Scheduler for Scripted {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let mut wanted: Vec<JobId> = Vec::new();
        for place in self.0.drain(..self.0.len().min(view.cores() + 1)) {
            match view.active.get(usize::from(place)).filter(|id| !wanted.contains(id)) {
                Some(id) if wanted.len() < view.cores() => wanted.push(*id),
                Some(id) => assignment.abandon(*id),
                None => {}
            }
        }
        wanted.iter().enumerate().for_each(|(core, id)| assignment.run(CoreId::new(core), *id));
    }
}

fn set(shape: &[u8; 12]) -> TaskSet {
    let task = |(index, shape): (usize, &[u8])| {
        Task::periodic(
            format!("t{index}"),
            Time::from_us(u64::from(shape[0]) + 1),
            Time::from_us(u64::from(shape[1]) % 32 + 1),
        )
        .with_criticality(shape[0] % 3)
        .with_guarantee(shape[1] > 250)
        .with_after(if index > 0 && shape[1] >> 5 == 3 { vec![TaskId(0)] } else { Vec::new() })
        .with_jitter(Time::from_us(u64::from(shape[1] % 4)))
    };
    let mut set = TaskSet::new("fuzz", shape[..8].chunks_exact(2).enumerate().map(task).collect(), 1);
    set.system.follow_sources().expect("all follow the first task");
    set.system.set_cores(usize::from(shape[8] % 4) + 1);
    if shape[8] & 8 > 0 {
        let speed = |core: usize| Speed([400, 1000, 2500][core % 3]);
        set.system.set_machine((0..set.cores()).map(|core| Core::new("core", speed(core))).collect());
    }
    if shape[8] & 16 > 0 {
        set.system.tasks_mut()[0].cores = CoreSet::of([CoreId::new(usize::from(shape[8] >> 5) % set.cores())]);
    }
    let cost = |byte: u8| Time(u64::from(byte % 8) * 500);
    set.system.set_costs(Costs {
        context_switch: cost(shape[9]),
        migration: cost(shape[10]),
        decision: cost(shape[11]),
    });
    set
}

fn job(bytes: &[u8], set: &TaskSet, now: Time) -> Job {
    let time = |byte: u8| Time::from_us(u64::from(byte));
    Job::first(TaskId(0), &set.tasks()[0])
        .with_task(TaskId(u32::from(bytes[0] % 6)))
        .with_running(bytes[1] % 2 == 0)
        .with_held(bytes[1] >> 5 == 0)
        .with_last_core(Some(CoreId(u32::from(bytes[1] / 2 % 8))).filter(|core| core.0 < 6))
        .with_release(now.saturating_sub(time(bytes[2])))
        .with_deadline(if bytes[3] > 250 { Time::MAX_INPUT } else { now.saturating_sub(time(50)) + time(bytes[3]) })
        .with_executed(time(bytes[4] % 32))
        .with_overhead(time(bytes[5] % 4))
        .with_estimate(Estimate::new(time(bytes[5] >> 4), time(bytes[5] >> 3)))
}

fuzz_target!(|data: &[u8]| {
    let Some((shape, rest)) = data.split_first_chunk::<12>() else { return };
    let set = set(shape);
    let mut shield = Shield::new(Scripted(rest.to_vec()));
    if shield.start(&set.system).is_err() {
        return;
    }
    let mut now = Time::ZERO;
    for bytes in rest.chunks_exact(64) {
        now = now + Time::from_us(u64::from(bytes[0]));
        let jobs: Vec<Job> = bytes[..48].chunks_exact(6).map(|bytes| job(bytes, &set, now)).collect();
        let active: Vec<JobId> = (0..JOBS).filter(|id| bytes[48] >> id & 1 == 1).map(|id| JobId(id.into())).collect();
        let cores = if bytes[49] > 250 { 5 } else { set.cores() };
        let running: Vec<Option<JobId>> =
            (0..cores).map(|core| active.get(usize::from(bytes[50 + core % 4])).copied()).collect();
        let event = |byte: &u8| {
            let id = JobId(u32::from(byte % JOBS));
            [Event::Released(id), Event::Completed(id), Event::Aborted(id), Event::DeadlinePassed(id)]
                [usize::from(byte / JOBS % 4)]
        };
        let events: Vec<Event> = bytes[54..60].iter().map(event).collect();
        let mut system = set.clone().with_cores(cores).system;
        system.tasks_mut()[0].preemption = Preemption::None;
        let view = SystemView::new(now, &system, &active, &jobs, &running).with_events(&events);
        let mut assignment = Assignment::default();
        assignment.reset(cores);
        shield.decide(&view, &mut assignment);
        assert!(assignment.cores().iter().flatten().all(|id| active.contains(id)));
        assert!(assignment.wake().is_none_or(|date| date > now));
    }
});
