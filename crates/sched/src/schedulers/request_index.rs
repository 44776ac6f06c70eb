//! A learned index for servers: each job gets a score when it is released, the earliest key runs, and a job that has not
//! begun and would be late by the length that its score plans never begins. What the score is made of stands in
//! `temponet_task::RequestIndex`; the dispatcher for servers follows the same.
//!
//! Lengths are the median and the ninth decile of estimates, of completed jobs of the same task, or of the bounds; see
//! [`Lengths`]. Where late jobs continue, nothing is shed, and jobs that would be late go last.
//!
//! Ties: earlier release, then lower task index. Jobs that come together are scored in the order of their tasks.

use temponet_task::{
    Assignment, Event, IndexWeights, IndexedRequest, Job, JobId, NotApplicable, OnMiss, Preemption, RequestIndex,
    Scheduler, Score, System, SystemView, Time,
};

use crate::shared::lengths::Lengths;
use crate::shared::selection::Selection;

/// Share of jobs that take no longer than the second length, beside the median.
const HIGH: f64 = 0.9;

pub(crate) struct Indexed {
    median: Lengths,
    high: Lengths,
    index: RequestIndex,
    /// Score of each job by its id, and what was known of it.
    scores: Vec<Option<(Score, IndexedRequest)>>,
    selection: Selection<(bool, u64)>,
    chosen: Vec<JobId>,
}

impl Indexed {
    pub fn new() -> Indexed {
        Indexed {
            median: Lengths::at(0.5),
            high: Lengths::at(HIGH),
            index: RequestIndex::new(IndexWeights::learned(), 1, false),
            scores: Vec::new(),
            selection: Selection::new(),
            chosen: Vec::new(),
        }
    }

    /// Takes note of jobs that come and go.
    fn follow(&mut self, view: &SystemView<'_>) {
        self.median.follow(view);
        self.high.follow(view);
        for event in view.events {
            match *event {
                Event::Released(id) => self.score(view, id),
                Event::Completed(id) | Event::Aborted(id) => {
                    let is_complete = matches!(*event, Event::Completed(_));
                    let executed = view.job(id).fastest.time_for(view.job(id).executed);
                    let scored = self.scores.get_mut(id.index()).and_then(Option::take);
                    if let Some((_, request)) = scored.filter(|_| executed > Time::ZERO) {
                        self.index.learn(&request, executed.0, is_complete);
                    }
                }
                _ => {}
            }
        }
    }

    fn score(&mut self, view: &SystemView<'_>, id: JobId) {
        let job = view.job(id);
        let length = |lengths: &Lengths| lengths.length(job).map(|length| job.fastest.time_for(length));
        let (median, high) = (length(&self.median), length(&self.high));
        let spread = match (job.estimate, median, high) {
            (Some(estimate), ..) => estimate.error(),
            (None, Some(median), Some(high)) if median > Time::ZERO => {
                (high.0 as f64 / median.0 as f64).ln().max(0.0) / self.high.deviations()
            }
            _ => 0.0,
        };
        let request = IndexedRequest {
            arrival: job.release.0,
            due: job.deadline.0,
            median: median.map_or(0, |median| median.0),
            spread,
            value: job.value,
        };
        let waits = |(other, job): &(JobId, &Job)| {
            *other != id && job.last_core.is_none() && self.scored(*other).is_some() && !self.is_late(view, *other, job)
        };
        let waiting = view.ready().filter(waits).count();
        self.index.observe(&request);
        let score = self.index.score(&request, waiting);
        if self.scores.len() <= id.index() {
            self.scores.resize(id.index() + 1, None);
        }
        self.scores[id.index()] = Some((score, request));
    }

    fn scored(&self, id: JobId) -> Option<Score> {
        self.scores.get(id.index()).copied().flatten().map(|(score, _)| score)
    }

    /// Whether a job that has not begun would be late by what is planned for it.
    fn is_late(&self, view: &SystemView<'_>, id: JobId, job: &Job) -> bool {
        let median = self.median.length(job).map_or(0, |length| job.fastest.time_for(length).0);
        let planned = self.scored(id).map_or(median, |score| score.planned(median));
        job.last_core.is_none() && view.now.0.saturating_add(planned) > job.deadline.0
    }
}

impl Scheduler for Indexed {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.median.start(system);
        self.high.start(system);
        self.scores.clear();
        let leaves = |preemption: Preemption| matches!(preemption, Preemption::Free | Preemption::Cancel);
        let cancels = system.on_miss() == OnMiss::Abort && system.tasks().iter().all(|task| leaves(task.preemption));
        self.index = RequestIndex::new(IndexWeights::learned(), system.cores(), cancels);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.follow(view);
        // The buffers are put back below.
        let mut selection = std::mem::replace(&mut self.selection, Selection::new());
        let key = |id: JobId, job: &Job| {
            let key = self.scored(id).map_or(u64::MAX, |score| score.key);
            (self.is_late(view, id, job), key)
        };
        let best = selection.select_by_id(view, view.system.most_offered(), key);
        let sheds = view.system.on_miss() == OnMiss::Abort;
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.clear();
        chosen.extend(best.iter().filter(|id| !sheds || !self.is_late(view, **id, view.job(**id))));
        assignment.place(view, &chosen);
        (self.selection, self.chosen) = (selection, chosen);
    }

    fn watch(&mut self, view: &SystemView<'_>, _: &mut Assignment) {
        self.follow(view);
    }
}
