//! The Transformer on the tape: its blocks, dense or with sparse attention, and its heads.

use std::ops::Range;

use temponet_grad::{Device, KeyLists, RowNumbers, Segments, Tape, Var};
use temponet_infer::{Architecture, KeptKeys, Sparsity};

use crate::sample::{Batch, places};
use crate::tape_network::{Linear, OutputRows, TapeNetwork, TapeOutput};

/// Blocks of the Transformer, and the head that makes Q-values of job rows.
#[derive(Clone, Debug)]
pub(crate) struct Transformer {
    layers: Vec<Layer>,
    job_head: Linear,
    /// Hidden layer and output of the actor, if there is one. The job head is then its critic.
    actor: Option<(Linear, Linear)>,
    /// Heads of the speeds below full speed.
    speed_heads: Vec<Linear>,
}

/// Embedded rows of a batch, the input of the Transformer.
pub(crate) struct Embedded<D: Device> {
    /// One row for each row of the batch, or one for each distinct row.
    pub x: Var,
    /// Number of the distinct row of each row of the batch, if `x` has only the distinct ones.
    pub distinct: Option<RowNumbers<D>>,
    /// Numbers of the idle rows in the batch.
    pub idle_places: RowNumbers<D>,
    /// Numbers of the job rows in the batch.
    pub job_places: RowNumbers<D>,
}

/// One block of the Transformer.
#[derive(Clone, Copy, Debug)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    attention_norm: Linear,
    up: Linear,
    down: Linear,
    feed_forward_norm: Linear,
}

impl Transformer {
    /// Finds the tensors of a Transformer.
    pub(crate) fn new(architecture: &Architecture, pair: impl Fn(&str) -> Linear) -> Transformer {
        let layer = |layer: usize| {
            let pair = |name: &str| pair(&format!("layers.{layer}.{name}"));
            Layer {
                query: pair("attention.query"),
                key: pair("attention.key"),
                value: pair("attention.value"),
                output: pair("attention.output"),
                attention_norm: pair("attention_norm"),
                up: pair("feed_forward.up"),
                down: pair("feed_forward.down"),
                feed_forward_norm: pair("feed_forward_norm"),
            }
        };
        Transformer {
            layers: (0..architecture.layers).map(layer).collect(),
            job_head: pair("head.job"),
            actor: architecture.actor().map(|_| (pair("head.actor.hidden"), pair("head.actor"))),
            speed_heads: (0..architecture.speeds()).map(|speed| pair(&format!("head.speed.{speed}"))).collect(),
        }
    }
}

impl TapeNetwork {
    /// Computes the blocks of the Transformer and the heads.
    pub(crate) fn transform<D: Device>(
        &self,
        tape: &mut Tape<'_, D>,
        batch: &Batch<'_>,
        output_rows: &OutputRows,
        embedded: Embedded<D>,
        transformer: &Transformer,
    ) -> TapeOutput {
        let Embedded { mut x, mut distinct, idle_places, job_places } = embedded;
        let layers = &transformer.layers;
        let bias = tape.input(batch.segments.rows(), 1, &batch.bias);
        // A row can be selected at several speeds, so its number alone does not tell.
        let is_whole = output_rows.rows.len() == batch.segments.rows() && output_rows.speeds.is_empty();
        for (place, layer) in layers.iter().enumerate() {
            // The choice of blocks rests on all queries.
            let is_narrow = place + 1 == layers.len() && !is_whole && !self.sparse;
            let mut k = tape.linear(x, layer.key.0, Some(layer.key.1));
            let mut v = tape.linear(x, layer.value.0, Some(layer.value.1));
            let mut q = (!is_narrow).then(|| tape.linear(x, layer.query.0, Some(layer.query.1)));
            if let Some(distinct) = distinct.take() {
                [x, k, v] = [x, k, v].map(|var| tape.gather(var, &distinct));
                q = q.map(|q| tape.gather(q, &distinct));
            }
            let mut queries = &batch.segments;
            if is_narrow {
                let selected = tape.numbers(&output_rows.rows);
                x = tape.gather(x, &selected);
                queries = &output_rows.segments;
            }
            let q = q.unwrap_or_else(|| tape.linear(x, layer.query.0, Some(layer.query.1)));
            let heads = self.architecture.heads;
            let mixed = match self.sparse {
                true => {
                    let lists = kept_keys(tape, &batch.segments, q, k);
                    tape.attention_to(q, k, v, &lists, heads, Some(bias))
                }
                false => tape.attention(q, k, v, queries, &batch.segments, heads, Some(bias)),
            };
            let change = tape.linear(mixed, layer.output.0, Some(layer.output.1));
            x = tape.norm(x, Some(change), layer.attention_norm.0, layer.attention_norm.1);
            let up = tape.linear(x, layer.up.0, Some(layer.up.1));
            let hidden = tape.relu(up);
            let change = tape.linear(hidden, layer.down.0, Some(layer.down.1));
            x = tape.norm(x, Some(change), layer.feed_forward_norm.0, layer.feed_forward_norm.1);
        }
        if self.sparse && !is_whole {
            let selected = tape.numbers(&output_rows.rows);
            x = tape.gather(x, &selected);
        }
        let (idle, jobs) = if is_whole {
            (idle_places, job_places)
        } else {
            let (idle, jobs) = places(&output_rows.segments);
            (tape.numbers(&idle), tape.numbers(&jobs))
        };
        let (idle_rows, job_rows) = (tape.gather(x, &idle), tape.gather(x, &jobs));
        self.heads(tape, output_rows, transformer, (idle_rows, &idle), (job_rows, &jobs))
    }

