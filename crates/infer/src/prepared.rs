//! Weights as a kernel wants them: packed, padded, with everything folded in that can be.

use crate::aligned::Aligned;
use crate::kernels::{Engine, Map, Norm, PAD};
use crate::{Architecture, RealInput, Vocabulary, Weights};

/// Widths in memory, in numbers.
#[derive(Clone, Copy)]
pub(crate) struct Widths {
    /// Of a row, and padded.
    pub row: usize,
    pub row_stride: usize,
    /// Of a query, a key and a value together, padded.
    pub triple_stride: usize,
    pub heads: usize,
    /// Of a head, as the depth of a product and as its columns.
    pub head: usize,
    pub head_depth: usize,
    pub head_columns: usize,
    /// Of the feed-forward part, padded.
    pub hidden_stride: usize,
}

/// A linear map.
pub(crate) struct Linear<E: Engine> {
    matrix: E::Matrix,
    bias: Aligned<f32>,
}

impl<E: Engine> Linear<E> {
    /// From one weight row per output.
    fn new(weight: &[f32], bias: &[f32]) -> Linear<E> {
        let (outputs, inputs) = (bias.len(), weight.len() / bias.len());
        let matrix = E::matrix(inputs, outputs, |input, output| weight[output * inputs + input]);
        Linear { matrix, bias: Aligned::from_slice(bias, outputs.next_multiple_of(PAD)) }
    }

    pub(crate) fn map(&self) -> Map<'_, E::Matrix> {
        Map { matrix: &self.matrix, bias: &self.bias }
    }
}

/// A layer norm.
pub(crate) struct OwnNorm {
    width: usize,
    weight: Aligned<f32>,
    bias: Aligned<f32>,
}

impl OwnNorm {
    pub(crate) fn view(&self) -> Norm<'_> {
        Norm { width: self.width, weight: &self.weight, bias: &self.bias }
    }
}

/// A block of the network.
pub(crate) struct Layer<E: Engine> {
    /// None in the first layer, whose triples come from the tables.
    pub triple: Option<Linear<E>>,
    pub output: Linear<E>,
    pub attention_norm: OwnNorm,
    pub up: Linear<E>,
    pub down: Linear<E>,
    pub feed_forward_norm: OwnNorm,
}

/// For each value of a feature its embedding and its share of the first layer's query, key and value, whose bias is in the first feature's.
pub(crate) struct Table {
    values: usize,
    stride: usize,
    rows: Aligned<f32>,
}

impl Table {
    /// A value's row; values out of range are the last.
    pub(crate) fn row(&self, value: u16) -> &[f32] {
        let value = usize::from(value).min(self.values - 1);
        &self.rows[value * self.stride..(value + 1) * self.stride]
    }
}

/// What real numbers add to a job's row: a table with a row for each of them or, if they go through a hidden layer, for each of its units.
pub(crate) struct Real {
    pub inputs: usize,
    /// The hidden layer, one weight row per unit; no weights if there is none.
    weight: Vec<f32>,
    bias: Vec<f32>,
    table: Table,
}

impl Real {
    /// What is added for some numbers: the table's rows and their factors. Numbers that are missing count as zero.
    pub(crate) fn terms(&self, numbers: &[f32]) -> impl Iterator<Item = (f32, &[f32])> {
        let number = |place: usize| numbers.get(place).copied().unwrap_or(0.0);
        let hidden = move |unit: usize| {
            let weight = &self.weight[unit * self.inputs..(unit + 1) * self.inputs];
            let sum: f32 = weight.iter().enumerate().map(|(place, weight)| weight * number(place)).sum();
            (sum + self.bias[unit]).max(0.0)
        };
        let factor = move |unit: usize| if self.weight.is_empty() { number(unit) } else { hidden(unit) };
        let units = (0..self.table.values).map(move |unit| (factor(unit), self.table.row(unit as u16)));
        units.filter(|(factor, _)| *factor != 0.0)
    }
}

/// The last linear map of a kind of row.
pub(crate) struct Head {
    weight: Aligned<f32>,
    bias: f32,
}

impl Head {
    pub(crate) fn of(&self, row: &[f32]) -> f32 {
        let mut sums = [0.0f32; 16];
        for (a, b) in row.chunks_exact(16).zip(self.weight.chunks_exact(16)) {
            sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
        }
        sums.iter().sum::<f32>() + self.bias
    }
}

/// A network, ready for an engine.
pub(crate) struct Prepared<E: Engine> {
    pub engine: E,
    pub widths: Widths,
    /// Features of a job.
    pub features: usize,
    /// Their tables; the bias of real numbers is one more, of a single value.
    pub job: Vec<Table>,
    pub real: Option<Real>,
    pub idle: Vec<Table>,
    pub layers: Vec<Layer<E>>,
    pub job_head: Head,
    pub idle_head: Head,
}

