//! The tensor operations of a [`Device`] on an NVIDIA GPU: each checks its shapes and starts kernels or a product of
//! cuBLAS.

use std::slice;
use std::sync::Arc;

use cudarc::cublas::{result as blas, sys as blas_sys};

use super::index::{Groups, Index};
use super::launch::Argument::{At, Float, From, Int, Maybe};
use super::launch::{AttentionKernels, Grid, launch};
use super::layout::Layouts;
use super::lender::Piece;
use super::memory::Memory;
use super::{Cuda, Number};
use crate::{AdamRates, AttentionPass, AttentionShape, Device, Product, Staged, Stager};

impl Device for Cuda {
    type Buffer = Memory;
    type Index = Index;
    type Number = Number;

    /// The new device's stream has a higher priority: it is meant for acting or evaluating, whose results are waited
    /// for, while this device works off a queue.
    fn another(&self) -> Self {
        if let (Some(own), Some(seat)) = (&self.gang, self.pool.seat()) {
            return self.seated(self.kernels.clone(), own.kernels.clone(), seat.gang());
        }
        let (context, kernels, priority) = (self.context.clone(), self.kernels.clone(), self.priority - 1);
        let failure = self.pool.failure().clone();
        let mut another = Cuda::on(context.clone(), kernels.clone(), priority, failure).unwrap_or_else(|error| {
            // A failed device ignores all work, so it can share this device's stream.
            self.pool.fail(error);
            let (blas, pool, lender) = (self.blas.clone(), self.pool.clone(), self.lender.clone());
            Cuda {
                context,
                blas,
                kernels,
                priority,
                tf32: self.tf32,
                pool,
                lender,
                layouts: Layouts::default(),
                gang: None,
            }
        });
        another.allow_tf32(self.tf32);
        another
    }

    fn failure(&self) -> Option<String> {
        self.pool.failure().get().cloned()
    }

    fn number(&self, number: &Number) -> f64 {
        number.0.download::<f64>()[0]
    }

    /// A GPU takes any batch whole for which it has memory.
    fn shard_rows(&self) -> usize {
        usize::MAX
    }

    /// With four heads, each layer keeps 4 GiB of attention weights.
    fn most_pairs(&self) -> usize {
        1 << 28
    }

    fn blank(&mut self, len: usize) -> Memory {
        self.pool.blank::<f32>(len)
    }

    fn recycle(&mut self, buffer: Memory) {
        drop(buffer);
    }

    fn upload_filled(&mut self, len: usize, fill: &mut dyn FnMut(&mut [f32])) -> Memory {
        self.pool.upload_filled(len, fill)
    }

    fn stager(&self) -> Option<Stager> {
        if self.gang.is_some() {
            return None;
        }
        let lender = self.lender.clone();
        Some(Arc::new(move |len| lender.lend(len)))
    }

    fn upload_staged(&mut self, mut staged: Box<dyn Staged>) -> Memory {
        let memory = self.pool.blank::<f32>(staged.values().len());
        match staged.into_any().downcast::<Piece>() {
            Ok(piece) if memory.len() > 0 => {
                self.pool.ask(|| self.lender.upload(self.pool.stream(), *piece, memory.pointer(&self.pool)));
                memory
            }
            Ok(_) => memory,
            Err(other) => match other.downcast::<Vec<f32>>() {
                Ok(values) => self.pool.upload(&values),
                Err(_) => unreachable!("memory of another kind of device"),
            },
        }
    }

    fn download(&self, buffer: &Memory) -> Vec<f32> {
        buffer.download()
    }

    fn index(&mut self, rows: &[u32]) -> Index {
        Index::new(&self.pool, rows)
    }

    fn clear(&mut self, out: &mut Memory) {
        out.clear();
    }

    fn copy(&mut self, from: &Memory, out: &mut Memory) {
        out.copy_from(from);
    }

    fn add(&mut self, from: &Memory, out: &mut Memory) {
        let n = out.len();
        assert_eq!(from.len(), n);
        self.launch(|kernels| &kernels.add, Grid::each(n), &[Int(n), At(from), At(out)]);
    }

    fn blend(&mut self, share: f32, from: &Memory, out: &mut Memory) {
        self.blend_all(share, slice::from_ref(from), slice::from_mut(out));
    }

