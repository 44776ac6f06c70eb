//! The paper's micro-benchmark of sparse attention: one layer on a GPU, rows in deadline order, block top-k compared with dense attention. Prints JSON.
//!
//!     cargo run --release -p temponet-grad --features cuda --example attention_cuda [-- JOBS BATCH]
//!
//! Both kernels are checked against the CPU before they are timed. Times are medians between events on the GPU's own stream. The inputs stay in the caches
//! as the pass before left them, as the activations of a network do.

#![allow(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use cudarc::driver::sys::{CUevent_flags, CUfunction_attribute};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DeviceRepr, LaunchArgs, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_grad::Cuda;

const WIDTH: usize = 128;
const HEADS: usize = 4;
const SIZE: usize = WIDTH / HEADS;
/// Number of queries per block, and of keys that it loads at a time.
const QUERIES: usize = 32;
const KEYS: usize = 64;
/// Number of warps per block of each kernel.
const DENSE_WARPS: usize = 4;
const SPARSE_WARPS: usize = 8;
const WARM_UP: usize = 50;
const TIMED: usize = 300;
/// Greatest allowed difference from the CPU's result.
const CLOSE: f64 = 1e-5;

/// Shape of the attention, in the layout that the kernels read.
#[repr(C)]
#[derive(Clone, Copy)]
struct Shape {
    rows: i32,
    columns: i32,
    heads: i32,
    padded: i32,
    scale: f32,
}

// SAFETY: it consists of plain numbers in C layout.
unsafe impl DeviceRepr for Shape {}

/// Sparsity of the paper: rows per chunk, rows per block, and keys kept per query and block.
#[derive(Clone, Copy)]
struct Sparsity {
    chunk: usize,
    block: usize,
    keep: usize,
}

impl Sparsity {
    fn paper(jobs: usize) -> Sparsity {
        let n = jobs as f64;
        let block = n.sqrt().ceil() as usize;
        let keep = if jobs <= 100 { (block / 10).max(1) } else { block.ilog2() as usize + 1 };
        Sparsity { chunk: jobs.div_ceil((n.ln().ceil() as usize).max(1)), block, keep }
    }

    /// Jobs of a query's own chunk.
    fn own(self, query: usize, jobs: usize) -> std::ops::Range<usize> {
        let first = (query - 1) / self.chunk * self.chunk;
        first..(first + self.chunk).min(jobs)
    }

    /// Rows that a query attends to, given its logits.
    fn kept(self, query: usize, logits: &[f32]) -> Vec<usize> {
        if query == 0 {
            return (0..logits.len()).collect();
        }
        let jobs = &logits[1..];
        let own = self.own(query, jobs.len());
        let mut kept: Vec<usize> = std::iter::once(0).chain(own.clone().map(|job| job + 1)).collect();
        for start in (0..jobs.len()).step_by(self.block) {
            let end = (start + self.block).min(jobs.len());
            let mut others: Vec<usize> = (start..end).filter(|job| !own.contains(job)).collect();
            others.sort_by(|left, right| jobs[*right].total_cmp(&jobs[*left]));
            kept.extend(others.iter().take(self.keep).map(|job| job + 1));
        }
        kept
    }
}

/// Attention of one sample on the CPU. Logits are rounded as the kernels round them, so that the same keys are kept.
fn reference(sparsity: Option<Sparsity>, rows: usize, [q, k, v]: [&[f32]; 3]) -> Vec<f64> {
    let scale = 1.0 / (SIZE as f32).sqrt();
    let mut out = vec![0.0; rows * WIDTH];
    for head in 0..HEADS {
        let part =
            |data: &[f32], row: usize| -> [f32; SIZE] { std::array::from_fn(|c| data[row * WIDTH + head * SIZE + c]) };
        for query in 0..rows {
            let own = part(q, query);
            let dot = |row: usize| own.iter().zip(part(k, row)).fold(0.0f32, |sum, (a, b)| a.mul_add(b, sum)) * scale;
            let logits: Vec<f32> = (0..rows).map(dot).collect();
            let kept = sparsity.map_or_else(|| (0..rows).collect(), |sparsity| sparsity.kept(query, &logits));
            let most = kept.iter().map(|row| logits[*row]).fold(f32::MIN, f32::max);
            let powers: Vec<f64> = kept.iter().map(|row| f64::from(logits[*row] - most).exp()).collect();
            let sum: f64 = powers.iter().sum();
            for (row, power) in kept.iter().zip(&powers) {
                for (c, value) in part(v, *row).iter().enumerate() {
                    out[query * WIDTH + head * SIZE + c] += power / sum * f64::from(*value);
                }
            }
        }
    }
    out
}

