//! Loops in single precision, written once over vectors of any length. Each engine compiles them for its own vectors.
#![allow(unsafe_code, reason = "vector loads and stores; engines check the bounds before they come here")]

use super::{Norm, PAD};
use crate::reference::EPSILON;

/// A vector of `N` numbers.
///
/// # Safety
/// The functions may be called only if the processor has the instructions of the vector. Beyond that, `load` needs `N`
/// numbers to read, and `store` room for `N` numbers; neither needs them aligned.
pub(crate) trait Lanes: Copy {
    const N: usize;
    /// # Safety
    /// As for the trait; `from` must have `N` numbers.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// As for the trait; `to` must have room for `N` numbers.
    unsafe fn store(to: *mut f32, v: Self);
    /// # Safety
    /// As for the trait.
    unsafe fn splat(value: f32) -> Self;
    /// # Safety
    /// As for the trait.
    unsafe fn add(a: Self, b: Self) -> Self;
    /// # Safety
    /// As for the trait.
    unsafe fn sub(a: Self, b: Self) -> Self;
    /// # Safety
    /// As for the trait.
    unsafe fn mul(a: Self, b: Self) -> Self;
    /// a·b + c.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn mul_add(a: Self, b: Self, c: Self) -> Self;
    /// The greater of two numbers; `b` if either is NaN.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn max(a: Self, b: Self) -> Self;
    /// # Safety
    /// As for the trait.
    unsafe fn round(v: Self) -> Self;
    /// Two to the power of a whole number that is at least −127. The result for −127 is zero.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn power(whole: Self) -> Self;
    /// # Safety
    /// As for the trait.
    unsafe fn sum(v: Self) -> f32;
    /// # Safety
    /// As for the trait.
    unsafe fn greatest(v: Self) -> f32;
}

/// Implements [`Lanes`] with one expression per function.
macro_rules! lanes {
    ($vector:ty, $n:expr; $(fn $name:ident($($argument:ident: $type:ty),*) $(-> $out:ty)? { $($body:tt)* })*) => {
        impl $crate::kernels::lanes::Lanes for $vector {
            const N: usize = $n;
            $(
                #[inline(always)]
                unsafe fn $name($($argument: $type),*) $(-> $out)? {
                    // SAFETY: the caller guarantees the instructions and the memory, as the trait requires.
                    #[allow(unused_unsafe)]
                    unsafe { $($body)* }
                }
            )*
        }
    };
}
pub(crate) use lanes;

/// 2^x by a polynomial, with a relative error below 2e-7; zero for x below −127.
///
/// # Safety
/// The processor must have the vector's instructions. This holds for all functions of this module.
#[inline(always)]
unsafe fn exp2<V: Lanes>(x: V) -> V {
    const COEFFICIENTS: [f32; 6] =
        [1.540_353_e-4, 1.333_355_8e-3, 9.618_129e-3, 5.550_411e-2, 2.402_265e-1, std::f32::consts::LN_2];
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let x = V::max(V::splat(-127.0), x);
        let whole = V::round(x);
        let rest = V::sub(x, whole);
        let mut power = V::splat(COEFFICIENTS[0]);
        for coefficient in &COEFFICIENTS[1..] {
            power = V::mul_add(power, rest, V::splat(*coefficient));
        }
        power = V::mul_add(power, rest, V::splat(1.0));
        V::mul(power, V::power(whole))
    }
}

/// Operands of [`multiply`]. Strides count numbers.
pub(crate) struct Product {
    pub rows: usize,
    pub a: *const f32,
    pub a_stride: usize,
    pub b: *const f32,
    pub depth: usize,
    pub columns: usize,
    pub bias: *const f32,
    pub c: *mut f32,
    pub c_stride: usize,
    pub relu: bool,
}

