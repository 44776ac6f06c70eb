//! The forward pass of a Transformer on an engine, and its working memory, which each thread has for itself.

use crate::aligned::Aligned;
use crate::kernels::{Attention, Engine, GROUP, Heads, NEVER, PAD, Packed, PackedMut, QUERIES, View, ViewMut};
use crate::prepared::{Layer, Prepared, Real, Table, Widths};
use crate::sparse::keep_top;
use crate::sparse_pass::SparseScratch;
use crate::{AttentionWork, Rows, Rule, Sparsity};

/// Number of keys above which rows of logits are long, so that fewer are computed at a time.
const LONG: usize = 256;
/// Number of rows that go from one attention to the next together, so that intermediate results stay in the nearest
/// cache.
const TOGETHER: usize = 4 * GROUP;

/// Working memory of a forward pass. Padding inside rows is always zero.
pub(crate) struct Scratch<E: Engine> {
    pub(crate) widths: Widths,
    capacity: usize,
    /// Rows in single precision, and as elements of the engine.
    x: Aligned<f32>,
    elements: Aligned<E::Element>,
    /// Queries, keys and values of all rows as elements.
    pub(crate) triples: Aligned<E::Element>,
    /// One row and its triple in single precision, while they are summed.
    sum: Aligned<f32>,
    /// Sum of the table rows of all features that have the same value in every job's row: a row and its triple.
    common: Aligned<f32>,
    /// Factors of the rows that a job's numbers add.
    factors: Vec<f32>,
    /// Working memory of the engine.
    room: Aligned<E::Element>,
    /// Packed keys and values of one head.
    keys: Aligned<E::Element>,
    values: Aligned<E::Element>,
    /// Logits, powers and mixed values of some queries.
    pub(crate) logits: Aligned<f32>,
    pub(crate) powers: Aligned<E::Element>,
    pub(crate) mixed: Aligned<f32>,
    /// Results of the attention of all heads.
    pub(crate) attended: Aligned<E::Element>,
    /// Hidden units of the feed-forward part, and the change that a sub-layer adds, of some rows.
    hidden: Aligned<E::Element>,
    change: Aligned<f32>,
    /// Bias of each key in the engine's unit of logits; [`NEVER`] in the padding.
    pub(crate) key_bias: Aligned<f32>,
    /// Multiplicity of each key; 0 in the padding.
    pub(crate) key_weights: Aligned<E::Element>,
    pub(crate) no_bias: Aligned<f32>,
    /// Greatest magnitude of a key's bias.
    pub(crate) most_bias: f32,
    /// Logits of one query as whole numbers, for explicit top-k.
    order: Vec<i32>,
    /// Working memory of sparse attention; empty until it is first used.
    pub(crate) sparse: SparseScratch<E>,
    /// What the attention of the last pass has read.
    pub(crate) work: AttentionWork,
}

