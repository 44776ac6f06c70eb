//! The forward pass in plain loops, written for readability. Tests compare the fast one with it, and diagnostics read
//! its attention maps. It allocates.

use std::collections::HashMap;

use serde::Serialize;

use crate::body::{Body, OtherBody};
use crate::{Architecture, RealInput, Rows, Rule, Sparsity, Weights};

/// Attention weights of one head: `weights[query][key]`, which sum to one for each query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttentionMap {
    /// Layer, counted from 0.
    pub layer: usize,
    /// Head, counted from 0.
    pub head: usize,
    /// Attention weights by query and key. A key that stands for several jobs has the sum of their weights.
    pub weights: Vec<Vec<f32>>,
}

/// Result of a forward pass with its attention maps.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// One Q-value per row, the idle row first. Then, for each speed below full speed, one gain per job row.
    pub q: Vec<f32>,
    /// Attention maps, by layer and then by head. Empty for networks without attention.
    pub attention: Vec<AttentionMap>,
}

/// Term added to the variance in layer norms.
pub(crate) const EPSILON: f32 = 1e-5;

/// Runs the network on some rows in plain loops, one with memory as at the first decision of a run. A body other than
/// the Transformer runs as it always does.
///
/// # Panics
///
/// Panics if a feature value is out of range, or if the lengths in `rows` do not match.
pub fn reference(weights: &Weights, rows: &Rows<'_>) -> Trace {
    let architecture = &weights.architecture;
    if let Body::Other(OtherBody { kind, size }) = architecture.body {
        let mut q = Vec::new();
        kind.network(size, weights).forward(rows, &mut q);
        return Trace { q, attention: Vec::new() };
    }
    let mut x = embed(weights, rows);
    let mut attention = Vec::new();
    for layer in 0..architecture.layers {
        let part = |name: &str| weights.tensor(&format!("layers.{layer}.{name}"));
        let linear = |name: &str, x: &[Vec<f32>]| -> Vec<Vec<f32>> {
            let (weight, bias) = (part(&format!("{name}.weight")), part(&format!("{name}.bias")));
            x.iter().map(|row| apply(weight, bias, row)).collect()
        };
        let [query, key, value] = ["query", "key", "value"].map(|name| linear(&format!("attention.{name}"), &x));
        let maps = attend(architecture, layer, &query, &key, rows);
        let mixed = mix(architecture, &maps, &value);
        let mixed = linear("attention.output", &mixed);
        x = add_and_norm(&x, &mixed, part("attention_norm.weight"), part("attention_norm.bias"));
        let mut hidden = linear("feed_forward.up", &x);
        hidden.iter_mut().flatten().for_each(|value| *value = value.max(0.0));
        let hidden = linear("feed_forward.down", &hidden);
        x = add_and_norm(&x, &hidden, part("feed_forward_norm.weight"), part("feed_forward_norm.bias"));
        attention.extend(maps);
    }
    let map = |name: &str, row: &[f32]| {
        apply(weights.tensor(&format!("head.{name}.weight")), weights.tensor(&format!("head.{name}.bias")), row)
    };
    if let Some(atoms) = architecture.atoms() {
        let idle = map("idle", &x[0]);
        let value = if weights.tensor("head.value.bias").is_empty() { idle.clone() } else { map("value", &x[0]) };
        let job = |row: &Vec<f32>| {
            let logits =
                map("job", row).into_iter().zip(&idle).zip(&value).map(|((job, idle), value)| value + job - idle);
            atoms.mean(&logits.collect::<Vec<f32>>())
        };
        let q = [atoms.mean(&value)].into_iter().chain(x[1..].iter().map(job)).collect();
        return Trace { q, attention };
    }
    let actor = |row: &Vec<f32>| {
        let hidden: Vec<f32> = map("actor.hidden", row).iter().map(|unit| unit.max(0.0)).collect();
        map("actor", &hidden)[0]
    };
    let job = |row: &Vec<f32>| if architecture.actor().is_some() { actor(row) } else { map("job", row)[0] };
    let mut q = vec![map("idle", &x[0])[0]];
    q.extend(x[1..].iter().map(job));
    for speed in 0..architecture.speeds() {
        q.extend(x[1..].iter().map(|row| map(&format!("speed.{speed}"), row)[0]));
    }
    Trace { q, attention }
}

