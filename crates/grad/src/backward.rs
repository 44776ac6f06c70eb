//! The way back along a tape.

use crate::tape::{Loss, Op, Source, Tape, Var};
use crate::{AttentionShape, Device, Product, Tensors};

impl<D: Device> Tape<'_, D> {
    /// Adds the gradients of the losses' sum to those of the parameters.
    pub fn backward(&mut self, losses: impl IntoIterator<Item = Loss<D>>, parameters: &mut Tensors<D>) {
        let mut gradients: Vec<Option<D::Buffer>> = self.nodes.iter().map(|_| None).collect();
        for loss in losses {
            match &mut gradients[loss.var.0] {
                Some(gradient) => {
                    self.device.add(&loss.gradient, gradient);
                    self.device.recycle(loss.gradient);
                }
                place => *place = Some(loss.gradient),
            }
        }
        for place in (0..self.nodes.len()).rev() {
            if let Some(dy) = gradients[place].take() {
                self.step(place, dy, &mut gradients, parameters);
            }
        }
    }

    /// Passes a gradient on as it is.
    fn pass_on(&mut self, var: Var, dy: D::Buffer, gradients: &mut [Option<D::Buffer>]) {
        match &mut gradients[var.0] {
            Some(gradient) => {
                self.device.add(&dy, gradient);
                self.device.recycle(dy);
            }
            place => *place = Some(dy),
        }
    }

    fn copy_of(&mut self, buffer: &D::Buffer, var: Var) -> D::Buffer {
        let node = &self.nodes[var.0];
        let mut copy = self.device.blank(node.rows * node.columns);
        self.device.copy(buffer, &mut copy);
        copy
    }

    fn step(&mut self, place: usize, dy: D::Buffer, gradients: &mut [Option<D::Buffer>], parameters: &mut Tensors<D>) {
        let (rows, columns) = (self.nodes[place].rows, self.nodes[place].columns);
        match &self.nodes[place].op {
            Op::Input => {}
            Op::Linear { x, weight, bias, by_inputs } => {
                let (x, weight, bias, by_inputs) = (*x, *weight, *bias, *by_inputs);
                let inputs = self.nodes[x.0].columns;
                let (left, right) = (&dy, &self.nodes[x.0].value);
                let (m, n, left, right) =
                    if by_inputs { (inputs, columns, right, left) } else { (columns, inputs, left, right) };
                let product =
                    Product { m, n, k: rows, left_transposed: true, right_transposed: false, accumulate: true };
                self.device.product(product, left, right, &mut parameters.buffers[weight.0]);
                if let Some(bias) = bias {
                    self.device.add_sum_of_rows(&dy, &mut parameters.buffers[bias.0]);
                }
                if !matches!(self.nodes[x.0].op, Op::Input) {
                    let accumulate = gradients[x.0].is_some();
                    let mut dx = gradients[x.0].take().unwrap_or_else(|| self.device.blank(rows * inputs));
                    let product = Product {
                        m: rows,
                        n: inputs,
                        k: columns,
                        left_transposed: false,
                        right_transposed: by_inputs,
                        accumulate,
                    };
                    self.device.product(product, &dy, &self.parameters.buffers[weight.0], &mut dx);
                    gradients[x.0] = Some(dx);
                }
            }
            Op::Rows(parts) => {
                for part in parts {
                    let (count, from, to) = (part.count, part.from.as_deref(), part.to.as_deref());
                    match part.source {
                        Source::Parameter(table) => {
                            self.device.add_rows((count, columns), &dy, to, &mut parameters.buffers[table.0], from);
                        }
                        Source::Var(x) => {
                            let node = &self.nodes[x.0];
                            let length = node.rows * node.columns;
                            let mut dx = gradients[x.0].take().unwrap_or_else(|| self.device.zeros(length));
                            self.device.add_rows((count, columns), &dy, to, &mut dx, from);
                            gradients[x.0] = Some(dx);
                        }
                    }
                }
            }
            Op::Add { left, right } => {
                let (left, right) = (*left, *right);
                let copy = self.copy_of(&dy, left);
                self.pass_on(left, copy, gradients);
                return self.pass_on(right, dy, gradients);
            }
            Op::Norm { x, change, weight, bias, normal, scales } => {
                let (x, change) = (*x, *change);
                let mut dx = self.device.blank(rows * columns);
                let weights = &self.parameters.buffers[weight.0];
                let both = parameters.buffers.get_disjoint_mut([weight.0, bias.0]);
                let [dweight, dbias] = both.expect("the weight and the bias of a norm are different tensors");
                self.device.layer_norm_backward(normal, scales, weights, &dy, &mut dx, dweight, dbias);
                if let Some(change) = change {
                    let copy = self.copy_of(&dx, x);
                    self.pass_on(change, copy, gradients);
                }
                self.pass_on(x, dx, gradients);
            }
            Op::Attention { q, k, v, queries, keys, heads, weights } => {
                let shape = AttentionShape { queries, keys, heads: *heads, columns };
                let [dq, dk, dv] = [*q, *k, *v].map(|var| {
                    let node = &self.nodes[var.0];
                    gradients[var.0].take().unwrap_or_else(|| self.device.zeros(node.rows * node.columns))
                });
                let mut d = [dq, dk, dv];
                let [dq, dk, dv] = &mut d;
                let [q_value, k_value, v_value] = [*q, *k, *v].map(|var| &self.nodes[var.0].value);
                self.device.attention_backward(shape, q_value, k_value, v_value, weights, &dy, dq, dk, dv);
                for (var, gradient) in [*q, *k, *v].into_iter().zip(d) {
                    gradients[var.0] = Some(gradient);
                }
            }
            Op::Relu { x } => {
                let x = *x;
                let dx = self.device.relu_backward(&self.nodes[x.0].value, dy);
                return self.pass_on(x, dx, gradients);
            }
        }
        self.device.recycle(dy);
    }
}
