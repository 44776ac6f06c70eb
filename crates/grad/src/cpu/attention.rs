//! Softmax attention within each sample: small samples by plain loops, large ones by matrix products.

use pulp::Arch;

use super::loops::{add, dot, softmax, softmax_backward};
use super::{Strided, multiply};
use crate::{AttentionShape, Real};

/// From so many queries times keys on matrix products pay.
const LARGE: usize = 400;

/// One head of one sample: where its queries and its keys begin, how many there are, and which columns are the head's.
struct Part {
    query: usize,
    queries: usize,
    key: usize,
    keys: usize,
    first: usize,
    size: usize,
    columns: usize,
}

impl Part {
    fn is_large(&self) -> bool {
        self.queries * self.keys >= LARGE
    }

    /// The head's columns of query row i.
    fn query<'a, R>(&self, data: &'a [R], i: usize) -> &'a [R] {
        &data[(self.query + i) * self.columns + self.first..][..self.size]
    }

    /// The head's columns of key row j.
    fn key<'a, R>(&self, data: &'a [R], j: usize) -> &'a [R] {
        &data[(self.key + j) * self.columns + self.first..][..self.size]
    }

    fn query_mut<'a, R>(&self, data: &'a mut [R], i: usize) -> &'a mut [R] {
        &mut data[(self.query + i) * self.columns + self.first..][..self.size]
    }

    fn key_mut<'a, R>(&self, data: &'a mut [R], j: usize) -> &'a mut [R] {
        &mut data[(self.key + j) * self.columns + self.first..][..self.size]
    }

    fn all_queries<'a, R>(&self, data: &'a [R]) -> Strided<'a, R> {
        Strided { data: &data[self.query * self.columns + self.first..], row: self.columns, column: 1 }
    }

    fn all_keys<'a, R>(&self, data: &'a [R]) -> Strided<'a, R> {
        Strided { data: &data[self.key * self.columns + self.first..], row: self.columns, column: 1 }
    }
}

fn parts(shape: AttentionShape<'_>) -> impl Iterator<Item = Part> {
    let AttentionShape { queries, keys, heads, columns } = shape;
    let size = columns / heads;
    queries.ranges().zip(keys.ranges()).flat_map(move |(q, k)| {
        (0..heads).map(move |head| Part {
            query: q.start,
            queries: q.len(),
            key: k.start,
            keys: k.len(),
            first: head * size,
            size,
            columns,
        })
    })
}

