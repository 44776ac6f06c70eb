//! Time of a training step of the paper's encoder (d = 128, two layers, four heads, feed-forward 512) on one thread of
//! the CPU and on the GPU: forward, backward, clipping and Adam. Prints JSON.
//!
//!     cargo run --release -p temponet-grad --features cuda --example training_step_cuda [-- ROWS BATCH]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_grad::{Adam, AdamSettings, Cpu, Cuda, Device, LearningLosses, Segments, Tape, TensorId, Tensors, Var};

const WIDTH: usize = 128;
const HIDDEN: usize = 512;
const HEADS: usize = 4;
const LAYERS: usize = 2;
const TOKENS: usize = 130;
/// Time for which steps are repeated.
const LENGTH: Duration = Duration::from_secs(2);

/// Shapes of a layer's parameters: queries, keys, values, output, two norms, and the feed-forward maps up and down with
/// their biases.
const LAYER: [(usize, usize); 12] = [
    (WIDTH, WIDTH),
    (WIDTH, WIDTH),
    (WIDTH, WIDTH),
    (WIDTH, WIDTH),
    (1, WIDTH),
    (1, WIDTH),
    (1, WIDTH),
    (1, WIDTH),
    (HIDDEN, WIDTH),
    (1, HIDDEN),
    (WIDTH, HIDDEN),
    (1, WIDTH),
];

fn layer<D: Device>(tape: &mut Tape<'_, D>, x: Var, ids: &[TensorId], segments: &Arc<Segments>) -> Var {
    let [q, k, v] = [0, 1, 2].map(|part| tape.linear(x, ids[part], None));
    let mixed = tape.attention(q, k, v, segments, segments, HEADS, None);
    let change = tape.linear(mixed, ids[3], None);
    let x = tape.norm(x, Some(change), ids[4], ids[5]);
    let up = tape.linear(x, ids[8], Some(ids[9]));
    let active = tape.relu(up);
    let change = tape.linear(active, ids[10], Some(ids[11]));
    tape.norm(x, Some(change), ids[6], ids[7])
}

/// Median time of a step in milliseconds, and the last loss.
fn time<D: LearningLosses>(device: &mut D, rows: usize, batch: usize) -> (f64, f64) {
    let mut rng = Pcg64::seed_from_u64(1);
    let mut parameters = Tensors::default();
    let shapes = [(TOKENS, WIDTH)].into_iter().chain(LAYER.repeat(LAYERS)).chain([(1, WIDTH), (1, 1)]);
    for (place, (rows, columns)) in shapes.enumerate() {
        let size = 1.0 / (columns as f32).sqrt();
        let values: Vec<f32> = (0..rows * columns).map(|_| size * (2.0 * rng.random::<f32>() - 1.0)).collect();
        parameters.add(device, &format!("p{place}"), rows, columns, &values);
    }
    let ids: Vec<TensorId> = parameters.ids().collect();
    let mut adam = Adam::new(device, AdamSettings::default(), &parameters);
    let mut gradients = parameters.zeros_like(device);
    let (mut times, mut last) = (Vec::new(), 0.0);
    let begin = Instant::now();
    while times.len() < 5 || begin.elapsed() < LENGTH {
        // Every batch has different lengths and tokens.
        let lengths: Vec<usize> = (0..batch).map(|_| rng.random_range(rows / 2..=rows)).collect();
        let segments = Arc::new(Segments::of_lengths(lengths));
        let count = segments.rows();
        let tokens: Vec<u32> = (0..count).map(|_| rng.random_range(0..TOKENS as u32)).collect();
        let target: Vec<f32> = tokens.iter().map(|token| *token as f32 / TOKENS as f32).collect();
        let start = Instant::now();
        gradients.clear(device);
        let mut tape = Tape::new(device, &parameters);
        let mut x = tape.embedding(count, &[(ids[0], &tokens, None)]);
        for place in 0..LAYERS {
            x = layer(&mut tape, x, &ids[1 + place * LAYER.len()..], &segments);
        }
        let out = tape.linear(x, ids[ids.len() - 2], Some(ids[ids.len() - 1]));
        let loss = tape.regression(out, None, &target, &vec![1.0 / count as f32; count]);
        last = loss.value;
        tape.backward([loss], &mut gradients);
        drop(tape);
        adam.clipped_step(device, 1e-3, 1.0, &mut gradients, &mut parameters);
        // Reading a parameter waits for the end of the step.
        parameters.values(device, ids[ids.len() - 1]);
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], last)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: usize| arguments.get(place).map_or(Ok(default), |text| text.parse::<usize>());
    let (Ok(rows @ 2..=2000), Ok(batch @ 1..=4096)) = (number(0, 100), number(1, 64)) else {
        eprintln!("error: ROWS from 2 to 2000 and BATCH from 1 to 4096 are wanted, not {arguments:?}");
        return ExitCode::from(2);
    };
    let mut gpu = match Cuda::new() {
        Ok(gpu) => gpu,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let (on_cpu, _) = time(&mut Cpu::default(), rows, batch);
    let (on_gpu, loss) = time(&mut gpu, rows, batch);
    gpu.allow_tf32(true);
    let (with_tf32, _) = time(&mut gpu, rows, batch);
    println!(
        "{{ \"card\": \"{}\", \"rows\": {rows}, \"batch\": {batch}, \"cpu_ms\": {on_cpu:.3}, \"gpu_ms\": {on_gpu:.3}, \
         \"gpu_tf32_ms\": {with_tf32:.3}, \"ratio\": {:.1}, \"loss\": {loss:.2e}, \"gpu_bytes\": {} }}",
        gpu.name(),
        on_cpu / on_gpu,
        gpu.memory()
    );
    ExitCode::SUCCESS
}
