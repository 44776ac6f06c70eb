//! The tape: computes operations forwards and records them for the backward pass, which is in [`crate::backward`].

use std::sync::Arc;

use crate::sinkhorn::Matchings;
use crate::{AttentionShape, Device, MatchingShape, Product, Real, Segments, Staged, TensorId, Tensors};

/// Handle of a matrix on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Var(pub(crate) usize);

/// Starting point of a backward pass: the value of a loss and its gradient with respect to a matrix on the tape.
pub struct Loss<D: Device> {
    /// Sum over all samples; 0 where the total is returned separately.
    pub value: f64,
    pub(crate) var: Var,
    pub(crate) gradient: D::Buffer,
}

pub(crate) struct Node<D: Device> {
    pub rows: usize,
    pub columns: usize,
    pub value: D::Buffer,
    pub op: Op<D>,
}

/// One term of a sum of rows: rows of a matrix or of a parameter, and the rows of the result that they are added to.
pub(crate) struct RowTerm<D: Device> {
    pub operand: Operand,
    pub count: usize,
    pub from: Option<Arc<D::Index>>,
    pub to: Option<Arc<D::Index>>,
}

/// Row numbers on a device. Several operations can share them.
pub struct RowNumbers<D: Device> {
    index: Arc<D::Index>,
    len: usize,
    /// One more than the greatest row number.
    end: usize,
}

/// What an operation reads: a matrix on the tape or a parameter.
#[derive(Clone, Copy)]
pub(crate) enum Operand {
    Var(Var),
    Parameter(TensorId),
}

pub(crate) enum Op<D: Device> {
    Input,
    Linear {
        x: Var,
        weight: TensorId,
        bias: Option<TensorId>,
        by_inputs: bool,
    },
    SumOfRows(Vec<RowTerm<D>>),
    Add {
        left: Var,
        right: Var,
    },
    Norm {
        x: Var,
        change: Option<Var>,
        weight: TensorId,
        bias: TensorId,
        normal: D::Buffer,
        scales: D::Buffer,
    },
    Attention {
        q: Var,
        k: Var,
        v: Var,
        bias: Option<Var>,
        queries: Arc<Segments>,
        keys: Arc<Segments>,
        heads: usize,
        kept: D::Buffer,
    },
    Relu {
        x: Var,
    },
    OnProcessor {
        operands: Vec<Var>,
        function: Arc<dyn ProcessorFunction>,
    },
}

/// Function of matrices that is computed on the processor, whatever the device. It pays for small matrices alone: the
/// device has to wait.
pub trait ProcessorFunction: Send + Sync {
    /// Result, given the operands; all matrices are in row-major order.
    fn value(&self, operands: &[Vec<Real>]) -> Vec<Real>;
    /// Gradients with respect to each operand, given that with respect to the result.
    fn gradients(&self, operands: &[Vec<Real>], dy: &[Real]) -> Vec<Vec<Real>>;
}

/// One term of [`Tape::embedding`]: a table, the row of it to add for each entry, and the row of the result that each
/// entry is added to. Without the last list, entry `k` is added to row `k`.
pub type Embedding<'a, D> = (TensorId, &'a [u32], Option<&'a RowNumbers<D>>);

/// Records operations on a device. Dropping a tape gives its memory back to the device.
pub struct Tape<'a, D: Device> {
    pub(crate) device: &'a mut D,
    pub(crate) parameters: &'a Tensors<D>,
    pub(crate) nodes: Vec<Node<D>>,
}

