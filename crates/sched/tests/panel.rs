//! Contract: advisors and planners that are asked together choose what each of them chooses alone.

use temponet_sched::advice::{Advisor, Planner};
use temponet_sched::{LookAhead, Panel, advisors, build, planners};
use temponet_sim::generate::{Spec, generate};
use temponet_sim::{Engine, Unobserved};
use temponet_task::{Arrival, Assignment, ExecutionModel, Gap, JobId, OnMiss, Scheduler, SystemView, Time};

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
            set.on_miss = OnMiss::Continue;
        }
        if seed % 4 == 1 {
            // Execution times that are known, so that members with different estimates agree.
            set.tasks.iter_mut().for_each(|task| (task.bcet, task.execution) = (task.wcet, ExecutionModel::Wcet));
        }
        if seed % 3 == 0 {
            for (task, index) in set.tasks.iter_mut().zip(0u64..) {
                let minimum = Time(task.deadline.0 / 2);
                match index % 4 {
                    0 => task.arrival = Arrival::Sporadic { minimum, gap: Gap::Exponential { mean: task.deadline } },
                    1 => task.arrival = Arrival::Sporadic { minimum, gap: Gap::Uniform { max: task.deadline } },
                    2 => task.arrival = Arrival::Burst { jobs: 3, every: task.deadline * 3, until: Time::from_ms(300) },
                    _ => {}
                }
            }
        }
        let system = set.system();
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
