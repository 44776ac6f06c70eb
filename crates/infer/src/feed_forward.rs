//! The forward pass of a feed-forward network. It is a baseline and small enough for plain loops over whole rows.

use std::sync::Arc;

use crate::network::Forward;
use crate::{RealInput, Rows, Weights};

/// Linear map with one weight row per input, so that each input adds a whole row to the output.
struct Linear {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Linear {
    fn new(weight: &[f32], bias: &[f32], outputs: usize) -> Linear {
        let inputs = weight.len() / outputs;
        let by_inputs = (0..inputs).flat_map(|input| (0..outputs).map(move |output| weight[output * inputs + input]));
        Linear { weight: by_inputs.collect(), bias: bias.to_vec() }
    }

    fn add(&self, inputs: &[f32], sums: &mut [f32]) {
        for (input, row) in inputs.iter().zip(self.weight.chunks_exact(sums.len())).filter(|(input, _)| **input != 0.0)
        {
            sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += input * weight);
        }
    }
}

/// Weights in the order in which the forward pass reads them.
struct Prepared {
    width: usize,
    job: Vec<Vec<f32>>,
    idle: Vec<Vec<f32>>,
    real: Option<(RealInput, Linear, Linear)>,
    /// First layer's map of each slot, and last that of the idle row.
    inputs: Vec<Linear>,
    inputs_bias: Vec<f32>,
    hidden: Vec<Linear>,
    heads: Vec<(Vec<f32>, f32)>,
}

impl Prepared {
    fn new(weights: &Weights) -> Prepared {
        let shape = &weights.architecture;
        let (width, hidden) = (shape.width, shape.feed_forward);
        let table = |kind: &str, name: &str| weights.tensor(&format!("embed.{kind}.{name}")).to_vec();
        let slots = shape.slots.unwrap_or(0);
        let places = || (0..slots).map(|slot| slot.to_string()).chain(["idle".into()]);
        let of = |name: &str, outputs: usize| {
            Linear::new(weights.tensor(&format!("{name}.weight")), weights.tensor(&format!("{name}.bias")), outputs)
        };
        let real = shape.real.map(|real| {
            let up = if real.hidden > 0 { of("embed.real.hidden", real.hidden) } else { Linear::new(&[], &[], 1) };
            let map = Linear {
                weight: weights.tensor("embed.real.weight").to_vec(),
                bias: weights.tensor("embed.real.bias").to_vec(),
            };
            (real, up, map)
        });
        let head = |place: String| {
            let bias = weights.tensor(&format!("head.{place}.bias"))[0];
            (weights.tensor(&format!("head.{place}.weight")).to_vec(), bias)
        };
        Prepared {
            width,
            job: shape.job.iter().map(|feature| table("job", &feature.name)).collect(),
            idle: shape.idle.iter().map(|feature| table("idle", &feature.name)).collect(),
            real,
            inputs: places().map(|place| of(&format!("inputs.{place}"), hidden)).collect(),
            inputs_bias: weights.tensor("inputs.bias").to_vec(),
            hidden: (1..shape.layers).map(|layer| of(&format!("hidden.{layer}"), hidden)).collect(),
            heads: places().map(head).collect(),
        }
    }

    /// Adds a token's embeddings to a row.
    fn embed(&self, tables: &[Vec<f32>], token: &[u16], row: &mut [f32]) {
        for (table, value) in tables.iter().zip(token) {
            let last = table.len() / self.width - 1;
            let entry = &table[usize::from(*value).min(last) * self.width..][..self.width];
            row.iter_mut().zip(entry).for_each(|(sum, entry)| *sum += entry);
        }
    }
}

/// Feed-forward network that is ready to run, with its working memory.
pub(crate) struct FeedForward {
    prepared: Arc<Prepared>,
    row: Vec<f32>,
    units: Vec<f32>,
    layer: Vec<f32>,
    next: Vec<f32>,
}

impl FeedForward {
    /// Creates a network from weights whose architecture has slots.
    pub(crate) fn new(weights: &Weights) -> FeedForward {
        FeedForward::over(Arc::new(Prepared::new(weights)))
    }

    fn over(prepared: Arc<Prepared>) -> FeedForward {
        let (row, hidden) = (vec![0.0; prepared.width], prepared.inputs_bias.clone());
        let units = vec![0.0; prepared.real.as_ref().map_or(0, |(real, ..)| real.hidden)];
        FeedForward { row, units, next: hidden.clone(), layer: hidden, prepared }
    }
}

fn rectify(units: &mut [f32]) {
    units.iter_mut().for_each(|unit| *unit = unit.max(0.0));
}

impl Forward for FeedForward {
    fn forward(&mut self, rows: &Rows<'_>, q: &mut Vec<f32>) {
        let FeedForward { prepared, row, units, layer, next } = self;
        let (features, slots) = (prepared.job.len(), prepared.inputs.len() - 1);
        let slot = |token: &[u16]| usize::from(token[features - 1]).min(slots - 1);
        layer.copy_from_slice(&prepared.inputs_bias);
        row.fill(0.0);
        prepared.embed(&prepared.idle, rows.idle, row);
        prepared.inputs[slots].add(row, layer);
        for (place, token) in rows.jobs.chunks_exact(features).enumerate() {
            row.fill(0.0);
            prepared.embed(&prepared.job, token, row);
            if let Some((real, up, map)) = &prepared.real {
                let numbers = rows.real.get(place * real.inputs..(place + 1) * real.inputs).unwrap_or(&[]);
                row.iter_mut().zip(&map.bias).for_each(|(sum, bias)| *sum += bias);
                if real.hidden > 0 {
                    units.copy_from_slice(&up.bias);
                    up.add(numbers, units);
                    rectify(units);
                    map.add(units, row);
                } else {
                    map.add(numbers, row);
                }
            }
            prepared.inputs[slot(token)].add(row, layer);
        }
        rectify(layer);
        for hidden in &prepared.hidden {
            next.copy_from_slice(&hidden.bias);
            hidden.add(layer, next);
            rectify(next);
            std::mem::swap(layer, next);
        }
        let head = |place: usize| {
            let (weight, bias) = &prepared.heads[place];
            weight.iter().zip(&*layer).map(|(weight, unit)| weight * unit).sum::<f32>() + bias
        };
        q.clear();
        q.push(head(slots));
        q.extend(rows.jobs.chunks_exact(features).map(|token| head(slot(token))));
    }

    fn again(&self) -> Box<dyn Forward> {
        Box::new(FeedForward::over(self.prepared.clone()))
    }
}