impl<'a, D: Device> Tape<'a, D> {
    /// Creates an empty tape over these parameters.
    pub fn new(device: &'a mut D, parameters: &'a Tensors<D>) -> Tape<'a, D> {
        Tape { device, parameters, nodes: Vec::new() }
    }

    fn push(&mut self, rows: usize, columns: usize, value: D::Buffer, op: Op<D>) -> Var {
        self.nodes.push(Node { rows, columns, value, op });
        Var(self.nodes.len() - 1)
    }

    fn parameter(&self, id: TensorId) -> &'a D::Buffer {
        &self.parameters.buffers[id.0]
    }

    /// Number of rows and columns of a matrix.
    pub fn shape(&self, var: Var) -> (usize, usize) {
        (self.nodes[var.0].rows, self.nodes[var.0].columns)
    }

    /// Values of a matrix in row-major order. Waits for the device.
    pub fn values(&self, var: Var) -> Vec<Real> {
        self.device.download(&self.nodes[var.0].value)
    }

    /// The device that the tape computes on.
    pub fn device(&mut self) -> &mut D {
        self.device
    }

    /// Puts a given matrix on the tape. It gets no gradient, unless [`Tape::backward_to`] asks for it.
    pub fn input(&mut self, rows: usize, columns: usize, values: &[Real]) -> Var {
        assert_eq!(values.len(), rows * columns);
        self.input_filled(rows, columns, &mut |out| out.copy_from_slice(values))
    }

    /// Like [`Tape::input`], with values that `fill` writes into the device's own memory.
    pub fn input_filled(&mut self, rows: usize, columns: usize, fill: &mut dyn FnMut(&mut [Real])) -> Var {
        let value = self.device.upload_filled(rows * columns, fill);
        self.push(rows, columns, value, Op::Input)
    }

    /// Like [`Tape::input`], with values that another thread has written.
    pub fn input_staged(&mut self, rows: usize, columns: usize, mut staged: Box<dyn Staged>) -> Var {
        assert_eq!(staged.values().len(), rows * columns);
        let value = self.device.upload_staged(staged);
        self.push(rows, columns, value, Op::Input)
    }

    /// Copies row numbers to the device.
    pub fn numbers(&mut self, rows: &[u32]) -> RowNumbers<D> {
        let end = rows.iter().max().map_or(0, |most| *most as usize + 1);
        RowNumbers { index: Arc::new(self.device.index(rows)), len: rows.len(), end }
    }

    /// Linear map x · weightᵀ + bias. The weight has one row per output.
    pub fn linear(&mut self, x: Var, weight: TensorId, bias: Option<TensorId>) -> Var {
        self.map(x, weight, bias, false)
    }

    /// Linear map x · weight + bias. The weight has one row per input.
    pub fn linear_by_inputs(&mut self, x: Var, weight: TensorId, bias: Option<TensorId>) -> Var {
        self.map(x, weight, bias, true)
    }

    fn map(&mut self, x: Var, weight: TensorId, bias: Option<TensorId>, by_inputs: bool) -> Var {
        let (rows, inputs) = self.shape(x);
        let (outputs, columns) = match (self.parameters.shape(weight), by_inputs) {
            ((inputs, outputs), true) => (outputs, inputs),
            (shape, false) => shape,
        };
        assert_eq!(inputs, columns, "{}", self.parameters.name(weight));
        let mut out = self.device.blank(rows * outputs);
        let product = Product {
            m: rows,
            n: outputs,
            k: inputs,
            left_transposed: false,
            right_transposed: !by_inputs,
            accumulate: false,
        };
        self.device.product(product, &self.nodes[x.0].value, self.parameter(weight), &mut out);
        if let Some(bias) = bias {
            self.device.add_row(self.parameter(bias), &mut out);
        }
        self.push(rows, outputs, out, Op::Linear { x, weight, bias, by_inputs })
    }

    /// Sums of embeddings: a matrix of `rows` rows, each the sum of table rows.
    pub fn embedding(&mut self, rows: usize, parts: &[Embedding<'_, D>]) -> Var {
        let columns = parts.first().map_or(1, |(table, ..)| self.parameters.shape(*table).1);
        let mut list = Vec::new();
        for (table, values, places) in parts {
            let (entries, width) = self.parameters.shape(*table);
            let values = self.numbers(values);
            assert!(width == columns && values.end <= entries);
            assert!(places.map_or(values.len == rows, |places| places.len == values.len && places.end <= rows));
            let (from, to) = (Some(values.index), places.map(|places| places.index.clone()));
            list.push(RowTerm { operand: Operand::Parameter(*table), count: values.len, from, to });
        }
        self.sum_of_rows(rows, columns, list)
    }

    /// The rows of `x` with these numbers, in this order. A row may be taken several times.
    pub fn gather(&mut self, x: Var, numbers: &RowNumbers<D>) -> Var {
        let (rows, columns) = self.shape(x);
        assert!(numbers.end <= rows);
        let mut out = self.device.blank(numbers.len * columns);
        self.device.take_rows((numbers.len, columns), &self.nodes[x.0].value, &numbers.index, &mut out);
        let part =
            RowTerm { operand: Operand::Var(x), count: numbers.len, from: Some(numbers.index.clone()), to: None };
        self.push(numbers.len, columns, out, Op::SumOfRows(vec![part]))
    }

    /// Message passing: a matrix of `rows` rows, where row `to[k]` is the sum of the rows `from[k]` of `x`.
    pub fn message_sum(&mut self, x: Var, rows: usize, from: &[u32], to: &[u32]) -> Var {
        let (sources, columns) = self.shape(x);
        let (from, to) = (self.numbers(from), self.numbers(to));
        assert!(from.len == to.len && from.end <= sources && to.end <= rows);
        let part = RowTerm { operand: Operand::Var(x), count: from.len, from: Some(from.index), to: Some(to.index) };
        self.sum_of_rows(rows, columns, vec![part])
    }

    /// A matrix of `rows` rows with the rows of each part added at the given places; zeros elsewhere.
    pub fn combine(&mut self, rows: usize, parts: &[(Var, &RowNumbers<D>)]) -> Var {
        let columns = parts.first().map_or(1, |(x, _)| self.shape(*x).1);
        let mut list = Vec::new();
        for (x, places) in parts {
            assert!(self.shape(*x) == (places.len, columns) && places.end <= rows);
            let to = Some(places.index.clone());
            list.push(RowTerm { operand: Operand::Var(*x), count: places.len, from: None, to });
        }
        self.sum_of_rows(rows, columns, list)
    }

    fn sum_of_rows(&mut self, rows: usize, columns: usize, parts: Vec<RowTerm<D>>) -> Var {
        let mut out = self.device.zeros(rows * columns);
        for part in &parts {
            let source = match part.operand {
                Operand::Var(x) => &self.nodes[x.0].value,
                Operand::Parameter(table) => &self.parameters.buffers[table.0],
            };
            self.device.add_rows((part.count, columns), source, part.from.as_deref(), &mut out, part.to.as_deref());
        }
        self.push(rows, columns, out, Op::SumOfRows(parts))
    }

    /// Sum of two matrices of the same shape.
    pub fn add(&mut self, left: Var, right: Var) -> Var {
        let (rows, columns) = self.shape(left);
        assert_eq!((rows, columns), self.shape(right));
        let mut out = self.device.blank(rows * columns);
        self.device.copy(&self.nodes[left.0].value, &mut out);
        self.device.add(&self.nodes[right.0].value, &mut out);
        self.push(rows, columns, out, Op::Add { left, right })
    }

    /// Layer norm of `x`, or of x + change (a residual connection).
    pub fn norm(&mut self, x: Var, change: Option<Var>, weight: TensorId, bias: TensorId) -> Var {
        let (rows, columns) = self.shape(x);
        assert!(self.parameters.shape(weight) == (1, columns) && self.parameters.shape(bias) == (1, columns));
        assert!(change.is_none_or(|change| self.shape(change) == (rows, columns)));
        let [mut normal, mut out] = [(); 2].map(|()| self.device.blank(rows * columns));
        let mut scales = self.device.blank(rows);
        let (weights, biases) = (self.parameter(weight), self.parameter(bias));
        let (x_value, change_value) = (&self.nodes[x.0].value, change.map(|change| &self.nodes[change.0].value));
        self.device.layer_norm(x_value, change_value, weights, biases, &mut normal, &mut scales, &mut out);
        self.push(rows, columns, out, Op::Norm { x, change, weight, bias, normal, scales })
    }

    /// Multi-head softmax attention within each sample. `bias`, one number per key, is added to the key's logits and
    /// gets no gradient. A key that stands for c equal ones has the bias ln c, which is exactly attention over all c.
    #[allow(clippy::too_many_arguments)]
    pub fn attention(
        &mut self,
        q: Var,
        k: Var,
        v: Var,
        queries: &Arc<Segments>,
        keys: &Arc<Segments>,
        heads: usize,
        bias: Option<Var>,
    ) -> Var {
        let (rows, columns) = self.shape(q);
        assert!(queries.rows() == rows && queries.len() == keys.len() && columns.is_multiple_of(heads));
        assert!(self.shape(k) == (keys.rows(), columns) && self.shape(v) == self.shape(k));
        assert!(q != k && k != v && q != v && bias.is_none_or(|bias| self.shape(bias) == (keys.rows(), 1)));
        let shape = AttentionShape { queries, keys, heads, columns };
        let kept = self.device.kept_of_attention(shape);
        let (mut kept, mut out) = (self.device.blank(kept), self.device.blank(rows * columns));
        let bias_value = bias.map(|bias| &self.nodes[bias.0].value);
        let [q_value, k_value, v_value] = [q, k, v].map(|var| &self.nodes[var.0].value);
        self.device.attention(shape, q_value, k_value, v_value, bias_value, &mut kept, &mut out);
        let op = Op::Attention { q, k, v, bias, queries: queries.clone(), keys: keys.clone(), heads, kept };
        self.push(rows, columns, out, op)
    }

    /// Rectified linear unit, max(x, 0), of each number.
    pub fn relu(&mut self, x: Var) -> Var {
        let (rows, columns) = self.shape(x);
        let mut out = self.device.blank(rows * columns);
        self.device.relu(&self.nodes[x.0].value, &mut out);
        self.push(rows, columns, out, Op::Relu { x })
    }

    /// Logarithms of the relaxed matchings of some matrices of gains, which stand one after the other in `x`, one
    /// number per row. The result is laid out as `x`. Computed on the processor.
    pub fn log_sinkhorn(&mut self, x: Var, shapes: &Arc<[MatchingShape]>) -> Var {
        let cells = shapes.iter().map(MatchingShape::cells).sum();
        assert_eq!(self.shape(x), (cells, 1));
        self.on_processor(&[x], (cells, 1), Arc::new(Matchings(shapes.clone())))
    }

    /// Result of a function that is computed on the processor: a matrix with this number of rows and columns. Waits for
    /// the device.
    pub fn on_processor(
        &mut self,
        operands: &[Var],
        (rows, columns): (usize, usize),
        function: Arc<dyn ProcessorFunction>,
    ) -> Var {
        let values: Vec<Vec<Real>> = operands.iter().map(|var| self.values(*var)).collect();
        let result = function.value(&values);
        assert_eq!(result.len(), rows * columns);
        let value = self.device.upload(&result);
        self.push(rows, columns, value, Op::OnProcessor { operands: operands.to_vec(), function })
    }

    /// Ends the tape and returns one of its matrices, which stays in the device's memory.
    pub fn keep(mut self, var: Var) -> D::Buffer {
        let nothing = self.device.blank(0);
        std::mem::replace(&mut self.nodes[var.0].value, nothing)
    }

    /// A loss that was computed elsewhere: its value and its gradient with respect to `x`.
    pub fn loss(&mut self, x: Var, value: f64, gradient: &[Real]) -> Loss<D> {
        let (rows, columns) = self.shape(x);
        assert_eq!(gradient.len(), rows * columns);
        Loss { value, var: x, gradient: self.device.upload(gradient) }
    }
}

impl<D: Device> Drop for Tape<'_, D> {
    fn drop(&mut self) {
        for node in self.nodes.drain(..) {
            self.device.recycle(node.value);
            match node.op {
                Op::Norm { normal, scales, .. } => {
                    self.device.recycle(normal);
                    self.device.recycle(scales);
                }
                Op::Attention { kept, .. } => self.device.recycle(kept),
                _ => {}
            }
        }
    }
}
