//! Distance-based priority for (m,k)-firm tasks: the closer a task is to violating "m of any k consecutive jobs", the
//! higher the priority of its job. The distance is the number of further misses in a row that would violate it.
//!
//! Reference: Hamdaoui and Ramanathan, IEEE TC 44(12), 1995. Let l be the position, counted from the most recent job,
//! of the m-th met job among the last k. The distance is k − l + 1, and 0 if fewer than m were met. Tasks without `mk`
//! count as (1,1). Jobs before the first one count as met.
//! Ties: earlier deadline, then earlier release and lower task index.

use std::collections::VecDeque;

use temponet_task::{Assignment, Event, Job, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::ranked::Ranked;

pub(crate) struct MkDbp {
    /// Whether each of the last k jobs of a task was met, the most recent first.
    history: Vec<VecDeque<bool>>,
    ready: Ranked<(u32, Time)>,
    /// Whether the deadline of a job has passed while it stayed, by job id.
    is_late: Vec<bool>,
}

impl MkDbp {
    pub fn new() -> MkDbp {
        MkDbp { history: Vec::new(), ready: Ranked::new(), is_late: Vec::new() }
    }

    fn note(&mut self, job: &Job, met: bool) {
        let history = &mut self.history[job.task];
        history.pop_back();
        history.push_front(met);
    }
}

fn distance(history: &VecDeque<bool>, m: u32, k: u32) -> u32 {
    let met = history.iter().enumerate().filter(|(_, met)| **met).nth(m as usize - 1);
    met.map_or(0, |(place, _)| k - place as u32)
}

impl Scheduler for MkDbp {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.ready.clear();
        self.is_late.clear();
        let past = |k: u32| VecDeque::from(vec![true; k as usize]);
        self.history = system.tasks().iter().map(|task| past(task.mk.map_or(1, |(_, k)| k))).collect();
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.is_late.resize(view.jobs.len().max(self.is_late.len()), false);
        for event in view.events {
            match *event {
                Event::Released(id) => {
                    self.is_late[id.index()] = false;
                    let job = view.job(id);
                    let (m, k) = view.task_of(job).mk.unwrap_or((1, 1));
                    let distance = distance(&self.history[job.task], m, k);
                    self.ready.insert((distance, job.deadline), job, id);
                }
                Event::Completed(id) => {
                    let job = view.job(id);
                    self.ready.remove(job, id);
                    // A late job was recorded when its deadline passed.
                    if view.now <= job.deadline {
                        self.note(job, true);
                    }
                }
                Event::Aborted(id) => {
                    self.ready.remove(view.job(id), id);
                    // A job that held its core when its deadline passed leaves later.
                    if !self.is_late[id.index()] {
                        self.note(view.job(id), false);
                    }
                }
                Event::DeadlinePassed(id) => {
                    self.is_late[id.index()] = true;
                    self.note(view.job(id), false);
                }
                _ => {}
            }
        }
        self.ready.assign(view, assignment);
    }

    fn most_ready(&self) -> usize {
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_as_published() {
        let history = |text: &str| text.chars().map(|c| c == 'M').collect::<VecDeque<bool>>();
        // (2,3)-firm, most recent first.
        assert_eq!(distance(&history("MMM"), 2, 3), 2);
        assert_eq!(distance(&history("MxM"), 2, 3), 1);
        assert_eq!(distance(&history("xMM"), 2, 3), 1);
        assert_eq!(distance(&history("MMx"), 2, 3), 2);
        assert_eq!(distance(&history("Mxx"), 2, 3), 0);
    }
}
