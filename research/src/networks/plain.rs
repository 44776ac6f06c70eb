//! Parts of the rivals' networks: linear maps, embeddings and norms in plain loops over whole rows.

use temponet_infer::{RealInput, Rows, Vocabulary, Weights};

/// Linear map with one weight row per input, so that each input adds a whole row to the output.
pub(super) struct Linear {
    weight: Vec<f32>,
    pub bias: Vec<f32>,
}

impl Linear {
    /// Reads a map whose weight has one row per output.
    pub(super) fn new(weights: &Weights, name: &str) -> Linear {
        let (weight, bias) = (weights.tensor(&format!("{name}.weight")), weights.tensor(&format!("{name}.bias")));
        Linear::of(weight, bias, bias.len())
    }

    pub(super) fn of(weight: &[f32], bias: &[f32], outputs: usize) -> Linear {
        let inputs = weight.len() / outputs;
        let by_inputs = (0..inputs).flat_map(|input| (0..outputs).map(move |output| weight[output * inputs + input]));
        Linear { weight: by_inputs.collect(), bias: bias.to_vec() }
    }

    /// Adds the product with some inputs, without the bias, to sums.
    pub(super) fn add(&self, inputs: &[f32], sums: &mut [f32]) {
        for (input, row) in inputs.iter().zip(self.weight.chunks_exact(sums.len())).filter(|(input, _)| **input != 0.0)
        {
            sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += input * weight);
        }
    }

    /// Computes the map of some inputs.
    pub(super) fn apply(&self, inputs: &[f32], out: &mut [f32]) {
        out.copy_from_slice(&self.bias);
        self.add(inputs, out);
    }
}

/// Output head: a linear map to one number.
pub(super) struct PlainHead {
    weight: Vec<f32>,
    bias: f32,
}

impl PlainHead {
    pub(super) fn new(weights: &Weights, name: &str) -> PlainHead {
        let bias = weights.tensor(&format!("{name}.bias"))[0];
        PlainHead { weight: weights.tensor(&format!("{name}.weight")).to_vec(), bias }
    }

    pub(super) fn of(&self, row: &[f32]) -> f32 {
        self.weight.iter().zip(row).map(|(weight, unit)| weight * unit).sum::<f32>() + self.bias
    }
}

/// Replaces each negative number by zero.
pub(super) fn rectify(units: &mut [f32]) {
    units.iter_mut().for_each(|unit| *unit = unit.max(0.0));
}

/// Embeddings of job rows and of the idle row.
pub(super) struct Embeddings {
    pub width: usize,
    /// Number of features of a job.
    pub features: usize,
    job: Vec<Vec<f32>>,
    idle: Vec<Vec<f32>>,
    /// Real-valued inputs, their hidden layer and their map to a row.
    real: Option<(RealInput, Linear, Linear)>,
}

impl Embeddings {
    pub(super) fn new(weights: &Weights) -> Embeddings {
        let shape = &weights.architecture;
        let tables = |kind: &str, features: &[Vocabulary]| {
            let table = |feature: &Vocabulary| weights.tensor(&format!("embed.{kind}.{}", feature.name)).to_vec();
            features.iter().map(table).collect()
        };
        let real = shape.real.map(|real| {
            let up = if real.hidden > 0 { Linear::new(weights, "embed.real.hidden") } else { Linear::of(&[], &[], 1) };
            let map = Linear {
                weight: weights.tensor("embed.real.weight").to_vec(),
                bias: weights.tensor("embed.real.bias").to_vec(),
            };
            (real, up, map)
        });
        let (job, idle) = (tables("job", &shape.job), tables("idle", &shape.idle));
        Embeddings { width: shape.width, features: shape.job.len(), job, idle, real }
    }

    /// Number of units that [`Embeddings::job`] needs as working memory.
    pub(super) fn units(&self) -> usize {
        self.real.as_ref().map_or(0, |(real, ..)| real.hidden)
    }

    /// Number of jobs in some rows.
    pub(super) fn count(&self, rows: &Rows<'_>) -> usize {
        rows.count(self.features, self.real.as_ref().map_or(0, |(real, ..)| real.inputs))
    }

    /// Computes the idle row.
    pub(super) fn idle(&self, rows: &Rows<'_>, row: &mut [f32]) {
        row.fill(0.0);
        self.add(&self.idle, rows.idle, row);
    }

    /// Computes the row of a job, which is counted from 0.
    pub(super) fn job(&self, rows: &Rows<'_>, place: usize, units: &mut [f32], row: &mut [f32]) {
        row.fill(0.0);
        self.add(&self.job, self.token(rows, place), row);
        if let Some((real, up, map)) = &self.real {
            let numbers = rows.real.get(place * real.inputs..(place + 1) * real.inputs).unwrap_or(&[]);
            row.iter_mut().zip(&map.bias).for_each(|(sum, bias)| *sum += bias);
            if real.hidden > 0 {
                up.apply(numbers, units);
                rectify(units);
                map.add(units, row);
            } else {
                map.add(numbers, row);
            }
        }
    }

    /// Token of a job, which is counted from 0.
    pub(super) fn token<'a>(&self, rows: &Rows<'a>, place: usize) -> &'a [u16] {
        rows.jobs.get(place * self.features..(place + 1) * self.features).unwrap_or(&[])
    }

    /// Adds a token's embeddings to a row.
    fn add(&self, tables: &[Vec<f32>], token: &[u16], row: &mut [f32]) {
        for (table, value) in tables.iter().zip(token) {
            let last = table.len() / self.width - 1;
            let entry = &table[usize::from(*value).min(last) * self.width..][..self.width];
            row.iter_mut().zip(entry).for_each(|(sum, entry)| *sum += entry);
        }
    }
}

/// Term added to the variance in layer norms.
const EPSILON: f32 = 1e-5;

/// Number of equal jobs that a row with this attention bias stands for.
pub(super) fn multiplicity(bias: f32) -> f32 {
    bias.exp().round()
}

/// Adds `change` to a row, if there is one, and normalizes it.
pub(super) fn add_and_norm(row: &mut [f32], change: Option<&[f32]>, (weight, bias): &(Vec<f32>, Vec<f32>)) {
    if let Some(change) = change {
        row.iter_mut().zip(change).for_each(|(row, change)| *row += change);
    }
    let mean = row.iter().sum::<f32>() / row.len() as f32;
    let variance = row.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / row.len() as f32;
    let scale = 1.0 / (variance + EPSILON).sqrt();
    let parameters = weight.iter().zip(bias);
    row.iter_mut().zip(parameters).for_each(|(value, (weight, bias))| *value = (*value - mean) * scale * weight + bias);
}
