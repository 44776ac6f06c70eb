//! Linear maps in 8-bit integers by AVX-512 VNNI, which adds four products at a time. [`Avx512`] does everything else.
//!
//! Weights are quantized with one scale per output. Each row of inputs is quantized with its own scale and zero point,
//! value = scale · (whole − zero), so that rows without negative numbers can use all eight bits. Sums of integers are
//! exact.
#![allow(unsafe_code, reason = "vector instructions on checked pointers")]

use std::arch::x86_64::*;

use super::avx512::Avx512;
use super::{Attention, Engine, GROUP, Map, Norm, PAD, Packed, PackedMut, View, ViewMut};
use crate::aligned::Aligned;

/// Engine that exists only if the processor has AVX-512 VNNI and what [`Avx512`] needs.
#[derive(Clone, Copy)]
pub(crate) struct Avx512Int8 {
    plain: Avx512,
}

impl Avx512Int8 {
    pub(crate) fn new() -> Option<Avx512Int8> {
        let plain = Avx512::new()?;
        is_x86_feature_detected!("avx512vnni").then_some(Avx512Int8 { plain })
    }
}

/// Quantized weights in panels of 32 outputs. Within a panel, four consecutive inputs of an output are adjacent.
pub(crate) struct Matrix {
    data: Aligned<i8>,
    /// Scale of each output, and the sum of its quantized weights.
    scales: Aligned<f32>,
    sums: Aligned<i32>,
    depth: usize,
    columns: usize,
}

/// Number of rows that are multiplied at a time.
const ROWS: usize = 8;
/// Number of inputs that rows are padded to multiples of.
const DEPTH: usize = 16;

impl Engine for Avx512Int8 {
    type Element = f32;
    type Matrix = Matrix;
    const DEPTH: usize = Avx512::DEPTH;
    const COLUMNS: usize = Avx512::COLUMNS;
    const UNIT: f32 = Avx512::UNIT;

    fn element(value: f32) -> f32 {
        value
    }

    fn place(depth: usize, row: usize, column: usize) -> usize {
        Avx512::place(depth, row, column)
    }

    fn matrix(inputs: usize, outputs: usize, entry: impl Fn(usize, usize) -> f32) -> Matrix {
        let (depth, columns) = (inputs.next_multiple_of(DEPTH), outputs.next_multiple_of(PAD));
        let mut matrix = Matrix {
            data: Aligned::new(depth * columns),
            scales: Aligned::new(columns),
            sums: Aligned::new(columns),
            depth,
            columns,
        };
        for column in 0..outputs {
            let greatest = (0..inputs).map(|row| entry(row, column).abs()).fold(0.0, f32::max);
            let scale = greatest / f32::from(i8::MAX);
            matrix.scales[column] = scale;
            for row in 0..inputs {
                let whole = if scale > 0.0 { (entry(row, column) / scale).round() as i8 } else { 0 };
                matrix.sums[column] += i32::from(whole);
                let place = (column / PAD * depth / 4 + row / 4) * 4 * PAD + column % PAD * 4 + row % 4;
                matrix.data[place] = whole;
            }
        }
        matrix
    }

    fn linear_room(inputs: usize) -> usize {
        // Quantized rows are bytes, four in the memory of one number.
        GROUP * inputs.next_multiple_of(DEPTH) / 4
    }

    fn apply(self, rows: usize, a: View<f32>, map: Map<'_, Matrix>, room: &mut [f32], c: ViewMut<f32>) {
        self.apply_elements(rows, a, map, false, room, c);
    }

    fn apply_elements(
        self,
        rows: usize,
        a: View<f32>,
        map: Map<'_, Matrix>,
        relu: bool,
        room: &mut [f32],
        mut c: ViewMut<f32>,
    ) {
        let Map { matrix, bias } = map;
        let Matrix { depth, columns, .. } = *matrix;
        assert!(rows.is_multiple_of(GROUP) && bias.len() >= columns && room.len() * 4 >= GROUP * depth, "whole rows");
        let (from, a_stride) = (a.pointer(rows, depth), a.stride);
        let (to, c_stride) = (c.pointer(rows, columns), c.stride);
        for first in (0..rows).step_by(GROUP) {
            let mut quantized = Quantized {
                bytes: room.as_mut_ptr().cast(),
                scales: [0.0; GROUP],
                zeros: [0; GROUP],
                relu,
                bias: bias.as_ptr(),
                to: to.wrapping_add(first * c_stride),
                stride: c_stride,
            };
            // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
            unsafe {
                quantized.take(from.add(first * a_stride), a_stride, depth);
                quantized.multiply(matrix);
            }
        }
    }

