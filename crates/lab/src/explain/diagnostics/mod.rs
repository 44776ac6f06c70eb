//! Looking inside one decision, off the hot path: tokens, Q-values, attention, and how concentrated it is. All decisions of a run together are
//! in `run.rs`.

mod rule;
mod run;
mod statistics;

pub use rule::DistilledRule;
pub use run::{
    Agreement, Distribution, ENTROPY_STEP, HeatMapCell, REMAINING_BINS, RunDiagnostics, RunReport, SchedulerAgreement,
    TopK,
};
use serde::Serialize;
pub use statistics::Spread;
use temponet::{Kept, Mapper, Mapping, Model, Observation, Scale, Staying};
pub use temponet_infer::AttentionMap;
use temponet_infer::{Trace, reference};
use temponet_task::{Assignment, JobId, SystemView};

/// One decision, laid open.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// When, in ns.
    pub now_ns: u64,
    /// What idling is worth; none to a model that never idles.
    pub idle_q: Option<f32>,
    /// Running jobs that kept their cores although others were better, because moving costs something.
    pub kept: Vec<KeptLine>,
    /// The ready jobs, the best Q-value first.
    pub jobs: Vec<JobLine>,
    /// Distinct tokens: the rows and columns of the attention maps after the idle one.
    pub rows: Vec<RowLine>,
    /// By layer, then head; `weights[query][key]`, row 0 is idle.
    pub attention: Vec<AttentionMap>,
    /// Mean attention entropy per layer, in bits, over queries and heads: the higher, the more spread out.
    pub entropy_bits: Vec<f32>,
    /// Share of the heads of the last layer in which the idle (decision) token attends most to a chosen job's row.
    pub alignment: f32,
}

/// A ready job as the network sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobLine {
    /// Its task's name.
    pub task: String,
    /// Which job of the task.
    pub job: u64,
    /// Time to its deadline.
    pub due_in_ns: i64,
    /// Slack at the wcet; negative is late by wcet.
    pub slack_ns: i64,
    /// Remaining wcet.
    pub remaining_ns: u64,
    /// Its row, counted from 1.
    pub row: u32,
    /// Its Q-value.
    pub q: f32,
    /// The core the network's own choice gives it.
    pub core: Option<usize>,
    /// Attention that the idle (decision) token pays to its row in the last layer, mean over heads.
    pub attention: f32,
}

/// A running job that kept its core although another one was better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeptLine {
    /// The job that stayed, as task and number.
    pub job: (String, u64),
    /// The one that would have come in.
    pub instead_of: (String, u64),
    /// The time that the exchange would have wasted.
    pub cost_ns: u64,
    /// What staying was worth, in units of Q.
    pub worth: f32,
    /// What its Q-value lacked.
    pub lacked: f32,
}

/// A distinct token.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowLine {
    /// Feature values in the order of the tokenizer.
    pub token: Vec<u16>,
    /// Its numbers, where slack is continuous.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub real: Vec<f32>,
    /// Jobs it stands for.
    pub count: usize,
    /// Its Q-value.
    pub q: f32,
}

/// Lays open what the model sees in a view; `chosen` is the assignment it made there.
pub fn explain(model: &Model, view: &SystemView<'_>, chosen: &Assignment) -> Explanation {
    let scale = Scale::of(&model.tokenizer, view.system);
    let mut observation = Observation::default();
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
            row: *row,
            q: trace.q[*row as usize],
            core: core_of(*id),
            attention: last.get(*row as usize).copied().unwrap_or(0.0),
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
        kept: kept(model, view, &observation, &trace.q),
        rows: (1..=observation.distinct() as u32).map(row).collect(),
        entropy_bits: (0..layers).map(|layer| entropy(&trace, layer)).collect(),
        alignment: alignment(&trace, layers - 1, &chosen_rows),
        attention: trace.attention,
        jobs,
    }
}

/// The running jobs that the greedy mapping lets stay.
fn kept(model: &Model, view: &SystemView<'_>, observation: &Observation, q: &[f32]) -> Vec<KeptLine> {
    let staying = Staying::on(view.system, model.stay());
    let (mut mapper, mut assignment) = (Mapper::default(), Assignment::default());
    mapper.staying = staying;
    assignment.reset(view.cores());
    if view.active.len() > view.cores() {
        let jobs = observation.jobs().iter().map(|(id, row)| (*id, q[*row as usize]));
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

/// What the idle (decision) token attends to in a layer, mean over heads.
fn decision_attention(trace: &Trace, layer: usize) -> Vec<f32> {
    let heads = maps(trace, layer).count().max(1) as f32;
    let mut mean = vec![0.0; trace.q.len()];
    for map in maps(trace, layer) {
        mean.iter_mut().zip(&map.weights[0]).for_each(|(mean, weight)| *mean += weight / heads);
    }
    mean
}

/// The mean entropy of a layer's attention, in bits, over queries and heads.
pub fn entropy(trace: &Trace, layer: usize) -> f32 {
    let all: Vec<f32> = maps(trace, layer).flat_map(|map| map.weights.iter().map(|row| entropy_of(row))).collect();
    all.iter().sum::<f32>() / all.len().max(1) as f32
}

/// The entropy of one query's attention, in bits.
fn entropy_of(weights: &[f32]) -> f32 {
    weights.iter().filter(|weight| **weight > 0.0).map(|weight| -weight * weight.log2()).sum()
}

/// The share of a layer's heads whose decision token attends most, the idle row aside, to one of the chosen rows.
pub fn alignment(trace: &Trace, layer: usize, chosen: &[usize]) -> f32 {
    let is_aligned = |map: &AttentionMap| {
        let jobs = map.weights[0].iter().enumerate().skip(1);
        jobs.max_by(|a, b| a.1.total_cmp(b.1)).is_some_and(|(row, _)| chosen.contains(&row))
    };
    let (aligned, all) =
        maps(trace, layer).fold((0, 0), |(aligned, all), map| (aligned + usize::from(is_aligned(map)), all + 1));
    aligned as f32 / all.max(1) as f32
}
