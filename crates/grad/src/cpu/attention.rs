//! Softmax attention within each sample. Small samples are computed by plain loops, large ones by matrix products.

use std::ops::Range;

use pulp::Arch;

use super::loops::{dot, softmax};
use super::{Strided, multiply};
use crate::real::rounded;
use crate::{AttentionShape, Real};

/// Number of queries × keys of a sample from which on matrix products are faster than loops.
const LARGE: usize = 400;

/// Number of attention weights that stay in the nearest caches between the steps of a large sample.
const NEAR: usize = 1 << 17;

/// Some queries of one head of one sample: the first row and the number of queries and of keys, and the head's first
/// column and number of columns.
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
    /// The head's columns of query row `i`.
    fn query<'a>(&self, data: &'a [Real], i: usize) -> &'a [Real] {
        &data[(self.query + i) * self.columns + self.first..][..self.size]
    }

    /// The head's columns of key row `j`.
    fn key<'a>(&self, data: &'a [Real], j: usize) -> &'a [Real] {
        &data[(self.key + j) * self.columns + self.first..][..self.size]
    }

    fn query_mut<'a>(&self, data: &'a mut [Real], i: usize) -> &'a mut [Real] {
        &mut data[(self.query + i) * self.columns + self.first..][..self.size]
    }

    fn key_mut<'a>(&self, data: &'a mut [Real], j: usize) -> &'a mut [Real] {
        &mut data[(self.key + j) * self.columns + self.first..][..self.size]
    }

    fn all_queries<'a>(&self, data: &'a [Real]) -> Strided<'a> {
        Strided { data: &data[self.query * self.columns + self.first..], row: self.columns, column: 1 }
    }

    fn all_keys<'a>(&self, data: &'a [Real]) -> Strided<'a> {
        Strided { data: &data[self.key * self.columns + self.first..], row: self.columns, column: 1 }
    }
}

/// The heads of one sample, each cut into groups of queries whose attention weights stay in the nearest caches.
fn parts(shape: AttentionShape<'_>, queries: Range<usize>, keys: Range<usize>) -> impl Iterator<Item = Part> {
    let AttentionShape { heads, columns, .. } = shape;
    let size = columns / heads;
    let most = (NEAR / keys.len().max(1)).max(1);
    (0..heads).flat_map(move |head| {
        queries.clone().step_by(most).map({
            let (queries, keys) = (queries.clone(), keys.clone());
            move |query| Part {
                query,
                queries: most.min(queries.end - query),
                key: keys.start,
                keys: keys.len(),
                first: head * size,
                size,
                columns,
            }
        })
    })
}

fn transposed(matrix: Strided<'_>) -> Strided<'_> {
    Strided { data: matrix.data, row: matrix.column, column: matrix.row }
}

pub fn forward(
    arch: Arch,
    shape: AttentionShape<'_>,
    [q, k, v]: [&[Real]; 3],
    bias: Option<&[Real]>,
    mut weights: &mut [Real],
    out: &mut [Real],
) {
    let scale = rounded(1.0 / ((shape.columns / shape.heads) as f64).sqrt());
    for (queries, keys) in shape.queries.ranges().zip(shape.keys.ranges()) {
        if queries.is_empty() || keys.is_empty() {
            out[queries.start * shape.columns..queries.end * shape.columns].fill(0.0);
            continue;
        }
        let (mut here, rest) = weights.split_at_mut(queries.len() * keys.len() * shape.heads);
        weights = rest;
        let bias = bias.map(|bias| &bias[keys.clone()]);
        if queries.len() * keys.len() < LARGE {
            vectorized!(arch, small(shape, (queries.clone(), keys.clone()), scale, [q, k, v], bias, here, out));
            continue;
        }
        for part in parts(shape, queries, keys) {
            let (own, others) = here.split_at_mut(part.queries * part.keys);
            here = others;
            let (rows, columns, keys) = (part.all_queries(q), transposed(part.all_keys(k)), part.keys);
            multiply((part.queries, keys, part.size), scale, rows, columns, 0.0, own, keys);
            vectorized!(arch, {
                for rows in own.chunks_mut(keys * (LARGE / keys).max(1)) {
                    softmax(rows, keys, bias);
                }
            });
            let left = Strided { data: own, row: keys, column: 1 };
            let first = part.query * part.columns + part.first;
            let size = (part.queries, part.size, keys);
            multiply(size, 1.0, left, part.all_keys(v), 0.0, &mut out[first..], part.columns);
        }
    }
}

#[inline(always)]
fn small(
    shape: AttentionShape<'_>,
    (queries, keys): (Range<usize>, Range<usize>),
    scale: Real,
    [q, k, v]: [&[Real]; 3],
    bias: Option<&[Real]>,
    weights: &mut [Real],
    out: &mut [Real],
) {
    let size = queries.len() * keys.len();
    for (part, weights) in parts(shape, queries.clone(), keys.clone()).zip(weights.chunks_exact_mut(size)) {
        for (i, row) in weights.chunks_exact_mut(part.keys).enumerate() {
            for (j, logit) in row.iter_mut().enumerate() {
                *logit = dot(part.query(q, i), part.key(k, j)) * scale;
            }
        }
    }
    softmax(weights, keys.len(), bias);
    for (part, weights) in parts(shape, queries, keys).zip(weights.chunks_exact(size)) {
        for (i, row) in weights.chunks_exact(part.keys).enumerate() {
            let out = part.query_mut(out, i);
            out.fill(0.0);
            add_mixed(|j| (row[j], part.key(v, j)), part.keys, out);
        }
    }
}

/// Adds `rows` rows to `out`, each times its factor. Sums are kept in registers.
#[inline(always)]
fn add_mixed<'a>(row: impl Fn(usize) -> (Real, &'a [Real]), rows: usize, out: &mut [Real]) {
    let (wide, narrow) = out.as_chunks_mut::<16>();
    let first = 16 * wide.len();
    wide.iter_mut().enumerate().for_each(|(place, out)| add_block(&row, rows, 16 * place, out));
    let (wide, narrow) = narrow.as_chunks_mut::<8>();
    wide.iter_mut().for_each(|out| add_block(&row, rows, first, out));
    let first = first + 8 * wide.len();
    narrow
        .as_chunks_mut::<1>()
        .0
        .iter_mut()
        .enumerate()
        .for_each(|(place, out)| add_block(&row, rows, first + place, out));
}

