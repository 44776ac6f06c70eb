//! Contract: advisors and planners that are asked together choose what each of them chooses alone.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_sched::advice::{Advisor, Planner};
use temponet_sched::{LookAhead, Panel, advisors, build, planners};
use temponet_sim::generate::{Spec, generate};
use temponet_sim::{Engine, Unobserved};
use temponet_task::{
    Arrival, Assignment, ExecutionModel, Gap, Job, JobId, OnMiss, Scheduler, System, SystemView, Task, TaskId, TaskSet,
    Time,
};

fn alone(scheduler: &mut dyn Scheduler, view: &SystemView<'_>) -> Vec<JobId> {
    let mut assignment = Assignment::default();
    assignment.reset(view.cores());
    scheduler.decide(view, &mut assignment);
    sorted(assignment.cores().iter().flatten())
}

fn sorted<'a>(jobs: impl IntoIterator<Item = &'a JobId>) -> Vec<JobId> {
    let mut jobs: Vec<JobId> = jobs.into_iter().copied().collect();
    jobs.sort_unstable();
    jobs
}

fn by_id(planner: impl Iterator<Item = (JobId, f64)>) -> Vec<(JobId, f64)> {
    let mut pressures: Vec<(JobId, f64)> = planner.collect();
    pressures.sort_unstable_by_key(|(id, _)| *id);
    pressures
}

#[test]
fn a_panel_chooses_what_its_members_choose() {
    let (mut decisions, mut contested) = (0, 0);
    for seed in 0..24 {
        let cores = [1, 2, 4, 8][seed as usize % 4];
        let mut spec = Spec::new(6 * cores + 2, cores, [0.8, 1.3, 2.0][seed as usize % 3] * cores as f64);
        (spec.values, spec.critical.share, spec.bcet) = ((1.0, 5.0), 0.3, 0.4);
        let mut set = generate(&spec, seed).unwrap();
        if seed % 2 == 0 {
            // Late jobs stay ready.
            set.system.set_on_miss(OnMiss::Continue);
        }
        if seed % 4 == 1 {
            // Execution times that are known, so that members with different estimates agree.
            set.system
                .tasks_mut()
                .iter_mut()
                .for_each(|task| (task.bcet, task.execution) = (task.wcet, ExecutionModel::Wcet));
        }
        if seed % 3 == 0 {
            for (task, index) in set.system.tasks_mut().iter_mut().zip(0u64..) {
                let minimum = Time(task.deadline.0 / 2);
                match index % 4 {
                    0 => task.arrival = Arrival::Sporadic { minimum, gap: Gap::Exponential { mean: task.deadline } },
                    1 => task.arrival = Arrival::Sporadic { minimum, gap: Gap::Uniform { max: task.deadline } },
                    2 => task.arrival = Arrival::Burst { jobs: 3, every: task.deadline * 3, until: Time::from_ms(300) },
                    _ => {}
                }
            }
        }
        if seed % 5 == 0 {
            set.system.tasks_mut().iter_mut().step_by(2).for_each(|task| task.estimate_error = Some(0.5));
        }
        let system = set.system.clone();
        let (mut panel, mut advisors, mut planners) = (Panel::default(), advisors(), planners());
        panel.start(&system);
        advisors.iter_mut().for_each(|advisor| advisor.start(&system).unwrap());
        planners.iter_mut().for_each(|planner| planner.start(&system).unwrap());
        let mut driver = build("edf").unwrap();
        driver.start(&system).unwrap();
        let mut engine = Engine::new(&set, seed, Time::from_ms(400));
        while engine.advance(&mut Unobserved) {
            let view = engine.view();
            panel.look(&view, true);
            for (name, advisor) in Advisor::ALL.into_iter().zip(&mut advisors) {
                assert_eq!(sorted(panel.advisor(name, &view)), alone(&mut **advisor, &view), "{name:?}");
            }
            for (name, planner) in Planner::ALL.into_iter().zip(&mut planners) {
                assert_eq!(sorted(panel.planner(name, &view)), alone(planner, &view), "{name:?}");
            }
            let expected = by_id(LookAhead::pressures(&planners[0], &view));
            assert_eq!(by_id(panel.pressures(&view)), expected);
            decisions += 1;
            contested += usize::from(view.active.len() > 2 * cores);
            let mut assignment = Assignment::default();
            assignment.reset(cores);
            driver.decide(&view, &mut assignment);
            engine.apply(&assignment, &mut Unobserved).unwrap();
        }
    }
    assert!(decisions > 2_000 && contested > 1_000, "{decisions} decisions, {contested} contested");
}

/// Everything that a panel says about a decision.
type Said = (Vec<JobId>, Vec<Vec<JobId>>, Vec<(JobId, u64)>);