    fn scale(&mut self, factor: f32, out: &mut Memory) {
        self.scale_all(factor, slice::from_mut(out));
    }

    fn square_sum(&mut self, buffer: &Memory) -> f64 {
        self.square_sum_of_all(slice::from_ref(buffer))
    }

    fn clear_all(&mut self, out: &mut [Memory]) {
        self.for_all(|kernels| &kernels.clear_all, [out], &[]);
    }

    fn scale_all(&mut self, factor: f32, out: &mut [Memory]) {
        self.for_all(|kernels| &kernels.scale_all, [out], &[Float(factor)]);
    }

    fn blend_all(&mut self, share: f32, from: &[Memory], out: &mut [Memory]) {
        self.for_all(|kernels| &kernels.blend_all, [from, out], &[Float(share)]);
    }

    fn square_sum_of_all(&mut self, buffers: &[Memory]) -> f64 {
        self.number(&self.squares(buffers, false))
    }

    fn adam_all(
        &mut self,
        rates: &AdamRates,
        gradients: &[Memory],
        first: &mut [Memory],
        second: &mut [Memory],
        parameters: &mut [Memory],
    ) {
        self.adam_with(rates, [gradients, first, second, parameters], None);
    }

    fn clipped_adam_all(
        &mut self,
        most: f64,
        rates: &AdamRates,
        gradients: &mut [Memory],
        first: &mut [Memory],
        second: &mut [Memory],
        parameters: &mut [Memory],
    ) -> Number {
        let norm = self.squares(gradients, true);
        self.adam_with(rates, [gradients, first, second, parameters], Some((most, &norm)));
        norm
    }

    #[allow(unsafe_code)]
    fn product(&mut self, product: Product, left: &Memory, right: &Memory, out: &mut Memory) {
        let Product { m, n, k, left_transposed, right_transposed, accumulate } = product;
        assert!(left.len() == m * k && right.len() == k * n && out.len() == m * n);
        if k == 0 && !accumulate {
            out.clear();
        }
        if m == 0 || n == 0 || k == 0 {
            return;
        }
        if let Some(own) = &self.gang {
            let flags = [left_transposed, right_transposed, accumulate].map(|flag| Int(usize::from(flag)));
            let arguments = [&[Int(m), Int(n), Int(k)], &flags[..], &[At(left), At(right), At(out)]].concat();
            return launch(&self.pool, &own.kernels.product, Grid::squares(m, n), &arguments);
        }
        let operation = |is_transposed| match is_transposed {
            true => blas_sys::cublasOperation_t::CUBLAS_OP_T,
            false => blas_sys::cublasOperation_t::CUBLAS_OP_N,
        };
        let beta = if accumulate { 1.0 } else { 0.0 };
        let pointer = |memory: &Memory| memory.pointer(&self.pool);
        if self.pool.ask(|| Ok(())).is_none() {
            return;
        }
        // cuBLAS matrices are column-major: it reads ours as their transposes, and outᵀ = rightᵀ · leftᵀ.
        // SAFETY: the sizes of the matrices were checked above.
        let result = unsafe {
            blas::sgemm(
                *self.blas.handle(),
                operation(right_transposed),
                operation(left_transposed),
                n as i32,
                m as i32,
                k as i32,
                &1.0,
                pointer(right) as *const f32,
                if right_transposed { k } else { n } as i32,
                pointer(left) as *const f32,
                if left_transposed { m } else { k } as i32,
                &beta,
                pointer(out) as *mut f32,
                n as i32,
            )
        };
        self.pool.check(result);
    }

    fn add_row(&mut self, row: &Memory, out: &mut Memory) {
        let (n, columns) = (out.len(), row.len());
        assert!(n == 0 || n.is_multiple_of(columns));
        self.launch(|kernels| &kernels.add_row, Grid::each(n), &[Int(n), Int(columns), At(row), At(out)]);
    }

    fn add_sum_of_rows(&mut self, x: &Memory, out: &mut Memory) {
        self.add_sums(x, out, None);
    }

    fn relu(&mut self, x: &Memory, out: &mut Memory) {
        let n = out.len();
        assert_eq!(x.len(), n);
        self.launch(|kernels| &kernels.relu, Grid::each(n), &[Int(n), At(x), At(out)]);
    }

