//! Contract: the GPU computes the same results as the CPU, within rounding, and the same numbers each time. Without a
//! GPU there is an error and no panic.

#![cfg(feature = "cuda")]

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_grad::{
    Adam, AdamRates, AdamSettings, AttentionPass, AttentionShape, Cpu, Cuda, Device, Exchange, ImitationBatch,
    KeyLists, LearningLosses, Loss, NStepReturn, NextStates, PolicyBatch, PolicySample, PolicyWeights, Product,
    QValueBatch, Segments, SelectedRows, Tape, TensorId, Tensors,
};

/// Tolerance of results of a few roundings.
const CLOSE: f32 = 2e-6;
/// Tolerance of sums of many numbers, which the devices add in different orders.
const SUMMED: f32 = 3e-5;
/// Tolerance of sums of thousands of numbers, which the CPU adds one after the other.
const LONG: f32 = 3e-4;
/// Tolerance of sums in double precision.
const DOUBLE: f64 = 1e-10;
/// Tolerances of totals of losses in double precision, and of losses in single precision.
const TOTAL: f64 = 1e-6;
const TOTAL_OF_SINGLES: f64 = 1e-5;
/// Tolerance of products whose factors are rounded to 10 bits.
const TF32: f32 = 2e-2;

/// The GPU by itself and as a gang, for one test at a time; nothing if there is none.
fn gpus() -> Vec<MutexGuard<'static, Cuda>> {
    static GPU: OnceLock<Option<[Mutex<Cuda>; 2]>> = OnceLock::new();
    let gpus = GPU.get_or_init(|| match Cuda::new() {
        Ok(cuda) => {
            let gang = cuda.gang().expect("the kernels of a gang compile");
            Some([cuda, gang].map(Mutex::new))
        }
        Err(error) => {
            eprintln!("{error}");
            None
        }
    });
    if gpus.is_none() {
        eprintln!("skipped: no GPU");
    }
    gpus.iter().flatten().map(|gpu| gpu.lock().unwrap_or_else(PoisonError::into_inner)).collect()
}

fn random(rng: &mut Pcg64, len: usize) -> Vec<f32> {
    (0..len).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect()
}

fn segments(rng: &mut Pcg64, samples: usize, longest: usize) -> Segments {
    Segments::of_lengths((0..samples).map(|_| rng.random_range(0..=longest)))
}

#[track_caller]
fn compare(name: &str, tolerance: f32, expected: &[Vec<f32>], found: &[Vec<f32>]) {
    assert_eq!(expected.len(), found.len());
    for (part, (expected, found)) in expected.iter().zip(found).enumerate() {
        assert_eq!(expected.len(), found.len(), "{name}, result {part}");
        for (place, (expected, found)) in expected.iter().zip(found).enumerate() {
            let error = (expected - found).abs() / (1.0 + expected.abs());
            assert!(error <= tolerance, "{name}, result {part} at {place}: {found} instead of {expected}");
        }
    }
}

/// Does the same work on both devices and compares the resulting buffers.
macro_rules! on_both {
    ($gpu:expr, $name:expr, $tolerance:expr, |$device:ident| $work:expr) => {{
        let expected: Vec<Vec<f32>> = {
            let $device = &mut Cpu::default();
            $work.iter().map(|buffer| $device.download(buffer)).collect()
        };
        let found: Vec<Vec<f32>> = {
            let $device = &mut *$gpu;
            $work.iter().map(|buffer| $device.download(buffer)).collect()
        };
        assert!(expected.iter().flatten().any(|value| *value != 0.0), "{}: all zero", $name);
        compare($name, $tolerance, &expected, &found);
    }};
}

#[test]
fn without_a_gpu_there_is_an_error_and_no_panic() {
    match Cuda::new() {
        Ok(cuda) => assert!(!cuda.name().is_empty()),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("no GPU can be used") || text.contains("cuBLAS"), "{text}");
        }
    }
}