struct Bench {
    stream: Arc<CudaStream>,
    inputs: [CudaSlice<f32>; 3],
    shape: Shape,
    batch: usize,
}

impl Bench {
    fn launch(&self, arguments: &mut LaunchArgs<'_>, warps: usize, shared: usize) -> Result<(), Box<dyn Error>> {
        let tiles = (self.shape.rows as usize).div_ceil(QUERIES) as u32;
        let config = LaunchConfig {
            grid_dim: ((self.batch * HEADS) as u32, tiles, 1),
            block_dim: (32 * warps as u32, 1, 1),
            shared_mem_bytes: shared as u32,
        };
        // SAFETY: the arguments are those of the kernel, and it reads no row beyond the shape.
        unsafe { arguments.launch(config) }?;
        Ok(())
    }

    fn run(
        &self,
        kernel: &CudaFunction,
        sparsity: Option<Sparsity>,
        out: &mut CudaSlice<f32>,
    ) -> Result<(), Box<dyn Error>> {
        let [q, k, v] = &self.inputs;
        let shared = 4 * ((QUERIES + KEYS) * (SIZE + 4) + QUERIES * self.shape.padded as usize);
        let mut arguments = self.stream.launch_builder(kernel);
        arguments.arg(&self.shape);
        let Some(Sparsity { chunk, block, keep }) = sparsity else {
            arguments.arg(q).arg(k).arg(v).arg(out);
            return self.launch(&mut arguments, DENSE_WARPS, shared);
        };
        let longest = 1 + chunk + (self.shape.rows as usize - 1).div_ceil(block) * keep;
        let [chunk, block, longest_argument] = [chunk, block, longest].map(|value| value as i32);
        arguments.arg(&chunk).arg(&block).arg(&longest_argument).arg(q).arg(k).arg(v).arg(out);
        self.launch(&mut arguments, SPARSE_WARPS, shared + 2 * SPARSE_WARPS * longest)
    }

    /// Median time in milliseconds.
    fn time(
        &self,
        kernel: &CudaFunction,
        sparsity: Option<Sparsity>,
        out: &mut CudaSlice<f32>,
    ) -> Result<f32, Box<dyn Error>> {
        let mut times = Vec::new();
        for pass in 0..WARM_UP + TIMED {
            let start = self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
            self.run(kernel, sparsity, out)?;
            let end = self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
            end.synchronize()?;
            if pass >= WARM_UP {
                times.push(start.elapsed_ms(&end)?);
            }
        }
        times.sort_by(f32::total_cmp);
        Ok(times[TIMED / 2])
    }
}

/// Greatest difference of the first and the last sample from the CPU's result.
fn error_of(sparsity: Option<Sparsity>, rows: usize, host: &[Vec<f32>; 3], found: &[f32]) -> f64 {
    let size = rows * WIDTH;
    let samples = [0, found.len() / size - 1];
    let errors = samples.iter().flat_map(|sample| {
        let here = sample * size..(sample + 1) * size;
        let expected = reference(sparsity, rows, [0, 1, 2].map(|part| &host[part][here.clone()]));
        expected
            .into_iter()
            .zip(&found[here])
            .map(|(expected, found)| (expected - f64::from(*found)).abs())
            .collect::<Vec<_>>()
    });
    // NaN must not be taken for a small error.
    errors.fold(0.0, |most, error| if error <= most { most } else { error })
}

