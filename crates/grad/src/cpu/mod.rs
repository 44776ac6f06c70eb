//! The CPU as a device: one thread. Loops are plain Rust; `pulp` compiles them for the vector instructions that the
//! processor has, and `gemm-f32` multiplies matrices.

/// Runs an expression that is compiled for the vector instructions that the processor has.
macro_rules! vectorized {
    ($arch:expr, $work:expr) => {
        $arch.dispatch($crate::cpu::Vectorized(
            #[inline(always)]
            || $work,
        ))
    };
}

mod attention;
mod loops;
mod losses;
mod norm;

use pulp::Arch;

use crate::device::AdamRates;
use crate::real::{self, double, max, rounded};
use crate::{AttentionPass, AttentionShape, Device, Product, Real};

/// Work that is inlined into the function that `pulp` compiles for the vector instructions. A bare closure would be
/// called through `FnOnce::call_once`, which the compiler may leave as a separate function for the baseline processor.
struct Vectorized<F>(F);

impl<Real, F: FnMut() -> Real> pulp::NullaryFnOnce for Vectorized<F> {
    type Output = Real;

    #[inline(always)]
    fn call(mut self) -> Real {
        (self.0)()
    }
}

/// Number of rows of a batch that each thread should have.
const SHARD_ROWS: usize = 448;

/// One thread of the CPU as a device. Recycled buffers are reused.
#[derive(Debug)]
pub struct Cpu {
    arch: Arch,
    /// Recycled buffers, by the binary logarithm of their capacity.
    free: Vec<Vec<Vec<Real>>>,
    /// Working memory of the backward pass of attention.
    scratch: Vec<Real>,
}

impl Default for Cpu {
    fn default() -> Self {
        Cpu { arch: Arch::new(), free: vec![Vec::new(); 64], scratch: Vec::new() }
    }
}

/// View of a matrix: its values, and the distances between consecutive rows and columns.
#[derive(Clone, Copy)]
struct Strided<'a> {
    data: &'a [Real],
    row: usize,
    column: usize,
}

impl Strided<'_> {
    fn check(&self, rows: usize, columns: usize) {
        let last = if rows == 0 || columns == 0 { 0 } else { (rows - 1) * self.row + (columns - 1) * self.column + 1 };
        assert!(last <= self.data.len(), "a {rows} × {columns} matrix in {} numbers", self.data.len());
    }
}

/// out (m × n, rows `out_row` apart) = beta · out + alpha · left · right.
#[allow(unsafe_code, clippy::too_many_arguments)]
fn multiply(
    (m, n, k): (usize, usize, usize),
    alpha: Real,
    left: Strided<'_>,
    right: Strided<'_>,
    beta: Real,
    out: &mut [Real],
    out_row: usize,
) {
    if m == 0 || n == 0 {
        return;
    }
    left.check(m, k);
    right.check(k, n);
    Strided { data: out, row: out_row, column: 1 }.check(m, n);
    let [left, right] = [left, right].map(|matrix| (matrix.data.as_ptr(), matrix.row as isize, matrix.column as isize));
    // SAFETY: all three matrices lie within their slices, as was just checked.
    unsafe { real::multiply((m, n, k), alpha, left, right, beta, (out.as_mut_ptr(), out_row as isize)) }
}

impl Cpu {
    /// Index of the list of buffers that can hold `len` numbers.
    fn class(len: usize) -> usize {
        len.max(1).next_power_of_two().trailing_zeros() as usize
    }
}

impl Device for Cpu {
    type Buffer = Vec<Real>;
    type Index = Vec<u32>;
    type Number = f64;

    fn another(&self) -> Self {
        Cpu::default()
    }

    fn number(&self, number: &f64) -> f64 {
        *number
    }

    fn shard_rows(&self) -> usize {
        SHARD_ROWS
    }

    fn shares_rows(&self) -> bool {
        true
    }

    fn blank(&mut self, len: usize) -> Vec<Real> {
        let class = Self::class(len);
        let mut buffer = self.free[class].pop().unwrap_or_else(|| Vec::with_capacity(1 << class));
        buffer.resize(len, 0.0);
        buffer
    }

    fn recycle(&mut self, buffer: Vec<Real>) {
        // A buffer that was allocated elsewhere may hold less than its class promises.
        let class = Self::class(buffer.capacity());
        if buffer.capacity() == 1 << class {
            self.free[class].push(buffer);
        }
    }

    fn upload_filled(&mut self, len: usize, fill: &mut dyn FnMut(&mut [Real])) -> Vec<Real> {
        let mut buffer = self.blank(len);
        fill(&mut buffer);
        buffer
    }

    fn download(&self, buffer: &Vec<Real>) -> Vec<Real> {
        buffer.clone()
    }

    fn index(&mut self, rows: &[u32]) -> Vec<u32> {
        rows.to_vec()
    }

    fn clear(&mut self, out: &mut Vec<Real>) {
        out.fill(0.0);
    }

    fn copy(&mut self, from: &Vec<Real>, out: &mut Vec<Real>) {
        out.copy_from_slice(from);
    }

    fn add(&mut self, from: &Vec<Real>, out: &mut Vec<Real>) {
        vectorized!(self.arch, loops::add(from, out));
    }

    fn blend(&mut self, share: Real, from: &Vec<Real>, out: &mut Vec<Real>) {
        vectorized!(self.arch, loops::zip(from, out, |from, out| *out += share * (from - *out)));
    }

    fn scale(&mut self, factor: Real, out: &mut Vec<Real>) {
        vectorized!(self.arch, out.iter_mut().for_each(|value| *value *= factor));
    }

