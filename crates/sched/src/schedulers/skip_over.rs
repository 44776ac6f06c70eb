//! Skip-over scheduling: a task with `skip = s` may lose one job in every s. Its jobs are *red* (must be met) or, after
//! s − 1 red ones in a row, *blue* (may be skipped). Red-tasks-only (`skip-over-rto`) rejects every blue job.
//! Blue-when-possible (`skip-over-bwp`) runs blue jobs by deadline when no red one is ready, and after a blue job that
//! was met the next one is blue again.
//!
//! Reference: Koren and Shasha, Skip-Over: Algorithms and Complexity for Overloaded Systems that Allow Skips, RTSS
//! 1995. Red jobs run by EDF. The first s − 1 jobs are red (deeply red). Tasks without `skip` are always red.
//! Ties: earlier release, then lower task index.

use temponet_task::{Assignment, Attribute, Event, JobId, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::ranked::Ranked;

pub(crate) struct SkipOver {
    runs_blue: bool,
    /// Number of jobs of each task since its last skip.
    since_skip: Vec<u32>,
    /// Blue jobs that are ready.
    blue: Vec<JobId>,
    ready: Ranked<(bool, Time)>,
}

impl SkipOver {
    pub fn red_tasks_only() -> SkipOver {
        SkipOver { runs_blue: false, since_skip: Vec::new(), blue: Vec::new(), ready: Ranked::new() }
    }

    pub fn blue_when_possible() -> SkipOver {
        SkipOver { runs_blue: true, ..SkipOver::red_tasks_only() }
    }

    fn released(&mut self, view: &SystemView<'_>, id: JobId, assignment: &mut Assignment) {
        let job = view.job(id);
        let since = &mut self.since_skip[job.task];
        let is_blue = view.task_of(job).extra.get(Attribute::Skip).is_some_and(|skip| i64::from(*since) + 1 >= skip);
        if !is_blue {
            *since = since.saturating_add(1);
            self.ready.insert((false, job.deadline), job, id);
        } else if self.runs_blue {
            self.blue.push(id);
            self.ready.insert((true, job.deadline), job, id);
        } else {
            *since = 0;
            assignment.abandon(id);
        }
    }
}

impl Scheduler for SkipOver {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.ready.clear();
        self.blue.clear();
        self.since_skip = vec![0; system.tasks().len()];
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        for event in view.events {
            match *event {
                Event::Released(id) => self.released(view, id, assignment),
                Event::Completed(id) => {
                    self.ready.remove(view.job(id), id);
                    self.blue.retain(|blue| *blue != id);
                }
                Event::Aborted(id) | Event::DeadlinePassed(id) => {
                    let was_blue = self.blue.contains(&id);
                    self.blue.retain(|blue| *blue != id);
                    if was_blue {
                        self.since_skip[view.job(id).task] = 0;
                    }
                    if was_blue || matches!(event, Event::Aborted(_)) {
                        self.ready.remove(view.job(id), id);
                    }
                    if was_blue && matches!(event, Event::DeadlinePassed(_)) {
                        assignment.abandon(id);
                    }
                }
                _ => {}
            }
        }
        self.ready.assign(view, assignment);
    }
}
