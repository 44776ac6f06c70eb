//! Sparse attention of a forward pass: the choice of blocks, then attention of each block of queries to the keys that
//! it keeps.
//!
//! An engine may have a loop of its own over the [`Plan`]. The loop here serves all others: the units of keys and
//! values of a head are packed once, those of a group of queries are put side by side, and the rest is as in dense
//! attention.

use crate::Sparsity;
use crate::aligned::Aligned;
use crate::kernels::{Attention, Engine, GROUP, NEVER, PAD, Packed, PackedMut, QUERIES, View, ViewMut};
use crate::pass::Scratch;
use crate::prepared::Widths;
use crate::sparse::plan::{Group, Plan};

/// Working memory of sparse attention.
pub(crate) struct SparseScratch<E: Engine> {
    plan: Plan,
    /// Sum of the queries and of the keys of each block, side by side.
    sums: Aligned<f32>,
    /// Working memory of the engine's own loop.
    room: Aligned<E::Element>,
    /// Key and value rows of one unit.
    rows: Aligned<E::Element>,
    /// Packed keys and values of all units of one head.
    keys: Aligned<E::Element>,
    values: Aligned<E::Element>,
    /// The same of one group, with the keys' biases.
    group_keys: Aligned<E::Element>,
    group_values: Aligned<E::Element>,
    group_bias: Aligned<f32>,
}

impl<E: Engine> Default for SparseScratch<E> {
    fn default() -> Self {
        SparseScratch {
            plan: Plan::default(),
            sums: Aligned::default(),
            room: Aligned::default(),
            rows: Aligned::default(),
            keys: Aligned::default(),
            values: Aligned::default(),
            group_keys: Aligned::default(),
            group_values: Aligned::default(),
            group_bias: Aligned::default(),
        }
    }
}

/// Enlarges memory to at least `len`.
fn grow<T: Copy + Default>(memory: &mut Aligned<T>, len: usize) {
    if memory.len() < len {
        *memory = Aligned::new(len);
    }
}

/// Distance of the sums of two blocks: a query and a key, padded.
fn sums_stride(widths: Widths) -> usize {
    (2 * widths.row).next_multiple_of(PAD)
}

impl<E: Engine> SparseScratch<E> {
    /// Allocates what the paper's parameters need for any number of rows up to the capacity. Returns the greatest
    /// number of units that a query attends to.
    fn reserve(&mut self, widths: Widths, capacity: usize) -> usize {
        let most = self.plan.reserve(capacity);
        grow(&mut self.sums, (most.blocks + 1) * sums_stride(widths));
        grow(&mut self.room, E::plan_room(widths.head, most.tiles, most.units));
        self.grow(widths, most.units, most.longest);
        most.longest
    }

    /// Enlarges the memory for packed units: of a head, and of a group.
    fn grow(&mut self, widths: Widths, units: usize, longest: usize) {
        let Widths { head_depth, head_columns, head, .. } = widths;
        grow(&mut self.rows, PAD * head.max(1));
        grow(&mut self.keys, units * PAD * head_depth);
        grow(&mut self.values, units * PAD * head_columns);
        grow(&mut self.group_keys, longest * PAD * head_depth);
        grow(&mut self.group_values, longest * PAD * head_columns);
        grow(&mut self.group_bias, longest * PAD);
    }
}

impl<E: Engine> Scratch<E> {
    /// Attention of all heads to the keys that are kept.
    pub(crate) fn attend_kept(&mut self, engine: E, count: usize, sparsity: Sparsity) {
        let mut sparse = std::mem::take(&mut self.sparse);
        if sparse.sums.is_empty() {
            let longest = sparse.reserve(self.widths, self.capacity());
            self.grow_logits(longest * PAD);
        }
        self.choose(engine, &mut sparse, count, sparsity);
        let Widths { row_stride, heads, head: size, .. } = self.widths;
        let SparseScratch { plan, room, .. } = &mut sparse;
        grow(room, E::plan_room(size, plan.tiles(), plan.units()));
        for group in &plan.groups {
            self.work.pairs += (heads * group.queries.len() * group.keys) as u64;
        }
        let packed: usize = (0..plan.units()).map(|unit| plan.rows(unit).len()).sum();
        self.work.bytes += heads as u64 * self.key_value_bytes(packed);
        let mut attended = std::mem::take(&mut self.attended);
        let to = ViewMut { data: &mut attended, stride: row_stride };
        let has_own = !room.is_empty() && engine.attend_plan(&self.heads(count), plan, room, to);
        self.attended = attended;
        if has_own {
            let keys: usize = plan.steps.iter().map(|step| plan.rows(step.unit as usize).len()).sum();
            self.work.bytes += heads as u64 * self.key_value_bytes(keys);
        } else {
            sparse.grow(self.widths, sparse.plan.units(), sparse.plan.longest());
            for head in 0..heads {
                self.attend_kept_head(engine, &mut sparse, head);
            }
        }
        self.sparse = sparse;
    }

    /// Enlarges the memory for the logits of some queries. Rows of logits may be longer than in dense attention,
    /// because units are padded.
    fn grow_logits(&mut self, keys: usize) {
        grow(&mut self.logits, QUERIES * keys);
        grow(&mut self.powers, QUERIES * keys);
    }

