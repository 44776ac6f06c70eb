//! Contract of placement on cores that differ: of all assignments, the one that is best by the stated rule. The
//! reference tries every assignment. A job on a core that its task may not use is refused, and work is done at the
//! speed of the core.

use temponet_task::AssignmentProblem;
use temponet_task::{
    Assignment, Core, CoreId, CoreSet, InvalidSystem, Job, JobId, NotApplicable, Preemption, ReadyJobs, ReadyJobsError,
    Scheduler, Speed, System, SystemView, Task, TaskId, TaskSet, TaskSettingProblem, Time,
};

/// A generator of random numbers that needs no crate (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

fn machine(speeds: &[u32]) -> Vec<Core> {
    speeds.iter().map(|speed| Core::new(format!("x{speed}"), Speed(*speed))).collect()
}

/// A set of as many tasks as there are sets of cores.
fn set(speeds: &[u32], allowed: Vec<CoreSet>) -> TaskSet {
    let task = |(index, cores)| Task::periodic(format!("t{index}"), Time(1_000), Time(10)).with_cores(cores);
    let mut set = TaskSet::new("cores", allowed.into_iter().enumerate().map(task).collect(), speeds.len());
    set.system.set_machine(machine(speeds));
    set
}

/// Quality of an assignment, the best being the greatest: which jobs of the order run, at which speeds, which of them
/// stay, and on which cores, low ones first.
type Quality = (Vec<bool>, Vec<u32>, Vec<bool>, Vec<i64>);

/// Tries every core for the jobs from `next` on, and keeps the best assignment.
fn try_all(
    view: &SystemView<'_>,
    order: &[JobId],
    cores: &mut Vec<Option<usize>>,
    best: &mut Option<(Quality, Vec<Option<usize>>)>,
) {
    if cores.len() == order.len() {
        let pairs = || order.iter().zip(cores.iter());
        let speed = |core: usize| view.system.machine().speed(CoreId::new(core)).0;
        let quality = (
            cores.iter().map(Option::is_some).collect(),
            cores.iter().flatten().map(|core| speed(*core)).collect(),
            pairs().filter_map(|(id, core)| Some(view.running[(*core)?] == Some(*id))).collect(),
            cores.iter().flatten().map(|core| -(*core as i64)).collect(),
        );
        if best.as_ref().is_none_or(|(known, _)| quality > *known) {
            *best = Some((quality, cores.clone()));
        }
        return;
    }
    let id = order[cores.len()];
    let job = view.job(id);
    let held = job.last_core.map(|core| core.index()).filter(|_| job.held);
    let is_open =
        |core: usize, cores: &[Option<usize>]| !cores.contains(&Some(core)) && !view.is_held(CoreId::new(core));
    for core in view.system.core_ids() {
        let may = if job.held { held == Some(core.index()) } else { is_open(core.index(), cores) };
        if may && view.system.tasks()[job.task].cores.contains(core) {
            cores.push(Some(core.index()));
            try_all(view, order, cores, best);
            cores.pop();
        }
    }
    if !job.held {
        cores.push(None);
        try_all(view, order, cores, best);
        cores.pop();
    }
}

#[test]
fn placement_is_the_best_of_all_assignments_by_the_rule() {
    let mut random = Random(1);
    let (mut moved, mut skipped) = (0, 0);
    for round in 0..3_000 {
        let count = 2 + random.below(3);
        let speeds: Vec<u32> = (0..count).map(|_| [500, 1000, 1000, 2500][random.below(4)]).collect();
        let jobs_count = 1 + random.below(5);
        let mut subset = || {
            let one = random.below(count);
            match random.below(3) {
                0 => CoreSet::ALL,
                _ => CoreSet::of(CoreId::all(count).filter(|core| core.index() == one || random.below(2) == 0)),
            }
        };
        let allowed: Vec<CoreSet> = (0..jobs_count).map(|_| subset()).collect();
        let mut set = set(&speeds, allowed);
        set.system.tasks_mut().iter_mut().for_each(|task| task.preemption = Preemption::None);
        let system = set.system.clone();
        let mut jobs: Vec<Job> =
            (0..).zip(system.tasks()).map(|(index, task)| Job::first(TaskId(index), task)).collect();
        let mut running = vec![None; count];
        for (index, job) in jobs.iter_mut().enumerate() {
            let core = random.below(count);
            if running[core].is_none()
                && system.tasks()[index].cores.contains(CoreId::new(core))
                && random.below(2) == 0
            {
                running[core] = Some(JobId(index as u32));
                (job.running, job.last_core, job.held) = (true, Some(CoreId::new(core)), random.below(4) == 0);
            }
        }
        let active: Vec<JobId> = (0..jobs_count as u32).map(JobId).collect();
        let view = SystemView::new(Time(0), &system, &active, &jobs, &running);
        let mut order = active.clone();
        (1..order.len()).rev().for_each(|last| order.swap(last, random.below(last + 1)));
        if !system.machine().is_bound() {
            // Held jobs that are not chosen stay all the same; the order of the reference has them all.
            order.retain(|id| !jobs[id.index()].held);
            order.truncate(count);
        }
        let with_held: Vec<JobId> =
            active.iter().copied().filter(|id| jobs[id.index()].held).chain(order.iter().copied()).collect();
        let mut reference: Vec<JobId> = Vec::new();
        with_held.iter().for_each(|id| {
            if !reference.contains(id) {
                reference.push(*id)
            }
        });
        let mut best = None;
        try_all(&view, &reference, &mut Vec::new(), &mut best);
        let (_, cores) = best.unwrap();
        let mut expected = vec![None; count];
        for (id, core) in reference.iter().zip(&cores) {
            if let Some(core) = core {
                expected[*core] = Some(*id);
            }
        }
        let mut assignment = Assignment::default();
        assignment.reset(count);
        assignment.place(&view, &order);
        assert_eq!(assignment.cores(), expected, "{round}: {speeds:?} {order:?} {system:?} {jobs:?}");
        moved += (0..count).filter(|core| running[*core].is_some() && running[*core] != expected[*core]).count();
        skipped += cores.iter().filter(|core| core.is_none()).count();
    }
    assert!(moved > 1_000 && skipped > 1_000, "{moved} {skipped}");
}

