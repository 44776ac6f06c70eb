//! Distance-based priority for (m,k)-firm tasks: the closer a task is to violating "m of any k consecutive jobs", the
//! higher the priority of its job. The distance is the number of further misses in a row that would violate it.
//!
//! Reference: Hamdaoui and Ramanathan, IEEE TC 44(12), 1995. Let l be the position, counted from the most recent job,
//! of the m-th met job among the last k. The distance is k − l + 1, and 0 if fewer than m were met. Tasks without `mk`
//! count as (1,1). Jobs before the first one count as met.
//! Ties: earlier deadline, then earlier release and lower task index.

use std::collections::VecDeque;

use temponet_task::{Assignment, Event, Job, NotApplicable, Scheduler, System, SystemView, Time};

use crate::advice::Outcomes;
use crate::shared::ranked::Ranked;

pub(crate) struct MkDbp {
    /// Whether each of the last jobs of a task was met, up to k of them, the most recent first.
    history: Vec<VecDeque<bool>>,
    ready: Ranked<(u32, Time)>,
    outcomes: Outcomes,
}

impl MkDbp {
    pub fn new() -> MkDbp {
        MkDbp { history: Vec::new(), ready: Ranked::new(), outcomes: Outcomes::default() }
    }

    fn note(&mut self, view: &SystemView<'_>, job: &Job, met: bool) {
        let (_, k) = view.task_of(job).mk.unwrap_or((1, 1));
        let history = &mut self.history[job.task];
        history.push_front(met);
        history.truncate(k as usize);
    }
}

/// Distance of a task with this history. Jobs before it count as met.
fn distance(history: &VecDeque<bool>, m: u32, k: u32) -> u32 {
    let m = m as usize;
    let mut met = history.iter().enumerate().filter(|(_, met)| **met).map(|(place, _)| place);
    let place = met.nth(m - 1).unwrap_or_else(|| {
        let known = history.iter().filter(|met| **met).count();
        history.len() + (m - known) - 1
    });
    k.saturating_sub(u32::try_from(place).unwrap_or(u32::MAX))
}

impl Scheduler for MkDbp {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.ready.clear();
        self.outcomes.clear();
        self.history = vec![VecDeque::new(); system.tasks().len()];
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        for event in view.events {
            match *event {
                Event::Released(id) => {
                    let job = view.job(id);
                    let (m, k) = view.task_of(job).mk.unwrap_or((1, 1));
                    let distance = distance(&self.history[job.task], m, k);
                    self.ready.insert((distance, job.deadline), job, id);
                }
                Event::Completed(id) | Event::Aborted(id) => self.ready.remove(view.job(id), id),
                _ => {}
            }
            if let Some((id, is_met)) = self.outcomes.of(view, *event) {
                self.note(view, view.job(id), is_met);
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
        // What is not known yet counts as met.
        assert_eq!(
            [distance(&history(""), 2, 3), distance(&history("x"), 2, 3), distance(&history("xx"), 2, 3)],
            [2, 1, 0]
        );
        assert_eq!(distance(&history("xM"), 1, u32::MAX), u32::MAX - 1);
    }
}
