//! The rivals' networks in plain loops over whole vectors, written from their definitions and not from the networks
//! themselves. What they share with the Transformer is in its reference.

use temponet_infer::plain::{add_and_norm, apply, embed};
use temponet_infer::{Rows, Weights};

/// Number of jobs that a row stands for.
fn multiplicity(bias: f32) -> f32 {
    bias.exp().round()
}

/// Relation of the source of a message to its target, for tokens of slack, due and core: 12 from the idle row, 13 to
/// it, and else by the order of deadlines and by who is running.
fn relation(source: Option<&[u16]>, target: Option<&[u16]>) -> usize {
    match (source, target) {
        (None, _) => 12,
        (_, None) => 13,
        (Some([_, due, core]), Some([_, other_due, other_core])) => {
            let order = usize::from(due >= other_due) + usize::from(due > other_due);
            4 * order + 2 * usize::from(*core == 2) + usize::from(*other_core == 2)
        }
        _ => panic!("a token has three features"),
    }
}

/// Forward pass of a graph network.
pub fn graph(weights: &Weights, rows: &Rows<'_>) -> Vec<f32> {
    let mut x = embed(weights, rows);
    let zeros = vec![vec![0.0; weights.architecture.width]; x.len()];
    for layer in 0..weights.architecture.layers {
        let part = |name: &str| weights.tensor(&format!("layers.{layer}.{name}"));
        let linear = |name: &str, x: &[Vec<f32>]| -> Vec<Vec<f32>> {
            let (weight, bias) = (part(&format!("{name}.weight")), part(&format!("{name}.bias")));
            x.iter().map(|row| apply(weight, bias, row)).collect()
        };
        let norm = |name: &str, x: &[Vec<f32>], change: &[Vec<f32>]| {
            add_and_norm(x, change, part(&format!("{name}.weight")), part(&format!("{name}.bias")))
        };
        let sums = exchange(weights, layer, rows, &linear("message", &x));
        let change = linear("output", &norm("message_norm", &sums, &zeros));
        x = norm("update_norm", &x, &change);
        let mut hidden = linear("feed_forward.up", &x);
        hidden.iter_mut().flatten().for_each(|unit| *unit = unit.max(0.0));
        x = norm("feed_forward_norm", &x, &linear("feed_forward.down", &hidden));
    }
    let head = |(place, row): (usize, &Vec<f32>)| {
        let name = if place == 0 { "idle" } else { "job" };
        apply(weights.tensor(&format!("head.{name}.weight")), weights.tensor(&format!("head.{name}.bias")), row)[0]
    };
    x.iter().enumerate().map(head).collect()
}

/// Sums of the messages that each row of a graph network receives: from every row its own message plus the vector of
/// the relation, without negative numbers, as many times as the row stands for jobs.
fn exchange(weights: &Weights, layer: usize, rows: &Rows<'_>, messages: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let features = weights.architecture.job.len();
    let table = weights.tensor(&format!("layers.{layer}.relation"));
    let token = |row: usize| (row > 0).then(|| &rows.jobs[(row - 1) * features..row * features]);
    let width = weights.architecture.width;
    let received = |target: usize| {
        let mut sum = vec![0.0; width];
        for (source, message) in messages.iter().enumerate() {
            let vector = &table[relation(token(source), token(target)) * width..][..width];
            for column in 0..width {
                sum[column] += multiplicity(rows.bias[source]) * (message[column] + vector[column]).max(0.0);
            }
        }
        sum
    };
    (0..messages.len()).map(received).collect()
}

/// Forward pass of a recurrent network at the first decision of a run, where its state is zero.
pub fn recurrent(weights: &Weights, rows: &Rows<'_>) -> Vec<f32> {
    let x = embed(weights, rows);
    let tensor = |name: &str| weights.tensor(name);
    let hidden_layer = |row: &Vec<f32>| -> Vec<f32> {
        apply(tensor("rows.weight"), tensor("rows.bias"), row).iter().map(|unit| unit.max(0.0)).collect()
    };
    let hidden: Vec<Vec<f32>> = x.iter().map(hidden_layer).collect();
    let sum = |unit: usize| hidden.iter().zip(rows.bias).map(|(row, bias)| multiplicity(*bias) * row[unit]).sum();
    let pooled: Vec<f32> = (0..weights.architecture.feed_forward).map(sum).collect();
    let zeros = vec![vec![0.0; pooled.len()]];
    let pooled = add_and_norm(&[pooled], &zeros, tensor("pool_norm.weight"), tensor("pool_norm.bias"));
    let gates = apply(tensor("memory.input.weight"), tensor("memory.input.bias"), &pooled[0]);
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let width = gates.len() / 4;
    let output = |unit: usize| {
        let cell = sigmoid(gates[unit]) * gates[2 * width + unit].tanh();
        sigmoid(gates[3 * width + unit]) * cell.tanh()
    };
    let output: Vec<f32> = (0..width).map(output).collect();
    let none = vec![0.0; weights.architecture.feed_forward];
    let from_memory = apply(tensor("join.memory.weight"), &none, &output);
    let q = |(place, row): (usize, &Vec<f32>)| {
        let joined = apply(tensor("join.row.weight"), tensor("join.row.bias"), row);
        let joined: Vec<f32> = joined.iter().zip(&from_memory).map(|(a, b)| (a + b).max(0.0)).collect();
        let head = if place == 0 { "idle" } else { "job" };
        apply(tensor(&format!("head.{head}.weight")), tensor(&format!("head.{head}.bias")), &joined)[0]
    };
    hidden.iter().enumerate().map(q).collect()
}

/// Forward pass of a feed-forward network: the rows, each in its slot, through hidden layers to one Q-value per row.
pub fn feed_forward(weights: &Weights, rows: &Rows<'_>) -> Vec<f32> {
    let x = embed(weights, rows);
    let features = weights.architecture.job.len();
    let slots = rows.jobs.chunks_exact(features).map(|token| token[features - 1].to_string());
    let places: Vec<String> = std::iter::once("idle".into()).chain(slots).collect();
    let linear = |name: &str, bias: &[f32], x: &[f32]| apply(weights.tensor(&format!("{name}.weight")), bias, x);
    let mut hidden = weights.tensor("inputs.bias").to_vec();
    for (place, row) in places.iter().zip(&x) {
        hidden = linear(&format!("inputs.{place}"), &hidden, row);
    }
    hidden.iter_mut().for_each(|unit| *unit = unit.max(0.0));
    for layer in 1..weights.architecture.layers {
        let name = format!("hidden.{layer}");
        hidden = linear(&name, weights.tensor(&format!("{name}.bias")), &hidden);
        hidden.iter_mut().for_each(|unit| *unit = unit.max(0.0));
    }
    let head = |place: &String| {
        let name = format!("head.{place}");
        linear(&name, weights.tensor(&format!("{name}.bias")), &hidden)[0]
    };
    places.iter().map(head).collect()
}
