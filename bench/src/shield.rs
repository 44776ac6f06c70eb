//! The time that the shield adds to a decision: the slack of every core.
//!
//! The scheduler behind the shield costs next to nothing and always proposes jobs without a guarantee, so no core runs
//! its guaranteed job with the earliest deadline and the slack of every core has to be computed.

use std::time::Instant;

use serde::Serialize;
use temponet_sched::shield::{Role, Shield};
use temponet_task::{Assignment, CoreId, JobId, NotApplicable, Scheduler, System, SystemView};

use crate::MeasureError;
use crate::decision::BEST;
use crate::scene::{CORES, Scene};
use temponet_lab::stats::nearest_quantile;

/// Times of the shield with one number of jobs.
#[derive(Clone, Debug, Serialize)]
pub struct ShieldFigures {
    /// Number of ready jobs.
    pub n: usize,
    /// Number of guaranteed tasks, each with one ready job.
    pub guaranteed: usize,
    /// Whether the shield gave up on the slack because it would have taken too long, so that EDF ran.
    pub gives_up: bool,
    /// 1% quantile of the time of a decision of the shield, in nanoseconds.
    pub shield_ns_best: f64,
    /// Median time of a decision of the shield, in nanoseconds.
    pub shield_ns_p50: f64,
    /// 99% quantile of the same.
    pub shield_ns_p99: f64,
}

/// Times decisions of the shield among `n` jobs on [`CORES`] cores, half of them of guaranteed tasks.
pub fn measure(n: usize, passes: u64) -> Result<ShieldFigures, MeasureError> {
    let scene = Scene::half_critical(n, n as u64);
    let role = Role::on(&scene.system);
    let guaranteed = role.guarantee().map_or(0, |guarantee| guarantee.tasks().filter(|(_, core)| core.is_ok()).count());
    let mut shield = Shield::new(Others::among(&scene));
    shield.start(&scene.system)?;
    let mut assignment = Assignment::default();
    assignment.reset(CORES);
    // The first decision takes note of all releases. In those that are timed nothing has happened, as at a wake-up.
    shield.decide(&scene.view(), &mut assignment);
    let view = scene.view().with_events(&[]);
    let mut times = Vec::with_capacity(passes as usize);
    for _ in 0..passes {
        assignment.reset(CORES);
        let begin = Instant::now();
        shield.decide(&view, &mut assignment);
        times.push(begin.elapsed().as_nanos() as f64);
    }
    Ok(ShieldFigures {
        n,
        guaranteed,
        gives_up: shield.counters().unknown > 0,
        shield_ns_best: nearest_quantile(&mut times, BEST).unwrap_or(0.0),
        shield_ns_p50: nearest_quantile(&mut times, 0.5).unwrap_or(0.0),
        shield_ns_p99: nearest_quantile(&mut times, 0.99).unwrap_or(0.0),
    })
}

/// Proposes the same jobs at every decision, none of them guaranteed.
struct Others([JobId; CORES]);

impl Others {
    /// Chooses jobs of tasks that are not critical, spread over the scene.
    fn among(scene: &Scene) -> Others {
        let is_other = |id: &&JobId| scene.system.tasks()[id.index()].criticality == 0;
        let others: Vec<JobId> = scene.active.iter().filter(is_other).copied().collect();
        Others(std::array::from_fn(|core| others[core * others.len() / CORES]))
    }
}

impl Scheduler for Others {
    fn start(&mut self, _: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, _: &SystemView<'_>, assignment: &mut Assignment) {
        for (core, id) in self.0.into_iter().enumerate() {
            assignment.run(CoreId::new(core), id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::TaskId;

    #[test]
    fn the_slack_of_every_core_has_to_be_computed() {
        for n in [16, 64, 200] {
            let scene = Scene::half_critical(n, n as u64);
            let role = Role::on(&scene.system);
            let guarantee = role.guarantee().unwrap();
            for (index, task) in scene.system.tasks().iter().enumerate() {
                assert_eq!(guarantee.core_of(TaskId::new(index)).is_some(), task.criticality > 0, "{n}: {}", task.name);
            }
            assert!((0..CORES).all(|core| guarantee.tasks().any(|(_, of)| of == Ok(CoreId::new(core)))), "{n}");
            let mut shield = Shield::new(Others::among(&scene));
            shield.start(&scene.system).unwrap();
            let mut assignment = Assignment::default();
            assignment.reset(CORES);
            shield.decide(&scene.view(), &mut assignment);
            assert!(shield.is_armed());
            let counters = shield.counters();
            assert_eq!((counters.deviations, counters.unasked, counters.lapses), (1, 0, 0), "{n}");
        }
    }
}
