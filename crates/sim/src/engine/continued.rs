//! A run that begins in the middle: with the jobs that a scheduler sees at a decision point, and with execution times
//! and coming jobs that someone else supplies. A scheduler can try out its decisions on it.

use std::sync::Arc;

use temponet_task::{CoreId, Job, JobTable, Locks, OnMiss, SystemView, TaskSet, Time};

use super::{Engine, Hidden, Sections, Waiting, idle_cores};
use crate::deadline_queue::DeadlineQueue;
use crate::metrics::{End, Metrics};
use crate::whole_jobs::WholeJobs;
use crate::workload::Workload;

impl Engine {
    /// Creates a run that continues at the decision point of `view`. Jobs keep their ids. `execution` gives the
    /// execution time of each active job, which is longer than the job has executed; `waiting` are the jobs that wait
    /// for others.
    ///
    /// Jobs keep the cores and the resources that they hold. A view does not show three things, so they are lost: that
    /// a held job was abandoned, the speed that a scheduler chose for a core (every core is at full speed, or at the
    /// speed that the machine gives it), and the previous job of an idle core.
    pub(crate) fn resumed(
        known: Arc<TaskSet>,
        set: Arc<TaskSet>,
        view: &SystemView<'_>,
        workload: Workload,
        waiting: Option<Box<Waiting>>,
        horizon: Time,
        mut execution: impl FnMut(&Job) -> Time,
    ) -> Engine {
        let gone = Hidden { execution: Time::ZERO, fraction: 0, assigned: 0, first_start: Time::NEVER, removal: None };
        let mut hidden = vec![gone; view.jobs.len()];
        let mut deadlines = DeadlineQueue::new();
        for (id, job) in view.ready() {
            let first_start = if job.last_core.is_some() { job.release } else { Time::NEVER };
            let execution = execution(job);
            let is_late = job.held && job.deadline <= view.now && known.on_miss() == OnMiss::Abort;
            let removal = is_late.then_some(End::Aborted);
            hidden[id.index()] = Hidden { execution, first_start, removal, ..gone };
            if job.deadline > view.now {
                deadlines.add(job.deadline, id, 0);
            }
        }
        // Whoever does not know the resources takes all of them to be free.
        let fresh = || {
            let mut locks = Locks::of(&known)?;
            view.ready().for_each(|(id, job)| locks.enter(id, job));
            Some(locks)
        };
        let locks = view.locks.filter(|_| known.has_sections()).cloned().or_else(fresh);
        let sections = locks.map(|locks| Sections::resumed(locks, view.cores(), view.jobs.len(), view.now));
        let mut engine = Engine {
            sections,
            cores: idle_cores(&known, view.now),
            is_limited: known.is_limited(),
            known,
            costs: *set.costs(),
            horizon,
            now: view.now,
            workload,
            jobs: view.jobs.to_vec(),
            hidden,
            table: JobTable::with_active(view.jobs.len(), view.active),
            deadlines,
            running: view.running.to_vec(),
            next_completion: Time::NEVER,
            wake: Time::NEVER,
            points: vec![Time::NEVER; view.cores()],
            next_point: Time::NEVER,
            waiting,
            whole_jobs: WholeJobs::of(&set),
            all_full: true,
            events: Vec::new(),
            metrics: Metrics::new(set.tasks()),
            set,
            busy_full: 0,
            busy_slow: 0,
            energy_slow: 0.0,
        };
        engine.metrics.skip_histograms();
        for core in CoreId::all(engine.cores.len()) {
            if let Some(id) = engine.running[core] {
                engine.set_completion(core, id);
            }
        }
        engine.find_next_completion();
        if engine.is_limited {
            engine.find_points();
        }
        if engine.sections.is_some() {
            engine.find_section_points();
        }
        engine
    }
}
