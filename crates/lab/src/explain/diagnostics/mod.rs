//! Figures of the learned scheduler's decisions: tokens, Q-values, attention, and how concentrated attention is.
//!
//! [`explain`] looks at one decision, [`RunDiagnostics`] at all decisions of a run. Both run the plain reference
//! network, off the hot path.

mod rule;
mod run;

pub use crate::stats::streaming::Spread;
pub use rule::DistilledRule;
pub use run::{
    Agreement, Distribution, ENTROPY_STEP, HeatMapCell, REMAINING_BINS, RunDiagnostics, RunReport, SchedulerAgreement,
    TopK,
};
use serde::Serialize;
use temponet::stages::{Kept, Mapper, Observation, Scale, Staying};
use temponet::{Mapping, Model};
pub use temponet_infer::AttentionMap;
use temponet_infer::{Trace, reference};
use temponet_task::{Assignment, JobId, SystemView};

/// The figures of one decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Time of the decision, in nanoseconds.
    pub now_ns: u64,
    /// Q-value of idling; `None` for a model that never idles.
    pub idle_q: Option<f32>,
    /// Running jobs that kept their cores although other jobs had better Q-values, because an exchange has a cost.
    pub kept: Vec<KeptLine>,
    /// Ready jobs, the best Q-value first.
    pub jobs: Vec<JobLine>,
    /// Distinct tokens. They are the rows and columns of the attention maps, after the idle one.
    pub rows: Vec<RowLine>,
    /// Attention by layer, then head: `weights[query][key]`. Row 0 is idle.
    pub attention: Vec<AttentionMap>,
    /// Mean attention entropy per layer over queries and heads, in bits. The higher, the more spread out attention is.
    pub entropy_bits: Vec<f32>,
    /// Share of the heads of the last layer in which the idle (decision) token attends most to the row of a chosen job,
    /// 0 to 1.
    pub alignment: f32,
}

/// A ready job as the network sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobLine {
    /// Name of the task.
    pub task: String,
    /// Number of the job within its task.
    pub job: u64,
    /// Time to the absolute deadline, in nanoseconds; negative after it.
    pub due_in_ns: i64,
    /// Slack at the remaining wcet, in nanoseconds; negative if the job is late by wcet.
    pub slack_ns: i64,
    /// Remaining wcet, in nanoseconds.
    pub remaining_ns: u64,
    /// Estimate of the execution time, in nanoseconds: median and ninth decile. Left out in JSON if the job carries
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_ns: Option<[u64; 2]>,
    /// Row of its token, counted from 1; 0 if it has none.
    pub row: u32,
    /// Whether it would miss its deadline even with its bcet, running from now on.
    pub is_impossible: bool,
    /// Q-value.
    pub q: f32,
    /// Core that the network's own choice gives to the job.
    pub core: Option<usize>,
    /// Attention of the idle (decision) token to its row in the last layer, mean over heads, 0 to 1.
    pub attention: f32,
}

/// A running job that kept its core although another job had a better Q-value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeptLine {
    /// Job that stayed: task name and number.
    pub job: (String, u64),
    /// Job that would have replaced it: task name and number.
    pub instead_of: (String, u64),
    /// Cost of the exchange, in nanoseconds.
    pub cost_ns: u64,
    /// Bonus for staying, in units of the Q-value.
    pub worth: f32,
    /// Difference by which its Q-value was behind.
    pub lacked: f32,
}

/// A distinct token.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowLine {
    /// Feature values, in the order of the tokenizer.
    pub token: Vec<u16>,
    /// Continuous features; empty unless slack is continuous.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub real: Vec<f32>,
    /// Number of jobs with this token.
    pub count: usize,
    /// Q-value.
    pub q: f32,
}

