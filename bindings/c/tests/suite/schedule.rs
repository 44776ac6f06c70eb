//! Contract: a program over the C interface gets, job by job, the schedule that a program over [`ReadyJobs`] gets.

use temponet::{Decision, JobHandle, Model, ReadyJobs, Scheduler, TaskId, TaskSet, Temponet, Time};
use temponet_c::*;
use temponet_formats::builtin::{self, Builtin};
use temponet_lab::roster::Roster;

use crate::texts::{IDLE, UNDECIDED, built_in, ready};

/// What one decision says: its date, the job on each core, the jobs that were stopped, and the latest date of the next.
type Step = (u64, Vec<Option<(usize, u64)>>, Vec<(usize, u64)>, u64);

/// Releases of a set: each task releases a job every period, or at its dates if they are listed.
struct Arrivals {
    next: Vec<u64>,
    period: Vec<u64>,
}

impl Arrivals {
    fn of(set: &TaskSet) -> Arrivals {
        let period = |task: &temponet::Task| task.period().map_or(task.deadline.0, |period| period.0);
        Arrivals {
            next: set.tasks().iter().map(|task| task.offset.0).collect(),
            period: set.tasks().iter().map(period).collect(),
        }
    }

    fn due(&mut self, now: u64) -> Vec<usize> {
        let due: Vec<usize> = (0..self.next.len()).filter(|task| self.next[*task] == now).collect();
        due.iter().for_each(|task| self.next[*task] += self.period[*task]);
        due
    }

    fn first(&self) -> u64 {
        self.next.iter().copied().min().unwrap()
    }
}

/// Execution time of a job: from half its wcet to all of it, by its number.
fn takes(wcet: u64, number: u64) -> u64 {
    wcet - wcet / 2 * ((7 * number + 3) % 5) / 5
}

fn in_rust(set: &TaskSet, scheduler: &str, decisions: usize) -> Vec<Step> {
    let mut ready = ReadyJobs::new(set.system.clone()).unwrap();
    let mut scheduler: Box<dyn Scheduler> = match scheduler {
        "temponet" => Box::new(Temponet::built_in().unwrap()),
        name => Roster::classical().build(name).unwrap(),
    };
    ready.start(&mut *scheduler).unwrap();
    let mut arrivals = Arrivals::of(set);
    let (mut steps, mut next, mut running): (Vec<Step>, _, Vec<(JobHandle, u64)>) = (Vec::new(), u64::MAX, Vec::new());
    while steps.len() < decisions {
        let end = running.iter().map(|(_, end)| *end).min().unwrap_or(u64::MAX);
        let now = arrivals.first().min(end).min(next);
        ready.advance(Time(now)).unwrap();
        for (job, _) in running.iter().filter(|(_, end)| *end == now) {
            ready.complete(*job).unwrap();
        }
        for task in arrivals.due(now) {
            ready.release(TaskId::new(task)).unwrap();
        }
        let decision: Decision<'_> = ready.decide(&mut *scheduler).unwrap();
        next = decision.next().map_or(u64::MAX, |next| next.0);
        let stopped = decision.stopped().iter().map(|stopped| (stopped.job.task.index(), stopped.job.number)).collect();
        let cores = decision.cores().to_vec();
        let shown = |handle: &JobHandle| ready.job(*handle).map(|job| (job.task.index(), job.number));
        steps.push((now, cores.iter().map(|job| job.as_ref().and_then(shown)).collect(), stopped, next));
        let end = |handle: JobHandle| {
            let job = ready.job(handle).unwrap();
            (handle, now + takes(job.wcet.0, job.number).saturating_sub(job.executed.0))
        };
        running = cores.into_iter().flatten().map(end).collect();
    }
    steps
}

