//! Round robin: the ready jobs take turns of one quantum, in order of release.
//!
//! Reference: time sharing (Kleinrock 1964). It does not know deadlines.
//! Ties: jobs released together queue by release, then task index; turns that end together queue by core. If no other
//! job waits, a job renews its turn.

use std::collections::VecDeque;

use temponet_task::{Assignment, Event, JobId, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::quantum::quantum;

pub(crate) struct RoundRobin {
    given: Option<Time>,
    quantum: Time,
    waiting: VecDeque<JobId>,
    /// Jobs that have their turn and the end of the turn, in core order.
    turns: Vec<(JobId, Time)>,
    chosen: Vec<JobId>,
    /// Whether a job waited after the last decision, so that one was asked for at the end of the next turn. On a real
    /// machine it comes later than asked.
    waited: bool,
}

impl RoundRobin {
    pub fn new(given: Option<Time>) -> RoundRobin {
        RoundRobin {
            given,
            quantum: Time::ZERO,
            waiting: VecDeque::new(),
            turns: Vec::new(),
            chosen: Vec::new(),
            waited: false,
        }
    }
}

impl Scheduler for RoundRobin {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.quantum = quantum(self.given, system);
        self.waiting.clear();
        self.turns.clear();
        self.waited = false;
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let now = view.now;
        for (id, end) in &mut self.turns {
            // No job waited when this turn ended, so it was renewed. The turn of a job that holds its core ends at its
            // next preemption point.
            if *end < now && !self.waited && !view.task_of(view.job(*id)).preemption.is_limited() {
                *end += self.quantum * now.signed_sub(*end).unsigned_abs().div_ceil(self.quantum.0);
            }
        }
        for event in view.events {
            match *event {
                Event::Released(id) => self.waiting.push_back(id),
                Event::Completed(id) | Event::Aborted(id) => {
                    self.waiting.retain(|waiting| *waiting != id);
                    self.turns.retain(|(running, _)| *running != id);
                }
                _ => {}
            }
        }
        self.turns.sort_by_key(|(id, _)| view.job(*id).last_core);
        let free = view.cores() - self.turns.len();
        let mut over = self.waiting.len().saturating_sub(free);
        let mut ended = Vec::new();
        self.turns.retain_mut(|(id, end)| {
            if *end > now || view.job(*id).held {
                return true;
            }
            // Jobs that wait beyond the free cores replace jobs whose turn is over, in core order.
            if over > 0 {
                over -= 1;
                ended.push(*id);
                return false;
            }
            *end = now + self.quantum;
            true
        });
        self.waiting.extend(ended);
        while self.turns.len() < view.cores() {
            let Some(id) = self.waiting.pop_front() else { break };
            self.turns.push((id, now + self.quantum));
        }
        self.waited = !self.waiting.is_empty();
        if self.waited
            && let Some(end) = self.turns.iter().map(|(_, end)| *end).filter(|end| *end > now).min()
        {
            assignment.wake_at(end);
        }
        self.chosen.clear();
        self.chosen.extend(self.turns.iter().map(|(id, _)| *id));
        if view.locks.is_some() {
            // A core whose job waits for a resource goes to the next one in turn.
            self.chosen.extend(&self.waiting);
        }
        assignment.place(view, &self.chosen);
    }
}