/// c = a·b + bias, or max(·, 0) of it, computed for R rows and two vectors of columns at a time. A panel of b is two
/// vectors wide.
///
/// # Safety
/// All pointers must be valid for the product's rows and columns.
#[inline(always)]
pub(crate) unsafe fn multiply<V: Lanes, const R: usize>(product: &Product) {
    let Product { rows, a, a_stride, b, depth, columns, bias, c, c_stride, relu } = *product;
    // SAFETY: the caller guarantees the rows, a multiple of R, and the columns, a multiple of a panel's.
    unsafe {
        for column in (0..columns).step_by(2 * V::N) {
            let panel = b.add(column * depth);
            for row in (0..rows).step_by(R) {
                let a = a.add(row * a_stride);
                let mut sums = [[V::load(bias.add(column)), V::load(bias.add(column + V::N))]; R];
                for k in 0..depth {
                    let b = panel.add(k * 2 * V::N);
                    let (left, right) = (V::load(b), V::load(b.add(V::N)));
                    for (place, sums) in sums.iter_mut().enumerate() {
                        let a = V::splat(*a.add(place * a_stride + k));
                        *sums = [V::mul_add(a, left, sums[0]), V::mul_add(a, right, sums[1])];
                    }
                }
                for (place, [left, right]) in sums.into_iter().enumerate() {
                    let c = c.add((row + place) * c_stride + column);
                    let zero = V::splat(0.0);
                    let (left, right) = if relu { (V::max(zero, left), V::max(zero, right)) } else { (left, right) };
                    V::store(c, left);
                    V::store(c.add(V::N), right);
                }
            }
        }
    }
}

/// One row of [`super::Engine::softmax`]. Returns one divided by the sum.
///
/// # Safety
/// Both rows must have `columns` columns, a multiple of [`PAD`].
#[inline(always)]
pub(crate) unsafe fn softmax_row<V: Lanes>(columns: usize, logits: *const f32, powers: *mut f32) -> f32 {
    // SAFETY: the caller guarantees the columns.
    unsafe {
        let most = V::splat(greatest::<V>(columns, logits));
        let mut sum = V::splat(0.0);
        for column in (0..columns).step_by(V::N) {
            let power = exp2(V::sub(V::load(logits.add(column)), most));
            V::store(powers.add(column), power);
            sum = V::add(sum, power);
        }
        1.0 / V::sum(sum)
    }
}

/// Greatest number of a row.
///
/// # Safety
/// The row must have `columns` columns, a multiple of [`PAD`].
#[inline(always)]
pub(crate) unsafe fn greatest<V: Lanes>(columns: usize, row: *const f32) -> f32 {
    // SAFETY: the caller guarantees the columns.
    unsafe {
        let mut most = [V::splat(super::NEVER); 2];
        for column in (0..columns).step_by(2 * V::N) {
            most[0] = V::max(V::load(row.add(column)), most[0]);
            most[1] = V::max(V::load(row.add(column + V::N)), most[1]);
        }
        V::greatest(V::max(most[0], most[1]))
    }
}

/// sum += other.
///
/// # Safety
/// Both must have `count` numbers, a multiple of [`PAD`].
#[inline(always)]
pub(crate) unsafe fn add<V: Lanes>(count: usize, sum: *mut f32, other: *const f32) {
    // SAFETY: the caller guarantees the count.
    unsafe {
        for place in (0..count).step_by(V::N) {
            V::store(sum.add(place), V::add(V::load(sum.add(place)), V::load(other.add(place))));
        }
    }
}

/// sum += Σ factor · row over the rows of a table. Sums stay in registers, eight vectors at a time.
///
/// # Safety
/// The sum must have `columns` numbers, a multiple of [`PAD`], and the table as many for each factor.
#[inline(always)]
pub(crate) unsafe fn add_terms<V: Lanes>(columns: usize, sum: *mut f32, factors: &[f32], table: *const f32) {
    // SAFETY: the caller guarantees the columns, and PAD is a multiple of two vectors.
    unsafe {
        let mut column = 0;
        while column + 8 * V::N <= columns {
            add_terms_fixed::<V, 8>(columns, sum.add(column), factors, table.add(column));
            column += 8 * V::N;
        }
        while column < columns {
            add_terms_fixed::<V, 2>(columns, sum.add(column), factors, table.add(column));
            column += 2 * V::N;
        }
    }
}

/// [`add_terms`] of C vectors of a row; rows of the table begin `stride` numbers after each other.
///
/// # Safety
/// The sum and each row of the table must have C vectors.
#[inline(always)]
unsafe fn add_terms_fixed<V: Lanes, const C: usize>(stride: usize, sum: *mut f32, factors: &[f32], table: *const f32) {
    // SAFETY: the caller guarantees C vectors.
    unsafe {
        let mut sums = [V::splat(0.0); C];
        for (place, total) in sums.iter_mut().enumerate() {
            *total = V::load(sum.add(place * V::N));
        }
        for (row, factor) in factors.iter().enumerate() {
            let (row, factor) = (table.add(row * stride), V::splat(*factor));
            for (place, total) in sums.iter_mut().enumerate() {
                *total = V::mul_add(factor, V::load(row.add(place * V::N)), *total);
            }
        }
        for (place, total) in sums.into_iter().enumerate() {
            V::store(sum.add(place * V::N), total);
        }
    }
}