#[test]
fn numbers_one_by_one() {
    for mut gpu in gpus() {
        let mut rng = Pcg64::seed_from_u64(1);
        for n in [1, 31, 257, 10_007] {
            let (a, b, c) = (random(&mut rng, n), random(&mut rng, n), random(&mut rng, n));
            on_both!(gpu, "arithmetic", CLOSE, |device| {
                let (x, y, mut out) = (device.upload(&a), device.upload(&b), device.upload(&c));
                device.add(&x, &mut out);
                device.scale(0.3, &mut out);
                device.blend(0.2, &y, &mut out);
                let mut copy = device.zeros(n);
                device.copy(&out, &mut copy);
                device.add(&out, &mut copy);
                [out, copy]
            });
            let mut wide: Vec<f32> = a.iter().map(|value| 6.0 * value).collect();
            // At least one number is positive, so that the result is not all zero.
            wide[0] = wide[0].abs();
            on_both!(gpu, "relu", CLOSE, |device| {
                let (x, dy) = (device.upload(&wide), device.upload(&b));
                let mut out = device.blank(n);
                device.relu(&x, &mut out);
                let dx = device.relu_backward(&x, dy);
                [out, dx]
            });
            let rates = AdamRates { beta1: 0.9, beta2: 0.99, step: 0.02, correction: 1.3, epsilon: 1e-6, decay: 0.001 };
            let squares: Vec<f32> = c.iter().map(|value| value * value).collect();
            on_both!(gpu, "adam", CLOSE, |device| {
                let (gradient, mut first) = (device.upload(&a), device.upload(&b));
                let (mut second, mut parameter) = (device.upload(&squares), device.upload(&c));
                device.adam(&rates, &gradient, &mut first, &mut second, &mut parameter);
                [first, second, parameter]
            });
        }
        // More matrices than fit into one launch, of several lengths, one of them empty.
        let lengths: Vec<usize> = (0..150).map(|k| k * 37 % 2_100).collect();
        let all: Vec<Vec<f32>> = lengths.iter().map(|len| random(&mut rng, *len)).collect();
        let rates = AdamRates { beta1: 0.9, beta2: 0.99, step: 0.02, correction: 1.3, epsilon: 1e-6, decay: 0.001 };
        on_both!(gpu, "many at once", CLOSE, |device| {
            let gradients: Vec<_> = all.iter().map(|values| device.upload(values)).collect();
            let mut first: Vec<_> = all.iter().map(|values| device.upload(values)).collect();
            let mut second: Vec<_> = all.iter().map(|values| device.upload(values)).collect();
            let mut parameters: Vec<_> = lengths.iter().map(|len| device.zeros(*len)).collect();
            device.clear_all(&mut second);
            device.scale_all(0.5, &mut first);
            device.adam_all(&rates, &gradients, &mut first, &mut second, &mut parameters);
            device.blend_all(0.25, &gradients, &mut parameters);
            [first, second, parameters].into_iter().flatten().collect::<Vec<_>>()
        });
        // Clipped, not clipped, and no step because the norm is not finite.
        for (most, spoiler) in [(0.5, 0.0), (1e6, 0.0), (0.5, f32::NAN)] {
            let mut norms = Vec::new();
            on_both!(gpu, "clipped", CLOSE, |device| {
                let mut gradients: Vec<_> = all.iter().map(|values| device.upload(values)).collect();
                gradients.push(device.upload(&[spoiler]));
                let zeros = |device: &mut _| gradients.iter().map(|some| zeros_like(device, some)).collect::<Vec<_>>();
                let (mut first, mut second) = (zeros(device), zeros(device));
                let mut parameters: Vec<_> = all.iter().map(|values| device.upload(values)).collect();
                parameters.push(device.upload(&[1.0]));
                let (first, second) = (&mut first[..], &mut second[..]);
                let norm = device.clipped_adam_all(most, &rates, &mut gradients, first, second, &mut parameters);
                norms.push(device.number(&norm));
                parameters
            });
            assert_eq!(norms[0].is_nan(), norms[1].is_nan());
            assert!(norms[0].is_nan() || (norms[0] / norms[1] - 1.0).abs() < 1e-5, "{norms:?}");
        }
    }
}

fn zeros_like<D: Device>(device: &mut D, buffer: &D::Buffer) -> D::Buffer {
    let len = device.download(buffer).len();
    device.zeros(len)
}

#[test]
fn sums() {
    for mut gpu in gpus() {
        let mut rng = Pcg64::seed_from_u64(2);
        for n in [1, 300, 5_000, 5_000_000] {
            let values = random(&mut rng, n);
            let expected: f64 = values.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
            let buffer = gpu.upload(&values);
            let found = gpu.square_sum(&buffer);
            assert!((found / expected - 1.0).abs() < DOUBLE, "{found} instead of {expected}");
            let many: Vec<_> = (0..70).map(|_| gpu.upload(&values[..n.min(3_000)])).collect();
            let one = gpu.square_sum(&many[0]);
            assert!((gpu.square_sum_of_all(&many) / (70.0 * one) - 1.0).abs() < DOUBLE);
        }
        for (rows, columns) in [(1, 1), (5, 7), (128, 33), (1_000, 128), (20_000, 3)] {
            let (x, row, out) =
                (random(&mut rng, rows * columns), random(&mut rng, columns), random(&mut rng, columns));
            on_both!(gpu, &format!("rows {rows} × {columns}"), SUMMED, |device| {
                let (mut x, row, mut out) = (device.upload(&x), device.upload(&row), device.upload(&out));
                device.add_sum_of_rows(&x, &mut out);
                device.add_row(&row, &mut x);
                [x, out]
            });
        }
    }
}

