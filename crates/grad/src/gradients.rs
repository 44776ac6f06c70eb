//! Contract: the gradient of every operation agrees with finite differences in double precision, which is what
//! [`crate::Real`] is in the crate's own tests.

use std::sync::Arc;

use crate::{
    Cpu, Device as _, Embedding, Exchange, ImitationBatch, KeyLists, LearningLosses as _, Loss, MatchingShape,
    NStepReturn, NextStates, QValueBatch, Segments, SelectedRows, Tape, TensorId, Tensors, Var, q_value_of,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

type Device = Cpu;

/// Random parameters of these shapes.
fn parameters(device: &mut Device, shapes: &[(usize, usize)]) -> Tensors<Device> {
    let mut rng = Pcg64::seed_from_u64(7);
    let mut tensors = Tensors::default();
    for (place, (rows, columns)) in shapes.iter().enumerate() {
        let values: Vec<f64> = (0..rows * columns).map(|_| 2.0 * rng.random::<f64>() - 1.0).collect();
        tensors.add(device, &format!("p{place}"), *rows, *columns, &values);
    }
    tensors
}

/// Puts a parameter on the tape as a matrix.
fn lift(tape: &mut Tape<'_, Device>, id: TensorId, rows: usize) -> Var {
    let all: Vec<u32> = (0..rows as u32).collect();
    tape.embedding(rows, &[(id, &all, None)])
}

/// Compares the gradients of a function of the parameters with finite differences.
fn check(name: &str, shapes: &[(usize, usize)], f: impl Fn(&mut Tape<'_, Device>, &[TensorId]) -> Vec<Loss<Device>>) {
    let mut device = Device::default();
    let mut tensors = parameters(&mut device, shapes);
    let ids: Vec<TensorId> = tensors.ids().collect();
    let mut gradients = tensors.zeros_like(&mut device);
    let mut tape = Tape::new(&mut device, &tensors);
    let losses = f(&mut tape, &ids);
    tape.backward(losses, &mut gradients);
    drop(tape);
    let mut value = |tensors: &Tensors<Device>| -> f64 {
        let mut tape = Tape::new(&mut device, tensors);
        f(&mut tape, &ids).iter().map(|loss| loss.value).sum()
    };
    let mut scratch = Device::default();
    let mut is_moved = false;
    for id in &ids {
        let (numbers, found) = (tensors.values(&scratch, *id), gradients.values(&scratch, *id));
        for place in 0..numbers.len() {
            let step = 1e-5;
            let mut at = |change: f64| {
                let mut moved = numbers.clone();
                moved[place] += change;
                tensors.set(&mut scratch, *id, &moved);
                value(&tensors)
            };
            let expected = (at(step) - at(-step)) / (2.0 * step);
            at(0.0);
            let error = (found[place] - expected).abs() / (1.0 + expected.abs());
            assert!(error < 1e-7, "{name}, {} at {place}: {} instead of {expected}", tensors.name(*id), found[place]);
            is_moved |= expected.abs() > 1e-3;
        }
    }
    assert!(is_moved, "{name}: nothing depends on anything");
}

/// A loss with a different weight for every number of a matrix.
fn any_loss(tape: &mut Tape<'_, Device>, x: Var) -> Vec<Loss<Device>> {
    let (rows, columns) = tape.shape(x);
    let target: Vec<f64> = (0..rows * columns).map(|k| (k as f64 * 0.7).sin()).collect();
    let weights: Vec<f64> = (0..rows * columns).map(|k| 0.5 + (k % 5) as f64).collect();
    vec![tape.regression(x, None, &target, &weights)]
}

/// The gradient with respect to an input, through maps, a norm and attention, beside that of the parameters.
#[test]
fn an_input() {
    let (mut device, shapes) = (Device::default(), [(3, 4), (1, 4), (4, 4), (4, 4), (4, 4), (1, 4), (1, 4)]);
    let tensors = parameters(&mut device, &shapes);
    let ids: Vec<TensorId> = tensors.ids().collect();
    let segments = Arc::new(Segments::of_lengths([2, 3]));
    let f = |tape: &mut Tape<'_, Device>, values: &[f64]| {
        let input = tape.input(5, 3, values);
        let x = tape.linear_by_inputs(input, ids[0], Some(ids[1]));
        let [q, k, v] = [2, 3, 4].map(|place| tape.linear(x, ids[place], None));
        let mixed = tape.attention(q, k, v, &segments, &segments, 2, None);
        let x = tape.norm(x, Some(mixed), ids[5], ids[6]);
        (any_loss(tape, x), input)
    };
    let values: Vec<f64> = (0..15).map(|k| (k as f64 * 1.3).cos()).collect();
    let (mut with, mut without) = (tensors.zeros_like(&mut device), tensors.zeros_like(&mut device));
    let found = {
        let mut tape = Tape::new(&mut device, &tensors);
        let (losses, input) = f(&mut tape, &values);
        tape.backward_to(losses, &mut with, input)
    };
    {
        let mut tape = Tape::new(&mut device, &tensors);
        let (losses, _) = f(&mut tape, &values);
        tape.backward(losses, &mut without);
    }
    for id in &ids {
        assert_eq!(with.values(&device, *id), without.values(&device, *id), "the parameters' gradients stay the same");
    }
    for place in 0..values.len() {
        let mut at = |change: f64| -> f64 {
            let mut moved = values.clone();
            moved[place] += change;
            let mut tape = Tape::new(&mut device, &tensors);
            f(&mut tape, &moved).0.iter().map(|loss| loss.value).sum()
        };
        let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
        let error = (found[place] - expected).abs() / (1.0 + expected.abs());
        assert!(error < 1e-7, "at {place}: {} instead of {expected}", found[place]);
    }
}

#[test]
fn relaxed_matchings() {
    let shape = |rows, columns, temperature, iterations| MatchingShape { rows, columns, temperature, iterations };
    // More rows than columns, fewer, a sharp one, one iteration, and none at all.
    for shapes in [
        vec![shape(4, 2, 0.7, 6), shape(2, 3, 0.5, 9)],
        vec![shape(7, 2, 0.15, 20)],
        vec![shape(3, 2, 1.0, 1), shape(4, 2, 0.5, 0)],
    ] {
        let shapes: Arc<[MatchingShape]> = shapes.into();
        let cells = shapes.iter().map(MatchingShape::cells).sum();
        check("sinkhorn", &[(cells, 1)], |tape, ids| {
            let gains = lift(tape, ids[0], cells);
            let plan = tape.log_sinkhorn(gains, &shapes);
            any_loss(tape, plan)
        });
    }
}

#[test]
fn linear_maps() {
    check("linear", &[(5, 7), (3, 7), (1, 3)], |tape, ids| {
        let x = lift(tape, ids[0], 5);
        let y = tape.linear(x, ids[1], Some(ids[2]));
        any_loss(tape, y)
    });
    check("linear by inputs", &[(5, 3), (3, 7), (1, 7)], |tape, ids| {
        let x = lift(tape, ids[0], 5);
        let y = tape.linear_by_inputs(x, ids[1], Some(ids[2]));
        any_loss(tape, y)
    });
    // A matrix that is used twice, and a linear map without a bias.
    check("linear twice", &[(4, 3), (3, 3)], |tape, ids| {
        let x = lift(tape, ids[0], 4);
        let y = tape.linear(x, ids[1], None);
        let z = tape.linear(y, ids[1], None);
        let sum = tape.add(y, z);
        any_loss(tape, sum)
    });
}

#[test]
fn embeddings_and_messages() {
    check("embedding", &[(4, 3), (2, 3), (3, 3)], |tape, ids| {
        let (some, others) = (tape.numbers(&[0, 4]), tape.numbers(&[1, 2, 3]));
        let parts: [Embedding<'_, Device>; 3] =
            [(ids[0], &[3, 1, 1, 0, 2], None), (ids[1], &[1, 0], Some(&some)), (ids[2], &[2, 2, 1], Some(&others))];
        let x = tape.embedding(5, &parts);
        any_loss(tape, x)
    });
    check("gather", &[(4, 3)], |tape, ids| {
        let x = lift(tape, ids[0], 4);
        let rows = tape.numbers(&[2, 2, 0, 3, 2]);
        let y = tape.gather(x, &rows);
        any_loss(tape, y)
    });
    check("combine", &[(2, 3), (3, 3)], |tape, ids| {
        let (x, y) = (lift(tape, ids[0], 2), lift(tape, ids[1], 3));
        let (first, second) = (tape.numbers(&[4, 0]), tape.numbers(&[1, 5, 3]));
        let z = tape.combine(6, &[(x, &first), (y, &second)]);
        any_loss(tape, z)
    });
    check("message sum", &[(4, 3)], |tape, ids| {
        let x = lift(tape, ids[0], 4);
        let y = tape.message_sum(x, 3, &[0, 1, 2, 3, 0], &[1, 1, 0, 2, 2]);
        any_loss(tape, y)
    });
}

#[test]
fn norms_and_activations() {
    check("norm", &[(4, 20), (1, 20), (1, 20)], |tape, ids| {
        let x = lift(tape, ids[0], 4);
        let y = tape.norm(x, None, ids[1], ids[2]);
        any_loss(tape, y)
    });
    check("norm of a sum", &[(4, 5), (4, 5), (1, 5), (1, 5)], |tape, ids| {
        let (x, change) = (lift(tape, ids[0], 4), lift(tape, ids[1], 4));
        let y = tape.norm(x, Some(change), ids[2], ids[3]);
        any_loss(tape, y)
    });
    check("relu", &[(4, 20)], |tape, ids| {
        let x = lift(tape, ids[0], 4);
        let y = tape.relu(x);
        any_loss(tape, y)
    });
}

fn check_attention(name: &str, queries: &[usize], keys: &[usize], heads: usize, columns: usize) {
    let (q, k) = (Segments::of_lengths(queries.iter().copied()), Segments::of_lengths(keys.iter().copied()));
    let (q, k) = (Arc::new(q), Arc::new(k));
    let shapes = [(q.rows(), columns), (k.rows(), columns), (k.rows(), columns)];
    let bias: Vec<f64> = (0..k.rows()).map(|row| (1.0 + (row % 3) as f64).ln()).collect();
    check(name, &shapes, |tape, ids| {
        let (x, y, z) = (lift(tape, ids[0], q.rows()), lift(tape, ids[1], k.rows()), lift(tape, ids[2], k.rows()));
        let bias = tape.input(k.rows(), 1, &bias);
        let out = tape.attention(x, y, z, &q, &k, heads, Some(bias));
        any_loss(tape, out)
    });
}

#[test]
fn attention() {
    check_attention("small attention", &[3, 1, 4], &[3, 1, 4], 2, 6);
    check_attention("few queries", &[1, 2], &[5, 3], 1, 3);
    check_attention("an empty sample", &[2, 0, 1], &[3, 2, 1], 1, 3);
    check_attention("large attention", &[21], &[22], 2, 4);
}

#[test]
fn losses() {
    check("huber", &[(6, 1)], |tape, ids| {
        let x = lift(tape, ids[0], 6);
        vec![tape.regression(x, Some(0.4), &[2.0, 0.1, -3.0, 0.5, 0.0, 0.3], &[1.0, 2.0, 0.5, 1.0, 3.0, 0.0])]
    });
    let (rows, counts) = (Segments::of_lengths([3, 4]), [2, 1, 1, 1, 3]);
    let told = |(mut losses, total): (Vec<Loss<Device>>, f64)| {
        losses[0].value = total;
        losses
    };
    check("imitation", &[(7, 1)], |tape, ids| {
        let x = lift(tape, ids[0], 7);
        let selected = SelectedRows::new(&rows, &counts, [&[1, 1, 2][..], &[3]]);
        let exchanges: [&[Exchange]; 2] = [&[(2, 1, 0.7), (0, 2, -0.4)], &[]];
        told(tape.imitation_loss(x, &ImitationBatch::new(selected, 0.5).with_exchanges(1.5, exchanges)))
    });
    for (is_dueling, bound, likelihood) in [(true, Some(0.5), 0.0), (false, Some(0.5), 0.7), (true, None, 0.7)] {
        let shapes = [(7, 1), (2, 1)];
        let picked: [&[u32]; 2] = [&[1, 1, 2], &[3]];
        // One Q-value is nearer to its target than the Huber bound, the other is not.
        let mut device = Device::default();
        let tensors = parameters(&mut device, &shapes);
        let [q, value] = [0, 1].map(|place| tensors.values(&device, tensors.ids().nth(place).unwrap()));
        let worth = |sample: usize| q_value_of(is_dueling, &q[rows.range(sample)], value[sample], picked[sample]);
        let targets = [worth(0) - 0.2, worth(1) + 3.0];
        check("values", &shapes, |tape, ids| {
            let (x, value) = (lift(tape, ids[0], 7), lift(tape, ids[1], 2));
            let selected = SelectedRows::new(&rows, &counts, picked);
            let values = QValueBatch { selected, weights: &[0.8, 1.7], is_dueling, bound, likelihood };
            let target = tape.device().upload(&targets);
            let (losses, total, _) = tape.q_value_loss(x, value, &target, &values);
            told((losses, total))
        });
    }
    check("two losses, one worked out elsewhere", &[(2, 1), (1, 1)], |tape, ids| {
        let x = lift(tape, ids[0], 2);
        let y = tape.linear(x, ids[1], None);
        let sum: f64 = tape.values(y).iter().sum();
        let outside = tape.loss(y, 3.0 * sum, &[3.0, 3.0]);
        let mut losses = any_loss(tape, y);
        losses.push(outside);
        losses
    });
}

/// Bootstrapped targets: the best rows by either network, up to the number of places and, where places may stay empty,
/// not below the first row.
#[test]
fn targets() {
    let (rows, counts) = (Segments::of_lengths([3, 4]), [2, 1, 1, 1, 3]);
    let returns =
        [NStepReturn { places: 2, reward: 1.0, discount: 0.5 }, NStepReturn { places: 3, reward: 0.0, discount: 1.0 }];
    let (chooser, q) = ([0.0, 1.0, 3.0, 0.5, 0.25, 2.0, -1.0], [0.5, 1.0, 2.0, -1.0, 4.0, 8.0, 16.0]);
    let target = |is_dueling: bool, may_idle: bool, is_double: bool| {
        let next_states = NextStates { rows: &rows, counts: &counts, returns: &returns, is_dueling, may_idle };
        let mut device = Device::default();
        let (chooser, q, value) = (chooser.to_vec(), q.to_vec(), vec![10.0, 20.0]);
        let mut out = device.blank(2);
        device.bootstrap_targets(&next_states, is_double.then_some(&chooser), &q, &value, &mut out);
        out
    };
    // Rows 2 and 1 of the first sample; rows 2, 1 and 3 of the second, or only row 2, which is above the first row.
    assert_eq!(target(true, false, true), [1.0 + 0.5 * (10.0 + 1.5 + 0.5), 20.0 + 9.0 + 5.0 + 17.0]);
    assert_eq!(target(true, true, true), [1.0 + 0.5 * (10.0 + 1.5 + 0.5), 20.0 + 9.0]);
    // Row 3 of the second sample stands for three.
    assert_eq!(target(false, false, false), [1.0 + 0.5 * (0.5 + 1.5 + 0.5), -1.0 + 3.0 * 17.0]);
}

/// Gradients through lists of kept keys, whose rows overlap, and the same result as attention with a mask in plain
/// loops.
#[test]
fn attention_to_lists() {
    let groups: [(usize, &[u32]); 5] =
        [(1, &[0, 1, 2, 3, 4, 5, 6]), (2, &[0, 1, 2, 6]), (3, &[0, 3, 4, 5]), (1, &[6]), (1, &[0, 2, 6])];
    let lists = KeyLists::new(groups.map(|(queries, rows)| (queries, rows.iter().copied())));
    assert_eq!(lists.pairs(), 7 + 2 * 4 + 3 * 4 + 1 + 3);
    let (heads, columns) = (2, 6);
    let bias = [0.3, 0.0, -0.7, 0.1, 0.0, 0.9, -0.2];
    check("attention to lists", &[(8, columns), (7, columns), (7, columns)], |tape, ids| {
        let (q, k, v) = (lift(tape, ids[0], 8), lift(tape, ids[1], 7), lift(tape, ids[2], 7));
        let bias = tape.input(7, 1, &bias);
        let out = tape.attention_to(q, k, v, &lists, heads, Some(bias));
        any_loss(tape, out)
    });
    let mut device = Device::default();
    let tensors = parameters(&mut device, &[(8, columns), (7, columns), (7, columns)]);
    let ids: Vec<TensorId> = tensors.ids().collect();
    let [q, k, v] = [0, 1, 2].map(|place| tensors.values(&device, ids[place]));
    let mut tape = Tape::new(&mut device, &tensors);
    let vars = [(0, 8), (1, 7), (2, 7)].map(|(place, rows)| lift(&mut tape, ids[place], rows));
    let bias_var = tape.input(7, 1, &bias);
    let out = tape.attention_to(vars[0], vars[1], vars[2], &lists, heads, Some(bias_var));
    let found = tape.values(out);
    let sums = tape.segment_sums(vars[1], &Segments::of_lengths([2, 3]), &[0, 1, 4, 5, 6]);
    assert!((sums[columns] - (k[4 * columns] + k[5 * columns] + k[6 * columns])).abs() < 1e-12);
    let (size, mut query) = (columns / heads, 0);
    for (count, rows) in groups {
        for _ in 0..count {
            for column in 0..columns {
                let head = column / size * size;
                let logit = |row: &u32| {
                    let dot: f64 =
                        (head..head + size).map(|c| q[query * columns + c] * k[*row as usize * columns + c]).sum();
                    (dot / (size as f64).sqrt() + bias[*row as usize]).exp()
                };
                let total: f64 = rows.iter().map(logit).sum();
                let expected: f64 =
                    rows.iter().map(|row| logit(row) / total * v[*row as usize * columns + column]).sum();
                assert!((found[query * columns + column] - expected).abs() < 1e-12, "query {query}, column {column}");
            }
            query += 1;
        }
    }
}

/// Attention to a row that stands for several equal ones is exactly attention to all of them.
#[test]
fn multiplicities_are_exact() {
    let mut device = Device::default();
    let tensors = parameters(&mut device, &[(3, 4), (4, 4), (4, 4), (4, 4)]);
    let ids: Vec<TensorId> = tensors.ids().collect();
    let attend = |device: &mut Device, rows: &[u32], bias: &[f64]| {
        let mut tape = Tape::new(device, &tensors);
        let x = tape.embedding(rows.len(), &[(ids[0], rows, None)]);
        let [q, k, v] = [1, 2, 3].map(|part| tape.linear(x, ids[part], None));
        let segments = Arc::new(Segments::of_lengths([rows.len()]));
        let bias = tape.input(rows.len(), 1, bias);
        let y = tape.attention(q, k, v, &segments, &segments, 2, Some(bias));
        tape.values(y)
    };
    let all = attend(&mut device, &[0, 1, 1, 1, 2], &[0.0; 5]);
    let distinct = attend(&mut device, &[0, 1, 2], &[0.0, 3f64.ln(), 0.0]);
    let rows = all[..8].iter().chain(&all[16..]);
    assert!(rows.zip(&distinct).all(|(all, distinct)| (all - distinct).abs() < 1e-12));
}
