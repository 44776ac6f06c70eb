//! Figures of all decisions of a run: how attention relates to what is chosen, and which simple rule chooses alike.
//!
//! Every decision costs a pass of the plain reference network. Memory does not grow with the number of decisions.

use serde::Serialize;
use temponet_infer::reference;
use temponet_task::{Assignment, JobId, System, SystemView, Tie, Time};

use temponet::Model;
use temponet::stages::{Observation, Scale};

use super::rule::{DistilledRule, RuleInput, RuleSearch};
use super::{decision_attention, entropy, entropy_of};
use crate::stats::streaming::{Correlation, EvenSample, Moments, Spread};

/// Values of k of top-k alignment.
pub const TOP: [usize; 3] = [1, 3, 5];
/// Number of rows of the heat map, which divide the remaining wcet as a share of the set's greatest wcet.
pub const REMAINING_BINS: usize = 10;
/// Number of bars of a histogram.
const BARS: usize = 40;
/// Width of a bar of the histogram of attention entropy, in bits.
pub const ENTROPY_STEP: f32 = 0.25;
/// Shares for which quantiles are given.
const QUANTILES: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];

/// The figures of all decisions of a run with at least one ready job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// Number of decisions with at least one ready job.
    pub decisions: u64,
    /// Number of decisions with more ready jobs than cores, and with a core that no job holds.
    pub contested: u64,
    /// Share of decisions in which the decision token attends most to what was chosen, in the last layer and on average
    /// over heads. Idling counts as its own row.
    pub alignment: f64,
    /// For each k, the mean of `|Top_k ∩ chosen| / min(k, |chosen|)` over the decisions in which a job was chosen.
    pub top_k_alignment: Vec<TopK>,
    /// Attention entropy over distinct tokens per layer, mean over queries and heads, in bits.
    pub entropy_bits: Vec<Spread>,
    /// Attention entropy of the decision token in the last layer, mean over heads, in bits.
    pub decision_entropy_bits: Spread,
    /// Histogram of each layer's entropy, in steps of [`ENTROPY_STEP`] bits. The last step includes everything beyond
    /// it.
    pub entropy_counts: Vec<Vec<u64>>,
    /// Correlation of the decision token's attention to a job, relative to an even share, with the criticality of the
    /// job; `None` if one of the two never varies.
    pub attention_criticality: Option<f64>,
    /// Correlation of the same attention with the urgency 1/(s̃+1), where s̃ is the slack bin.
    pub attention_urgency: Option<f64>,
    /// Q-values of the chosen jobs.
    pub q_chosen: Distribution,
    /// Q-values of the ready jobs that were not chosen.
    pub q_others: Distribution,
    /// Distilled rule that agrees best with the choices.
    pub rule: DistilledRule,
    /// Agreement with other schedulers.
    pub agreement: Vec<SchedulerAgreement>,
    /// How often jobs were chosen, by slack bin and remaining wcet; cells without a job are left out.
    pub heat_map: Vec<HeatMapCell>,
}

/// Top-k alignment for one k.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TopK {
    /// Number of most attended jobs.
    pub k: usize,
    /// Mean share, 0 to 1.
    pub alignment: f64,
}

/// How often two schedulers choose the same jobs: `|A ∩ B| / max(|A|, |B|)`, mean over decisions. On one core this is
/// the share of identical actions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Mean over all decisions, 0 to 1.
    pub all: f64,
    /// Mean over the decisions with more ready jobs than cores and with a core that no job holds, 0 to 1.
    pub contested: f64,
    #[serde(skip)]
    counts: [u64; 2],
}

impl Agreement {
    pub(super) fn add(&mut self, share: f64, is_contested: bool) {
        let step = |mean: &mut f64, count: &mut u64| {
            *count += 1;
            *mean += (share - *mean) / *count as f64;
        };
        step(&mut self.all, &mut self.counts[0]);
        if is_contested {
            step(&mut self.contested, &mut self.counts[1]);
        }
    }
}

/// Agreement of one scheduler with the network's choices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SchedulerAgreement {
    /// Scheduler name.
    pub scheduler: String,
    /// Agreement with the network's choices.
    #[serde(flatten)]
    pub agreement: Agreement,
}

/// Distribution of values. If there are very many, it is that of an even sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Quantiles, as a share and the value that this share of the values does not exceed; empty if there are no values.
    pub quantiles: Vec<(f64, f32)>,
    /// Start of the first bar and end of the last one; the same for both distributions of Q-values.
    pub range: (f32, f32),
    /// Share of the values in each bar; all bars have the same width.
    pub bars: Vec<f64>,
}

/// A cell of the heat map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeatMapCell {
    /// Slack bin of the tokenizer; the two numbers beyond its bins mean late by wcet and impossible.
    pub slack_bin: u16,
    /// Remaining wcet as a share of the set's greatest wcet, in tenths, rounded down.
    pub remaining_bin: usize,
    /// Number of ready jobs in this cell.
    pub seen: u64,
    /// Number of those that were chosen.
    pub chosen: u64,
}

