//! The layers of a graph network on the tape: message passing over the complete graph of each sample's rows, as `crates/infer/src/graph.rs` computes it. It is
//! composed of the tape's operations, so it runs on every device.

use temponet_grad::{Device, Tape, TensorId, Var};
use temponet_infer::{Architecture, Relations, multiplicity};

use crate::sample::Batch;

/// Ids of a weight and a bias.
type Linear = (TensorId, TensorId);

/// Tensors of one layer.
#[derive(Clone, Copy, Debug)]
struct GraphLayer {
    message: Linear,
    relation: TensorId,
    message_norm: Linear,
    output: Linear,
    update_norm: Linear,
    up: Linear,
    down: Linear,
    feed_forward_norm: Linear,
}

/// Layers of a graph network.
#[derive(Clone, Debug)]
pub(crate) struct GraphLayers {
    relations: Relations,
    layers: Vec<GraphLayer>,
}

/// Edges of the graphs of a batch.
struct Edges {
    /// Row and relation of each different message.
    rows: Vec<u32>,
    relations: Vec<u32>,
    /// For each edge its message and the row that receives it. A row that stands for several jobs has as many edges.
    from: Vec<u32>,
    to: Vec<u32>,
}

impl GraphLayers {
    /// Finds the tensors of a graph network.
    ///
    /// # Panics
    ///
    /// Panics if the architecture is not valid.
    pub(crate) fn new(architecture: &Architecture, id: impl Fn(&str) -> TensorId) -> GraphLayers {
        let layer = |layer: usize| {
            let pair =
                |name: &str| (id(&format!("layers.{layer}.{name}.weight")), id(&format!("layers.{layer}.{name}.bias")));
            GraphLayer {
                message: pair("message"),
                relation: id(&format!("layers.{layer}.relation")),
                message_norm: pair("message_norm"),
                output: pair("output"),
                update_norm: pair("update_norm"),
                up: pair("feed_forward.up"),
                down: pair("feed_forward.down"),
                feed_forward_norm: pair("feed_forward_norm"),
            }
        };
        let relations = Relations::of(architecture).expect("a valid graph network has these features");
        GraphLayers { relations, layers: (0..architecture.layers).map(layer).collect() }
    }

    /// Computes the last rows of a batch from its embedded rows.
    pub(crate) fn forward<D: Device>(&self, tape: &mut Tape<'_, D>, batch: &Batch, mut x: Var) -> Var {
        let edges = Edges::of(self.relations, batch);
        let sources = tape.numbers(&edges.rows);
        for layer in &self.layers {
            let own = tape.linear(x, layer.message.0, Some(layer.message.1));
            let own = tape.gather(own, &sources);
            let relation = tape.embedding(edges.rows.len(), &[(layer.relation, &edges.relations, None)]);
            let message = tape.add(own, relation);
            let message = tape.relu(message);
            let sums = tape.message_sum(message, batch.segments.rows(), &edges.from, &edges.to);
            let sums = tape.norm(sums, None, layer.message_norm.0, layer.message_norm.1);
            let change = tape.linear(sums, layer.output.0, Some(layer.output.1));
            x = tape.norm(x, Some(change), layer.update_norm.0, layer.update_norm.1);
            let up = tape.linear(x, layer.up.0, Some(layer.up.1));
            let hidden = tape.relu(up);
            let change = tape.linear(hidden, layer.down.0, Some(layer.down.1));
            x = tape.norm(x, Some(change), layer.feed_forward_norm.0, layer.feed_forward_norm.1);
        }
        x
    }
}

impl Edges {
    fn of(relations: Relations, batch: &Batch) -> Edges {
        let features = batch.jobs.len();
        let mut tokens = vec![0u16; batch.segments.rows() * features];
        for (feature, values) in batch.jobs.iter().enumerate() {
            let places = batch.job_places.iter().zip(values);
            places.for_each(|(row, value)| tokens[*row as usize * features + feature] = *value as u16);
        }
        let mut edges = Edges { rows: Vec::new(), relations: Vec::new(), from: Vec::new(), to: Vec::new() };
        for own in batch.segments.ranges() {
            let token = |row: usize| (row > own.start).then(|| &tokens[row * features..(row + 1) * features]);
            for source in own.clone() {
                let times = multiplicity(batch.bias[source]) as usize;
                // Number of the source's message with each relation, once it is needed.
                let mut messages = [None; Relations::COUNT];
                for target in own.clone() {
                    let relation = relations.between(token(source), token(target));
                    let message = *messages[relation].get_or_insert_with(|| {
                        edges.rows.push(source as u32);
                        edges.relations.push(relation as u32);
                        edges.rows.len() as u32 - 1
                    });
                    edges.from.extend(std::iter::repeat_n(message, times));
                    edges.to.extend(std::iter::repeat_n(target as u32, times));
                }
            }
        }
        edges
    }
}