#[test]
fn products() {
    for mut gpu in gpus() {
        let mut rng = Pcg64::seed_from_u64(3);
        for (m, n, k) in [(1, 1, 1), (5, 7, 3), (64, 128, 130), (333, 64, 1), (3, 4, 0)] {
            for flags in 0..8 {
                let [left_transposed, right_transposed, accumulate] = [1, 2, 4].map(|bit| flags & bit > 0);
                let product = Product { m, n, k, left_transposed, right_transposed, accumulate };
                let (left, right) = (random(&mut rng, m * k), random(&mut rng, k * n));
                let out: Vec<f32> = (0..m * n).map(|_| 1.0).collect();
                if k > 0 {
                    on_both!(gpu, &format!("{product:?}"), SUMMED, |device| {
                        let (left, right, mut out) = (device.upload(&left), device.upload(&right), device.upload(&out));
                        device.product(product, &left, &right, &mut out);
                        [out]
                    });
                } else {
                    let (left, right, mut out) = (gpu.upload(&left), gpu.upload(&right), gpu.upload(&out));
                    gpu.product(product, &left, &right, &mut out);
                    assert_eq!(gpu.download(&out), vec![if accumulate { 1.0 } else { 0.0 }; m * n]);
                }
            }
        }
        let product =
            Product { m: 64, n: 64, k: 64, left_transposed: false, right_transposed: true, accumulate: false };
        let (left, right) = (random(&mut rng, 4096), random(&mut rng, 4096));
        gpu.allow_tf32(true);
        on_both!(gpu, "tf32", TF32, |device| {
            let (left, right, mut out) = (device.upload(&left), device.upload(&right), device.blank(4096));
            device.product(product, &left, &right, &mut out);
            [out]
        });
        gpu.allow_tf32(false);
    }
}

#[test]
fn rows_to_rows() {
    for mut gpu in gpus() {
        let mut rng = Pcg64::seed_from_u64(4);
        for (count, sources, targets, columns) in
            [(1, 1, 1, 1), (50, 7, 60, 5), (300, 300, 4, 33), (5_000, 130, 1, 128), (900, 40, 900, 64), (0, 3, 3, 2)]
        {
            let (x, out) = (random(&mut rng, sources * columns), random(&mut rng, targets * columns));
            let from: Vec<u32> = (0..count).map(|_| rng.random_range(0..sources as u32)).collect();
            let to: Vec<u32> = (0..count).map(|_| rng.random_range(0..targets as u32)).collect();
            on_both!(gpu, &format!("{count} rows of {sources} to {targets}"), LONG, |device| {
                let (x, mut out) = (device.upload(&x), device.upload(&out));
                let (from, to) = (device.index(&from), device.index(&to));
                device.add_rows((count, columns), &x, Some(&from), &mut out, Some(&to));
                let mut gathered = device.zeros(count * columns);
                device.add_rows((count, columns), &x, Some(&from), &mut gathered, None);
                device.add_rows((count, columns), &gathered, None, &mut out, Some(&to));
                let mut back = device.zeros(sources * columns);
                device.add_rows((count, columns), &gathered, None, &mut back, Some(&from));
                [out, gathered, back]
            });
            // A permutation: each row goes to a place of its own.
            let shuffled: Vec<u32> = (0..targets as u32).map(|row| (row * 7 + 3) % targets as u32).collect();
            on_both!(gpu, "a permutation", CLOSE, |device| {
                let (x, mut out) = (device.upload(&out), device.zeros(targets * columns));
                let to = device.index(&shuffled);
                device.add_rows((targets, columns), &x, None, &mut out, Some(&to));
                [out]
            });
        }
    }
}