#[inline(always)]
fn add_block<'a, const N: usize>(
    row: impl Fn(usize) -> (Real, &'a [Real]),
    rows: usize,
    first: usize,
    out: &mut [Real; N],
) {
    let mut sums = *out;
    for k in 0..rows {
        let (factor, values) = row(k);
        for (sum, value) in sums.iter_mut().zip(&values[first..][..N]) {
            *sum += factor * *value;
        }
    }
    *out = sums;
}

pub fn backward(
    arch: Arch,
    shape: AttentionShape<'_>,
    [q, k, v]: [&[Real]; 3],
    mut weights: &[Real],
    dy: &[Real],
    [dq, dk, dv]: [&mut [Real]; 3],
    scratch: &mut Vec<Real>,
) {
    let scale = rounded(1.0 / ((shape.columns / shape.heads) as f64).sqrt());
    for (queries, keys) in shape.queries.ranges().zip(shape.keys.ranges()) {
        if keys.is_empty() {
            continue;
        }
        let is_small = queries.len() * keys.len() < LARGE;
        for part in parts(shape, queries, keys) {
            let (here, rest) = weights.split_at(part.queries * part.keys);
            weights = rest;
            scratch.resize(scratch.len().max(here.len()), 0.0);
            let dlogits = &mut scratch[..here.len()];
            if is_small {
                vectorized!(arch, small_backward(&part, scale, [q, k, v], here, dy, [dq, dk, dv], dlogits));
                continue;
            }
            let keys = part.keys;
            let (left, right) = (part.all_queries(dy), transposed(part.all_keys(v)));
            multiply((part.queries, keys, part.size), 1.0, left, right, 0.0, dlogits, keys);
            vectorized!(arch, softmax_backward(here, keys, scale, dlogits));
            let square = |data| Strided { data, row: keys, column: 1 };
            let at = |row: usize| row * part.columns + part.first;
            let by_key = (keys, part.size, part.queries);
            let dv = &mut dv[at(part.key)..];
            multiply(by_key, 1.0, transposed(square(here)), part.all_queries(dy), 1.0, dv, part.columns);
            let dk = &mut dk[at(part.key)..];
            multiply(by_key, 1.0, transposed(square(dlogits)), part.all_queries(q), 1.0, dk, part.columns);
            let by_query = (part.queries, part.size, keys);
            let dq = &mut dq[at(part.query)..];
            multiply(by_query, 1.0, square(dlogits), part.all_keys(k), 1.0, dq, part.columns);
        }
    }
}

#[inline(always)]
fn small_backward(
    part: &Part,
    scale: Real,
    [q, k, v]: [&[Real]; 3],
    weights: &[Real],
    dy: &[Real],
    [dq, dk, dv]: [&mut [Real]; 3],
    dlogits: &mut [Real],
) {
    let keys = part.keys;
    for (i, row) in dlogits.chunks_exact_mut(keys).enumerate() {
        for (j, dweight) in row.iter_mut().enumerate() {
            *dweight = dot(part.query(dy, i), part.key(v, j));
        }
    }
    softmax_backward(weights, keys, scale, dlogits);
    for (i, row) in dlogits.chunks_exact(keys).enumerate() {
        add_mixed(|j| (row[j], part.key(k, j)), keys, part.query_mut(dq, i));
    }
    for j in 0..keys {
        add_mixed(|i| (weights[i * keys + j], part.query(dy, i)), part.queries, part.key_mut(dv, j));
        add_mixed(|i| (dlogits[i * keys + j], part.query(q, i)), part.queries, part.key_mut(dk, j));
    }
}

/// Turns gradients with respect to attention weights into gradients with respect to the unscaled logits, in place.
#[inline(always)]
fn softmax_backward(weights: &[Real], keys: usize, scale: Real, gradients: &mut [Real]) {
    for (weights, gradients) in weights.chunks_exact(keys).zip(gradients.chunks_exact_mut(keys)) {
        let mean = dot(weights, gradients);
        for (weight, gradient) in weights.iter().zip(gradients) {
            *gradient = *weight * (*gradient - mean) * scale;
        }
    }
}