impl<E: Engine> Prepared<E> {
    pub(crate) fn new(engine: E, weights: &Weights) -> Prepared<E> {
        let architecture = &weights.architecture;
        let widths = widths::<E>(architecture);
        let layers = (0..architecture.layers).map(|layer| Prepared::layer(weights, layer, widths)).collect();
        let triple = triple::<E>(weights, 0);
        let tables = |kind: &str, features: &[Vocabulary]| {
            let table = |(place, feature): (usize, &Vocabulary)| {
                let embedding = weights.tensor(&format!("embed.{kind}.{}", feature.name));
                table(embedding, &triple, place == 0, widths)
            };
            features.iter().enumerate().map(table).collect()
        };
        let mut job: Vec<Table> = tables("job", &architecture.job);
        let real = architecture.real.map(|RealInput { inputs, .. }| {
            job.push(table(weights.tensor("embed.real.bias"), &triple, job.is_empty(), widths));
            let [weight, bias] =
                ["weight", "bias"].map(|part| weights.tensor(&format!("embed.real.hidden.{part}")).to_vec());
            let table = table(weights.tensor("embed.real.weight"), &triple, false, widths);
            Real { inputs, weight, bias, table }
        });
        let head = |kind: &str| Head {
            weight: Aligned::from_slice(weights.tensor(&format!("head.{kind}.weight")), widths.row_stride),
            bias: weights.tensor(&format!("head.{kind}.bias"))[0],
        };
        Prepared {
            engine,
            widths,
            features: architecture.job.len(),
            job,
            real,
            idle: tables("idle", &architecture.idle),
            layers,
            job_head: head("job"),
            idle_head: head("idle"),
        }
    }

    fn layer(weights: &Weights, layer: usize, widths: Widths) -> Layer<E> {
        let part = |name: &str| weights.tensor(&format!("layers.{layer}.{name}"));
        let linear = |name: &str| Linear::new(part(&format!("{name}.weight")), part(&format!("{name}.bias")));
        let norm = |name: &str| OwnNorm {
            width: widths.row,
            weight: Aligned::from_slice(part(&format!("{name}.weight")), widths.row_stride),
            bias: Aligned::from_slice(part(&format!("{name}.bias")), widths.row_stride),
        };
        let later = || {
            let (weight, bias) = triple::<E>(weights, layer);
            Linear::new(&weight, &bias)
        };
        Layer {
            triple: (layer > 0).then(later),
            output: linear("attention.output"),
            attention_norm: norm("attention_norm"),
            up: linear("feed_forward.up"),
            down: linear("feed_forward.down"),
            feed_forward_norm: norm("feed_forward_norm"),
        }
    }
}

fn widths<E: Engine>(architecture: &Architecture) -> Widths {
    let Architecture { width, heads, feed_forward, .. } = *architecture;
    let head = width / heads;
    let head_depth = head.next_multiple_of(E::DEPTH);
    Widths {
        row: width,
        row_stride: width.next_multiple_of(PAD),
        // The last head's queries are read to their padded depth.
        triple_stride: (3 * width).max(width - head + head_depth).next_multiple_of(PAD),
        heads,
        head,
        head_depth,
        head_columns: head.next_multiple_of(PAD),
        hidden_stride: feed_forward.next_multiple_of(PAD),
    }
}

/// Query, key and value as one linear map: weight and bias. The attention's scale is in the query, and so are the factor that lets it take
/// powers of two for those of e and the engine's unit.
fn triple<E: Engine>(weights: &Weights, layer: usize) -> (Vec<f32>, Vec<f32>) {
    let size = weights.architecture.width / weights.architecture.heads;
    let scale = E::UNIT * std::f32::consts::LOG2_E / (size as f32).sqrt();
    let part = |kind: &str| {
        let scaled = |name: &str, factor: f32| {
            let values = weights.tensor(&format!("layers.{layer}.attention.{name}.{kind}"));
            values.iter().map(move |value| value * factor)
        };
        scaled("query", scale).chain(scaled("key", 1.0)).chain(scaled("value", 1.0)).collect()
    };
    (part("weight"), part("bias"))
}

fn table(embedding: &[f32], (weight, bias): &(Vec<f32>, Vec<f32>), is_first: bool, widths: Widths) -> Table {
    let (width, stride) = (widths.row, widths.row_stride + widths.triple_stride);
    let values = embedding.len() / width;
    let mut rows = Aligned::new(values * stride);
    for (entry, row) in embedding.chunks_exact(width).zip(rows.chunks_exact_mut(stride)) {
        row[..width].copy_from_slice(entry);
        for ((weight, bias), out) in weight.chunks_exact(width).zip(bias).zip(&mut row[widths.row_stride..]) {
            let dot: f32 = weight.iter().zip(entry).map(|(a, b)| a * b).sum();
            *out = dot + if is_first { *bias } else { 0.0 };
        }
    }
    Table { values, stride, rows }
}
