//! Weights prepared for an engine: packed, padded, and with everything folded in that can be computed in advance. They
//! are immutable, so that many threads can share them.

use crate::aligned::Aligned;
use crate::atoms::MOST_ATOMS;
use crate::kernels::{Engine, Map, Norm, PAD};
use crate::{Architecture, Atoms, RealInput, Vocabulary, Weights};

/// Widths in memory, counted in numbers.
#[derive(Clone, Copy)]
pub(crate) struct Widths {
    /// Width of a row, and the same padded.
    pub row: usize,
    pub row_stride: usize,
    /// Width of a query, a key and a value together, padded.
    pub triple_stride: usize,
    pub heads: usize,
    /// Width of a head, the same padded to a product's depth, and padded to its columns.
    pub head: usize,
    pub head_depth: usize,
    pub head_columns: usize,
    /// Width of the feed-forward part, padded.
    pub hidden_stride: usize,
}

/// Linear map with packed weights.
pub(crate) struct Linear<E: Engine> {
    matrix: E::Matrix,
    bias: Aligned<f32>,
}

impl<E: Engine> Linear<E> {
    /// Packs a linear map whose weight has one row per output.
    fn new(weight: &[f32], bias: &[f32]) -> Linear<E> {
        let (outputs, inputs) = (bias.len(), weight.len() / bias.len());
        let matrix = E::matrix(inputs, outputs, |input, output| weight[output * inputs + input]);
        Linear { matrix, bias: Aligned::from_slice(bias, outputs.next_multiple_of(PAD)) }
    }

    pub(crate) fn map(&self) -> Map<'_, E::Matrix> {
        Map { matrix: &self.matrix, bias: &self.bias }
    }
}

/// Parameters of a layer norm, padded with zeros.
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

/// Transformer block.
pub(crate) struct Layer<E: Engine> {
    /// Map from a row to its query, key and value. `None` in the first layer, whose triples come from the tables.
    pub triple: Option<Linear<E>>,
    pub output: Linear<E>,
    pub attention_norm: OwnNorm,
    pub up: Linear<E>,
    pub down: Linear<E>,
    pub feed_forward_norm: OwnNorm,
}

/// For each value of a feature its embedding and its contribution to the first layer's query, key and value. Their bias
/// is included in the first feature's table.
pub(crate) struct Table {
    values: usize,
    stride: usize,
    rows: Aligned<f32>,
}

impl Table {
    /// Row of a value. Values out of range count as the last.
    pub(crate) fn row(&self, value: u16) -> &[f32] {
        let value = usize::from(value).min(self.values - 1);
        &self.rows[value * self.stride..(value + 1) * self.stride]
    }
}

/// Real-valued inputs of a job's row: a table with one row per input or, if there is a hidden layer, per hidden unit.
pub(crate) struct Real {
    pub inputs: usize,
    /// Hidden layer with one weight row per unit; empty if there is none.
    weight: Vec<f32>,
    bias: Vec<f32>,
    table: Table,
}

impl Real {
    /// Computes the factor of each row of the table in a job's row. Missing inputs count as zero.
    pub(crate) fn factors(&self, numbers: &[f32], factors: &mut [f32]) {
        if self.weight.is_empty() {
            let given = numbers.len().min(factors.len());
            factors[..given].copy_from_slice(&numbers[..given]);
            factors[given..].fill(0.0);
            return;
        }
        for ((factor, weight), bias) in factors.iter_mut().zip(self.weight.chunks_exact(self.inputs)).zip(&self.bias) {
            let sum: f32 = weight.iter().zip(numbers).map(|(weight, number)| weight * number).sum();
            *factor = (sum + bias).max(0.0);
        }
    }

    /// Rows of the table, one for each factor.
    pub(crate) fn rows(&self) -> &[f32] {
        &self.table.rows
    }

    /// Number of factors.
    pub(crate) fn units(&self) -> usize {
        self.table.values
    }
}

/// Output head of a kind of row: a linear map to one number, or two of them with ReLU between.
pub(crate) struct Head {
    weight: Aligned<f32>,
    bias: f32,
    /// Units of the hidden layer, each with its weight in the output; empty for a linear head.
    hidden: Vec<(Head, f32)>,
}