impl<E: Engine> Scratch<E> {
    pub(crate) fn new(widths: Widths, rows: usize) -> Scratch<E> {
        let capacity = rows.max(1).next_multiple_of(PAD);
        let Widths { row_stride, triple_stride, head_depth, head_columns, hidden_stride, .. } = widths;
        Scratch {
            widths,
            capacity,
            x: Aligned::new(capacity * row_stride),
            elements: Aligned::new(capacity * row_stride),
            // A group of queries may be read and written beyond the last row.
            triples: Aligned::new((capacity + GROUP) * triple_stride),
            sum: Aligned::new(row_stride + triple_stride),
            common: Aligned::new(row_stride + triple_stride),
            factors: Vec::new(),
            room: Aligned::new(
                E::attention_room(widths.heads, widths.head, capacity)
                    .max(E::linear_room(row_stride.max(hidden_stride))),
            ),
            keys: Aligned::new(capacity * head_depth),
            values: Aligned::new(capacity * head_columns),
            logits: Aligned::new(QUERIES * capacity),
            powers: Aligned::new(QUERIES * capacity),
            mixed: Aligned::new(QUERIES * head_columns),
            attended: Aligned::new((capacity + GROUP) * row_stride),
            hidden: Aligned::new(TOGETHER * hidden_stride),
            change: Aligned::new(TOGETHER * row_stride),
            key_bias: Aligned::new(capacity),
            key_weights: Aligned::new(capacity),
            no_bias: Aligned::new(head_columns),
            most_bias: 0.0,
            order: vec![0; capacity],
            sparse: SparseScratch::default(),
            work: AttentionWork::default(),
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn pass(&mut self, prepared: &Prepared<E>, rows: &Rows<'_>, q: &mut Vec<f32>) {
        let inputs = prepared.real.as_ref().map_or(0, |real| real.inputs);
        let count = rows.count(prepared.features, inputs) + 1;
        if count > self.capacity {
            *self = Scratch::new(self.widths, count);
        }
        self.work = AttentionWork::default();
        self.embed(prepared, rows, count);
        self.set_bias(rows.bias, count);
        prepared.engine.begin();
        for (place, layer) in prepared.layers.iter().enumerate() {
            self.attend(prepared.engine, count, rows.sparsity);
            let next = prepared.layers.get(place + 1);
            for first in (0..count).step_by(TOGETHER) {
                let rows = TOGETHER.min(count.next_multiple_of(GROUP) - first);
                self.go_on(prepared.engine, layer, next, first, rows);
            }
        }
        prepared.engine.end();
        q.clear();
        let (idle, jobs) = self.x[..count * self.widths.row_stride].split_at(self.widths.row_stride);
        if let Some(distribution) = &prepared.distribution {
            return distribution.means(idle, jobs.chunks_exact(self.widths.row_stride), q);
        }
        q.push(prepared.idle_head.of(idle));
        q.extend(jobs.chunks_exact(self.widths.row_stride).map(|row| prepared.job_head.of(row)));
        for head in &prepared.speed_heads {
            q.extend(jobs.chunks_exact(self.widths.row_stride).map(|row| head.of(row)));
        }
    }

    /// Computes the rows and their triples for the first layer from the tables, with zeros up to a whole group.
    /// Features that have the same value in all rows, as many have in plain task sets, are summed once.
    fn embed(&mut self, prepared: &Prepared<E>, rows: &Rows<'_>, count: usize) {
        let Widths { row_stride, triple_stride, .. } = self.widths;
        let of_job = |place: usize| rows.jobs.get((place - 1) * prepared.features..place * prepared.features);
        let constant = constant_features(rows.jobs, prepared.features);
        if constant != 0 {
            self.common.fill(0.0);
            for (feature, table) in prepared.job.iter().enumerate().filter(|(feature, _)| constant >> feature & 1 == 1)
            {
                prepared.engine.add(&mut self.common, table.row(rows.jobs[feature]));
            }
        }
        self.factors.resize(prepared.real.as_ref().map_or(0, Real::units), 0.0);
        let targets = self.x.chunks_exact_mut(row_stride).zip(self.triples.chunks_exact_mut(triple_stride));
        let (sum, factors) = (&mut self.sum[..], &mut self.factors[..]);
        for (place, (x, elements)) in targets.enumerate().take(count.next_multiple_of(GROUP)) {
            let (tables, values, known): (&[Table], &[u16], u64) = match place {
                0 => (&prepared.idle, rows.idle, 0),
                _ if place < count => (&prepared.job, of_job(place).unwrap_or(&[]), constant),
                _ => (&[], &[], 0),
            };
            let real = prepared.real.as_ref().filter(|_| (1..count).contains(&place));
            let part = |place: usize| tables[place].row(values.get(place).copied().unwrap_or(0));
            if let ([_], None) = (tables, real) {
                let (from_x, from_triple) = part(0).split_at(row_stride);
                x.copy_from_slice(from_x);
                prepared.engine.convert(from_triple, elements);
                continue;
            }
            if known != 0 {
                sum.copy_from_slice(&self.common);
            } else if tables.is_empty() {
                sum.fill(0.0);
            }
            for place in (0..tables.len()).filter(|place| known >> place & 1 == 0) {
                match place == 0 && known == 0 {
                    true => sum.copy_from_slice(part(place)),
                    false => prepared.engine.add(sum, part(place)),
                }
            }
            if let Some(real) = real {
                real.factors(rows.real.get((place - 1) * real.inputs..place * real.inputs).unwrap_or(&[]), factors);
                prepared.engine.add_terms(sum, factors, real.rows());
            }
            let (from_x, from_triple) = sum.split_at(row_stride);
            x.copy_from_slice(from_x);
            prepared.engine.convert(from_triple, elements);
        }
    }

    fn set_bias(&mut self, bias: &[f32], count: usize) {
        let given = |place: usize| bias.get(place).copied().unwrap_or(0.0);
        for (place, logit) in self.key_bias[..count.next_multiple_of(PAD)].iter_mut().enumerate() {
            let is_key = place < count;
            *logit = if is_key { (given(place) * std::f32::consts::LOG2_E * E::UNIT).max(NEVER) } else { NEVER };
        }
        self.most_bias = self.key_bias[..count].iter().fold(0.0, |most, logit| most.max(logit.abs()));
        // Only engines with an attention of their own need the multiplicities.
        if E::attention_room(self.widths.heads, self.widths.head, count) > 0 {
            for (place, weight) in self.key_weights[..count.next_multiple_of(PAD)].iter_mut().enumerate() {
                *weight = E::element(if place < count { given(place).max(NEVER).exp() } else { 0.0 });
            }
        }
    }

    /// Attention of all heads.
    fn attend(&mut self, engine: E, count: usize, sparsity: Option<Sparsity>) {
        match sparsity {
            Some(sparsity) if sparsity.rule != Rule::TopKeys => self.attend_kept(engine, count, sparsity),
            _ => self.attend_all(engine, count, sparsity.map(|sparsity| sparsity.keep)),
        }
    }

    /// Views of the queries, keys and values of all heads.
    pub(crate) fn heads(&self, count: usize) -> Heads<'_, E::Element> {
        let Widths { row, triple_stride, heads, head: size, .. } = self.widths;
        let part = |kind: usize| View { data: &self.triples[kind * row..], stride: triple_stride };
        Heads {
            count,
            heads,
            size,
            queries: part(0),
            keys: part(1),
            values: part(2),
            weights: &self.key_weights,
            most_bias: self.most_bias,
        }
    }

    /// Bytes of the keys and values of this many rows of one head.
    pub(crate) fn key_value_bytes(&self, rows: usize) -> u64 {
        (2 * rows * self.widths.head * size_of::<E::Element>()) as u64
    }

    /// Attention to all keys, or to the best `keep` of all.
    fn attend_all(&mut self, engine: E, count: usize, keep: Option<usize>) {
        let Widths { row_stride, heads, .. } = self.widths;
        self.work.pairs += (heads * count * count) as u64;
        self.work.bytes += heads as u64 * self.key_value_bytes(count);
        let mut attended = std::mem::take(&mut self.attended);
        let mut room = std::mem::take(&mut self.room);
        let to = ViewMut { data: &mut attended, stride: row_stride };
        let is_done = keep.is_none() && engine.attend(&self.heads(count), &mut room, to);
        (self.attended, self.room) = (attended, room);
        if is_done {
            self.work.bytes += (heads * count.div_ceil(GROUP)) as u64 * self.key_value_bytes(count);
            return;
        }
        for head in 0..heads {
            self.attend_head(engine, head, count, keep);
        }
    }

    /// Attention of one head: logits, then powers, then mixed values.
    fn attend_head(&mut self, engine: E, head: usize, count: usize, keep: Option<usize>) {
        let Widths { row, row_stride, triple_stride, head: size, head_depth, head_columns, .. } = self.widths;
        let (rows, keys) = (count.next_multiple_of(GROUP), count.next_multiple_of(PAD));
        let part = |kind: usize| View { data: &self.triples[kind * row + head * size..], stride: triple_stride };
        let packed = &mut self.keys[..head_depth * keys];
        engine.pack_keys(count, size, part(1), PackedMut { data: packed, depth: head_depth, columns: keys });
        let packed = &mut self.values[..keys * head_columns];
        engine.pack_values(count, size, part(2), PackedMut { data: packed, depth: keys, columns: head_columns });
        let packed_keys = Packed { data: &self.keys, depth: head_depth, columns: keys };
        let packed_values = Packed { data: &self.values, depth: keys, columns: head_columns };
        for first in (0..rows).step_by(QUERIES) {
            let here = QUERIES.min(rows - first);
            // A query is read beyond its columns; that adds nothing, because the keys are padded with zeros.
            let queries = &self.triples[first * triple_stride + head * size..];
            let mut attention = Attention {
                logits: &mut self.logits,
                powers: &mut self.powers,
                factors: &mut [0.0; QUERIES],
                sums: &mut self.mixed,
                no_bias: &self.no_bias,
            };
            // Few rows of logits at a time if they are long, so that they stay in the nearest cache.
            let step = if keys > LONG { GROUP } else { QUERIES };
            for begin in (0..here).step_by(step) {
                let some = step.min(here - begin);
                let queries = View { data: &queries[begin * triple_stride..], stride: triple_stride };
                let to = ViewMut { data: attention.logits, stride: keys };
                engine.multiply(some, queries, packed_keys, &self.key_bias, to);
                if let Some(keep) = keep {
                    // The idle row, the first, attends to all.
                    let queries = attention.logits.chunks_exact_mut(keys).take(some).enumerate();
                    for (_, logits) in queries.filter(|(place, _)| first + begin + place > 0) {
                        keep_top(&mut logits[..count], keep, &mut self.order);
                    }
                }
                self.work.bytes += (count * size * size_of::<E::Element>()) as u64;
                let mut part = Attention {
                    powers: &mut attention.powers[begin * keys..],
                    factors: &mut attention.factors[begin..],
                    logits: attention.logits,
                    sums: attention.sums,
                    ..attention
                };
                engine.softmax(some, keys, &mut part);
            }
            let to = ViewMut { data: &mut self.attended[first * row_stride + head * size..], stride: row_stride };
            engine.mix(here, size, &mut attention, packed_values, to);
            self.work.bytes += (count * size * size_of::<E::Element>()) as u64;
        }
    }

    /// Computes everything between one attention and the next for some rows.
    fn go_on(&mut self, engine: E, layer: &Layer<E>, next: Option<&Layer<E>>, first: usize, rows: usize) {
        let Widths { row_stride, triple_stride, hidden_stride, .. } = self.widths;
        let begin = first * row_stride;
        let (x, elements) = (&mut self.x[begin..], &mut self.elements[begin..]);
        let (hidden, change, room) = (&mut self.hidden[..], &mut self.change[..], &mut self.room[..]);
        let stride = row_stride;
        let attended = View { data: &self.attended[begin..], stride };
        engine.apply(rows, attended, layer.output.map(), room, ViewMut { data: change, stride });
        let norm = layer.attention_norm.view();
        let (sum, changed) = (ViewMut { data: x, stride }, View { data: change, stride });
        engine.add_norm(rows, norm, sum, changed, ViewMut { data: elements, stride });
        let to = ViewMut { data: hidden, stride: hidden_stride };
        engine.apply_elements(rows, View { data: elements, stride }, layer.up.map(), true, room, to);
        let from = View { data: hidden, stride: hidden_stride };
        engine.apply(rows, from, layer.down.map(), room, ViewMut { data: change, stride });
        let norm = layer.feed_forward_norm.view();
        let (sum, changed) = (ViewMut { data: x, stride }, View { data: change, stride });
        engine.add_norm(rows, norm, sum, changed, ViewMut { data: elements, stride });
        if let Some(triple) = next.and_then(|next| next.triple.as_ref()) {
            let to = ViewMut { data: &mut self.triples[first * triple_stride..], stride: triple_stride };
            engine.apply_elements(rows, View { data: elements, stride }, triple.map(), false, room, to);
        }
    }
}

/// Returns the features that have the same value in all rows of `jobs`, one bit each; none if there are too few rows or
/// features for that to pay.
fn constant_features(jobs: &[u16], features: usize) -> u64 {
    if !(2..=64).contains(&features) || jobs.len() < 4 * features {
        return 0;
    }
    let (first, others) = jobs.split_at(features);
    let mut differing = [0u16; 64];
    for row in others.chunks_exact(features) {
        differing.iter_mut().zip(first.iter().zip(row)).for_each(|(bits, (a, b))| *bits |= a ^ b);
    }
    (0..features).filter(|feature| differing[*feature] == 0).fold(0, |mask, feature| mask | 1 << feature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_that_never_change_are_found() {
        let rows = [[3, 7, 1, 9], [3, 8, 1, 9], [3, 7, 1, 9], [3, 7, 1, 8]].concat();
        assert_eq!(constant_features(&rows, 4), 0b0101);
        assert_eq!(constant_features(&rows[..12], 4), 0, "three rows");
        assert_eq!(constant_features(&[5; 9], 1), 0, "one feature");
    }
}