/// As many jobs as there are cores of speeds that all differ. Trying every speed for every job would take minutes.
#[test]
fn a_thousand_unequal_cores_are_placed_at_once() {
    let count = 1024;
    let speeds: Vec<u32> = (0..count as u32).map(|core| 1000 + core).collect();
    for bound in [None, Some(CoreSet::of([CoreId(0)]))] {
        let mut allowed = vec![CoreSet::ALL; count];
        let is_bound = bound.is_some();
        bound.into_iter().for_each(|cores| allowed[3] = cores);
        let system = set(&speeds, allowed).system;
        let jobs: Vec<Job> = (0..).zip(system.tasks()).map(|(index, task)| Job::first(TaskId(index), task)).collect();
        let active: Vec<JobId> = (0..count as u32).map(JobId).collect();
        let running = vec![None; count];
        let view = SystemView::new(Time(0), &system, &active, &jobs, &running);
        let mut assignment = Assignment::default();
        assignment.reset(count);
        assignment.place(&view, &active);
        // The fastest core is the last one. A job that is bound to the slowest one leaves its place to the job after
        // it.
        let mut expected: Vec<Option<JobId>> = active.iter().rev().copied().map(Some).collect();
        if is_bound {
            expected[..count - 3].rotate_right(1);
        }
        assert_eq!(assignment.cores(), expected);
    }
}

/// Puts the only ready job on a core.
struct On(usize);

impl Scheduler for On {
    fn start(&mut self, _: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        view.active.iter().for_each(|id| assignment.run(CoreId::new(self.0), *id));
    }
}

#[test]
fn a_job_does_not_run_where_its_task_may_not_and_works_at_the_speed_of_its_core() {
    let mut ready = ReadyJobs::new(set(&[400, 2500], vec![CoreSet::ALL, CoreSet::of([CoreId(1)])]).system).unwrap();
    ready.start(&mut On(0)).unwrap();
    let bound = ready.release(TaskId(1)).unwrap();
    let problem = AssignmentProblem::Forbidden { job: bound.id(), core: CoreId(0) };
    assert_eq!(ready.decide(&mut On(0)).unwrap_err(), ReadyJobsError::Assignment(problem));
    assert_eq!(ready.job(bound).unwrap().fastest, Speed(2500));
    ready.decide(&mut On(1)).unwrap();
    ready.advance(Time(2)).unwrap();
    assert_eq!(ready.job(bound).unwrap().executed, Time(5));
    ready.complete(bound).unwrap();
    let free = ready.release(TaskId(0)).unwrap();
    assert_eq!(ready.job(free).unwrap().time_to_finish(), Time(4));
    ready.decide(&mut On(0)).unwrap();
    // Fractions of a nanosecond add up: 0.4 + 0.8 of work in 1 + 2 nanoseconds.
    for (date, executed) in [(3, 0), (5, 1), (7, 2)] {
        ready.advance(Time(date)).unwrap();
        assert_eq!(ready.job(free).unwrap().executed, Time(executed), "at {date}");
    }
}

#[test]
fn machines_that_cannot_be_are_refused() {
    let valid = set(&[1000, 500], vec![CoreSet::of([CoreId(1)])]);
    assert_eq!(valid.system.validate(), Ok(()));
    let with = |change: fn(&mut TaskSet)| {
        let mut set = valid.clone();
        change(&mut set);
        set.system.validate().unwrap_err()
    };
    assert_eq!(
        with(|set| {
            let mut cores = set.machine().cores().to_vec();
            cores[0].speed = Speed(0);
            set.system.set_machine(cores);
        }),
        InvalidSystem::Machine
    );
    assert_eq!(with(|set| set.system.set_machine(set.machine().cores()[..1].to_vec())), InvalidSystem::Machine);
    assert_eq!(with(|set| set.system.set_speeds(vec![Speed(500), Speed::FULL])), InvalidSystem::SpeedsOfCores);
    let what = TaskSettingProblem::Cores;
    let missing = InvalidSystem::TaskSetting { task: "t0".into(), what };
    assert_eq!(with(|set| set.system.tasks_mut()[0].cores = CoreSet::of([CoreId(2)])), missing);
    let mut other = valid.clone();
    assert!(other.system.change_cores(3).unwrap_err().contains("[[core]]"));
    other.system.set_machine(Vec::new());
    assert!(other.system.change_cores(1).unwrap_err().contains("\"t0\""));
    assert_eq!((other.system.change_cores(4), other.cores()), (Ok(()), 4));
}
