//! One forward pass over an engine's products.

use crate::aligned::Aligned;
use crate::kernels::{Engine, GROUP, NEVER, PAD, Packed, PackedMut, View, ViewMut};
use crate::prepared::{Layer, Prepared, Table, Widths};
use crate::{Rows, Sparsity};

/// Queries whose attention is computed together.
const QUERIES: usize = 2 * GROUP;
/// So many keys make long rows of logits.
const LONG: usize = 256;
/// Rows that go through the feed-forward part together, so that what is inside it stays near.
const TOGETHER: usize = 4 * GROUP;

/// The working memory. Padding inside rows is zero and stays so.
pub(crate) struct Scratch<E: Engine> {
    widths: Widths,
    capacity: usize,
    /// The rows, as numbers and as elements.
    x: Aligned<f32>,
    elements: Aligned<E::Element>,
    /// What a sub-layer adds to them.
    change: Aligned<f32>,
    /// Queries, keys and values.
    triples: Aligned<f32>,
    queries: Aligned<E::Element>,
    /// Of one head.
    keys: Aligned<E::Element>,
    values: Aligned<E::Element>,
    /// Of some queries.
    logits: Aligned<f32>,
    powers: Aligned<E::Element>,
    mixed: Aligned<f32>,
    /// All heads'.
    attended: Aligned<E::Element>,
    hidden: Aligned<E::Element>,
    /// In powers of two, and no key at all in the padding.
    key_bias: Aligned<f32>,
    no_bias: Aligned<f32>,
    order: Vec<u32>,
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
            change: Aligned::new(capacity * row_stride),
            triples: Aligned::new(capacity * triple_stride),
            queries: Aligned::new(capacity * head_depth),
            keys: Aligned::new(capacity * head_depth),
            values: Aligned::new(capacity * head_columns),
            logits: Aligned::new(QUERIES * capacity),
            powers: Aligned::new(QUERIES * capacity),
            mixed: Aligned::new(QUERIES * head_columns),
            attended: Aligned::new(capacity * row_stride),
            hidden: Aligned::new(TOGETHER * hidden_stride),
            key_bias: Aligned::new(capacity),
            no_bias: Aligned::new(head_columns),
            order: vec![0; capacity],
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
        self.embed(prepared, rows, count);
        self.set_bias(rows.bias, count);
        prepared.engine.begin();
        for layer in &prepared.layers {
            self.attention(prepared.engine, layer, count, rows.sparsity);
            self.feed_forward(prepared.engine, layer, count);
        }
        prepared.engine.end();
        q.clear();
        let (idle, jobs) = self.x[..count * self.widths.row_stride].split_at(self.widths.row_stride);
        q.push(prepared.idle_head.of(idle));
        q.extend(jobs.chunks_exact(self.widths.row_stride).map(|row| prepared.job_head.of(row)));
    }

    /// Rows and their triples for the first layer, from the tables; zeros up to a whole group.
    fn embed(&mut self, prepared: &Prepared<E>, rows: &Rows<'_>, count: usize) {
        let Widths { row_stride, triple_stride, .. } = self.widths;
        let of_job = |place: usize| rows.jobs.get((place - 1) * prepared.features..place * prepared.features);
        let targets = self.x.chunks_exact_mut(row_stride).zip(self.triples.chunks_exact_mut(triple_stride));
        for (place, (x, triple)) in targets.enumerate().take(count.next_multiple_of(GROUP)) {
            let (tables, values): (&[Table], &[u16]) = match place {
                0 => (&prepared.idle, rows.idle),
                _ if place < count => (&prepared.job, of_job(place).unwrap_or(&[])),
                _ => (&[], &[]),
            };
            if tables.is_empty() {
                x.fill(0.0);
                triple.fill(0.0);
            }
            for (place, table) in tables.iter().enumerate() {
                let (from_x, from_triple) = table.row(values.get(place).copied().unwrap_or(0)).split_at(row_stride);
                if place == 0 {
                    x.copy_from_slice(from_x);
                    triple.copy_from_slice(from_triple);
                } else {
                    prepared.engine.add(x, from_x);
                    prepared.engine.add(triple, from_triple);
                }
            }
            if let Some(real) = prepared.real.as_ref().filter(|_| (1..count).contains(&place)) {
                let numbers = rows.real.chunks_exact(real.inputs).nth(place - 1).unwrap_or(&[]);
                for (factor, row) in real.terms(numbers) {
                    let (from_x, from_triple) = row.split_at(row_stride);
                    prepared.engine.add_scaled(x, from_x, factor);
                    prepared.engine.add_scaled(triple, from_triple, factor);
                }
            }
        }
    }

    fn set_bias(&mut self, bias: &[f32], count: usize) {
        for (place, to) in self.key_bias[..count.next_multiple_of(PAD)].iter_mut().enumerate() {
            let given = bias.get(place).copied().unwrap_or(0.0);
            *to = if place < count { (given * std::f32::consts::LOG2_E).max(NEVER) } else { NEVER };
        }
    }

    fn attention(&mut self, engine: E, layer: &Layer<E>, count: usize, sparsity: Option<Sparsity>) {
        let Widths { row_stride, triple_stride, heads, .. } = self.widths;
        let rows = count.next_multiple_of(GROUP);
        if let Some(triple) = &layer.triple {
            let from = View { data: &self.elements, stride: row_stride };
            let to = ViewMut { data: &mut self.triples, stride: triple_stride };
            engine.multiply(rows, from, triple.packed(), &triple.bias, to);
        }
        for head in 0..heads {
            self.attend(engine, head, count, sparsity);
        }
        let from = View { data: &self.attended, stride: row_stride };
        let to = ViewMut { data: &mut self.change, stride: row_stride };
        engine.multiply(rows, from, layer.output.packed(), &layer.output.bias, to);
        let x = ViewMut { data: &mut self.x, stride: row_stride };
        let change = View { data: &self.change, stride: row_stride };
        let elements = ViewMut { data: &mut self.elements, stride: row_stride };
        engine.add_norm(rows, layer.attention_norm.view(), x, change, elements);
    }

    /// One head's attention.
    fn attend(&mut self, engine: E, head: usize, count: usize, sparsity: Option<Sparsity>) {
        let Widths { row, row_stride, triple_stride, head: size, head_depth, head_columns, .. } = self.widths;
        let (rows, keys) = (count.next_multiple_of(GROUP), count.next_multiple_of(PAD));
        let part = |kind: usize| View { data: &self.triples[kind * row + head * size..], stride: triple_stride };
        let packed = &mut self.keys[..head_depth * keys];
        engine.pack_keys(count, size, part(1), PackedMut { data: packed, depth: head_depth, columns: keys });
        let packed = &mut self.values[..keys * head_columns];
        engine.pack_values(count, size, part(2), PackedMut { data: packed, depth: keys, columns: head_columns });
        engine.convert(rows, size, part(0), None, ViewMut { data: &mut self.queries, stride: head_depth });
        let packed_keys = Packed { data: &self.keys, depth: head_depth, columns: keys };
        let packed_values = Packed { data: &self.values, depth: keys, columns: head_columns };
        for first in (0..rows).step_by(QUERIES) {
            let here = QUERIES.min(rows - first);
            let mut factors = [0.0; QUERIES];
            // Few logits at a time if they are long, so that they stay near.
            let step = if keys > LONG { GROUP } else { QUERIES };
            for (place, factors) in factors[..here].chunks_mut(step).enumerate() {
                let (first, count_here) = (first + place * step, factors.len());
                let from = View { data: &self.queries[first * head_depth..], stride: head_depth };
                let to = ViewMut { data: &mut self.logits, stride: keys };
                engine.multiply(count_here, from, packed_keys, &self.key_bias, to);
                if let Some(sparsity) = sparsity {
                    for (place, logits) in self.logits.chunks_exact_mut(keys).take(count_here).enumerate() {
                        mask(&mut logits[..count], first + place, sparsity, &mut self.order);
                    }
                }
                let logits = View { data: &self.logits, stride: keys };
                let powers = ViewMut { data: &mut self.powers[place * step * keys..], stride: keys };
                engine.softmax(count_here, keys, logits, powers, factors);
            }
            let from = View { data: &self.powers, stride: keys };
            let to = ViewMut { data: &mut self.mixed, stride: head_columns };
            engine.multiply(here, from, packed_values, &self.no_bias, to);
            let from = View { data: &self.mixed, stride: head_columns };
            let to = ViewMut { data: &mut self.attended[first * row_stride + head * size..], stride: row_stride };
            engine.convert(here, size, from, Some(&factors), to);
        }
    }

    fn feed_forward(&mut self, engine: E, layer: &Layer<E>, count: usize) {
        let Widths { row_stride, hidden_stride, .. } = self.widths;
        let rows = count.next_multiple_of(GROUP);
        for first in (0..rows).step_by(TOGETHER) {
            let (here, begin) = (TOGETHER.min(rows - first), first * row_stride);
            let from = View { data: &self.elements[begin..], stride: row_stride };
            let to = ViewMut { data: &mut self.hidden, stride: hidden_stride };
            engine.multiply_relu(here, from, layer.up.packed(), &layer.up.bias, to);
            let from = View { data: &self.hidden, stride: hidden_stride };
            let to = ViewMut { data: &mut self.change, stride: row_stride };
            engine.multiply(here, from, layer.down.packed(), &layer.down.bias, to);
            let x = ViewMut { data: &mut self.x[begin..], stride: row_stride };
            let change = View { data: &self.change, stride: row_stride };
            let elements = ViewMut { data: &mut self.elements[begin..], stride: row_stride };
            engine.add_norm(here, layer.feed_forward_norm.view(), x, change, elements);
        }
    }
}