impl Head {
    pub(crate) fn of(&self, row: &[f32]) -> f32 {
        if !self.hidden.is_empty() {
            return self.bias + self.hidden.iter().map(|(unit, weight)| weight * unit.of(row).max(0.0)).sum::<f32>();
        }
        let mut sums = [0.0f32; 16];
        for (a, b) in row.chunks_exact(16).zip(self.weight.chunks_exact(16)) {
            sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
        }
        sums.iter().sum::<f32>() + self.bias
    }
}

/// Heads of a network with atoms: one of each kind for each atom.
pub(crate) struct Distribution {
    atoms: Atoms,
    job: Vec<Head>,
    idle: Vec<Head>,
    /// Heads of the state value; empty if it is that of idling.
    value: Vec<Head>,
}

impl Distribution {
    /// Appends the mean return of idling and of running each job alone.
    pub(crate) fn means<'a>(&self, idle: &[f32], jobs: impl Iterator<Item = &'a [f32]>, q: &mut Vec<f32>) {
        let count = self.atoms.count;
        let (mut base, mut logits) = ([0.0; MOST_ATOMS], [0.0; MOST_ATOMS]);
        let (base, logits) = (&mut base[..count], &mut logits[..count]);
        let value = if self.value.is_empty() { &self.idle } else { &self.value };
        base.iter_mut().zip(value).for_each(|(base, head)| *base = head.of(idle));
        q.push(self.atoms.mean(base));
        base.iter_mut().zip(&self.idle).for_each(|(base, head)| *base -= head.of(idle));
        for job in jobs {
            let heads = self.job.iter().zip(&*base);
            logits.iter_mut().zip(heads).for_each(|(logit, (head, base))| *logit = base + head.of(job));
            q.push(self.atoms.mean(logits));
        }
    }
}

/// Network prepared for an engine.
pub(crate) struct Prepared<E: Engine> {
    pub engine: E,
    pub widths: Widths,
    /// Number of features of a job.
    pub features: usize,
    /// Tables of the job features. With real-valued inputs there is one more of a single value: the bias of their map.
    pub job: Vec<Table>,
    pub real: Option<Real>,
    pub idle: Vec<Table>,
    pub layers: Vec<Layer<E>>,
    pub job_head: Head,
    pub idle_head: Head,
    /// Heads of the speeds below full speed.
    pub speed_heads: Vec<Head>,
    /// Heads that replace the job head and the idle head where the network has atoms.
    pub distribution: Option<Distribution>,
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
        let linear_head = |weight: &[f32], bias: f32| Head {
            weight: Aligned::from_slice(weight, widths.row_stride),
            bias,
            hidden: Vec::new(),
        };
        let part = |kind: &str, part: &str| weights.tensor(&format!("head.{kind}.{part}"));
        let all_heads = |kind: &str| -> Vec<Head> {
            let rows = part(kind, "weight").chunks_exact(widths.row).zip(part(kind, "bias"));
            rows.map(|(weight, bias)| linear_head(weight, *bias)).collect()
        };
        let head = |kind: &str| all_heads(kind).swap_remove(0);
        let actor = || {
            let rows = part("actor.hidden", "weight").chunks_exact(widths.row);
            let units = rows.zip(part("actor.hidden", "bias")).map(|(weight, bias)| linear_head(weight, *bias));
            let hidden = units.zip(part("actor", "weight").iter().copied()).collect();
            Head { weight: Aligned::new(0), bias: part("actor", "bias")[0], hidden }
        };
        Prepared {
            engine,
            widths,
            features: architecture.job.len(),
            job,
            real,
            idle: tables("idle", &architecture.idle),
            layers,
            job_head: if architecture.actor().is_some() { actor() } else { head("job") },
            idle_head: head("idle"),
            speed_heads: (0..architecture.speeds()).map(|speed| head(&format!("speed.{speed}"))).collect(),
            distribution: architecture.atoms().map(|atoms| {
                let [job, idle, value] = ["job", "idle", "value"].map(all_heads);
                Distribution { atoms, job, idle, value }
            }),
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
        // The queries of the last head are read up to their padded depth.
        triple_stride: (3 * width).max(width - head + head_depth).next_multiple_of(PAD),
        heads,
        head,
        head_depth,
        head_columns: head.next_multiple_of(PAD),
        hidden_stride: feed_forward.next_multiple_of(PAD),
    }
}

/// Weight and bias of query, key and value as one linear map. The query includes the attention's scale, the factor log₂
/// e, so that powers of two can replace those of e, and the engine's unit of logits.
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