fn over_c(name: &str, set: &TaskSet, scheduler: &str, decisions: usize) -> Vec<Step> {
    let handle = built_in(name);
    let ready = ready(handle, scheduler);
    assert_eq!(tn_set_free(handle), tn_result::Ok);
    let mut arrivals = Arrivals::of(set);
    let (mut steps, mut next, mut running): (Vec<Step>, _, Vec<(tn_job, u64)>) = (Vec::new(), u64::MAX, Vec::new());
    let mut cores = vec![IDLE; set.cores()];
    let state = |job: tn_job| {
        let mut state = std::mem::MaybeUninit::uninit();
        assert_eq!(unsafe { tn_ready_job(ready, job, state.as_mut_ptr()) }, tn_result::Ok);
        unsafe { state.assume_init() }
    };
    while steps.len() < decisions {
        let end = running.iter().map(|(_, end)| *end).min().unwrap_or(u64::MAX);
        let now = arrivals.first().min(end).min(next);
        assert_eq!(tn_ready_advance(ready, now), tn_result::Ok);
        for (job, _) in running.iter().filter(|(_, end)| *end == now) {
            assert_eq!(unsafe { tn_ready_complete(ready, *job, std::ptr::null_mut()) }, tn_result::Ok);
        }
        for task in arrivals.due(now) {
            let mut job = tn_job { of: 0, value: 0 };
            assert_eq!(unsafe { tn_ready_release(ready, task, &mut job) }, tn_result::Ok);
            assert_eq!(job.of, ready.value);
        }
        let mut decision = UNDECIDED;
        let result = unsafe { tn_ready_decide(ready, cores.as_mut_ptr(), cores.len(), &mut decision) };
        assert_eq!((result, decision.cores), (tn_result::Ok, set.cores()));
        next = decision.next_ns;
        let stopped = |place: usize| {
            let mut stopped = std::mem::MaybeUninit::uninit();
            assert_eq!(unsafe { tn_ready_stopped(ready, place, stopped.as_mut_ptr()) }, tn_result::Ok);
            let stopped: tn_stopped = unsafe { stopped.assume_init() };
            (stopped.state.task, stopped.state.number)
        };
        let busy = cores.iter().map(|core| (core.job.of != 0).then_some(core));
        let shown = |core: &tn_core| {
            let state = state(core.job);
            assert_eq!(core.task, state.task);
            (core.task, state.number)
        };
        steps.push((
            now,
            busy.clone().map(|core| core.map(shown)).collect(),
            (0..decision.stopped).map(stopped).collect(),
            next,
        ));
        let end = |core: &tn_core| {
            let job = state(core.job);
            assert!(job.is_running);
            (core.job, now + takes(job.wcet_ns, job.number).saturating_sub(job.executed_ns))
        };
        running = busy.flatten().map(end).collect();
    }
    assert_eq!(tn_ready_free(ready), tn_result::Ok);
    steps
}

#[test]
fn the_schedule_is_that_of_rust() {
    let mut compared = 0;
    for name in builtin::ALL.iter().map(|set| set.name) {
        let set = Builtin::find(name).unwrap().load().unwrap().set;
        // Those whose tasks share resources, follow each other or have parts need more than periodic releases.
        if ReadyJobs::new(set.system.clone()).is_err() || set.has_precedence() {
            continue;
        }
        // The learned scheduler simulates a set before it starts, which takes a while without optimization.
        let learned = ["robot", "rosace"].contains(&name).then_some("temponet");
        for scheduler in ["edf", "llf", "mh-edf", "shield:srpt"].into_iter().chain(learned) {
            let mut fresh = Roster::with(Model::built_in().unwrap()).build(scheduler).unwrap();
            if learned != Some(scheduler) && fresh.start(&set.system).is_err() {
                continue;
            }
            let (expected, got) = (in_rust(&set, scheduler, 200), over_c(name, &set, scheduler, 200));
            for (place, (expected, got)) in expected.iter().zip(&got).enumerate() {
                assert_eq!(expected, got, "{scheduler} on {name}, decision {place}");
            }
            compared += 1;
        }
    }
    assert!(compared >= 20, "{compared} schedules");
}