/// Rows of the input: sums of embeddings and, for jobs, of the map of their real-valued inputs.
pub fn embed(weights: &Weights, rows: &Rows<'_>) -> Vec<Vec<f32>> {
    let architecture = &weights.architecture;
    let width = architecture.width;
    let sum = |kind: &str, features: &[crate::Vocabulary], values: &[u16]| {
        let mut row = vec![0.0; width];
        for (feature, value) in features.iter().zip(values) {
            let table = weights.tensor(&format!("embed.{kind}.{}", feature.name));
            let entry = &table[usize::from(*value) * width..][..width];
            row.iter_mut().zip(entry).for_each(|(sum, entry)| *sum += entry);
        }
        row
    };
    let (features, inputs) = (architecture.job.len(), architecture.real.map_or(0, |real| real.inputs));
    let job = |place: usize| {
        let mut row = sum("job", &architecture.job, &rows.jobs[place * features..(place + 1) * features]);
        if let Some(real) = architecture.real {
            let image = embed_real(weights, real, &rows.real[place * inputs..(place + 1) * inputs]);
            row.iter_mut().zip(image).for_each(|(sum, value)| *sum += value);
        }
        row
    };
    let idle = sum("idle", &architecture.idle, rows.idle);
    [idle].into_iter().chain((0..rows.count(features, inputs)).map(job)).collect()
}

/// Map of a job's real-valued inputs to a row. The weight has one row per input, or per hidden unit if there is a
/// hidden layer.
fn embed_real(weights: &Weights, real: RealInput, numbers: &[f32]) -> Vec<f32> {
    let mut units = numbers.to_vec();
    if real.hidden > 0 {
        units = apply(weights.tensor("embed.real.hidden.weight"), weights.tensor("embed.real.hidden.bias"), numbers);
        units.iter_mut().for_each(|unit| *unit = unit.max(0.0));
    }
    let mut row = weights.tensor("embed.real.bias").to_vec();
    for (unit, weight) in units.iter().zip(weights.tensor("embed.real.weight").chunks_exact(row.len())) {
        row.iter_mut().zip(weight).for_each(|(sum, weight)| *sum += unit * weight);
    }
    row
}

/// Linear map `weight · x + bias`. The weight has one row per output.
pub fn apply(weight: &[f32], bias: &[f32], x: &[f32]) -> Vec<f32> {
    let dot = |row: &[f32]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f32>();
    weight.chunks_exact(x.len()).zip(bias).map(|(row, bias)| dot(row) + bias).collect()
}

fn attend(
    architecture: &Architecture,
    layer: usize,
    query: &[Vec<f32>],
    key: &[Vec<f32>],
    rows: &Rows<'_>,
) -> Vec<AttentionMap> {
    let size = architecture.width / architecture.heads;
    let scale = 1.0 / (size as f32).sqrt();
    let kept = rows.sparsity.map(|sparsity| kept(sparsity, query, key));
    let of_head = |head: usize| {
        let part = |row: &Vec<f32>| row[head * size..(head + 1) * size].to_vec();
        let keys: Vec<Vec<f32>> = key.iter().map(part).collect();
        let of_query = |(place, row): (usize, &Vec<f32>)| {
            let own = part(row);
            let dot = |key: &Vec<f32>| own.iter().zip(key).map(|(a, b)| a * b).sum::<f32>();
            let mut logits: Vec<f32> = keys.iter().zip(rows.bias).map(|(key, bias)| dot(key) * scale + bias).collect();
            if let Some(kept) = &kept {
                let dropped = logits.iter_mut().zip(&kept[place]).filter(|(_, is_kept)| !**is_kept);
                dropped.for_each(|(logit, _)| *logit = f32::NEG_INFINITY);
            }
            if let Some(Sparsity { rule: Rule::TopKeys, keep, .. }) = rows.sparsity
                && place > 0
            {
                keep_best(&mut logits, keep);
            }
            softmax(&mut logits);
            logits
        };
        AttentionMap { layer, head, weights: query.iter().enumerate().map(of_query).collect() }
    };
    (0..architecture.heads).map(of_head).collect()
}

