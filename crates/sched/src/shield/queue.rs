//! Who waits for which resource, on which core: first come, first served.
//!
//! The engine has no queues: of the jobs that want a free resource, the one that runs first takes it. So the shield
//! itself lets only the first one run. A job that has asked keeps its core while it waits, so that no core has more
//! than one request at a time.

use temponet_task::{CoreId, JobId, Locks, ResourceId, SystemView, Time};

/// A job that has asked for a resource and does not hold it yet.
#[derive(Clone, Copy, Debug)]
struct Request {
    core: CoreId,
    id: JobId,
    resource: ResourceId,
    since: Time,
}

/// Requests in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Queue {
    requests: Vec<Request>,
}

impl Queue {
    pub fn clear(&mut self) {
        self.requests.clear();
    }

    /// Forgets the requests of jobs that have left or have got what they asked for.
    pub fn update(&mut self, view: &SystemView<'_>) {
        let wants = |request: &Request| {
            let wants = |locks: &Locks| {
                locks.wanted_by(request.id, view.job(request.id)).any(|wanted| wanted == request.resource)
            };
            view.is_active(request.id) && view.locks.is_some_and(wants)
        };
        self.requests.retain(wants);
    }

    /// Adds a request, unless the job has made it before.
    pub fn ask(&mut self, core: CoreId, id: JobId, resource: ResourceId, since: Time) {
        if !self.requests.iter().any(|request| request.id == id) {
            self.requests.push(Request { core, id, resource, since });
        }
    }

    /// Returns the jobs that wait, with their cores.
    pub fn waiting(&self) -> impl Iterator<Item = (CoreId, JobId)> + '_ {
        self.requests.iter().map(|request| (request.core, request.id))
    }

    /// Time for which a job has waited since it asked; zero for one that has not.
    pub fn waited(&self, id: JobId, now: Time) -> Time {
        let request = self.requests.iter().find(|request| request.id == id);
        request.map_or(Time::ZERO, |request| now.saturating_sub(request.since))
    }

    /// Whether a job has to wait: another one holds what it asked for, or asked before it.
    pub fn has_to_wait(&self, id: JobId, locks: &Locks) -> bool {
        let Some(own) = self.requests.iter().find(|request| request.id == id) else { return false };
        let first = self.requests.iter().find(|request| request.resource == own.resource);
        locks.holder(own.resource).is_some_and(|holder| holder != id) || first.is_some_and(|first| first.id != id)
    }
}