/// Takes away the keys that a query does not attend to, as the reference does, but without allocating.
fn mask(logits: &mut [f32], query: usize, sparsity: Sparsity, order: &mut [u32]) {
    if query == 0 || query >= logits.len() {
        return;
    }
    let (chunk, block, keep) = (sparsity.chunk.max(1), sparsity.block.max(1), sparsity.keep);
    let own = (query - 1) / chunk * chunk..((query - 1) / chunk).saturating_add(1).saturating_mul(chunk);
    let jobs = &mut logits[1..];
    for start in (0..jobs.len()).step_by(block) {
        let end = (start + block).min(jobs.len());
        // Keys of the own chunk are always kept and do not count: what is left is before it and after it.
        let (before, after) = (start..end.min(own.start), start.max(own.end)..end);
        if before.len() + after.len() <= keep {
            continue;
        }
        // The best so far, the best first; an equal one that comes later stands behind.
        let mut kept = 0;
        for job in before.chain(after) {
            let value = jobs[job];
            let mut place = kept;
            while place > 0 && value > jobs[order[place - 1] as usize] {
                place -= 1;
            }
            // Whoever falls out of the best is taken away, and so is who does not get in.
            let out = match place < keep {
                false => job,
                true if kept < keep => {
                    order.copy_within(place..kept, place + 1);
                    order[place] = job as u32;
                    kept += 1;
                    continue;
                }
                true => {
                    let last = order[keep - 1] as usize;
                    order.copy_within(place..keep - 1, place + 1);
                    order[place] = job as u32;
                    last
                }
            };
            jobs[out] = NEVER;
        }
    }
}