    fn relu_backward(&mut self, x: &Memory, gradient: Memory) -> Memory {
        let n = gradient.len();
        assert_eq!(x.len(), n);
        self.launch(|kernels| &kernels.relu_backward, Grid::each(n), &[Int(n), At(x), At(&gradient)]);
        gradient
    }

    fn add_rows(
        &mut self,
        (count, columns): (usize, usize),
        x: &Memory,
        from: Option<&Index>,
        out: &mut Memory,
        to: Option<&Index>,
    ) {
        let fits = |list: Option<&Index>, matrix: &Memory| {
            list.is_none_or(|list| list.len() == count) && list.map_or(count, Index::end) * columns <= matrix.len()
        };
        assert!(fits(from, x) && fits(to, out));
        let from = Maybe(from.map(Index::memory));
        if let Some(groups) = to.and_then(|to| to.groups(&self.pool)) {
            let Groups { memory, len, chunks } = groups;
            let (order, of_chunks) = (From(memory, 0), From(memory, count));
            let (of_groups, targets) = (From(memory, count + chunks + 1), From(memory, count + chunks + len + 2));
            let nothing = Maybe(None);
            if chunks == len {
                let arguments = [Int(columns), At(x), from, At(out), order, of_chunks, targets];
                self.launch(|kernels| &kernels.add_groups, Grid::groups(*len, count, columns), &arguments);
            } else {
                let parts = self.pool.blank::<f32>(chunks * columns);
                let arguments = [Int(columns), At(x), from, At(&parts), order, of_chunks, nothing];
                self.launch(|kernels| &kernels.add_groups, Grid::groups(*chunks, count, columns), &arguments);
                let arguments = [Int(columns), At(&parts), nothing, At(out), nothing, of_groups, targets];
                self.launch(|kernels| &kernels.add_groups, Grid::groups(*len, *chunks, columns), &arguments);
            }
        } else {
            let n = count * columns;
            let arguments = [Int(n), Int(columns), At(x), from, At(out), Maybe(to.map(Index::memory))];
            self.launch(|kernels| &kernels.add_rows, Grid::each(n), &arguments);
        }
    }

    fn layer_norm(
        &mut self,
        x: &Memory,
        change: Option<&Memory>,
        weight: &Memory,
        bias: &Memory,
        normal: &mut Memory,
        scales: &mut Memory,
        out: &mut Memory,
    ) {
        let (rows, columns) = (scales.len(), weight.len());
        assert!([x, normal, out].iter().all(|matrix| matrix.len() == rows * columns) && bias.len() == columns);
        assert!(change.is_none_or(|change| change.len() == x.len()));
        let arguments =
            [Int(rows), Int(columns), At(x), Maybe(change), At(weight), At(bias), At(normal), At(scales), At(out)];
        self.launch(|kernels| &kernels.layer_norm, Grid::warps(rows), &arguments);
    }

    fn layer_norm_backward(
        &mut self,
        normal: &Memory,
        scales: &Memory,
        weight: &Memory,
        dy: &Memory,
        dx: &mut Memory,
        dweight: &mut Memory,
        dbias: &mut Memory,
    ) {
        let (rows, columns) = (scales.len(), weight.len());
        assert!([normal, dy, dx].iter().all(|matrix| matrix.len() == rows * columns));
        assert!(dweight.len() == columns && dbias.len() == columns);
        let arguments = [Int(rows), Int(columns), At(normal), At(scales), At(weight), At(dy), At(dx)];
        self.launch(|kernels| &kernels.layer_norm_backward, Grid::warps(rows), &arguments);
        self.add_sums(dy, dbias, Some((normal, dweight)));
    }

    /// All weights for wide heads; the logarithm of the sum of powers of each query and head for narrow ones.
    fn kept_of_attention(&self, shape: AttentionShape<'_>) -> usize {
        match AttentionKernels::is_narrow(shape.columns / shape.heads) {
            true => shape.queries.rows() * shape.heads,
            false => shape.weights(),
        }
    }