/// Returns for each query which rows it attends to. Row 0 is the idle row, which attends to all rows and which all rows
/// attend to. Explicit top-k depends on the logits of a head and is not decided here.
fn kept(sparsity: Sparsity, query: &[Vec<f32>], key: &[Vec<f32>]) -> Vec<Vec<bool>> {
    let jobs = query.len() - 1;
    let all = vec![vec![true; jobs + 1]; jobs + 1];
    if sparsity.rule == Rule::TopKeys {
        return all;
    }
    let block = sparsity.block.max(1);
    let chunk = if sparsity.rule == Rule::Chunks { sparsity.chunk.max(1) } else { jobs.max(1) };
    // The chunk of a row, and its block: the chunk and the block within the chunk.
    let chunk_of = |row: usize| (row - 1) / chunk;
    let block_of = |row: usize| (chunk_of(row), (row - 1) % chunk / block);
    let mut blocks: Vec<(usize, usize)> = (1..=jobs).map(block_of).collect();
    blocks.dedup();
    let mean = |of: (usize, usize), rows: &[Vec<f32>]| {
        let members: Vec<&Vec<f32>> = (1..=jobs).filter(|row| block_of(*row) == of).map(|row| &rows[row]).collect();
        let column = |place: usize| members.iter().map(|row| row[place]).sum::<f32>() / members.len() as f32;
        (0..rows[0].len()).map(column).collect::<Vec<f32>>()
    };
    let summaries: Vec<Vec<f32>> = blocks.iter().map(|of| mean(*of, key)).collect();
    let looked_into: HashMap<(usize, usize), Vec<(usize, usize)>> = blocks
        .iter()
        .map(|of| {
            let own = mean(*of, query);
            let score = |place: usize| own.iter().zip(&summaries[place]).map(|(a, b)| a * b).sum::<f32>();
            let is_other = |place: &usize| sparsity.rule != Rule::Chunks || blocks[*place].0 != of.0;
            let mut others: Vec<(f32, usize)> =
                (0..blocks.len()).filter(is_other).map(|place| (score(place), place)).collect();
            others.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            (*of, others.iter().take(sparsity.keep).map(|(_, place)| blocks[*place]).collect())
        })
        .collect();
    let attends = |query: usize, key: usize| {
        if query == 0 || key == 0 {
            return true;
        }
        let looked_into = &looked_into[&block_of(query)];
        if sparsity.rule != Rule::Chunks {
            return looked_into.contains(&block_of(key));
        }
        // Every chunk is represented by its middle row.
        let first = chunk_of(key) * chunk + 1;
        let middle = first + (chunk.min(jobs + 1 - first) - 1) / 2;
        chunk_of(query) == chunk_of(key) || looked_into.contains(&block_of(key)) || key == middle
    };
    (0..=jobs).map(|query| (0..=jobs).map(|key| attends(query, key)).collect()).collect()
}

/// Masks all but the `keep` greatest logits of job keys. Of equal ones the earlier stay.
fn keep_best(logits: &mut [f32], keep: usize) {
    let mut keys: Vec<usize> = (1..logits.len()).collect();
    keys.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b)));
    keys.iter().skip(keep).for_each(|key| logits[*key] = f32::NEG_INFINITY);
}

fn softmax(logits: &mut [f32]) {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter_mut().for_each(|logit| *logit = (*logit - most).exp());
    let sum: f32 = logits.iter().sum();
    logits.iter_mut().for_each(|weight| *weight /= sum);
}

fn mix(architecture: &Architecture, maps: &[AttentionMap], value: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let size = architecture.width / architecture.heads;
    let mut mixed = vec![vec![0.0; architecture.width]; value.len()];
    for map in maps {
        for (query, weights) in map.weights.iter().enumerate() {
            for (weight, row) in weights.iter().zip(value) {
                for column in map.head * size..(map.head + 1) * size {
                    mixed[query][column] += weight * row[column];
                }
            }
        }
    }
    mixed
}

/// Sum of rows and their changes, normalized to mean 0 and variance 1, then scaled and shifted.
pub fn add_and_norm(x: &[Vec<f32>], change: &[Vec<f32>], weight: &[f32], bias: &[f32]) -> Vec<Vec<f32>> {
    let norm = |(x, change): (&Vec<f32>, &Vec<f32>)| {
        let sum: Vec<f32> = x.iter().zip(change).map(|(a, b)| a + b).collect();
        let mean = sum.iter().sum::<f32>() / sum.len() as f32;
        let variance = sum.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / sum.len() as f32;
        let scale = 1.0 / (variance + EPSILON).sqrt();
        let scaled = sum.iter().zip(weight).zip(bias);
        scaled.map(|((value, weight), bias)| (value - mean) * scale * weight + bias).collect()
    };
    x.iter().zip(change).map(norm).collect()
}