    fn multiply(self, rows: usize, a: View<f32>, b: Packed<f32>, bias: &[f32], c: ViewMut<f32>) {
        self.plain.multiply(rows, a, b, bias, c);
    }

    fn add(self, sum: &mut [f32], other: &[f32]) {
        self.plain.add(sum, other);
    }

    fn sum_rows(self, rows: usize, from: View<f32>, sum: &mut [f32]) {
        self.plain.sum_rows(rows, from, sum);
    }

    fn add_terms(self, sum: &mut [f32], factors: &[f32], table: &[f32]) {
        self.plain.add_terms(sum, factors, table);
    }

    fn convert(self, from: &[f32], to: &mut [f32]) {
        self.plain.convert(from, to);
    }

    fn pack_keys(self, rows: usize, columns: usize, from: View<f32>, to: PackedMut<f32>) {
        self.plain.pack_keys(rows, columns, from, to);
    }

    fn pack_values(self, rows: usize, columns: usize, from: View<f32>, to: PackedMut<f32>) {
        self.plain.pack_values(rows, columns, from, to);
    }

    fn softmax(self, rows: usize, columns: usize, attention: &mut Attention<'_, f32>) {
        self.plain.softmax(rows, columns, attention);
    }

    fn mix(self, rows: usize, columns: usize, attention: &mut Attention<'_, f32>, b: Packed<f32>, c: ViewMut<f32>) {
        self.plain.mix(rows, columns, attention, b, c);
    }

    fn add_norm(self, rows: usize, norm: Norm<'_>, x: ViewMut<f32>, change: View<f32>, to: ViewMut<f32>) {
        self.plain.add_norm(rows, norm, x, change, to);
    }
}

/// Sixteen quantized rows of inputs, and the destination of their products.
struct Quantized {
    bytes: *mut u8,
    scales: [f32; GROUP],
    zeros: [i32; GROUP],
    relu: bool,
    bias: *const f32,
    to: *mut f32,
    stride: usize,
}

