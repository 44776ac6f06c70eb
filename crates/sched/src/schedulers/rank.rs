//! The shortest job first, by the median of its length, and before all others a job that has waited for a patience. Of
//! lengths only the order counts, so a prediction need not be right, only rank the jobs.
//!
//! Lengths are those of estimates, of completed jobs of the same task, or of the bounds; see [`Lengths`].
//!
//! Reference: Fu, Zhu, Su, Qiao, Stoica and Zhang, "Efficient LLM scheduling by learning to rank" (NeurIPS 2024), the
//! scheduler of vllm-ltr. There, patience is counted in steps of the batch, and a job that lost it goes first for a
//! quantum; here it is a time, and the job goes first until it completes.
//! Ties: earlier release, then lower task index. Where late jobs are aborted, nothing else is shed.

use temponet_task::{Assignment, Job, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::lengths::Lengths;
use crate::shared::selection::Selection;

pub(crate) struct Rank {
    lengths: Lengths,
    /// Waiting time after which a job goes first.
    patience: Time,
    selection: Selection<(bool, Time)>,
}

impl Rank {
    pub fn new(patience: Option<Time>) -> Rank {
        Rank { lengths: Lengths::at(0.5), patience: patience.unwrap_or(Time::NEVER), selection: Selection::new() }
    }
}

impl Scheduler for Rank {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.lengths.start(system);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.lengths.follow(view);
        let Rank { lengths, patience, selection } = self;
        let key = |job: &Job| {
            let waited = view.now.saturating_sub(job.release).saturating_sub(job.executed);
            (waited < *patience, lengths.time_to_finish(job))
        };
        assignment.place(view, selection.select(view, view.system.most_offered(), key));
    }

    fn watch(&mut self, view: &SystemView<'_>, _: &mut Assignment) {
        self.lengths.follow(view);
    }
}