#[test]
fn layer_norms() {
    for mut gpu in gpus() {
        let mut rng = Pcg64::seed_from_u64(5);
        for (rows, columns) in [(1, 2), (7, 31), (200, 128), (3_000, 96), (5, 1_000)] {
            let (x, dy) = (random(&mut rng, rows * columns), random(&mut rng, rows * columns));
            let (weight, bias, row) = (random(&mut rng, columns), random(&mut rng, columns), random(&mut rng, columns));
            on_both!(gpu, &format!("norm {rows} × {columns}"), SUMMED, |device| {
                let (x, weight, bias) = (device.upload(&x), device.upload(&weight), device.upload(&bias));
                let [mut first, mut normal, mut out, mut dx] = [(); 4].map(|()| device.blank(rows * columns));
                let mut scales = device.blank(rows);
                device.layer_norm(&x, None, &weight, &bias, &mut normal, &mut scales, &mut first);
                let dy = device.upload(&dy);
                device.layer_norm(&x, Some(&dy), &weight, &bias, &mut normal, &mut scales, &mut out);
                let (mut dweight, mut dbias) = (device.zeros(columns), device.upload(&row));
                device.layer_norm_backward(&normal, &scales, &weight, &dy, &mut dx, &mut dweight, &mut dbias);
                [first, normal, scales, out, dx, dweight, dbias]
            });
        }
    }
}

#[test]
fn attention() {
    for mut gpu in gpus() {
        let mut rng = Pcg64::seed_from_u64(6);
        let fixed = |lengths: &[usize]| Segments::of_lengths(lengths.iter().copied());
        let mut shapes = vec![
            (fixed(&[1]), fixed(&[1]), 1, 1),
            (fixed(&[3, 0, 5, 2]), fixed(&[4, 3, 1, 33]), 2, 6),
            (fixed(&[33, 64, 1]), fixed(&[31, 65, 100]), 1, 128),
            (fixed(&[300, 10]), fixed(&[301, 257]), 4, 128),
            (fixed(&[40; 20]), fixed(&[40; 20]), 2, 100),
            (fixed(&[129]), fixed(&[7]), 3, 99),
            (fixed(&[32, 1, 0, 5, 7]), fixed(&[32, 2, 3, 5, 1]), 4, 128),
            (fixed(&[32]), fixed(&[33]), 4, 64),
        ];
        for _ in 0..3 {
            let queries = segments(&mut rng, 40, 90);
            // Each sample has at least one key.
            let keys = Segments::of_lengths(queries.ranges().map(|range| range.len() / 2 + 1));
            shapes.push((queries, keys, 4, 64));
            // Short samples.
            let queries = Segments::of_lengths((0..300).map(|_| rng.random_range(1..8)));
            shapes.push((queries.clone(), queries, 4, 4 * rng.random_range(1..32)));
        }
        for (queries, keys, heads, columns) in &shapes {
            let shape = AttentionShape { queries, keys, heads: *heads, columns: *columns };
            let matrix = |rng: &mut Pcg64, rows: usize| {
                random(rng, rows * columns).iter().map(|value| 2.0 * value).collect::<Vec<f32>>()
            };
            let [q, dy, dq] = [0; 3].map(|_| matrix(&mut rng, queries.rows()));
            let [k, v, dk, dv] = [0; 4].map(|_| matrix(&mut rng, keys.rows()));
            let bias = random(&mut rng, keys.rows());
            for with_bias in [false, true] {
                let name = format!("attention {queries:?} {keys:?} {heads} {columns} {with_bias}");
                on_both!(gpu, &name, SUMMED, |device| {
                    let [q, k, v, dy] = [&q, &k, &v, &dy].map(|values| device.upload(values));
                    let [mut dq, mut dk, mut dv] = [&dq, &dk, &dv].map(|values| device.upload(values));
                    let bias = with_bias.then(|| device.upload(&bias));
                    let kept = device.kept_of_attention(shape);
                    let (mut kept, mut out) = (device.blank(kept), device.blank(queries.rows() * columns));
                    device.attention(shape, &q, &k, &v, bias.as_ref(), &mut kept, &mut out);
                    let pass = AttentionPass { q: &q, k: &k, v: &v, bias: bias.as_ref(), kept: &kept, out: &out };
                    device.attention_backward(shape, pass, &dy, &mut dq, &mut dk, &mut dv);
                    [out, dq, dk, dv]
                });
            }
        }
    }
}