impl Quantized {
    /// Quantizes sixteen rows of `depth` numbers, a multiple of [`DEPTH`].
    ///
    /// # Safety
    /// The processor must have the instructions. The rows must have `depth` numbers, and `bytes` must have room for as
    /// many bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn take(&mut self, from: *const f32, stride: usize, depth: usize) {
        let bytes = self.bytes;
        for (row, (scale, zero)) in self.scales.iter_mut().zip(&mut self.zeros).enumerate() {
            let load = |place: usize| {
                // SAFETY: the row has `depth` numbers.
                unsafe { _mm512_loadu_ps(from.add(row * stride + place)) }
            };
            let (mut least, mut most, mut no_number) = (_mm512_setzero_ps(), _mm512_setzero_ps(), 0);
            for place in (0..depth).step_by(DEPTH) {
                let own = load(place);
                (least, most) = (_mm512_min_ps(own, least), _mm512_max_ps(own, most));
                no_number |= _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(own, own);
            }
            let (least, most) = (_mm512_reduce_min_ps(least), _mm512_reduce_max_ps(most));
            // A row with a NaN gets a NaN as its scale, so that all its results are NaN.
            *scale = if no_number == 0 { (most - least) / f32::from(u8::MAX) } else { f32::NAN };
            let steps = if *scale > 0.0 { 1.0 / *scale } else { 0.0 };
            *zero = (-least * steps).round_ties_even() as i32;
            let (steps, zero) = (_mm512_set1_ps(steps), _mm512_set1_epi32(*zero));
            for place in (0..depth).step_by(DEPTH) {
                let whole = _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(load(place), steps)), zero);
                let whole = _mm512_max_epi32(whole, _mm512_setzero_si512());
                // SAFETY: the memory holds sixteen rows of bytes.
                unsafe { _mm_storeu_si128(bytes.add(row * depth + place).cast(), _mm512_cvtusepi32_epi8(whole)) };
            }
        }
    }

    /// Multiplies the quantized rows by a matrix and stores the results.
    ///
    /// # Safety
    /// The processor must have the instructions. The bytes must have been taken with the depth of the matrix, and
    /// `bias` and `to` must have its columns.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn multiply(&self, matrix: &Matrix) {
        let Matrix { depth, columns, .. } = *matrix;
        for column in (0..columns).step_by(PAD) {
            for first in (0..GROUP).step_by(ROWS) {
                // SAFETY: rows are below sixteen and columns within the matrix, whose panels of 32 have depth × 32
                // bytes.
                unsafe {
                    let panel = matrix.data.as_ptr().add(column * depth);
                    let mut sums = [[_mm512_setzero_si512(); 2]; ROWS];
                    for four in 0..depth / 4 {
                        let load = |half: usize| _mm512_loadu_si512(panel.add(four * 4 * PAD + half * 64).cast());
                        let (left, right) = (load(0), load(1));
                        for (place, sums) in sums.iter_mut().enumerate() {
                            let bytes = self.bytes.add((first + place) * depth + 4 * four).cast::<i32>();
                            let bytes = _mm512_set1_epi32(bytes.read_unaligned());
                            *sums =
                                [_mm512_dpbusd_epi32(sums[0], bytes, left), _mm512_dpbusd_epi32(sums[1], bytes, right)];
                        }
                    }
                    for (place, sums) in sums.into_iter().enumerate() {
                        for (half, sum) in sums.into_iter().enumerate() {
                            self.put(matrix, first + place, column + GROUP * half, sum);
                        }
                    }
                }
            }
        }
    }

    /// Converts sixteen sums to numbers and stores them.
    ///
    /// # Safety
    /// The processor must have the instructions. `row` must be below sixteen, and the matrix, `bias` and `to` must have
    /// sixteen columns from `column` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn put(&self, matrix: &Matrix, row: usize, column: usize, sum: __m512i) {
        // SAFETY: the row has sixteen columns from here on.
        unsafe {
            let zero = _mm512_set1_epi32(self.zeros[row]);
            let zeros = _mm512_mullo_epi32(_mm512_loadu_si512(matrix.sums.as_ptr().add(column).cast()), zero);
            let whole = _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, zeros));
            let scale =
                _mm512_mul_ps(_mm512_loadu_ps(matrix.scales.as_ptr().add(column)), _mm512_set1_ps(self.scales[row]));
            let value = _mm512_fmadd_ps(whole, scale, _mm512_loadu_ps(self.bias.add(column)));
            let value = if self.relu { _mm512_max_ps(_mm512_setzero_ps(), value) } else { value };
            _mm512_storeu_ps(self.to.add(row * self.stride + column), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_eight_bits_are_multiplied_exactly() {
        let Some(engine) = Avx512Int8::new() else { return };
        for (inputs, outputs) in [(2usize, 1usize), (50, 40), (128, 33)] {
            // Weights from -127 to 127 and inputs from -100 to 155, including both ends, so that both scales are 1.
            let weight = |input: usize, output: usize| match input {
                0 => 127.0,
                _ => (input * 37 + output * 11) as f32 % 255.0 - 127.0,
            };
            let value = |row: usize, input: usize| match input {
                0 => -100.0,
                1 => 155.0,
                _ => (row * 53 + input * 29) as f32 % 256.0 - 100.0,
            };
            let stride = inputs.next_multiple_of(PAD);
            let columns = outputs.next_multiple_of(PAD);
            let entry = |row, input| if input < inputs { value(row, input) } else { 0.0 };
            let a: Vec<f32> = (0..2 * GROUP * stride).map(|place| entry(place / stride, place % stride)).collect();
            let matrix = Avx512Int8::matrix(inputs, outputs, weight);
            let bias: Vec<f32> = (0..columns).map(|column| column as f32).collect();
            for relu in [false, true] {
                let (mut c, mut room) = (vec![0.0; 2 * GROUP * columns], vec![0.0; Avx512Int8::linear_room(inputs)]);
                let map = Map { matrix: &matrix, bias: &bias };
                let to = ViewMut { data: &mut c, stride: columns };
                engine.apply_elements(2 * GROUP, View { data: &a, stride }, map, relu, &mut room, to);
                for (place, c) in c.iter().enumerate().filter(|(place, _)| place % columns < outputs) {
                    let (row, column) = (place / columns, place % columns);
                    let sum: f32 = (0..inputs).map(|input| value(row, input) * weight(input, column)).sum();
                    let expected = sum + bias[column];
                    assert_eq!(*c, if relu { expected.max(0.0) } else { expected }, "{inputs} {row} {column}");
                }
                let mut broken = a.clone();
                broken[stride + 1] = f32::NAN;
                let map = Map { matrix: &matrix, bias: &bias };
                let to = ViewMut { data: &mut c, stride: columns };
                engine.apply_elements(2 * GROUP, View { data: &broken, stride }, map, relu, &mut room, to);
                let is_broken = |(row, c): (usize, &[f32])| c[..outputs].iter().all(|c| c.is_nan() == (row == 1));
                assert!(c.chunks_exact(columns).enumerate().all(is_broken), "only the row that is none");
            }
        }
    }
}