    /// Sums up the queries and keys of each block, chooses the blocks, and plans the layer.
    fn choose(&mut self, engine: E, sparse: &mut SparseScratch<E>, count: usize, sparsity: Sparsity) {
        let Widths { row, triple_stride, .. } = self.widths;
        let (jobs, stride) = (count - 1, sums_stride(self.widths));
        let SparseScratch { plan, sums, .. } = sparse;
        plan.choice().cut(sparsity, jobs);
        let blocks = plan.choice().blocks();
        grow(sums, (blocks.len() + 1) * stride);
        for (block, sum) in blocks.iter().zip(sums.chunks_exact_mut(stride)) {
            let from = View { data: &self.triples[block.rows.start * triple_stride..], stride: triple_stride };
            engine.sum_rows(block.rows.len(), from, sum);
        }
        self.work.bytes += (jobs * row * size_of::<E::Element>()) as u64;
        plan.choice().pick(sparsity.keep, row, stride, sums, &sums[row..]);
        plan.make(jobs);
    }

    /// Attention of one head by products of single groups.
    fn attend_kept_head(&mut self, engine: E, sparse: &mut SparseScratch<E>, head: usize) {
        self.pack_units(engine, sparse, head);
        let Widths { head_depth, head_columns, .. } = self.widths;
        let SparseScratch { plan, keys, values, group_keys, group_values, group_bias, .. } = sparse;
        for group in &plan.groups {
            let units = &plan.lists[group.units.clone()];
            let (depth, panel) = (units.len() * PAD, PAD * E::COLUMNS);
            for (place, unit) in units.iter().map(|unit| *unit as usize).enumerate() {
                let len = PAD * head_depth;
                group_keys[place * len..][..len].copy_from_slice(&keys[unit * len..][..len]);
                // The values of a unit are the same rows of every panel.
                let from = values[unit * PAD * head_columns..][..PAD * head_columns].chunks_exact(panel);
                for (to, from) in group_values.chunks_exact_mut(depth * E::COLUMNS).zip(from) {
                    to[place * panel..][..panel].copy_from_slice(from);
                }
                let bias = &mut group_bias[place * PAD..][..PAD];
                bias.fill(NEVER);
                bias.iter_mut().zip(plan.rows(unit)).for_each(|(bias, row)| *bias = self.key_bias[*row as usize]);
            }
            let keys = Packed { data: group_keys, depth: head_depth, columns: depth };
            let values = Packed { data: group_values, depth, columns: head_columns };
            self.attend_group(engine, head, group, keys, values, group_bias);
        }
    }

    /// Packs the keys and values of all units of one head.
    fn pack_units(&mut self, engine: E, sparse: &mut SparseScratch<E>, head: usize) {
        let Widths { row, triple_stride, head: size, head_depth, head_columns, .. } = self.widths;
        let SparseScratch { plan, rows, keys, values, .. } = sparse;
        for unit in 0..plan.units() {
            let numbers = plan.rows(unit);
            for kind in [1, 2] {
                for (to, number) in rows.chunks_exact_mut(size).zip(numbers) {
                    let from = *number as usize * triple_stride + kind * row + head * size;
                    to.copy_from_slice(&self.triples[from..][..size]);
                }
                let from = View { data: &rows[..], stride: size };
                if kind == 1 {
                    let data = &mut keys[unit * PAD * head_depth..][..PAD * head_depth];
                    engine.pack_keys(numbers.len(), size, from, PackedMut { data, depth: head_depth, columns: PAD });
                } else {
                    let data = &mut values[unit * PAD * head_columns..][..PAD * head_columns];
                    engine.pack_values(
                        numbers.len(),
                        size,
                        from,
                        PackedMut { data, depth: PAD, columns: head_columns },
                    );
                }
            }
        }
    }

    /// Attention of the queries of a group to its keys.
    fn attend_group(
        &mut self,
        engine: E,
        head: usize,
        group: &Group,
        keys: Packed<E::Element>,
        values: Packed<E::Element>,
        bias: &[f32],
    ) {
        let Widths { row_stride, triple_stride, head: size, .. } = self.widths;
        self.grow_logits(keys.columns);
        for first in group.queries.clone().step_by(QUERIES) {
            let rows = QUERIES.min(group.queries.end - first).next_multiple_of(GROUP);
            let mut attention = Attention {
                logits: &mut self.logits,
                powers: &mut self.powers,
                factors: &mut [0.0; QUERIES],
                sums: &mut self.mixed,
                no_bias: &self.no_bias,
            };
            // Queries beyond the group's are computed in vain, and overwritten by the next group.
            let queries = View { data: &self.triples[first * triple_stride + head * size..], stride: triple_stride };
            engine.multiply(rows, queries, keys, bias, ViewMut { data: attention.logits, stride: keys.columns });
            engine.softmax(rows, keys.columns, &mut attention);
            let to = ViewMut { data: &mut self.attended[first * row_stride + head * size..], stride: row_stride };
            engine.mix(rows, size, &mut attention, values, to);
            self.work.bytes += self.key_value_bytes(group.keys);
        }
    }
}
