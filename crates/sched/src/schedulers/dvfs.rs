//! EDF that saves energy by running the cores no faster than needed, on machines with several `speeds`. `static-edf`
//! sets the speed once, from the utilization at the wcets. `cc-edf` (cycle conserving) charges a job that completed
//! early with its actual execution time until the next release of its task, and slows down accordingly. Both meet every
//! deadline at U ≤ 1 on one core.
//!
//! Reference: Pillai and Shin, Real-Time Dynamic Voltage Scaling for Low-Power Embedded Operating Systems, SOSP 2001.
//! On several cores the load is divided evenly, and the speed is at least the utilization of every single task: best
//! effort.
//! Ties: earlier release, then lower task index.

use temponet_task::{Assignment, Event, NotApplicable, Scheduler, Speed, System, SystemView, Time};

use crate::shared::ranked::Ranked;

pub(crate) struct SlowEdf {
    conserves_cycles: bool,
    /// Current load of each task, as a share of one core at full speed.
    loads: Vec<f64>,
    ready: Ranked<Time>,
}

impl SlowEdf {
    pub fn fixed() -> SlowEdf {
        SlowEdf { conserves_cycles: false, loads: Vec::new(), ready: Ranked::new() }
    }

    pub fn cycle_conserving() -> SlowEdf {
        SlowEdf { conserves_cycles: true, ..SlowEdf::fixed() }
    }
}

/// Lowest speed that serves the loads, with a tolerance for the rounding of the sum.
fn speed(loads: &[f64], system: &System) -> Speed {
    let share = loads.iter().sum::<f64>() / system.cores() as f64;
    let needed = 1000.0 * loads.iter().copied().fold(share, f64::max) - 1e-6;
    system.speeds().iter().copied().find(|speed| f64::from(speed.0) >= needed).unwrap_or(Speed::FULL)
}

/// Speed that `static-edf` sets.
pub(crate) fn constant_speed(system: &System) -> Speed {
    speed(&full_loads(system), system)
}

fn full_loads(system: &System) -> Vec<f64> {
    system.tasks().iter().map(|task| task.utilization()).collect()
}

impl Scheduler for SlowEdf {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.ready.clear();
        self.loads = full_loads(system);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.ready.follow(view, |job| job.deadline);
        for event in view.events {
            let (id, share) = match *event {
                Event::Released(id) => (id, 1.0),
                Event::Completed(id) if self.conserves_cycles => {
                    (id, view.job(id).executed.0 as f64 / view.job(id).wcet.0 as f64)
                }
                _ => continue,
            };
            let job = view.job(id);
            self.loads[job.task] = view.task_of(job).utilization() * share;
        }
        let speed = speed(&self.loads, view.system);
        view.system.core_ids().for_each(|core| assignment.set_speed(core, speed));
        self.ready.assign(view, assignment);
    }

    fn most_ready(&self) -> usize {
        usize::MAX
    }
}