/// Attention to lists of kept keys, its gradients, and the sums that a choice of blocks rests on are the processor's.
#[test]
fn attention_to_lists() {
    fn run<D: LearningLosses>(device: &mut D, jobs: usize, width: usize) -> Vec<Vec<f32>> {
        let mut rng = Pcg64::seed_from_u64(jobs as u64);
        let mut parameters = Tensors::default();
        for place in 0..4 {
            let (rows, columns) = if place == 0 { (jobs + 1, width) } else { (width, width) };
            let values: Vec<f32> = random(&mut rng, rows * columns).iter().map(|value| 0.4 * value).collect();
            parameters.add(device, &format!("p{place}"), rows, columns, &values);
        }
        let ids: Vec<TensorId> = parameters.ids().collect();
        // The first row attends to all; each block of 25 to the first row, to itself, and to some rows of every other
        // block.
        let all: Vec<u32> = (0..=jobs as u32).collect();
        let blocks: Vec<&[u32]> = all[1..].chunks(25).collect();
        let list = |own: &[u32]| -> Vec<u32> {
            let keeps = |row: &u32| *row == 0 || own.contains(row) || row % 7 == own[0] % 5;
            all.iter().copied().filter(keeps).collect()
        };
        let groups = std::iter::once((1, all.clone())).chain(blocks.iter().map(|own| (own.len(), list(own))));
        let lists = KeyLists::new(groups);
        let target = random(&mut rng, (jobs + 1) * width);
        let bias = random(&mut rng, jobs + 1);
        let mut gradients = parameters.zeros_like(device);
        let mut tape = Tape::new(device, &parameters);
        let x = tape.embedding(jobs + 1, &[(ids[0], &all, None)]);
        let [q, k, v] = [1, 2, 3].map(|part| tape.linear(x, ids[part], None));
        let bias = tape.input(jobs + 1, 1, &bias);
        let sums = tape.segment_sums(k, &Segments::of_lengths(blocks.iter().map(|block| block.len())), &all[1..]);
        let out = tape.attention_to(q, k, v, &lists, 4, Some(bias));
        let found = tape.values(out);
        let weights = vec![1.0 / jobs as f32; target.len()];
        let loss: Loss<D> = tape.regression(out, None, &target, &weights);
        tape.backward([loss], &mut gradients);
        drop(tape);
        let mut results = vec![sums, found];
        results.extend(ids.iter().map(|id| gradients.values(device, *id)));
        results
    }
    for mut gpu in gpus() {
        for (jobs, width) in [(3, 8), (64, 32), (200, 128), (600, 128)] {
            let expected = run(&mut Cpu::default(), jobs, width);
            let found = run(&mut *gpu, jobs, width);
            compare(&format!("attention to lists, {jobs} jobs"), SUMMED, &expected, &found);
            assert_eq!(run(&mut *gpu, jobs, width), found, "the same lists gave other numbers");
        }
    }
}

/// The result is zero for queries of samples without keys.
#[test]
fn attention_to_nothing() {
    let (queries, keys) = (Segments::of_lengths([2, 3]), Segments::of_lengths([0, 1]));
    let shape = AttentionShape { queries: &queries, keys: &keys, heads: 1, columns: 2 };
    fn attend<D: Device>(device: &mut D, shape: AttentionShape<'_>) -> Vec<f32> {
        let (q, k, v) = (device.upload(&[1.0; 10]), device.upload(&[1.0; 2]), device.upload(&[2.0, 3.0]));
        let (mut kept, mut out) = (device.blank(device.kept_of_attention(shape)), device.upload(&[9.0; 10]));
        device.attention(shape, &q, &k, &v, None, &mut kept, &mut out);
        device.download(&out)
    }
    let expected = [0.0, 0.0, 0.0, 0.0, 2.0, 3.0, 2.0, 3.0, 2.0, 3.0];
    assert_eq!(attend(&mut Cpu::default(), shape), expected);
    for mut gpu in gpus() {
        assert_eq!(attend(&mut *gpu, shape), expected);
    }
}

#[test]
fn samples_and_losses() {
    for mut gpu in gpus() {
        let mut rng = Pcg64::seed_from_u64(7);
        for (samples, longest) in [(3, 9), (70, 5), (300, 130)] {
            let segments = segments(&mut rng, samples, longest);
            let n = segments.rows();
            let (x, dy) = (random(&mut rng, n), random(&mut rng, n));
            let mut losses = Vec::new();
            let weights = random(&mut rng, n);
            for delta in [None, Some(0.3)] {
                on_both!(gpu, "regression", CLOSE, |device| {
                    let (x, target, weights) = (device.upload(&x), device.upload(&dy), device.upload(&weights));
                    let mut out = device.blank(n);
                    losses.push(device.regression(delta, &x, &target, &weights, &mut out));
                    [out]
                });
            }
            compare_totals(&losses, TOTAL_OF_SINGLES);
        }
    }
}

