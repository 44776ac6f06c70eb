//! The dispatcher and a slow scheduler beside the fast one: what it is told, and what becomes of its answers.

use temponet_task::{Assignment, Event, Scheduler, SystemView, Time};

use super::Dispatcher;
use crate::error::RuntimeError;
use crate::platform::Platform;

/// Remembers the events of every decision, for a second scheduler that is shown only some of them.
pub struct Watched<'a> {
    pub inner: &'a mut dyn Scheduler,
    pub events: Option<&'a mut Vec<Event>>,
}

impl Watched<'_> {
    fn remember(&mut self, view: &SystemView<'_>) {
        if let Some(events) = &mut self.events {
            events.extend_from_slice(view.events);
        }
    }
}

impl<'a> temponet_task::Wrapper for Watched<'a> {
    type Inner = dyn Scheduler + 'a;

    fn inner(&self) -> &Self::Inner {
        self.inner
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        self.inner
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.remember(view);
        self.inner.decide(view, assignment);
    }

    fn watch(&mut self, view: &SystemView<'_>, scratch: &mut Assignment) {
        self.remember(view);
        self.inner.watch(view, scratch);
    }
}

/// Number of events after which the slow scheduler is told in any case: ids of jobs that have left are free only then.
const MOST_UNTOLD: usize = 256;

impl<P: Platform> Dispatcher<'_, P> {
    /// Adopts the answer of the slow scheduler, unless something has happened since it was asked; then asks about the
    /// present state. One that agrees with what runs was in force until now.
    pub(super) fn take_answer(&mut self) -> Result<(), RuntimeError> {
        let Some(mailbox) = &mut self.mailbox else { return Ok(()) };
        let Some(answer) = mailbox.answer() else { return Ok(()) };
        self.samples.answer.push(answer.took_ns);
        if answer.agrees && answer.state == self.state {
            self.counts.agreed += 1;
            return Ok(());
        }
        let now = self.ready.now();
        let is_due = self.decide_at.min(self.releases.next()) <= now;
        if answer.state != self.state || is_due || !self.ready.view().events.is_empty() {
            self.counts.overtaken += 1;
            self.ask();
            return Ok(());
        }
        let decision = self.ready.adopt(mailbox.assignment())?;
        self.counts.adopted += 1;
        self.decide_at = decision.next().unwrap_or(Time::NEVER);
        for (core, handle) in decision.cores().iter().enumerate() {
            self.wanted[core] = handle.map(|handle| self.slot_of[handle.id().index()]);
        }
        self.carry_out();
        Ok(())
    }

    /// Shows the present state to the slow scheduler if it is free and has not seen it. Where every ready job has a core
    /// there is nothing to choose, unless leaving one idle may serve a job that cannot preempt; the events of such states
    /// are told later.
    pub(super) fn ask(&mut self) {
        let is_settled = self.ready.len() <= self.cores.iter().flatten().count();
        if is_settled && !self.limits_preemption && self.untold.len() < MOST_UNTOLD {
            return;
        }
        if let Some(mailbox) = &mut self.mailbox
            && mailbox.ask(self.state, &self.ready.view(), self.decide_at, &mut self.untold)
        {
            self.ready.free_ids();
        }
    }
}