/// Gathers a [`RunReport`], decision by decision.
pub struct RunDiagnostics<'a> {
    model: &'a Model,
    scale: Scale,
    greatest_wcet: f64,
    observation: Observation,
    contested: u64,
    alignment: Moments,
    top: [Moments; TOP.len()],
    entropy: Vec<Moments>,
    entropy_counts: Vec<Vec<u64>>,
    decision_entropy: Moments,
    criticality: Correlation,
    urgency: Correlation,
    q_chosen: EvenSample,
    q_others: EvenSample,
    rules: RuleSearch,
    agreement: Vec<SchedulerAgreement>,
    /// Numbers of jobs seen and chosen, by slack bin, then by remaining wcet.
    cells: Vec<[(u64, u64); REMAINING_BINS]>,
    decisions: u64,
}

/// A ready job at a decision.
struct ReadyJob {
    /// Attention of the decision token to the job; jobs with the same token share its attention.
    attention: f32,
    q: f32,
    criticality: u8,
    slack_bin: u16,
    remaining: Time,
    order: (Time, Tie),
    is_chosen: bool,
}

impl<'a> RunDiagnostics<'a> {
    /// Starts a report on a model for a system. `others` are the names of the schedulers with which it is compared.
    pub fn new(model: &'a Model, system: &System, others: &[&str]) -> RunDiagnostics<'a> {
        let layers = model.weights.architecture.layers;
        let named = |name: &&str| SchedulerAgreement { scheduler: name.to_string(), agreement: Agreement::default() };
        let mut observation = Observation::default();
        observation.start(system);
        RunDiagnostics {
            model,
            scale: Scale::of(&model.tokenizer, system),
            greatest_wcet: system.tasks().iter().map(|task| task.wcet.0).max().unwrap_or(1).max(1) as f64,
            observation,
            contested: 0,
            alignment: Moments::default(),
            top: Default::default(),
            entropy: vec![Moments::default(); layers],
            entropy_counts: vec![vec![0; BARS]; layers],
            decision_entropy: Moments::default(),
            criticality: Correlation::default(),
            urgency: Correlation::default(),
            q_chosen: EvenSample::default(),
            q_others: EvenSample::default(),
            rules: RuleSearch::new(),
            agreement: others.iter().map(named).collect(),
            cells: vec![Default::default(); model.tokenizer.bins + 2],
            decisions: 0,
        }
    }

    /// Adds a decision: what the network chose, and what the others would have chosen. Decisions without a ready job,
    /// or for which the network has no finite answer, do not count.
    pub fn add(&mut self, view: &SystemView<'_>, chosen: &Assignment, others: &[Assignment]) {
        self.observation.note(view);
        if view.active.is_empty() {
            return;
        }
        self.observation.read(&self.model.tokenizer, &self.scale, view, false);
        let trace = reference(&self.model.weights, &self.observation.rows());
        if trace.q.iter().any(|q| !q.is_finite()) {
            return;
        }
        let last = self.entropy.len() - 1;
        let attention = decision_attention(&trace, last);
        for (layer, (moments, counts)) in self.entropy.iter_mut().zip(&mut self.entropy_counts).enumerate() {
            let bits = entropy(&trace, layer);
            moments.add(f64::from(bits));
            counts[((bits / ENTROPY_STEP) as usize).min(BARS - 1)] += 1;
        }
        let heads = super::maps(&trace, last).map(|map| f64::from(entropy_of(&map.weights[0])));
        self.decision_entropy.add(heads.sum::<f64>() / self.model.weights.architecture.heads as f64);
        let ready = self.ready(view, chosen, &attention, &trace.q);
        if ready.is_empty() {
            return;
        }
        self.decisions += 1;
        let is_contested = ready.len() > view.cores() && view.system.core_ids().any(|core| !view.is_held(core));
        self.contested += u64::from(is_contested);
        self.add_alignment(&ready, attention[0]);
        self.add_jobs(&ready);
        let mut by_deadline: Vec<&ReadyJob> = ready.iter().collect();
        by_deadline.sort_by_key(|job| job.order);
        let known: Vec<RuleInput> = by_deadline.into_iter().map(|job| self.known(job)).collect();
        self.rules.add(&known, is_contested);
        for (named, other) in self.agreement.iter_mut().zip(others) {
            named.agreement.add(same(chosen, other), is_contested);
        }
    }

    /// Returns the ready jobs, the most attended first. Ties are broken by deadline, as in the choice itself.
    fn ready(&self, view: &SystemView<'_>, chosen: &Assignment, attention: &[f32], q: &[f32]) -> Vec<ReadyJob> {
        let mut counts = vec![0.0f32; q.len()];
        self.observation.jobs().iter().for_each(|(_, row)| counts[*row as usize] += 1.0);
        let line = |(id, row): &(JobId, u32)| {
            let (job, row) = (view.job(*id), *row as usize);
            ReadyJob {
                attention: attention[row] / counts[row],
                q: q[row],
                criticality: job.criticality,
                slack_bin: self.model.tokenizer.slack_token(job, view.now, &self.scale),
                remaining: job.remaining(),
                order: (job.deadline, job.tie()),
                is_chosen: chosen.cores().contains(&Some(*id)),
            }
        };
        let rows = self.observation.jobs().iter().filter(|(_, row)| *row > 0);
        let mut ready: Vec<ReadyJob> = rows.map(line).collect();
        ready.sort_by(|a, b| b.attention.total_cmp(&a.attention).then(a.order.cmp(&b.order)));
        ready
    }

    fn add_alignment(&mut self, ready: &[ReadyJob], idle: f32) {
        let chosen = ready.iter().filter(|job| job.is_chosen).count();
        let is_aligned = if idle > ready[0].attention { chosen == 0 } else { ready[0].is_chosen };
        self.alignment.add(f64::from(u8::from(is_aligned)));
        if chosen > 0 {
            for (k, moments) in TOP.into_iter().zip(&mut self.top) {
                let both = ready.iter().take(k).filter(|job| job.is_chosen).count();
                moments.add(both as f64 / k.min(chosen) as f64);
            }
        }
    }

    fn add_jobs(&mut self, ready: &[ReadyJob]) {
        for job in ready {
            let attention = f64::from(job.attention) * ready.len() as f64;
            self.criticality.add([attention, f64::from(job.criticality)]);
            self.urgency.add([attention, 1.0 / (self.slack(job) + 1.0)]);
            let sample = if job.is_chosen { &mut self.q_chosen } else { &mut self.q_others };
            sample.add(job.q);
            let share = job.remaining.0 as f64 / self.greatest_wcet;
            let remaining = ((share * REMAINING_BINS as f64) as usize).min(REMAINING_BINS - 1);
            let (seen, chosen) = &mut self.cells[usize::from(job.slack_bin)][remaining];
            *seen += 1;
            *chosen += u64::from(job.is_chosen);
        }
    }

    /// Returns the slack bin as the distilled rule counts it; late jobs have a slack of zero.
    fn slack(&self, job: &ReadyJob) -> f64 {
        if usize::from(job.slack_bin) < self.model.tokenizer.bins { f64::from(job.slack_bin) } else { 0.0 }
    }

    fn known(&self, job: &ReadyJob) -> RuleInput {
        let remaining = job.remaining.0 as f64 / self.scale.unit;
        RuleInput { slack: self.slack(job), remaining, is_chosen: job.is_chosen }
    }

    /// Returns the report on all decisions so far.
    pub fn report(&self) -> RunReport {
        let (chosen, others) = (self.q_chosen.sorted(), self.q_others.sorted());
        let ends = |values: &[f32]| Some((*values.first()?, *values.last()?));
        let range = [ends(&chosen), ends(&others)].into_iter().flatten().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let distribution =
            |sample: &EvenSample, sorted| distribution(sample.seen(), sorted, range.unwrap_or((0.0, 0.0)));
        let top = TOP.into_iter().zip(&self.top).map(|(k, moments)| TopK { k, alignment: moments.spread().mean });
        let cells = self.cells.iter().enumerate().flat_map(|(slack_bin, cells)| {
            cells.iter().enumerate().map(move |(remaining_bin, (seen, chosen))| HeatMapCell {
                slack_bin: slack_bin as u16,
                remaining_bin,
                seen: *seen,
                chosen: *chosen,
            })
        });
        RunReport {
            decisions: self.decisions,
            contested: self.contested,
            alignment: self.alignment.spread().mean,
            top_k_alignment: top.collect(),
            entropy_bits: self.entropy.iter().map(Moments::spread).collect(),
            decision_entropy_bits: self.decision_entropy.spread(),
            entropy_counts: self.entropy_counts.clone(),
            attention_criticality: self.criticality.coefficient(),
            attention_urgency: self.urgency.coefficient(),
            q_chosen: distribution(&self.q_chosen, &chosen),
            q_others: distribution(&self.q_others, &others),
            rule: self.rules.best(),
            agreement: self.agreement.clone(),
            heat_map: cells.filter(|cell| cell.seen > 0).collect(),
        }
    }
}

fn same(one: &Assignment, other: &Assignment) -> f64 {
    let jobs = |assignment: &Assignment| assignment.cores().iter().flatten().count();
    let both = one.cores().iter().flatten().filter(|id| other.cores().contains(&Some(**id))).count();
    let most = jobs(one).max(jobs(other));
    if most == 0 { 1.0 } else { both as f64 / most as f64 }
}

fn distribution(count: u64, sorted: &[f32], range: (f32, f32)) -> Distribution {
    let quantile =
        |share: f64| Some((share, *sorted.get((share * (sorted.len().max(1) - 1) as f64).round() as usize)?));
    let mut bars = vec![0.0; BARS];
    let width = ((range.1 - range.0) / BARS as f32).max(f32::MIN_POSITIVE);
    for value in sorted {
        bars[(((value - range.0) / width) as usize).min(BARS - 1)] += 1.0 / sorted.len() as f64;
    }
    Distribution { count, quantiles: QUANTILES.into_iter().filter_map(quantile).collect(), range, bars }
}
