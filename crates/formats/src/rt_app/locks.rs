//! Mutexes of rt-app: the events `lock` and `unlock` of a thread to critical sections of its task.
//!
//! A section counts in the run time between the two events. It is read where every job of a thread does the same; where
//! jobs differ by turns, a note says so.

use temponet_task::{ResourceId, Section, Task, TaskSet, Time};

use super::pattern::Phase;
use crate::notes::Notes;

/// A `lock` or `unlock` in the course of a phase.
#[derive(Clone, Debug)]
pub(super) struct LockEvent {
    /// Number of timers before it.
    pub stretch: usize,
    /// Run time since the last timer.
    pub run: Time,
    pub locks: bool,
    /// Name of the mutex.
    pub mutex: String,
    pub line: usize,
}

/// A critical section of a thread.
#[derive(Clone, Debug)]
pub(super) struct Locked {
    mutex: String,
    at: Time,
    length: Time,
    line: usize,
}

/// Returns the critical sections of a thread. What is not represented becomes a note.
pub(super) fn sections(phases: &[Phase], thread: &str, notes: &mut Notes) -> Vec<Locked> {
    let events: Vec<&LockEvent> = phases.iter().flat_map(|phase| &phase.locks).collect();
    let Some(first) = events.first() else { return Vec::new() };
    if phases.iter().map(Phase::stretches).sum::<usize>() > 1 {
        let why = "its jobs differ by turns, so its critical sections are not represented";
        notes.task(first.line, thread, why);
        return Vec::new();
    }
    let (mut open, mut found): (Vec<&LockEvent>, Vec<Locked>) = (Vec::new(), Vec::new());
    for event in events {
        if event.locks {
            open.push(event);
            continue;
        }
        let Some(at) = open.iter().rposition(|lock| lock.mutex == event.mutex) else {
            notes.task(event.line, thread, format_args!("\"unlock\" of {:?} without a lock is ignored", event.mutex));
            continue;
        };
        let lock = open.remove(at);
        match event.run.saturating_sub(lock.run) {
            Time::ZERO => {
                notes.task(lock.line, thread, format_args!("\"lock\" of {:?} without a run is ignored", lock.mutex))
            }
            length => found.push(Locked { mutex: lock.mutex.clone(), at: lock.run, length, line: lock.line }),
        }
    }
    for lock in open {
        notes.task(
            lock.line,
            thread,
            format_args!("\"lock\" of {:?} without an unlock in the same job is not represented", lock.mutex),
        );
    }
    found
}

/// Gives a task the critical sections that it can have. The others become notes.
pub(super) fn give(task: &mut Task, sections: &[Locked], set: &mut TaskSet, thread: &str, notes: &mut Notes) {
    for Locked { mutex, at, length, line } in sections {
        let mut resources = set.resources().to_vec();
        let known = resources.iter().position(|resource| resource == mutex);
        let resource = known.unwrap_or(resources.len());
        if known.is_none() {
            resources.push(mutex.clone());
        }
        task.sections.push(Section { resource: ResourceId::new(resource), at: *at, length: *length });
        match task.section_problem(&resources) {
            None => set.system.set_resources(resources),
            Some((_, problem)) => {
                task.sections.pop();
                notes.task(*line, thread, format_args!("\"lock\" of {mutex:?} is not represented: {problem}"));
            }
        }
    }
}
