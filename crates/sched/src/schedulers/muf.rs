//! Maximum urgency first: critical jobs before all others; within a level the least laxity, then the user's priority.
//! In a transient overload the critical jobs keep their deadlines.
//!
//! Reference: Stewart and Khosla, Real-Time Scheduling of Sensor-Based Control Systems, 1991. Jobs of criticality above
//! 0 are critical. In a set without any, the critical tasks are those with the shortest periods whose total load fits
//! the cores. Laxities are compared at every event and every quantum.
//! Ties: larger priority, then earlier release and lower task index.

use std::cmp::Reverse;

use temponet_task::{Assignment, Attribute, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::quantum::quantum;
use crate::shared::selection::Selection;

/// Criticality, laxity, user priority.
type Urgency = (Reverse<(u8, bool)>, i64, Reverse<Option<i64>>);

pub(crate) struct Muf {
    given: Option<Time>,
    quantum: Time,
    /// Whether each task is in the critical set.
    critical: Vec<bool>,
    selection: Selection<Urgency>,
}

impl Muf {
    pub fn new(given: Option<Time>) -> Muf {
        Muf { given, quantum: Time::ZERO, critical: Vec::new(), selection: Selection::new() }
    }
}

impl Scheduler for Muf {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.quantum = quantum(self.given, system);
        self.critical = vec![false; system.tasks().len()];
        if system.tasks().iter().all(|task| task.criticality == 0) {
            let mut order: Vec<usize> = (0..system.tasks().len()).collect();
            order.sort_by_key(|index| system.tasks()[*index].period().unwrap_or(system.tasks()[*index].deadline));
            let mut load = 0.0;
            for index in order {
                load += system.tasks()[index].utilization();
                if load > system.capacity() + 1e-9 {
                    break;
                }
                self.critical[index] = true;
            }
        }
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let now = view.now;
        let chosen = self.selection.select(view, view.system.most_offered(), |job| {
            let critical = Reverse((job.criticality, self.critical[job.task]));
            (critical, job.slack(now), Reverse(view.task_of(job).extra.get(Attribute::Priority)))
        });
        assignment.place(view, chosen);
        if view.active.len() > view.cores() || !view.system.machine().is_plain() || view.locks.is_some() {
            assignment.wake_at(now.next_multiple(self.quantum));
        }
    }
}
