//! The backward pass: walks a tape from its end to its beginning and passes gradients from each operation to its
//! operands.
//!
//! A matrix that several operations use gets the sum of their gradients. Gradients of parameters are added to the
//! tensors that the caller gives, so that several tapes can contribute to one step.

use crate::tape::{Loss, Node, Op, Operand, RowTerm, Tape, Var};
use crate::{AttentionPass, AttentionShape, Device, Product, Real, TensorId, Tensors};

impl<D: Device> Tape<'_, D> {
    /// Adds the gradients of the sum of `losses` with respect to the parameters to `parameters`.
    pub fn backward(&mut self, losses: impl IntoIterator<Item = Loss<D>>, parameters: &mut Tensors<D>) {
        self.pass_backward(losses, parameters, None);
    }

    /// The same as [`Tape::backward`]; returns the gradient with respect to an input of the tape, too, in row-major
    /// order. Waits for the device.
    pub fn backward_to(
        &mut self,
        losses: impl IntoIterator<Item = Loss<D>>,
        parameters: &mut Tensors<D>,
        input: Var,
    ) -> Vec<Real> {
        let (rows, columns) = self.shape(input);
        match self.pass_backward(losses, parameters, Some(input)) {
            Some(gradient) => {
                let values = self.device.download(&gradient);
                self.device.recycle(gradient);
                values
            }
            None => vec![0.0; rows * columns],
        }
    }

    /// Goes through the tape and returns the gradient with respect to an input, if one is asked for and the losses
    /// depend on it.
    fn pass_backward(
        &mut self,
        losses: impl IntoIterator<Item = Loss<D>>,
        parameters: &mut Tensors<D>,
        input: Option<Var>,
    ) -> Option<D::Buffer> {
        let mut pass = BackwardPass {
            device: &mut *self.device,
            nodes: &self.nodes,
            parameters: self.parameters,
            parameter_gradients: parameters,
            gradients: self.nodes.iter().map(|_| None).collect(),
            input,
        };
        for loss in losses {
            pass.pass_on(loss.var, loss.gradient);
        }
        for (place, node) in self.nodes.iter().enumerate().rev() {
            if input == Some(Var(place)) {
                continue;
            }
            if let Some(dy) = pass.gradients[place].take() {
                pass.step(node, dy);
            }
        }
        pass.gradients[input?.0].take()
    }
}

/// A backward pass under way. `dy` is always the gradient with respect to an operation's result, `dx` that with respect
/// to its operand.
struct BackwardPass<'a, D: Device> {
    device: &'a mut D,
    nodes: &'a [Node<D>],
    parameters: &'a Tensors<D>,
    parameter_gradients: &'a mut Tensors<D>,
    /// Gradient with respect to each matrix on the tape, as far as it has arrived.
    gradients: Vec<Option<D::Buffer>>,
    /// Input whose gradient is asked for; the others get none.
    input: Option<Var>,
}

/// A linear map on the tape.
#[derive(Clone, Copy)]
struct Linear {
    x: Var,
    weight: TensorId,
    bias: Option<TensorId>,
    /// Whether the weight has one row per input instead of one row per output.
    by_inputs: bool,
}

impl<'a, D: Device> BackwardPass<'a, D> {
    /// Takes a gradient out in order to add to it; zeros if none has arrived yet.
    fn take(&mut self, var: Var) -> D::Buffer {
        let node = &self.nodes[var.0];
        self.gradients[var.0].take().unwrap_or_else(|| self.device.zeros(node.rows * node.columns))
    }