    fn attention(
        &mut self,
        shape: AttentionShape<'_>,
        q: &Memory,
        k: &Memory,
        v: &Memory,
        bias: Option<&Memory>,
        kept: &mut Memory,
        out: &mut Memory,
    ) {
        let AttentionShape { queries, keys, heads, columns } = shape;
        assert!([q, out].iter().all(|matrix| matrix.len() == queries.rows() * columns));
        assert!([k, v].iter().all(|matrix| matrix.len() == keys.rows() * columns));
        assert!(kept.len() == self.kept_of_attention(shape) && bias.is_none_or(|bias| bias.len() == keys.rows()));
        let Some(kernels) = Cuda::attention_kernels(&self.pool, &self.kernels, shape) else { return };
        let layout = self.layouts.of(&self.pool, queries, keys, AttentionKernels::tile(columns / heads));
        let count = AttentionKernels::is_narrow(columns / heads).then_some(Int(layout.tiles.0));
        let mut arguments = layout.samples().to_vec();
        arguments.push(layout.query_tiles());
        arguments.extend(count);
        arguments.extend([Int(heads), Int(columns), Float(scale_of(shape))]);
        arguments.extend([At(q), At(k), At(v), Maybe(bias), At(kept), At(out)]);
        launch(&self.pool, kernels.forward, kernels.grid(heads, layout.tiles.0, 1), &arguments);
    }

    fn attention_backward(
        &mut self,
        shape: AttentionShape<'_>,
        pass: AttentionPass<'_, Memory>,
        dy: &Memory,
        dq: &mut Memory,
        dk: &mut Memory,
        dv: &mut Memory,
    ) {
        let AttentionShape { queries, keys, heads, columns } = shape;
        let AttentionPass { q, k, v, bias, kept, out } = pass;
        assert!([q, dy, dq, out].iter().all(|matrix| matrix.len() == queries.rows() * columns));
        assert!([k, v, dk, dv].iter().all(|matrix| matrix.len() == keys.rows() * columns));
        assert_eq!(kept.len(), self.kept_of_attention(shape));
        let Some(kernels) = Cuda::attention_kernels(&self.pool, &self.kernels, shape) else { return };
        let layout = self.layouts.of(&self.pool, queries, keys, AttentionKernels::tile(columns / heads));
        let (scale, form) = (Float(scale_of(shape)), [Int(heads), Int(columns)]);
        let (query_grid, key_grid) = (kernels.grid(heads, layout.tiles.0, 1), kernels.grid(heads, layout.tiles.1, 2));
        let [of_queries, of_keys] = [layout.query_tiles(), layout.key_tiles()];
        if AttentionKernels::is_narrow(columns / heads) {
            let products = self.pool.blank::<f32>(kept.len());
            let common = [scale, At(q), At(k), At(v), Maybe(bias), At(kept)];
            let tiles = [of_queries, Int(layout.tiles.0)];
            let own = [At(out), At(dy), At(&products), At(dq)];
            let arguments = [&layout.samples()[..], &tiles, &form, &common, &own].concat();
            launch(&self.pool, kernels.backward_queries, query_grid, &arguments);
            let tiles = [of_keys, Int(layout.tiles.1)];
            let own = [At(dy), At(&products), At(dk), At(dv)];
            let arguments = [&layout.samples()[..], &tiles, &form, &common, &own].concat();
            return launch(&self.pool, kernels.backward_keys, key_grid, &arguments);
        }
        let dlogits = self.pool.blank::<f32>(kept.len());
        let own = [scale, At(k), At(v), At(kept), At(dy), At(&dlogits), At(dq)];
        let arguments = [&layout.samples()[..], &[of_queries], &form, &own].concat();
        launch(&self.pool, kernels.backward_queries, query_grid, &arguments);
        let own = [At(q), At(kept), At(dy), At(&dlogits), At(dk), At(dv)];
        let arguments = [&layout.samples()[..], &[of_keys], &form, &own].concat();
        launch(&self.pool, kernels.backward_keys, key_grid, &arguments);
    }

    fn adam(
        &mut self,
        rates: &AdamRates,
        gradient: &Memory,
        first: &mut Memory,
        second: &mut Memory,
        parameter: &mut Memory,
    ) {
        let (first, second) = (slice::from_mut(first), slice::from_mut(second));
        self.adam_all(rates, slice::from_ref(gradient), first, second, slice::from_mut(parameter));
    }
}

/// Factor on the logits: one divided by the square root of the head's width.
fn scale_of(shape: AttentionShape<'_>) -> f32 {
    (1.0 / ((shape.columns / shape.heads) as f64).sqrt()) as f32
}