/// x = norm(x + change) of one row, which is padded with zeros to `stride`.
///
/// # Safety
/// Rows and parameters must have `stride` numbers, a multiple of [`PAD`].
#[inline(always)]
pub(crate) unsafe fn add_norm_row<V: Lanes>(stride: usize, norm: Norm<'_>, x: *mut f32, change: *const f32) {
    // SAFETY: the caller guarantees the stride, and the fixed counts of vectors fill it.
    unsafe {
        match stride / V::N {
            4 => norm_fixed::<V, 4>(norm, x, change),
            8 => norm_fixed::<V, 8>(norm, x, change),
            _ => {
                for part in (0..stride).step_by(PAD) {
                    add::<V>(PAD, x.add(part), change.add(part));
                }
                let mut sum = V::splat(0.0);
                for place in (0..stride).step_by(V::N) {
                    sum = V::add(sum, V::load(x.add(place)));
                }
                let mean = V::sum(sum) / norm.width as f32;
                let mut squares = V::splat(0.0);
                for place in (0..stride).step_by(V::N) {
                    let gap = V::sub(V::load(x.add(place)), V::splat(mean));
                    squares = V::mul_add(gap, gap, squares);
                }
                let scale = scale(norm.width, stride, mean, V::sum(squares));
                for place in (0..stride).step_by(V::N) {
                    let gap = V::sub(V::load(x.add(place)), V::splat(mean));
                    let (weight, bias) =
                        (V::load(norm.weight.as_ptr().add(place)), V::load(norm.bias.as_ptr().add(place)));
                    V::store(x.add(place), V::mul_add(V::mul(gap, V::splat(scale)), weight, bias));
                }
            }
        }
    }
}

/// One divided by the standard deviation. `squares` includes mean² for each number of the padding, which is subtracted.
#[inline(always)]
fn scale(width: usize, stride: usize, mean: f32, squares: f32) -> f32 {
    let variance = (squares - (stride - width) as f32 * mean * mean) / width as f32;
    1.0 / (variance.max(0.0) + EPSILON).sqrt()
}

/// [`add_norm_row`] of a row of C vectors, which stay in registers.
///
/// # Safety
/// Rows and parameters must have C vectors.
#[inline(always)]
unsafe fn norm_fixed<V: Lanes, const C: usize>(norm: Norm<'_>, x: *mut f32, change: *const f32) {
    // SAFETY: the caller guarantees rows of C vectors.
    unsafe {
        let mut row = [V::splat(0.0); C];
        let mut sum = [V::splat(0.0); 2];
        for (place, v) in row.iter_mut().enumerate() {
            *v = V::add(V::load(x.add(place * V::N)), V::load(change.add(place * V::N)));
            sum[place % 2] = V::add(sum[place % 2], *v);
        }
        let mean = V::sum(V::add(sum[0], sum[1])) / norm.width as f32;
        let mut squares = [V::splat(0.0); 2];
        for (place, v) in row.iter_mut().enumerate() {
            *v = V::sub(*v, V::splat(mean));
            squares[place % 2] = V::mul_add(*v, *v, squares[place % 2]);
        }
        let scale = V::splat(scale(norm.width, C * V::N, mean, V::sum(V::add(squares[0], squares[1]))));
        for (place, v) in row.into_iter().enumerate() {
            let weight = V::load(norm.weight.as_ptr().add(place * V::N));
            let bias = V::load(norm.bias.as_ptr().add(place * V::N));
            V::store(x.add(place * V::N), V::mul_add(V::mul(v, scale), weight, bias));
        }
    }
}