    fn square_sum(&mut self, buffer: &Vec<Real>) -> f64 {
        vectorized!(self.arch, buffer.chunks(4096).map(|part| double(loops::dot(part, part))).sum())
    }

    fn product(&mut self, product: Product, left: &Vec<Real>, right: &Vec<Real>, out: &mut Vec<Real>) {
        let Product { m, n, k, left_transposed, right_transposed, accumulate } = product;
        let strided = |data, transposed: bool, rows: usize, columns: usize| {
            let (row, column) = if transposed { (1, rows) } else { (columns, 1) };
            Strided { data, row, column }
        };
        let left = strided(left, left_transposed, m, k);
        let right = strided(right, right_transposed, k, n);
        multiply((m, n, k), 1.0, left, right, if accumulate { 1.0 } else { 0.0 }, out, n);
    }

    fn add_row(&mut self, row: &Vec<Real>, out: &mut Vec<Real>) {
        vectorized!(self.arch, {
            for out in out.chunks_exact_mut(row.len()) {
                loops::add(row, out);
            }
        });
    }

    fn add_sum_of_rows(&mut self, x: &Vec<Real>, out: &mut Vec<Real>) {
        vectorized!(self.arch, {
            for row in x.chunks_exact(out.len()) {
                loops::add(row, out);
            }
        });
    }

    fn relu(&mut self, x: &Vec<Real>, out: &mut Vec<Real>) {
        vectorized!(self.arch, loops::zip(x, out, |x, out| *out = max(x, 0.0)));
    }

    fn relu_backward(&mut self, x: &Vec<Real>, mut gradient: Vec<Real>) -> Vec<Real> {
        vectorized!(self.arch, loops::zip(x, &mut gradient, |x, dy| *dy = if x > 0.0 { *dy } else { 0.0 }));
        gradient
    }

    fn add_rows(
        &mut self,
        (count, columns): (usize, usize),
        x: &Vec<Real>,
        from: Option<&Vec<u32>>,
        out: &mut Vec<Real>,
        to: Option<&Vec<u32>>,
    ) {
        let row = |list: Option<&Vec<u32>>, k: usize| list.map_or(k, |list| list[k] as usize) * columns;
        vectorized!(self.arch, {
            for k in 0..count {
                loops::add(&x[row(from, k)..][..columns], &mut out[row(to, k)..][..columns]);
            }
        });
    }

    fn take_rows(&mut self, (_, columns): (usize, usize), x: &Vec<Real>, from: &Vec<u32>, out: &mut Vec<Real>) {
        for (out, row) in out.chunks_exact_mut(columns).zip(from) {
            out.copy_from_slice(&x[*row as usize * columns..][..columns]);
        }
    }

    fn layer_norm(
        &mut self,
        x: &Vec<Real>,
        change: Option<&Vec<Real>>,
        weight: &Vec<Real>,
        bias: &Vec<Real>,
        normal: &mut Vec<Real>,
        scales: &mut Vec<Real>,
        out: &mut Vec<Real>,
    ) {
        normal.copy_from_slice(x);
        vectorized!(self.arch, {
            change.into_iter().for_each(|change| loops::add(change, normal));
            norm::forward(normal, weight, bias, scales, out);
        });
    }

    fn layer_norm_backward(
        &mut self,
        normal: &Vec<Real>,
        scales: &Vec<Real>,
        weight: &Vec<Real>,
        dy: &Vec<Real>,
        dx: &mut Vec<Real>,
        dweight: &mut Vec<Real>,
        dbias: &mut Vec<Real>,
    ) {
        vectorized!(self.arch, norm::backward(normal, scales, weight, dy, dx, dweight, dbias));
    }

    fn attention(
        &mut self,
        shape: AttentionShape<'_>,
        q: &Vec<Real>,
        k: &Vec<Real>,
        v: &Vec<Real>,
        bias: Option<&Vec<Real>>,
        weights: &mut Vec<Real>,
        out: &mut Vec<Real>,
    ) {
        let arch = self.arch;
        attention::forward(arch, shape, [q, k, v], bias.map(Vec::as_slice), weights, out);
    }

    fn attention_backward(
        &mut self,
        shape: AttentionShape<'_>,
        pass: AttentionPass<'_, Vec<Real>>,
        dy: &Vec<Real>,
        dq: &mut Vec<Real>,
        dk: &mut Vec<Real>,
        dv: &mut Vec<Real>,
    ) {
        let AttentionPass { q, k, v, kept, .. } = pass;
        attention::backward(self.arch, shape, [q, k, v], kept, dy, [dq, dk, dv], &mut self.scratch);
    }

    fn clipped_adam_all(
        &mut self,
        most: f64,
        rates: &AdamRates,
        gradients: &mut [Vec<Real>],
        first: &mut [Vec<Real>],
        second: &mut [Vec<Real>],
        parameters: &mut [Vec<Real>],
    ) -> f64 {
        let norm = self.square_sum_of_all(gradients).sqrt();
        if norm > most {
            self.scale_all(rounded(most / norm), gradients);
        }
        if norm.is_finite() {
            self.adam_all(rates, gradients, first, second, parameters);
        }
        norm
    }

    fn adam(
        &mut self,
        rates: &AdamRates,
        gradient: &Vec<Real>,
        first: &mut Vec<Real>,
        second: &mut Vec<Real>,
        parameter: &mut Vec<Real>,
    ) {
        vectorized!(self.arch, loops::adam(rates, gradient, first, second, parameter));
    }
}