/// Random samples of two to `longest` rows with random counts, and up to `places` picked rows of each in random order.
fn picked(rng: &mut Pcg64, samples: usize, longest: usize, places: usize) -> (Segments, Vec<u32>, Vec<Vec<u32>>) {
    let rows = Segments::of_lengths((0..samples).map(|_| rng.random_range(2..=longest)));
    let counts: Vec<u32> = (0..rows.rows() - samples).map(|_| rng.random_range(1..4)).collect();
    let own = |(sample, range): (usize, std::ops::Range<usize>)| {
        let own = &counts[range.start - sample..range.end - sample - 1];
        let mut all: Vec<u32> = (1..).zip(own).flat_map(|(row, count)| vec![row; *count as usize]).collect();
        (1..all.len()).rev().for_each(|place| all.swap(place, rng.random_range(0..=place)));
        all.truncate(places);
        all
    };
    let picked = rows.ranges().enumerate().map(own).collect();
    (rows, counts, picked)
}

/// Number of samples, rows of the longest, and picked rows of each.
const PICKED: [(usize, usize, usize); 5] = [(1, 2, 1), (50, 7, 1), (300, 40, 4), (20, 130, 9), (70, 20, 2)];

#[track_caller]
fn compare_totals(totals: &[f64], tolerance: f64) {
    for pair in totals.chunks(2) {
        assert!((pair[0] - pair[1]).abs() <= tolerance * (1.0 + pair[0].abs()), "{pair:?}");
    }
}

#[test]
fn policies() {
    for mut gpu in gpus() {
        let mut rng = Pcg64::seed_from_u64(10);
        for (samples, longest, places) in PICKED {
            let (rows, counts, picked) = picked(&mut rng, samples, longest, places);
            let one = |own: &Vec<u32>| {
                let [log, advantage, value_target] = [(); 3].map(|()| 2.0 * rng.random::<f32>() - 1.0);
                PolicySample { log_likelihood: 0.2 * log - 1.5 * own.len() as f32, advantage, value_target }
            };
            let made: Vec<PolicySample> = picked.iter().map(one).collect();
            let weights = PolicyWeights { clip: 0.2, entropy: 0.1, value: 0.5, share: 1.0 / samples as f32 };
            let selected = SelectedRows::new(&rows, &counts, picked.iter().map(Vec::as_slice));
            let choices = PolicyBatch { selected, samples: &made, weights };
            let q: Vec<f32> = random(&mut rng, rows.rows()).iter().map(|q| 3.0 * q).collect();
            let value = random(&mut rng, samples);
            let mut losses = Vec::new();
            on_both!(gpu, &format!("policy of {samples}"), SUMMED, |device| {
                let (q, value) = (device.upload(&q), device.upload(&value));
                let (mut by_q, mut by_value) = (device.blank(rows.rows()), device.blank(samples));
                let loss = device.policy_loss(&choices, &q, &value, &mut by_q, &mut by_value);
                losses.push(device.number(&loss));
                [by_q, by_value]
            });
            compare_totals(&losses, TOTAL);
        }
    }
}

#[test]
fn imitations() {
    for mut gpu in gpus() {
        let mut rng = Pcg64::seed_from_u64(11);
        // With only one row to pick, all gradients are zero.
        for (samples, longest, places) in PICKED.into_iter().skip(1) {
            let (rows, counts, picked) = picked(&mut rng, samples, longest, places);
            // Any two rows, including the first; gains, losses and zeros.
            let exchange = |rows: u32, rng: &mut Pcg64| {
                let gain = [2.0 * rng.random::<f32>() - 1.0, 0.0][usize::from(rng.random_bool(0.1))];
                (rng.random_range(0..rows), rng.random_range(0..rows), gain)
            };
            let own = |range: std::ops::Range<usize>| -> Vec<Exchange> {
                (0..rng.random_range(0..4)).map(|_| exchange(range.len() as u32, &mut rng)).collect()
            };
            let exchanges: Vec<Vec<Exchange>> = rows.ranges().map(own).collect();
            let picks = || SelectedRows::new(&rows, &counts, picked.iter().map(Vec::as_slice));
            let both = ImitationBatch::new(picks(), 0.3).with_exchanges(0.7, exchanges.iter().map(Vec::as_slice));
            let q: Vec<f32> = random(&mut rng, rows.rows()).iter().map(|q| 3.0 * q).collect();
            let mut losses = Vec::new();
            for imitation in [ImitationBatch::new(picks(), 1.0 / samples as f32), both] {
                on_both!(gpu, &format!("imitation of {samples}"), SUMMED, |device| {
                    let (q, mut by_q) = (device.upload(&q), device.blank(rows.rows()));
                    let loss = device.imitation_loss(&imitation, &q, &mut by_q);
                    losses.push(device.number(&loss));
                    [by_q]
                });
            }
            compare_totals(&losses, TOTAL_OF_SINGLES);
        }
    }
}