    /// Computes the heads of a Transformer from the last rows, which are given with their places among the output rows.
    fn heads<D: Device>(
        &self,
        tape: &mut Tape<'_, D>,
        output_rows: &OutputRows,
        transformer: &Transformer,
        (idle_rows, idle): (Var, &RowNumbers<D>),
        (job_rows, jobs): (Var, &RowNumbers<D>),
    ) -> TapeOutput {
        let Transformer { job_head, actor, speed_heads, .. } = transformer;
        let rows = output_rows.rows.len();
        let idle_q = tape.linear(idle_rows, self.idle_head.0, Some(self.idle_head.1));
        let job_q = tape.linear(job_rows, job_head.0, Some(job_head.1));
        let logits = actor.map(|(hidden, output)| {
            let up = tape.linear(job_rows, hidden.0, Some(hidden.1));
            let hidden = tape.relu(up);
            tape.linear(hidden, output.0, Some(output.1))
        });
        let value = match self.dueling || self.architecture.atoms().is_none() {
            true => tape.linear(idle_rows, self.value_head.0, Some(self.value_head.1)),
            false => idle_q,
        };
        let mut parts = vec![(idle_q, idle), (logits.unwrap_or(job_q), jobs)];
        let mut gains = Vec::new();
        let mut places = Vec::new();
        if output_rows.speeds.is_empty() {
            gains.extend(speed_heads.iter().map(|head| tape.linear(job_rows, head.0, Some(head.1))));
        } else {
            // Place of each output row among the job rows.
            let (_, job_places) = crate::sample::places(&output_rows.segments);
            for (speed, head) in (1..).zip(speed_heads) {
                let own = (0..).zip(&job_places).filter(|(_, place)| output_rows.speeds[**place as usize] == speed);
                let (from, to): (Vec<u32>, Vec<u32>) = own.map(|(job, place)| (job, *place)).unzip();
                if !from.is_empty() {
                    let from = tape.numbers(&from);
                    let slow = tape.gather(job_rows, &from);
                    places.push((tape.linear(slow, head.0, Some(head.1)), tape.numbers(&to)));
                }
            }
        }
        parts.extend(places.iter().map(|(gain, places)| (*gain, places)));
        let q = tape.combine(rows, &parts);
        let critic = logits.map(|_| tape.combine(rows, &[(idle_q, idle), (job_q, jobs)]));
        TapeOutput { q, value, critic, gains, real: None, memory: None }
    }
}

/// Chooses the keys that the queries of each sample attend to, as the deployed network does: by the sums of the queries
/// and keys of each block.
fn kept_keys<D: Device>(tape: &mut Tape<'_, D>, samples: &Segments, q: Var, k: Var) -> KeyLists {
    let width = tape.shape(q).1;
    let sparsity = |sample: &Range<usize>| (Sparsity::paper(sample.len() - 1), sample.len() - 1);
    let (mut rows, mut lengths) = (Vec::new(), Vec::new());
    for sample in samples.ranges() {
        let (sparsity, jobs) = sparsity(&sample);
        lengths.extend(sparsity.blocks(jobs).iter().map(ExactSizeIterator::len));
        rows.extend(sample.start as u32 + 1..sample.end as u32);
    }
    let blocks = Segments::of_lengths(lengths);
    let [queries, keys] = [q, k].map(|var| tape.segment_sums(var, &blocks, &rows));
    let (mut groups, mut first) = (Vec::new(), 0);
    for sample in samples.ranges() {
        let (sparsity, jobs) = sparsity(&sample);
        let kept = KeptKeys::choose(sparsity, jobs, width, &queries[first * width..], &keys[first * width..]);
        first += sparsity.blocks(jobs).len();
        let own = kept.lists().map(|(queries, rows)| (queries.len(), rows.iter().map(|row| sample.start as u32 + row)));
        groups.extend(own.map(|(queries, rows)| (queries, rows.collect::<Vec<u32>>())));
    }
    KeyLists::new(groups)
}
