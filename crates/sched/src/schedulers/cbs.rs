//! Constant bandwidth servers for aperiodic work. The jobs of a task with a `server` are served one after the other
//! under the deadline of the server, and use no more than its budget per period. All other jobs run by EDF. However
//! much aperiodic work arrives, hard tasks keep their deadlines as long as their load and the bandwidths of the servers
//! fit.
//!
//! Reference: Abeni and Buttazzo, Integrating Multimedia Applications in Hard Real-Time Systems, RTSS 1998. When a job
//! finds its server idle, the server keeps its deadline d and budget c if c < (d − t)·Q/P; otherwise d = t + P and c =
//! Q. An exhausted server gets c = Q and d + P at once.
//! Ties: earlier release, then lower task index.

use std::collections::VecDeque;

use temponet_task::{
    Assignment, Attribute, Event, JobId, NotApplicable, Scheduler, Server, System, SystemView, Task, TaskId, Time,
};

use crate::shared::selection::Selection;

pub(crate) struct Cbs {
    servers: Vec<ServerState>,
    selection: Selection<(bool, Time)>,
}

#[derive(Default)]
struct ServerState {
    deadline: Time,
    budget: Time,
    queue: VecDeque<JobId>,
    /// Execution of the first job in the queue up to the last decision.
    seen: Time,
}

impl Cbs {
    pub fn new() -> Cbs {
        Cbs { servers: Vec::new(), selection: Selection::new() }
    }
}

impl ServerState {
    /// Takes the execution of the first job since the last decision off the budget. A job that held its core beyond the
    /// budget has used those of the next periods.
    fn charge(&mut self, view: &SystemView<'_>, rule: &Server) {
        if let Some(first) = self.queue.front() {
            let executed = view.job(*first).executed;
            let mut used = executed.saturating_sub(self.seen);
            while used > self.budget {
                used = used - self.budget;
                (self.deadline, self.budget) = (self.deadline + rule.period, rule.budget);
            }
            self.budget = self.budget - used;
            self.seen = executed;
        }
    }

    fn remove(&mut self, id: JobId) {
        if self.queue.front() == Some(&id) {
            self.seen = Time::ZERO;
        }
        self.queue.retain(|queued| *queued != id);
    }
}

/// Place of the server that serves the jobs of a task.
fn server_of(task: &Task) -> Option<usize> {
    task.extra.get(Attribute::Server).map(|server| server as usize)
}

impl Scheduler for Cbs {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.servers = system.servers().iter().map(|_| ServerState::default()).collect();
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let now = view.now;
        self.servers.iter_mut().zip(view.system.servers()).for_each(|(server, rule)| server.charge(view, rule));
        for event in view.events {
            let (Event::Released(id) | Event::Completed(id) | Event::Aborted(id)) = *event else { continue };
            let Some(index) = server_of(view.task_of(view.job(id))) else { continue };
            let (server, rule) = (&mut self.servers[index], &view.system.servers()[index]);
            if !matches!(event, Event::Released(_)) {
                server.remove(id);
                continue;
            }
            if server.queue.is_empty() {
                let left = u128::from(server.deadline.saturating_sub(now).0) * u128::from(rule.budget.0);
                if u128::from(server.budget.0) * u128::from(rule.period.0) >= left {
                    (server.deadline, server.budget) = (now + rule.period, rule.budget);
                }
            }
            server.queue.push_back(id);
        }
        for (server, rule) in self.servers.iter_mut().zip(view.system.servers()) {
            if server.budget == Time::ZERO && !server.queue.is_empty() {
                (server.deadline, server.budget) = (server.deadline + rule.period, rule.budget);
            }
        }
        // A served job runs under the deadline of its server. Only the first job of each server is eligible.
        let key = |id: JobId, task: TaskId, deadline: Time| match server_of(&view.system.tasks()[task]) {
            Some(index) => (self.servers[index].queue.front() != Some(&id), self.servers[index].deadline),
            None => (false, deadline),
        };
        let chosen =
            self.selection.select_by_id(view, view.system.most_offered(), |id, job| key(id, job.task, job.deadline));
        let eligible = chosen.iter().filter(|id| !key(**id, view.job(**id).task, Time::ZERO).0).count();
        let chosen = &chosen[..eligible];
        assignment.place(view, chosen);
        for core in view.system.core_ids() {
            let Some(id) = assignment.cores()[core].filter(|id| chosen.contains(id)) else { continue };
            let job = view.job(id);
            if let Some(index) = server_of(view.task_of(job)) {
                debug_assert_eq!(self.servers[index].queue.front(), Some(&id));
                assignment.wake_at(view.date_after_on(job, self.servers[index].budget, core));
            }
        }
    }
}