    /// Adds a whole gradient to that of a matrix.
    fn pass_on(&mut self, var: Var, dy: D::Buffer) {
        match &mut self.gradients[var.0] {
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

    /// Passes the gradient with respect to a node's value on to its operands.
    fn step(&mut self, node: &'a Node<D>, dy: D::Buffer) {
        match &node.op {
            Op::Input => {}
            Op::Linear { x, weight, bias, by_inputs } => {
                self.linear(node, Linear { x: *x, weight: *weight, bias: *bias, by_inputs: *by_inputs }, &dy);
            }
            Op::SumOfRows(terms) => terms.iter().for_each(|term| self.row_term(term, node.columns, &dy)),
            Op::Add { left, right } => {
                let copy = self.copy_of(&dy, *left);
                self.pass_on(*left, copy);
                return self.pass_on(*right, dy);
            }
            Op::Norm { x, change, weight, bias, normal, scales } => {
                let dx = self.norm((*weight, *bias), (normal, scales), node.rows * node.columns, &dy);
                if let Some(change) = change {
                    let copy = self.copy_of(&dx, *x);
                    self.pass_on(*change, copy);
                }
                self.pass_on(*x, dx);
            }
            Op::Attention { q, k, v, bias, queries, keys, heads, kept } => {
                let shape = AttentionShape { queries, keys, heads: *heads, columns: node.columns };
                let mut gradients = [*q, *k, *v].map(|var| self.take(var));
                let value = |var: Var| &self.nodes[var.0].value;
                let (q_value, k_value, v_value, bias) = (value(*q), value(*k), value(*v), bias.map(value));
                let pass = AttentionPass { q: q_value, k: k_value, v: v_value, bias, kept, out: &node.value };
                let [dq, dk, dv] = &mut gradients;
                self.device.attention_backward(shape, pass, &dy, dq, dk, dv);
                for (var, gradient) in [*q, *k, *v].into_iter().zip(gradients) {
                    self.gradients[var.0] = Some(gradient);
                }
            }
            Op::Relu { x } => {
                let dx = self.device.relu_backward(&self.nodes[x.0].value, dy);
                return self.pass_on(*x, dx);
            }
            Op::OnProcessor { operands, function } => {
                let values: Vec<_> =
                    operands.iter().map(|var| self.device.download(&self.nodes[var.0].value)).collect();
                let gradients = function.gradients(&values, &self.device.download(&dy));
                for (var, gradient) in operands.iter().zip(gradients) {
                    let gradient = self.device.upload(&gradient);
                    self.pass_on(*var, gradient);
                }
            }
        }
        self.device.recycle(dy);
    }

    fn linear(&mut self, node: &Node<D>, linear: Linear, dy: &D::Buffer) {
        let Linear { x, weight, bias, by_inputs } = linear;
        let (rows, outputs, inputs) = (node.rows, node.columns, self.nodes[x.0].columns);
        let value = &self.nodes[x.0].value;
        let (m, n, left, right) = if by_inputs { (inputs, outputs, value, dy) } else { (outputs, inputs, dy, value) };
        let product = Product { m, n, k: rows, left_transposed: true, right_transposed: false, accumulate: true };
        self.device.product(product, left, right, &mut self.parameter_gradients.buffers[weight.0]);
        if let Some(bias) = bias {
            self.device.add_sum_of_rows(dy, &mut self.parameter_gradients.buffers[bias.0]);
        }
        if matches!(self.nodes[x.0].op, Op::Input) && self.input != Some(x) {
            return;
        }
        let accumulate = self.gradients[x.0].is_some();
        let mut dx = self.gradients[x.0].take().unwrap_or_else(|| self.device.blank(rows * inputs));
        let product =
            Product { m: rows, n: inputs, k: outputs, left_transposed: false, right_transposed: by_inputs, accumulate };
        self.device.product(product, dy, &self.parameters.buffers[weight.0], &mut dx);
        self.gradients[x.0] = Some(dx);
    }

    fn row_term(&mut self, term: &RowTerm<D>, columns: usize, dy: &D::Buffer) {
        let (shape, from, to) = ((term.count, columns), term.from.as_deref(), term.to.as_deref());
        match term.operand {
            Operand::Parameter(table) => {
                self.device.add_rows(shape, dy, to, &mut self.parameter_gradients.buffers[table.0], from);
            }
            Operand::Var(x) => {
                let mut dx = self.take(x);
                self.device.add_rows(shape, dy, to, &mut dx, from);
                self.gradients[x.0] = Some(dx);
            }
        }
    }

    /// Returns the gradient with respect to the sum that was normalized, of `len` numbers.
    fn norm(
        &mut self,
        (weight, bias): (TensorId, TensorId),
        (normal, scales): (&D::Buffer, &D::Buffer),
        len: usize,
        dy: &D::Buffer,
    ) -> D::Buffer {
        let mut dx = self.device.blank(len);
        let weights = &self.parameters.buffers[weight.0];
        let both = self.parameter_gradients.buffers.get_disjoint_mut([weight.0, bias.0]);
        let [dweight, dbias] = both.expect("the weight and the bias of a norm are different tensors");
        self.device.layer_norm_backward(normal, scales, weights, dy, &mut dx, dweight, dbias);
        dx
    }
}