#[test]
fn values_of_choices() {
    for mut gpu in gpus() {
        let mut rng = Pcg64::seed_from_u64(12);
        for (samples, longest, places) in PICKED {
            let (rows, counts, picked) = picked(&mut rng, samples, longest, places);
            // Few different numbers, so that some are equal and the earlier row must come first.
            let chooser: Vec<f32> = (0..rows.rows()).map(|_| rng.random_range(-4..5) as f32 / 4.0).collect();
            let (q, value, weights) =
                (random(&mut rng, rows.rows()), random(&mut rng, samples), random(&mut rng, samples));
            let weights: Vec<f32> = weights.iter().map(|weight| weight.abs()).collect();
            let n_step = |_| NStepReturn {
                places: rng.random_range(0..=places as u32 + 1),
                reward: rng.random(),
                discount: rng.random(),
            };
            let returns: Vec<NStepReturn> = (0..samples).map(n_step).collect();
            for (is_dueling, may_idle, bound, likelihood) in [
                (true, false, Some(0.6), 0.0),
                (false, true, None, 0.4),
                (true, true, None, 0.0),
                (false, false, Some(0.2), 1.5),
            ] {
                let next_states = NextStates { rows: &rows, counts: &counts, returns: &returns, is_dueling, may_idle };
                let selected = SelectedRows::new(&rows, &counts, picked.iter().map(Vec::as_slice));
                let values = QValueBatch { selected, weights: &weights, is_dueling, bound, likelihood };
                for is_double in [false, true] {
                    let mut losses = Vec::new();
                    on_both!(gpu, &format!("values of {samples}, {is_double} {next_states:?}"), SUMMED, |device| {
                        let (chooser, q, value) = (device.upload(&chooser), device.upload(&q), device.upload(&value));
                        let mut by_q = device.blank(rows.rows());
                        let [mut target, mut by_value, mut errors] = [(); 3].map(|()| device.blank(samples));
                        device.bootstrap_targets(&next_states, is_double.then_some(&chooser), &q, &value, &mut target);
                        let (by, by_v, e) = (&mut by_q, &mut by_value, &mut errors);
                        let loss = device.q_value_loss(&values, &q, &value, &target, by, by_v, e);
                        losses.push(device.number(&loss));
                        [target, by_q, by_value, errors]
                    });
                    compare_totals(&losses, TOTAL_OF_SINGLES);
                }
            }
        }
    }
}

/// A failure is reported, and all further work is ignored without a panic. No memory of the host is needed for that.
#[test]
fn a_failure_is_kept() {
    // Other tests must wait, because there will be no GPU memory left.
    let others = gpus();
    if others.is_empty() {
        return;
    }
    let mut gpu = Cuda::new().unwrap();
    assert_eq!(gpu.failure(), None);
    // More memory than any GPU has.
    let all: Vec<_> = (0..256).map(|_| gpu.blank(1 << 30)).collect();
    let failure = gpu.failure().expect("1 TiB is more than there is");
    assert!(failure.contains("MEMORY") && failure.contains("MiB"), "{failure}");
    drop(all);
    let (left, right) = (gpu.upload(&[1.0; 4]), gpu.upload(&[1.0; 4]));
    let mut out = gpu.zeros(4);
    let product = Product { m: 2, n: 2, k: 2, left_transposed: false, right_transposed: false, accumulate: false };
    gpu.product(product, &left, &right, &mut out);
    gpu.add(&left, &mut out);
    assert_eq!(gpu.download(&out), [0.0; 4]);
    assert_eq!(
        (gpu.square_sum(&left), gpu.failure(), gpu.another().failure()),
        (0.0, Some(failure.clone()), Some(failure))
    );
}