/// Returns what the model sees in a view, with an observation that has noted all views up to this one. `chosen` is the
/// assignment that the model made there.
pub fn explain(
    model: &Model,
    observation: &mut Observation,
    view: &SystemView<'_>,
    chosen: &Assignment,
) -> Explanation {
    let scale = Scale::of(&model.tokenizer, view.system);
    observation.read(&model.tokenizer, &scale, view, false);
    let trace = reference(&model.weights, &observation.rows());
    let core_of = |id: JobId| chosen.cores().iter().position(|core| *core == Some(id));
    let last = decision_attention(&trace, model.weights.architecture.layers - 1);
    let line = |(id, row): &(JobId, u32)| {
        let job = view.job(*id);
        JobLine {
            task: view.task_of(job).name.clone(),
            job: job.number,
            due_in_ns: job.deadline.signed_sub(view.now),
            slack_ns: job.slack(view.now),
            remaining_ns: job.remaining().0,
            estimate_ns: job.estimate.map(|estimate| [estimate.median().0, estimate.high().0]),
            is_impossible: job.is_impossible(view.now),
            row: *row,
            q: if *row == 0 { f32::NEG_INFINITY } else { trace.q[*row as usize] },
            core: core_of(*id),
            attention: last.get(*row as usize).copied().filter(|_| *row > 0).unwrap_or(0.0),
        }
    };
    let mut jobs: Vec<JobLine> = observation.jobs().iter().map(line).collect();
    jobs.sort_by(|a, b| b.q.total_cmp(&a.q).then(a.due_in_ns.cmp(&b.due_in_ns)).then(a.task.cmp(&b.task)));
    let count = |row: u32| observation.jobs().iter().filter(|(_, of)| *of == row).count();
    let row = |row: u32| RowLine {
        token: observation.token(row).to_vec(),
        real: observation.real(row).to_vec(),
        count: count(row),
        q: trace.q[row as usize],
    };
    let chosen_rows: Vec<usize> = jobs.iter().filter(|job| job.core.is_some()).map(|job| job.row as usize).collect();
    let layers = model.weights.architecture.layers;
    Explanation {
        now_ns: view.now.0,
        idle_q: (!model.never_idles()).then_some(trace.q[0]),
        kept: kept(model, view, observation, &trace.q),
        rows: (1..=observation.distinct() as u32).map(row).collect(),
        entropy_bits: (0..layers).map(|layer| entropy(&trace, layer)).collect(),
        alignment: alignment(&trace, layers - 1, &chosen_rows),
        attention: trace.attention,
        jobs,
    }
}

/// Returns the running jobs that the greedy mapping lets stay.
fn kept(model: &Model, view: &SystemView<'_>, observation: &Observation, q: &[f32]) -> Vec<KeptLine> {
    let staying = Staying::on(view.system, model.stay());
    let (mut mapper, mut assignment) = (Mapper::default(), Assignment::default());
    mapper.staying = staying;
    assignment.reset(view.cores());
    if view.active.len() > view.cores() {
        let jobs = observation.jobs().iter().filter(|(_, row)| *row > 0).map(|(id, row)| (*id, q[*row as usize]));
        let idle = model.threshold(q[0]);
        mapper.assign(Mapping::Greedy, jobs, idle, view, &mut assignment);
    }
    let name = |id: JobId| (view.task_of(view.job(id)).name.clone(), view.job(id).number);
    let line = |kept: &Kept| KeptLine {
        job: name(kept.job),
        instead_of: name(kept.instead_of),
        cost_ns: staying.cost(view.job(kept.job), view.job(kept.instead_of)) as u64,
        worth: kept.worth,
        lacked: kept.lacked,
    };
    mapper.kept().iter().map(line).collect()
}

fn maps(trace: &Trace, layer: usize) -> impl Iterator<Item = &AttentionMap> {
    trace.attention.iter().filter(move |map| map.layer == layer)
}

/// Returns the attention of the idle (decision) token in a layer, mean over heads.
fn decision_attention(trace: &Trace, layer: usize) -> Vec<f32> {
    let heads = maps(trace, layer).count().max(1) as f32;
    let mut mean = vec![0.0; trace.q.len()];
    for map in maps(trace, layer) {
        mean.iter_mut().zip(&map.weights[0]).for_each(|(mean, weight)| *mean += weight / heads);
    }
    mean
}

/// Returns the mean entropy of a layer's attention over queries and heads, in bits.
pub fn entropy(trace: &Trace, layer: usize) -> f32 {
    let all: Vec<f32> = maps(trace, layer).flat_map(|map| map.weights.iter().map(|row| entropy_of(row))).collect();
    all.iter().sum::<f32>() / all.len().max(1) as f32
}

/// Returns the entropy of one query's attention, in bits.
fn entropy_of(weights: &[f32]) -> f32 {
    weights.iter().filter(|weight| **weight > 0.0).map(|weight| -weight * weight.log2()).sum()
}

/// Returns the share of a layer's heads, 0 to 1, whose decision token attends most to one of the chosen rows; the idle
/// row does not count.
pub fn alignment(trace: &Trace, layer: usize, chosen: &[usize]) -> f32 {
    let is_aligned = |map: &AttentionMap| {
        let jobs = map.weights[0].iter().enumerate().skip(1);
        jobs.max_by(|a, b| a.1.total_cmp(b.1)).is_some_and(|(row, _)| chosen.contains(&row))
    };
    let (aligned, all) =
        maps(trace, layer).fold((0, 0), |(aligned, all), map| (aligned + usize::from(is_aligned(map)), all + 1));
    aligned as f32 / all.max(1) as f32
}
