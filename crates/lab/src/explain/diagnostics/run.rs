//! Looking at all decisions of a run, off the hot path: what attention has to do with what is chosen, and which simple rule chooses likewise.
//! Every decision costs a plain forward pass; memory does not grow with their number.

use serde::Serialize;
use temponet_infer::reference;
use temponet_task::{Assignment, JobId, System, SystemView, Tie, Time};

use temponet::{Model, Observation, Scale};

use super::rule::{DistilledRule, RuleInput, RuleSearch};
use super::statistics::{Correlation, EvenSample, Moments, Spread};
use super::{decision_attention, entropy, entropy_of};

/// The k of top-k alignment.
pub const TOP: [usize; 3] = [1, 3, 5];
/// Rows of the heat map: remaining wcet as a share of the greatest wcet.
pub const REMAINING_BINS: usize = 10;
/// Bars of a histogram.
const BARS: usize = 40;
/// Width of a bar of attention entropy.
pub const ENTROPY_STEP: f32 = 0.25;
/// Shares of the values that quantiles are given for.
const QUANTILES: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];

/// All decisions of a run with a job ready, laid open.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// How many there were.
    pub decisions: u64,
    /// Of these, those with more ready jobs than cores.
    pub contested: u64,
    /// Share in which the decision token attends most, in the last layer and on average over heads, to what was chosen; idling is its own row.
    pub alignment: f64,
    /// By k: `|Top_k ∩ chosen| / min(k, |chosen|)`, mean over the decisions in which something was chosen.
    pub top_k_alignment: Vec<TopK>,
    /// Attention entropy over distinct tokens per layer, mean over queries and heads, in bits.
    pub entropy_bits: Vec<Spread>,
    /// The decision token's attention entropy in the last layer, mean over heads, in bits.
    pub decision_entropy_bits: Spread,
    /// How often each layer's entropy was in each step of [`ENTROPY_STEP`] bits; the last step takes what is beyond.
    pub entropy_counts: Vec<Vec<u64>>,
    /// Correlation of the decision token's attention to a job, relative to an even share, with its criticality; none if one never varies.
    pub attention_criticality: Option<f64>,
    /// The same with 1/(s̃+1), where s̃ is the slack bin.
    pub attention_urgency: Option<f64>,
    /// Q-values of jobs that were chosen.
    pub q_chosen: Distribution,
    /// Q-values of ready jobs that were not.
    pub q_others: Distribution,
    /// The rule that says most of what was chosen.
    pub rule: DistilledRule,
    /// How often other schedulers would have done the same.
    pub agreement: Vec<SchedulerAgreement>,
    /// How often jobs were chosen by slack bin and remaining.
    pub heat_map: Vec<HeatMapCell>,
}

/// Top-k alignment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TopK {
    /// How many of the most attended jobs.
    pub k: usize,
    /// The mean share.
    pub alignment: f64,
}

/// How often two choose the same jobs: `|A ∩ B| / max(|A|, |B|)`, mean over decisions. On one core this is the share of identical actions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Over all decisions.
    pub all: f64,
    /// Over those with more ready jobs than cores.
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

/// How often a scheduler would have done the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SchedulerAgreement {
    /// Its name.
    pub scheduler: String,
    /// How often.
    #[serde(flatten)]
    pub agreement: Agreement,
}

/// How values are distributed; found in evenly chosen ones if there are very many.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// How many there were.
    pub count: u64,
    /// Shares, and the values that so many do not exceed; empty if there are none.
    pub quantiles: Vec<(f64, f32)>,
    /// Where the first bar begins and the last one ends; the same for both distributions of Q.
    pub range: (f32, f32),
    /// Share of the values in each of some bars of equal width.
    pub bars: Vec<f64>,
}

/// A cell of the heat map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeatMapCell {
    /// The tokenizer's slack bin; beyond its bins: late by wcet, impossible.
    pub slack_bin: u16,
    /// Remaining wcet as a share of the set's greatest wcet, in tenths, rounded down.
    pub remaining_bin: usize,
    /// How often a ready job was there.
    pub seen: u64,
    /// How often it was chosen.
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
    /// Seen and chosen, by slack bin, then by remaining.
    cells: Vec<[(u64, u64); REMAINING_BINS]>,
    decisions: u64,
}

/// A ready job at a decision.
struct ReadyJob {
    /// The decision token's attention to it; equal rows share theirs.
    attention: f32,
    q: f32,
    criticality: u8,
    slack_bin: u16,
    remaining: Time,
    order: (Time, Tie),
    is_chosen: bool,
}

impl<'a> RunDiagnostics<'a> {
    /// For a model on a system; `others` are the schedulers it is compared with.
    pub fn new(model: &'a Model, system: &System, others: &[&str]) -> RunDiagnostics<'a> {
        let layers = model.weights.architecture.layers;
        let named = |name: &&str| SchedulerAgreement { scheduler: name.to_string(), agreement: Agreement::default() };
        RunDiagnostics {
            model,
            scale: Scale::of(&model.tokenizer, system),
            greatest_wcet: system.tasks.iter().map(|task| task.wcet.0).max().unwrap_or(1).max(1) as f64,
            observation: Observation::default(),
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

    /// A decision: what the network chose there, and what the others would have. Nothing is said of decisions without a ready job, or where
    /// the network has no answer.
    pub fn add(&mut self, view: &SystemView<'_>, chosen: &Assignment, others: &[Assignment]) {
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
        self.decisions += 1;
        let is_contested = ready.len() > view.cores();
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

    /// The ready jobs, the most attended first; equal ones by deadline, as they are chosen.
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
        let mut ready: Vec<ReadyJob> = self.observation.jobs().iter().map(line).collect();
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

    /// The slack bin as a rule counts it: late jobs have no slack.
    fn slack(&self, job: &ReadyJob) -> f64 {
        if usize::from(job.slack_bin) < self.model.tokenizer.bins { f64::from(job.slack_bin) } else { 0.0 }
    }

    fn known(&self, job: &ReadyJob) -> RuleInput {
        let remaining = job.remaining.0 as f64 / self.scale.unit;
        RuleInput { slack: self.slack(job), remaining, is_chosen: job.is_chosen }
    }

    /// What was gathered.
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