fn bench(jobs: usize, batch: usize) -> Result<(), Box<dyn Error>> {
    let name = Cuda::new()?.name();
    let rows = jobs + 1;
    let sparsity = Sparsity::paper(jobs);
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let (major, minor) = context.compute_capability()?;
    let options = vec![
        format!("--gpu-architecture=compute_{major}{minor}"),
        format!("-DSIZE={SIZE}"),
        format!("-DKEEP={}", sparsity.keep),
    ];
    let options = CompileOptions { options, ..CompileOptions::default() };
    let module = context.load_module(compile_ptx_with_opts(include_str!("attention_cuda.cu"), options)?)?;
    let most_shared = context
        .attribute(cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let kernel = |name| -> Result<CudaFunction, Box<dyn Error>> {
        let kernel = module.load_function(name)?;
        kernel.set_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most_shared)?;
        Ok(kernel)
    };
    let mut rng = Pcg64::seed_from_u64(1);
    let host: [Vec<f32>; 3] =
        std::array::from_fn(|_| (0..batch * rows * WIDTH).map(|_| 4.0 * rng.random::<f32>() - 2.0).collect());
    let [q, k, v] = &host;
    let inputs = [stream.clone_htod(q)?, stream.clone_htod(k)?, stream.clone_htod(v)?];
    let shape = Shape {
        rows: rows as i32,
        columns: WIDTH as i32,
        heads: HEADS as i32,
        padded: rows.next_multiple_of(KEYS) as i32,
        scale: 1.0 / (SIZE as f32).sqrt(),
    };
    let bench = Bench { stream: stream.clone(), inputs, shape, batch };
    let mut figures = Vec::new();
    for (name, sparsity) in [("dense", None), ("sparse", Some(sparsity))] {
        let kernel = kernel(name)?;
        let mut out = stream.alloc_zeros::<f32>(batch * rows * WIDTH)?;
        bench.run(&kernel, sparsity, &mut out)?;
        let error = error_of(sparsity, rows, &host, &stream.clone_dtoh(&out)?);
        if error > CLOSE {
            return Err(format!("{name} attention is {error:e} from the processor's").into());
        }
        figures.push((name, bench.time(&kernel, sparsity, &mut out)?, error));
    }
    // The number of keys that a query attends to does not depend on the logits.
    let kept: usize = (0..rows).map(|query| sparsity.kept(query, &vec![0.0; rows]).len()).sum();
    let (parts, row_bytes, tiles) = (batch * HEADS, 4 * SIZE, rows.div_ceil(QUERIES));
    // Bytes of keys and values that each query reads by itself, and bytes that the kernels load: keys and dense values once for 32 queries.
    let looked_at = [2 * rows * rows, rows * rows + kept].map(|count| count * parts * row_bytes);
    let loaded = [2 * tiles * rows, tiles * rows + kept].map(|count| count * parts * row_bytes);
    println!("{{");
    println!(
        "  \"card\": \"{name}\", \"jobs\": {jobs}, \"rows\": {rows}, \"batch\": {batch}, \"width\": {WIDTH}, \"heads\": {HEADS},"
    );
    let Sparsity { chunk, block, keep } = sparsity;
    println!(
        "  \"chunk\": {chunk}, \"block\": {block}, \"keep\": {keep}, \"keys_per_query\": {:.1},",
        kept as f64 / rows as f64
    );
    for (place, (name, time, error)) in figures.iter().enumerate() {
        println!(
            "  \"{name}\": {{ \"median_ms\": {time:.4}, \"error\": {error:.1e}, \"key_value_bytes\": {}, \"key_value_bytes_loaded\": {} }},",
            looked_at[place], loaded[place]
        );
    }
    println!("  \"time_ratio\": {:.3},", figures[1].1 / figures[0].1);
    println!("  \"bytes_ratio\": {:.3}", looked_at[1] as f64 / looked_at[0] as f64);
    println!("}}");
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: usize| arguments.get(place).map_or(Ok(default), |text| text.parse::<usize>());
    let (Ok(jobs @ 2..=1400), Ok(batch @ 1..=1024)) = (number(0, 600), number(1, 32)) else {
        eprintln!("error: JOBS from 2 to 1400 and BATCH from 1 to 1024 are wanted, not {arguments:?}");
        return ExitCode::from(2);
    };
    match bench(jobs, batch) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