/// Implements an engine of single precision from its vector, compiled with the target features `$features`.
macro_rules! f32_engine {
    ($engine:ty, $vector:ty, $rows:expr, [$(#[$features:meta])?]) => {
        impl $crate::kernels::Engine for $engine {
            type Element = f32;
            type Matrix = $crate::kernels::OwnPacked<f32>;
            const DEPTH: usize = 1;
            const COLUMNS: usize = 2 * <$vector as $crate::kernels::lanes::Lanes>::N;
            const UNIT: f32 = 1.0;

            fn element(value: f32) -> f32 {
                value
            }

            fn place(depth: usize, row: usize, column: usize) -> usize {
                (column / Self::COLUMNS * depth + row) * Self::COLUMNS + column % Self::COLUMNS
            }

            fn multiply(self, rows: usize, a: View<f32>, b: Packed<f32>, bias: &[f32], mut c: ViewMut<f32>) {
                let product = product(rows, a, b, bias, &mut c, false);
                // SAFETY: the engine exists, so the processor has the instructions; `product` checks the bounds.
                unsafe { multiply(&product) }
            }

            fn matrix(inputs: usize, outputs: usize, entry: impl Fn(usize, usize) -> f32) -> Self::Matrix {
                $crate::kernels::OwnPacked::new::<Self>(inputs, outputs, entry)
            }

            fn apply(
                self,
                rows: usize,
                a: View<f32>,
                map: $crate::kernels::Map<'_, Self::Matrix>,
                _room: &mut [f32],
                c: ViewMut<f32>,
            ) {
                self.multiply(rows, a, map.matrix.view(), map.bias, c);
            }

            fn apply_elements(
                self,
                rows: usize,
                a: View<f32>,
                map: $crate::kernels::Map<'_, Self::Matrix>,
                relu: bool,
                _room: &mut [f32],
                mut c: ViewMut<f32>,
            ) {
                let product = product(rows, a, map.matrix.view(), map.bias, &mut c, relu);
                // SAFETY: the engine exists, so the processor has the instructions; `product` checks the bounds.
                unsafe { multiply(&product) }
            }

            fn add(self, sum: &mut [f32], other: &[f32]) {
                assert!(sum.len() == other.len() && sum.len() % PAD == 0, "two padded rows");
                // SAFETY: the engine exists, so the processor has the instructions; the assertion checks the bounds.
                unsafe { add(sum.len(), sum.as_mut_ptr(), other.as_ptr()) }
            }

            fn sum_rows(self, rows: usize, from: View<f32>, sum: &mut [f32]) {
                sum.fill(0.0);
                for row in 0..rows {
                    self.add(sum, &from.data[row * from.stride..][..sum.len()]);
                }
            }

            fn add_terms(self, sum: &mut [f32], factors: &[f32], table: &[f32]) {
                assert!(sum.len() % PAD == 0 && table.len() == factors.len() * sum.len(), "a padded row for each factor");
                // SAFETY: the engine exists, so the processor has the instructions; the assertion checks the bounds.
                unsafe { add_terms(sum.len(), sum.as_mut_ptr(), factors, table.as_ptr()) }
            }

            fn convert(self, from: &[f32], to: &mut [f32]) {
                to.copy_from_slice(from);
            }

            fn pack_keys(self, rows: usize, columns: usize, from: View<f32>, to: PackedMut<f32>) {
                let entry = |k: usize, row: usize| if row < rows { from.data[row * from.stride + k] } else { 0.0 };
                debug_assert!(columns <= to.depth);
                $crate::kernels::pack_from::<Self>(to.depth, to.columns, to.data, entry);
            }

            fn pack_values(self, rows: usize, columns: usize, from: View<f32>, to: PackedMut<f32>) {
                for (place, panel) in to.data.chunks_exact_mut(to.depth * Self::COLUMNS).enumerate() {
                    let begin = (place * Self::COLUMNS).min(columns);
                    let end = (begin + Self::COLUMNS).min(columns);
                    for (row, to) in panel.chunks_exact_mut(Self::COLUMNS).enumerate() {
                        let from = if row < rows { &from.data[row * from.stride..][begin..end] } else { &[] };
                        to[..from.len()].copy_from_slice(from);
                        to[from.len()..].fill(0.0);
                    }
                }
            }

            fn softmax(self, rows: usize, columns: usize, attention: &mut Attention<'_, f32>) {
                let Attention { logits, powers, factors, .. } = attention;
                assert!(columns % PAD == 0, "padded rows");
                let rows = logits.chunks_exact(columns).zip(powers.chunks_exact_mut(columns)).zip(&mut factors[..rows]);
                for ((logits, powers), factor) in rows {
                    // SAFETY: the engine exists, so the processor has the instructions; both rows have this many
                    // columns.
                    *factor = unsafe { softmax(columns, logits.as_ptr(), powers.as_mut_ptr()) };
                }
            }

            fn mix(
                self,
                rows: usize,
                columns: usize,
                attention: &mut Attention<'_, f32>,
                b: Packed<f32>,
                c: ViewMut<f32>,
            ) {
                let Attention { powers, factors, sums, no_bias, .. } = attention;
                let a = View { data: powers, stride: b.depth };
                self.multiply(rows, a, b, no_bias, ViewMut { data: sums, stride: b.columns });
                let pairs = sums.chunks_exact(b.columns).zip(c.data.chunks_mut(c.stride)).zip(&factors[..rows]);
                for ((from, to), factor) in pairs {
                    to[..columns].iter_mut().zip(from).for_each(|(to, from)| *to = from * factor);
                }
            }

            fn add_norm(self, rows: usize, norm: Norm<'_>, mut x: ViewMut<f32>, change: View<f32>, to: ViewMut<f32>) {
                let stride = x.stride;
                assert!(stride % PAD == 0 && norm.weight.len() == stride && norm.bias.len() == stride, "a padded norm");
                let (from, change_from) = (x.pointer(rows, stride), change.pointer(rows, stride));
                for row in 0..rows {
                    // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
                    unsafe { add_norm(stride, norm, from.add(row * stride), change_from.add(row * change.stride)) };
                    let (x, to) = (&x.data[row * stride..][..norm.width], &mut to.data[row * to.stride..][..norm.width]);
                    to.copy_from_slice(x);
                }
            }
        }

        fn product<'a>(
            rows: usize,
            a: View<'a, f32>,
            b: Packed<'a, f32>,
            bias: &[f32],
            c: &mut ViewMut<'_, f32>,
            relu: bool,
        ) -> $crate::kernels::lanes::Product {
            let (depth, columns) = (b.depth, b.columns);
            assert!(rows % $rows == 0 && columns % <$engine as $crate::kernels::Engine>::COLUMNS == 0 && bias.len() >= columns, "whole panels");
            let (a_stride, c_stride) = (a.stride, c.stride);
            $crate::kernels::lanes::Product {
                rows,
                a: a.pointer(rows, depth),
                a_stride,
                b: b.pointer(),
                depth,
                columns,
                bias: bias.as_ptr(),
                c: c.pointer(rows, columns),
                c_stride,
                relu,
            }
        }

        /// # Safety
        /// As for `lanes::multiply`, and the processor must have the features.
        $(#[$features])?
        unsafe fn multiply(product: &$crate::kernels::lanes::Product) {
            // SAFETY: the caller's guarantees are passed on.
            unsafe { $crate::kernels::lanes::multiply::<$vector, $rows>(product) }
        }

        /// # Safety
        /// As for `lanes::add`, and the processor must have the features.
        $(#[$features])?
        unsafe fn add(count: usize, sum: *mut f32, other: *const f32) {
            // SAFETY: the caller's guarantees are passed on.
            unsafe { $crate::kernels::lanes::add::<$vector>(count, sum, other) }
        }

        /// # Safety
        /// As for `lanes::add_terms`, and the processor must have the features.
        $(#[$features])?
        unsafe fn add_terms(columns: usize, sum: *mut f32, factors: &[f32], table: *const f32) {
            // SAFETY: the caller's guarantees are passed on.
            unsafe { $crate::kernels::lanes::add_terms::<$vector>(columns, sum, factors, table) }
        }

        /// # Safety
        /// As for `lanes::softmax_row`, and the processor must have the features.
        $(#[$features])?
        unsafe fn softmax(columns: usize, logits: *const f32, powers: *mut f32) -> f32 {
            // SAFETY: the caller's guarantees are passed on.
            unsafe { $crate::kernels::lanes::softmax_row::<$vector>(columns, logits, powers) }
        }

        /// # Safety
        /// As for `lanes::add_norm_row`, and the processor must have the features.
        $(#[$features])?
        unsafe fn add_norm(stride: usize, norm: Norm<'_>, x: *mut f32, change: *const f32) {
            // SAFETY: the caller's guarantees are passed on.
            unsafe { $crate::kernels::lanes::add_norm_row::<$vector>(stride, norm, x, change) }
        }
    };
}
pub(crate) use f32_engine;