fn said(panel: &mut Panel, view: &SystemView<'_>) -> Said {
    panel.look(view, true);
    let mut chosen: Vec<Vec<JobId>> = Vec::new();
    chosen.extend(Advisor::ALL.map(|advisor| panel.advisor(advisor, view).to_vec()));
    chosen.extend(Planner::ALL.map(|planner| panel.planner(planner, view).to_vec()));
    let pressures = panel.pressures(view).map(|(id, pressure)| (id, pressure.to_bits())).collect();
    (panel.ready().to_vec(), chosen, pressures)
}

/// Draws tasks of all kinds. Few distinct times make many equal deadlines and lengths.
fn drawn_system(rng: &mut Pcg64) -> System {
    let coarse = rng.random_bool(0.5);
    let mut time = |least: u64, most: u64| match coarse {
        true => Time(rng.random_range(least..=most) * 1_000),
        false => Time(rng.random_range(least * 1_000..=most * 1_000)),
    };
    let mut tasks = Vec::new();
    for index in 0..time(1, 40).0 / 1_000 {
        let wcet = time(1, 6);
        let gap = time(4, 60);
        let deadline = wcet + time(0, 80);
        let mut task = Task::periodic(format!("t{index}"), gap, wcet).with_deadline(deadline).with_offset(time(0, 20));
        task.bcet = [wcet, Time(wcet.0 / 2)][(time(0, 1).0 / 500 % 2) as usize];
        match time(0, 5).0 / 1_000 {
            0 => task.arrival = Arrival::Sporadic { minimum: gap, gap: Gap::Exponential { mean: gap * 2 } },
            1 => task.arrival = Arrival::Burst { jobs: 3, every: gap, until: time(20, 90) },
            2 => (task.value, task.criticality) = (time(1, 9).0 as f64, (time(0, 2).0 / 1_000) as u8),
            _ => {}
        }
        tasks.push(task);
    }
    TaskSet::new("drawn", tasks, [1, 2, 3, 8][rng.random_range(0..4)]).system
}

/// The ready jobs of a system during a run in which anything may happen: ids are reused at once, jobs run or not, and
/// many things happen between two decisions.
struct Drawn {
    now: Time,
    jobs: Vec<Job>,
    active: Vec<JobId>,
    released: u64,
}

impl Drawn {
    fn step(&mut self, rng: &mut Pcg64, system: &System) {
        self.now = match rng.random_range(0..40) {
            0 => Time(rng.random_range(0..=self.now.0)),
            _ => self.now + Time(rng.random_range(0..3) * rng.random_range(0..2_000)),
        };
        for _ in 0..rng.random_range(0..4) {
            if !self.active.is_empty() {
                self.active.swap_remove(rng.random_range(0..self.active.len()));
            }
        }
        for _ in 0..rng.random_range(0..5) {
            let index = rng.random_range(0..system.tasks().len());
            let task = &system.tasks()[index];
            let free = (0..).map(JobId).find(|id| !self.active.contains(id)).unwrap();
            // Some jobs are released late, after their deadlines.
            let release = Time(self.now.0.saturating_sub(rng.random_range(0..3) * rng.random_range(0..9_000)));
            self.released += 1;
            let job = Job::first(TaskId(index as u32), task)
                .with_number(self.released)
                .with_release(release)
                .with_deadline(release + task.deadline);
            match self.jobs.get_mut(free.index()) {
                Some(old) => *old = job,
                None => self.jobs.push(job),
            }
            self.active.push(free);
        }
        for id in &self.active {
            if rng.random_bool(0.2) {
                let job = &mut self.jobs[id.index()];
                job.executed += Time(rng.random_range(0..1_500));
            }
        }
    }
}

#[test]
fn advice_does_not_depend_on_earlier_decisions() {
    let mut rng = Pcg64::seed_from_u64(11);
    let (mut decisions, mut crowded) = (0, 0);
    let mut panel = Panel::default();
    for _ in 0..60 {
        let system = drawn_system(&mut rng);
        panel.start(&system);
        let mut run = Drawn { now: Time::ZERO, jobs: Vec::new(), active: Vec::new(), released: 0 };
        for _ in 0..150 {
            run.step(&mut rng, &system);
            let running = vec![None; system.cores()];
            let Drawn { now, jobs, active, .. } = &run;
            let view = SystemView::new(*now, &system, active, jobs, &running);
            let mut fresh = Panel::default();
            fresh.start(&system);
            assert_eq!(said(&mut panel, &view), said(&mut fresh, &view));
            decisions += 1;
            crowded += usize::from(active.len() > 3 * system.cores());
        }
    }
    assert!(decisions == 9_000 && crowded > 3_000, "{crowded} of {decisions}");
}