fn transposed<R>(matrix: Strided<'_, R>) -> Strided<'_, R> {
    Strided { data: matrix.data, row: matrix.column, column: matrix.row }
}

pub fn forward<R: Real>(
    arch: Arch,
    shape: AttentionShape<'_>,
    [q, k, v]: [&[R]; 3],
    bias: Option<&[R]>,
    mut weights: &mut [R],
    out: &mut [R],
) {
    let scale = R::of(1.0 / ((shape.columns / shape.heads) as f64).sqrt());
    for part in parts(shape) {
        if part.queries == 0 || part.keys == 0 {
            (0..part.queries).for_each(|i| part.query_mut(out, i).fill(R::ZERO));
            continue;
        }
        let (here, rest) = weights.split_at_mut(part.queries * part.keys);
        weights = rest;
        let bias = bias.map(|bias| &bias[part.key..][..part.keys]);
        if part.is_large() {
            let (rows, columns, keys) = (part.all_queries(q), transposed(part.all_keys(k)), part.keys);
            multiply((part.queries, keys, part.size), scale, rows, columns, R::ZERO, here, keys);
            arch.dispatch(|| here.chunks_exact_mut(keys).for_each(|row| biased_softmax(row, bias)));
            let left = Strided { data: here, row: keys, column: 1 };
            let first = part.query * part.columns + part.first;
            let size = (part.queries, part.size, keys);
            multiply(size, R::ONE, left, part.all_keys(v), R::ZERO, &mut out[first..], part.columns);
        } else {
            arch.dispatch(|| small(&part, scale, [q, k, v], bias, here, out));
        }
    }
}

#[inline(always)]
fn biased_softmax<R: Real>(row: &mut [R], bias: Option<&[R]>) {
    if let Some(bias) = bias {
        add(bias, row);
    }
    softmax(row);
}

#[inline(always)]
fn small<R: Real>(part: &Part, scale: R, [q, k, v]: [&[R]; 3], bias: Option<&[R]>, weights: &mut [R], out: &mut [R]) {
    for (i, row) in weights.chunks_exact_mut(part.keys).enumerate() {
        let query = part.query(q, i);
        for (j, logit) in row.iter_mut().enumerate() {
            *logit = dot(query, part.key(k, j)) * scale;
        }
        biased_softmax(row, bias);
        let out = part.query_mut(out, i);
        out.fill(R::ZERO);
        for (j, weight) in row.iter().enumerate() {
            add_scaled(*weight, part.key(v, j), out);
        }
    }
}

#[inline(always)]
fn add_scaled<R: Real>(factor: R, from: &[R], out: &mut [R]) {
    for (from, out) in from.iter().zip(out) {
        *out += factor * *from;
    }
}

pub fn backward<R: Real>(
    arch: Arch,
    shape: AttentionShape<'_>,
    [q, k, v]: [&[R]; 3],
    mut weights: &[R],
    dy: &[R],
    [dq, dk, dv]: [&mut [R]; 3],
    scratch: &mut Vec<R>,
) {
    let scale = R::of(1.0 / ((shape.columns / shape.heads) as f64).sqrt());
    for part in parts(shape) {
        if part.queries == 0 || part.keys == 0 {
            continue;
        }
        let (here, rest) = weights.split_at(part.queries * part.keys);
        weights = rest;
        scratch.resize(scratch.len().max(2 * here.len()), R::ZERO);
        let (dweights, dlogits) = scratch.split_at_mut(here.len());
        let dlogits = &mut dlogits[..here.len()];
        dlogits.fill(R::ZERO);
        let keys = part.keys;
        let backward_rows = |dweights: &[R], dlogits: &mut [R]| {
            let rows = here.chunks_exact(keys).zip(dweights.chunks_exact(keys)).zip(dlogits.chunks_exact_mut(keys));
            rows.for_each(|((y, dy), dx)| softmax_backward(y, dy, dx));
        };
        if part.is_large() {
            let (left, right) = (part.all_queries(dy), transposed(part.all_keys(v)));
            multiply((part.queries, keys, part.size), R::ONE, left, right, R::ZERO, dweights, keys);
            arch.dispatch(|| backward_rows(dweights, dlogits));
            let square = |data| Strided { data, row: keys, column: 1 };
            let at = |row: usize| row * part.columns + part.first;
            let by_key = (keys, part.size, part.queries);
            let dv = &mut dv[at(part.key)..];
            multiply(by_key, R::ONE, transposed(square(here)), part.all_queries(dy), R::ONE, dv, part.columns);
            let dk = &mut dk[at(part.key)..];
            multiply(by_key, scale, transposed(square(dlogits)), part.all_queries(q), R::ONE, dk, part.columns);
            let by_query = (part.queries, part.size, keys);
            let dq = &mut dq[at(part.query)..];
            multiply(by_query, scale, square(dlogits), part.all_keys(k), R::ONE, dq, part.columns);
        } else {
            arch.dispatch(|| {
                for (i, (weights, dweights)) in here.chunks_exact(keys).zip(dweights.chunks_exact_mut(keys)).enumerate()
                {
                    let dy = part.query(dy, i);
                    for (j, (weight, dweight)) in weights.iter().zip(dweights).enumerate() {
                        *dweight = dot(dy, part.key(v, j));
                        add_scaled(*weight, dy, part.key_mut(dv, j));
                    }
                }
                backward_rows(dweights, dlogits);
                for (i, row) in dlogits.chunks_exact(keys).enumerate() {
                    for (j, dlogit) in row.iter().enumerate() {
                        add_scaled(*dlogit * scale, part.key(k, j), part.query_mut(dq, i));
                        add_scaled(*dlogit * scale, part.query(q, i), part.key_mut(dk, j));
                    }
                }
            });
        }
    }
}