/// Trains a small encoder with embeddings, attention, a norm and a head for a few steps of Adam.
fn train<D: LearningLosses>(device: &mut D, seed: u64, steps: usize) -> (Vec<f64>, Vec<Vec<f32>>) {
    const WIDTH: usize = 32;
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut parameters = Tensors::default();
    let shapes =
        [(20, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH), (1, WIDTH), (1, WIDTH), (1, WIDTH), (1, 1)];
    for (place, (rows, columns)) in shapes.iter().enumerate() {
        let values: Vec<f32> = random(&mut rng, rows * columns).iter().map(|value| 0.3 * value).collect();
        parameters.add(device, &format!("p{place}"), *rows, *columns, &values);
    }
    let ids: Vec<TensorId> = parameters.ids().collect();
    let segments = Arc::new(segments(&mut rng, 24, 40));
    let rows = segments.rows();
    let tokens: Vec<u32> = (0..rows).map(|_| rng.random_range(0..20)).collect();
    let target = random(&mut rng, rows);
    let mut adam = Adam::new(device, AdamSettings::default(), &parameters);
    let mut gradients = parameters.zeros_like(device);
    let mut losses = Vec::new();
    for _ in 0..steps {
        gradients.clear(device);
        let mut tape = Tape::new(device, &parameters);
        let x = tape.embedding(rows, &[(ids[0], &tokens, None)]);
        let [q, k, v] = [1, 2, 3].map(|part| tape.linear(x, ids[part], None));
        let mixed = tape.attention(q, k, v, &segments, &segments, 4, None);
        let y = tape.norm(x, Some(mixed), ids[4], ids[5]);
        let y = tape.relu(y);
        let out = tape.linear(y, ids[6], Some(ids[7]));
        let loss: Loss<D> = tape.regression(out, Some(1.0), &target, &vec![1.0 / rows as f32; rows]);
        losses.push(loss.value);
        tape.backward([loss], &mut gradients);
        drop(tape);
        adam.clipped_step(device, 0.01, 1.0, &mut gradients, &mut parameters);
    }
    (losses, ids.iter().map(|id| parameters.values(device, *id)).collect())
}

#[test]
fn a_training_is_the_processors_and_repeats_itself() {
    for mut gpu in gpus() {
        let (expected, parameters) = train(&mut Cpu::default(), 9, 1);
        let (losses, found) = train(&mut *gpu, 9, 1);
        compare("one step", 1e-4, &parameters, &found);
        assert!((losses[0] - expected[0]).abs() < 1e-5, "{losses:?} {expected:?}");
        let (expected, _) = train(&mut Cpu::default(), 9, 30);
        let (losses, first) = train(&mut *gpu, 9, 30);
        assert!(losses[29] < 0.9 * losses[0] && (losses[29] - expected[29]).abs() < 1e-3, "{losses:?} {expected:?}");
        let memory = gpu.memory();
        let (again, second) = train(&mut *gpu, 9, 30);
        assert!(losses == again && first == second, "the same training gave other numbers");
        assert_eq!(gpu.memory(), memory, "the same training took more memory");
    }
}

#[test]
fn numbers_of_other_threads_arrive() {
    let mut gpus = gpus();
    let Some(gpu) = gpus.first_mut() else { return };
    let stager = gpu.stager().expect("a GPU has pinned memory");
    // More pieces in flight than any training has, of sizes that fit and do not fit the pieces that come back.
    let buffers: Vec<_> = (0..40usize)
        .map(|round| {
            let len = 1 + round * 7919 % 50_000;
            let staged = std::thread::scope(|scope| {
                let write = || {
                    let mut staged = stager(len);
                    assert_eq!(staged.values().len(), len);
                    (0..).zip(staged.values()).for_each(|(place, value)| *value = (place + round) as f32);
                    staged
                };
                scope.spawn(write).join().unwrap()
            });
            (round, len, gpu.upload_staged(staged))
        })
        .collect();
    for (round, len, buffer) in &buffers {
        let expected: Vec<f32> = (0..*len).map(|place| (place + round) as f32).collect();
        assert_eq!(gpu.download(buffer), expected);
    }
    let plain = gpu.upload_staged(Box::new(vec![1.0, 2.0]));
    assert_eq!(gpu.download(&plain), [1.0, 2.0]);
}

/// What a device of a gang computes does not depend on the others: neither on what they do nor on how many there are.
#[test]
fn a_gang_computes_what_each_of_its_devices_would_alone() {
    let gpus = gpus();
    let Some(gang) = gpus.get(1) else { return };
    let alone: Vec<_> = (0..10).map(|seed| train(&mut gang.another(), seed, 3 + seed as usize)).collect();
    // More devices than calls of one launch, out of step with each other, and coming and going.
    let together: Vec<_> = std::thread::scope(|scope| {
        let start = |thread: u64| {
            let mut device = gang.another();
            scope.spawn(move || train(&mut device, thread % 10, 3 + (thread % 10) as usize))
        };
        let threads: Vec<_> = (0..90).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (thread, found) in together.iter().enumerate() {
        assert!(*found == alone[thread % 10], "device {thread}");
    }
    assert_eq!(gang.failure(), None);
}
