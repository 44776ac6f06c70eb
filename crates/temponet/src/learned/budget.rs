//! The decision budget: chooses, by expected latencies and before the work is done, who takes a decision.
//!
//! There are three levels: the network, the usual fallback, and plain EDF. EDF keeps the ready jobs sorted by events,
//! so a decision costs it next to nothing even in a long backlog. In return it must see every event, so it decides
//! first at every decision point, and a better level that fits into the rest of the budget replaces its decision. No
//! clock is read.

use temponet_infer::ROW_GROUP;
use temponet_sched::advice::most_coming;
use temponet_sched::global_edf;
use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView};

use super::Options;
use crate::shown::RowLimits;
use crate::stage_latencies::{Calibration, LatencyTable, MEASURED_SIZES, StageLatencies};
use crate::stages::{Feature, Tokenizer};

/// Number of coming jobs of each task in the decisions that a calibration measures.
const MEASURED_COMING: usize = 3;

/// The budget on one system, with the level that always fits.
pub(super) struct Budget {
    /// Time for a whole decision, in nanoseconds.
    limit: u64,
    calibration: Calibration,
    /// Number of different tokens that jobs can have, or the greatest number if every job has a row of its own.
    most_tokens: usize,
    /// Limit of the tokenizer.
    most_rows: Option<usize>,
    /// Whether planners look at coming jobs.
    looks_ahead: bool,
    /// Whether coming jobs have rows.
    shows_coming: bool,
    /// Greatest number of rows of coming jobs.
    coming_rows: usize,
    /// Greatest number of rows of ready jobs.
    ready_rows: usize,
    /// Latencies on the system at hand.
    stages: StageLatencies,
    mapping: u64,
    /// Number of periodic tasks with as many coming jobs as planners look at, whether jobs of theirs are ready or not.
    planned_tasks: usize,
    edf: Box<dyn Scheduler>,
    /// Decision of EDF.
    plan: Assignment,
    /// Number of decisions left to EDF.
    edf_decisions: u64,
}

impl Budget {
    /// The budget of these options; none if they have none or are not calibrated.
    pub fn new(options: &Options, tokenizer: &Tokenizer) -> Option<Budget> {
        let has_own_rows = options.sparse || tokenizer.real_input().is_some();
        let tokens = || tokenizer.job_vocabularies().iter().fold(1, |all: usize, one| all.saturating_mul(one.size));
        Some(Budget {
            limit: options.budget_ns?,
            calibration: options.calibration?,
            most_tokens: if has_own_rows { usize::MAX } else { tokens() },
            most_rows: tokenizer.most_rows,
            looks_ahead: tokenizer.features.iter().any(|name| matches!(name, Feature::Plan | Feature::Pressure)),
            shows_coming: tokenizer.coming,
            coming_rows: 0,
            ready_rows: 0,
            stages: StageLatencies::default(),
            mapping: 0,
            planned_tasks: 0,
            edf: global_edf(),
            plan: Assignment::default(),
            edf_decisions: 0,
        })
    }

    /// Prepares for a system. `differs` tells whether its tasks differ in value or criticality, and `stays` whether
    /// running jobs may keep their cores.
    pub fn start(&mut self, system: &System, differs: bool, stays: bool) -> Result<(), NotApplicable> {
        let coming: usize = system.tasks().iter().filter(|_| self.looks_ahead).map(most_coming).sum();
        self.planned_tasks = coming.div_ceil(MEASURED_COMING);
        let limits = RowLimits::of(self.most_rows, system.cores());
        self.coming_rows = if self.shows_coming { system.tasks().len().min(limits.coming) } else { 0 };
        self.ready_rows = limits.ready.min(self.most_tokens);
        self.stages = self.calibration.stages(differs, system.cores());
        let mapping = if stays { &self.calibration.staying } else { &self.calibration.mapping };
        self.mapping = mapping.at(system.cores());
        self.edf_decisions = 0;
        self.edf.start(system)
    }

    /// Lets EDF decide, so that it sees the events.
    pub fn watch(&mut self, view: &SystemView<'_>) {
        self.plan.reset(view.cores());
        self.edf.decide(view, &mut self.plan);
    }

    /// Begins a decision: shows it to EDF, and returns what else the budget allows.
    pub fn begin(&mut self, view: &SystemView<'_>) -> Allowance {
        self.watch(view);
        let jobs = view.active.len();
        let pairs_of_events = view.events.len().div_ceil(2).max(1) as u64;
        Allowance {
            left: self.limit.saturating_sub(self.stages.edf.at(jobs).saturating_mul(pairs_of_events)),
            observation: self.stages.observation.at(jobs.max(self.planned_tasks)),
            mapping: self.mapping,
            fallback: self.stages.fallback.at(jobs),
            network: self.calibration.network,
            most_rows: 1 + jobs.min(self.ready_rows) + self.coming_rows,
        }
    }

    /// Takes the decision of EDF, after [`Budget::begin`].
    pub fn decide_by_edf(&mut self, assignment: &mut Assignment) {
        self.edf_decisions += 1;
        std::mem::swap(assignment, &mut self.plan);
    }

    /// Number of decisions that EDF has taken since the start.
    pub fn edf_decisions(&self) -> u64 {
        self.edf_decisions
    }
}

/// The rest of the budget during one decision, and the expected latencies of what can still be done. All are in
/// nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    left: u64,
    observation: u64,
    mapping: u64,
    fallback: u64,
    network: LatencyTable,
    /// Number of rows if as few tokens as possible are equal, the idle row included.
    most_rows: usize,
}

impl Allowance {
    /// Allowance without a budget.
    pub const UNLIMITED: Allowance = Allowance {
        left: u64::MAX,
        observation: 0,
        mapping: 0,
        fallback: 0,
        network: LatencyTable([0; MEASURED_SIZES.len()]),
        most_rows: 0,
    };

    /// Spends the time of reading the jobs, if that is worth it: if the network fits with any number of rows, or if it
    /// may fit and the usual fallback fits in case that it does not.
    pub fn try_observe(&mut self) -> bool {
        let fits = |more: u64| self.observation.saturating_add(more) <= self.left;
        let network = |rows: usize| self.network(rows).saturating_add(self.mapping);
        // There are at least two rows: the idle row and one for all jobs.
        let is_worth_it = fits(network(self.most_rows)) || fits(network(2)) && fits(self.fallback);
        if is_worth_it {
            self.left -= self.observation;
        }
        is_worth_it
    }

    /// Spends the time of the network over this many rows, if it fits with the mapping that follows.
    pub fn try_network(&mut self, rows: usize) -> bool {
        let network = self.network(rows);
        let fits = network.saturating_add(self.mapping) <= self.left;
        if fits {
            self.left -= network;
        }
        fits
    }

    /// Expected latency of the network over this many rows.
    fn network(&self, rows: usize) -> u64 {
        self.network.at(rows.next_multiple_of(ROW_GROUP))
    }

    /// Whether the usual fallback fits.
    pub fn allows_fallback(&self) -> bool {
        self.fallback <= self.left
    }
}
