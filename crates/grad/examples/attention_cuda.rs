//! The paper's micro-benchmark of sparse attention: one layer on a GPU, rows in deadline order, sparse compared with dense attention. Prints JSON.
//!
//!     cargo run --release -p temponet-grad --features cuda --example attention_cuda [-- JOBS BATCH]
//!
//! Both are checked against the CPU before they are timed. Times are medians between events on the GPU's own stream; that of sparse attention includes the
//! choice of the keys. The inputs stay in the caches as the pass before left them, as the activations of a network do.

#![allow(unsafe_code)]

use std::error::Error;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;

use cudarc::driver::sys::{CUevent_flags, CUfunction_attribute};
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg};
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
/// Number of threads per block of each kernel.
const THREADS: u32 = 128;
const WARM_UP: usize = 50;
const TIMED: usize = 300;
/// Greatest allowed difference from the CPU's result, and of the scores of two blocks that rounding may swap.
const CLOSE: f64 = 1e-5;
const CLOSE_SCORE: f64 = 1e-3;

/// Shape of the attention, in the layout that the kernels read.
#[repr(C)]
#[derive(Clone, Copy)]
struct Shape {
    rows: i32,
    columns: i32,
    heads: i32,
    scale: f32,
}

/// Blocks of rows, in the layout that the kernels read.
#[repr(C)]
#[derive(Clone, Copy)]
struct Cut {
    blocks: i32,
    chunk: i32,
    keep: i32,
    longest: i32,
}

// SAFETY: both consist of plain numbers in C layout.
unsafe impl DeviceRepr for Shape {}
// SAFETY: as above.
unsafe impl DeviceRepr for Cut {}

/// Sparsity of the paper: rows per chunk, rows per block, and blocks of other chunks that are looked into.
#[derive(Clone, Copy)]
struct Sparsity {
    jobs: usize,
    chunk: usize,
    block: usize,
    keep: usize,
}

impl Sparsity {
    fn paper(jobs: usize) -> Sparsity {
        let n = jobs as f64;
        let block = n.sqrt().ceil() as usize;
        let keep = if jobs <= 100 { (block / 10).max(1) } else { block.ilog2() as usize + 1 };
        Sparsity { jobs, chunk: jobs.div_ceil((n.ln().ceil() as usize).max(1)), block, keep }
    }

    fn chunks(self) -> impl Iterator<Item = Range<usize>> {
        (0..self.jobs).step_by(self.chunk).map(move |start| 1 + start..1 + (start + self.chunk).min(self.jobs))
    }

    /// Rows of each block. Blocks do not cross the border of a chunk.
    fn blocks(self) -> Vec<Range<usize>> {
        let of = |chunk: Range<usize>| {
            let end = chunk.end;
            chunk.step_by(self.block).map(move |start| start..(start + self.block).min(end))
        };
        self.chunks().flat_map(of).collect()
    }

    fn chunk_of(self, row: usize) -> usize {
        (row - 1) / self.chunk
    }

    /// Greatest length of a list.
    fn longest(self) -> usize {
        1 + self.chunks().count() + self.chunk + self.keep * self.block
    }

    /// Checks the list of a block of one sample: it is the idle row, the own chunk, each chunk's middle row, and as many blocks of other chunks as are kept,
    /// none of which has a lower score than another one, except for rounding.
    fn check(self, own: &Range<usize>, list: &[i32], [q, k]: [&[f32]; 2]) -> Result<(), String> {
        let is_listed = |row: usize| list.contains(&(row as i32));
        let blocks = self.blocks();
        let sum = |data: &[f32], rows: &Range<usize>, column: usize| -> f64 {
            rows.clone().map(|row| f64::from(data[row * WIDTH + column])).sum()
        };
        let score = |rows: &Range<usize>| -> f64 {
            (0..WIDTH).map(|column| sum(q, own, column) * sum(k, rows, column)).sum::<f64>() / rows.len() as f64
        };
        let middles: Vec<usize> = self.chunks().map(|chunk| chunk.start + (chunk.len() - 1) / 2).collect();
        let (mut looked_into, mut others, mut expected) = (Vec::new(), Vec::new(), vec![0]);
        for rows in blocks {
            if self.chunk_of(rows.start) == self.chunk_of(own.start) {
                expected.extend(rows);
            } else if rows.clone().all(is_listed) && (rows.len() > 1 || !middles.contains(&rows.start)) {
                looked_into.push(score(&rows));
                expected.extend(rows);
            } else {
                others.push(score(&rows));
                expected.extend(rows.filter(|row| middles.contains(row)));
            }
        }
        let expected: Vec<i32> = expected.into_iter().map(|row| row as i32).collect();
        if list != expected {
            return Err(format!("the list of the queries {own:?} is {list:?} instead of {expected:?}"));
        }
        let least = looked_into.iter().copied().fold(f64::INFINITY, f64::min);
        match others.iter().find(|other| **other > least + CLOSE_SCORE) {
            Some(other) => {
                Err(format!("the queries {own:?} look into a block of score {least} and not into one of {other}"))
            }
            None if looked_into.len() != self.keep.min(looked_into.len() + others.len()) => {
                Err(format!("the queries {own:?} look into {} blocks", looked_into.len()))
            }
            None => Ok(()),
        }
    }
}

/// Attention of one sample on the CPU, in double precision. `kept` has the rows that each query attends to.
fn reference(kept: impl Fn(usize) -> Vec<usize>, rows: usize, [q, k, v]: [&[f32]; 3]) -> Vec<f64> {
    let scale = 1.0 / (SIZE as f64).sqrt();
    let mut out = vec![0.0; rows * WIDTH];
    for query in 0..rows {
        let kept = kept(query);
        for head in 0..HEADS {
            let part = |data: &[f32], row: usize| -> [f64; SIZE] {
                std::array::from_fn(|c| f64::from(data[row * WIDTH + head * SIZE + c]))
            };
            let own = part(q, query);
            let dot = |row: &usize| own.iter().zip(part(k, *row)).map(|(a, b)| a * b).sum::<f64>() * scale;
            let powers: Vec<f64> = kept.iter().map(|row| dot(row).exp()).collect();
            let sum: f64 = powers.iter().sum();
            for (row, power) in kept.iter().zip(&powers) {
                for (c, value) in part(v, *row).iter().enumerate() {
                    out[query * WIDTH + head * SIZE + c] += power / sum * value;
                }
            }
        }
    }
    out
}

/// The kernels, and everything in the GPU's memory.
struct Bench {
    stream: Arc<CudaStream>,
    kernels: [CudaFunction; 5],
    shape: Shape,
    cut: Cut,
    batch: usize,
    inputs: [CudaSlice<f32>; 3],
    /// First row and number of rows of each block; block, first row and number of queries of each tile.
    spans: CudaSlice<i32>,
    tiles: CudaSlice<i32>,
    sums: CudaSlice<f32>,
    lists: CudaSlice<i32>,
    counts: CudaSlice<i32>,
    out: CudaSlice<f32>,
}

/// Bytes of shared memory for attention to this many keys.
fn shared(keys: usize) -> u32 {
    (4 * ((QUERIES + KEYS) * (SIZE + 4) + QUERIES * keys.next_multiple_of(KEYS))) as u32
}

fn config(grid: (usize, usize), shared_mem_bytes: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (grid.0 as u32, grid.1 as u32, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes }
}

impl Bench {
    fn dense(&mut self) -> Result<(), Box<dyn Error>> {
        let [q, k, v] = &self.inputs;
        let rows = self.shape.rows as usize;
        let mut arguments = self.stream.launch_builder(&self.kernels[0]);
        arguments.arg(&self.shape).arg(q).arg(k).arg(v).arg(&mut self.out);
        // SAFETY: the arguments are those of the kernel, and it reads no row beyond the shape.
        unsafe { arguments.launch(config((self.batch * HEADS, rows.div_ceil(QUERIES)), shared(rows))) }?;
        Ok(())
    }

    fn choose(&mut self) -> Result<(), Box<dyn Error>> {
        let ([q, k, _], blocks) = (&self.inputs, self.cut.blocks as usize);
        let mut arguments = self.stream.launch_builder(&self.kernels[1]);
        arguments.arg(&self.shape).arg(&self.cut).arg(&self.spans).arg(q).arg(k).arg(&mut self.sums);
        // SAFETY: the arguments are those of the kernel, and the spans are within the shape.
        unsafe { arguments.launch(config((self.batch, blocks), 0)) }?;
        let mut arguments = self.stream.launch_builder(&self.kernels[2]);
        arguments.arg(&self.shape).arg(&self.cut).arg(&self.spans).arg(&self.sums);
        arguments.arg(&mut self.lists).arg(&mut self.counts);
        // SAFETY: the arguments are those of the kernel, and no list is longer than the longest.
        unsafe { arguments.launch(config((self.batch, blocks), 4 * (3 * blocks as u32 + 1))) }?;
        Ok(())
    }

    fn sparse(&mut self) -> Result<(), Box<dyn Error>> {
        let [q, k, v] = &self.inputs;
        let (rows, tiles) = (self.shape.rows as usize, self.tiles.len() / 3);
        let mut arguments = self.stream.launch_builder(&self.kernels[3]);
        arguments.arg(&self.shape).arg(q).arg(k).arg(v).arg(&mut self.out);
        // SAFETY: the arguments are those of the kernel, and it reads no row beyond the shape.
        unsafe { arguments.launch(config((self.batch * HEADS, 1), shared(rows))) }?;
        let mut arguments = self.stream.launch_builder(&self.kernels[4]);
        arguments.arg(&self.shape).arg(&self.cut).arg(&self.tiles).arg(&self.lists).arg(&self.counts);
        arguments.arg(q).arg(k).arg(v).arg(&mut self.out);
        let most = shared(self.cut.longest as usize);
        // SAFETY: the arguments are those of the kernel, and the lists have been chosen.
        unsafe { arguments.launch(config((self.batch * HEADS, tiles), most)) }?;
        Ok(())
    }

    /// Median time in milliseconds.
    fn time(&mut self, run: impl Fn(&mut Bench) -> Result<(), Box<dyn Error>>) -> Result<f32, Box<dyn Error>> {
        let mut times = Vec::new();
        for pass in 0..WARM_UP + TIMED {
            let start = self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
            run(self)?;
            let end = self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
            end.synchronize()?;
            if pass >= WARM_UP {
                times.push(start.elapsed_ms(&end)?);
            }
        }
        times.sort_by(f32::total_cmp);
        Ok(times[TIMED / 2])
    }

    /// Greatest difference of the first and the last sample from the CPU's result. `kept` has the rows that each query of a sample attends to.
    fn error(&self, host: &[Vec<f32>; 3], kept: impl Fn(usize, usize) -> Vec<usize>) -> Result<f64, Box<dyn Error>> {
        let rows = self.shape.rows as usize;
        let (found, size) = (self.stream.clone_dtoh(&self.out)?, rows * WIDTH);
        let mut most = 0.0;
        for sample in [0, self.batch - 1] {
            let here = sample * size..(sample + 1) * size;
            let inputs = [0, 1, 2].map(|part| &host[part][here.clone()]);
            let expected = reference(|query| kept(sample, query), rows, inputs);
            for (expected, found) in expected.into_iter().zip(&found[here]) {
                let error = (expected - f64::from(*found)).abs();
                // NaN must not be taken for a small error.
                most = if error <= most { most } else { error };
            }
        }
        Ok(most)
    }
}

fn prepare(sparsity: Sparsity, batch: usize, host: &[Vec<f32>; 3]) -> Result<Bench, Box<dyn Error>> {
    let rows = sparsity.jobs + 1;
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let (major, minor) = context.compute_capability()?;
    let options = vec![format!("--gpu-architecture=compute_{major}{minor}"), format!("-DSIZE={SIZE}")];
    let options = CompileOptions { options, ..CompileOptions::default() };
    let module = context.load_module(compile_ptx_with_opts(include_str!("attention_cuda.cu"), options)?)?;
    let most_shared = context
        .attribute(cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let kernel = |name| -> Result<CudaFunction, Box<dyn Error>> {
        let kernel = module.load_function(name)?;
        kernel.set_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most_shared)?;
        Ok(kernel)
    };
    let blocks = sparsity.blocks();
    let spans: Vec<i32> = blocks.iter().flat_map(|rows| [rows.start as i32, rows.len() as i32]).collect();
    let tile = |(block, rows): (usize, &Range<usize>)| {
        let end = rows.end;
        let of = move |first: usize| [block as i32, first as i32, QUERIES.min(end - first) as i32];
        rows.clone().step_by(QUERIES).flat_map(of).collect::<Vec<i32>>()
    };
    let tiles: Vec<i32> = blocks.iter().enumerate().flat_map(tile).collect();
    let cut = [blocks.len(), sparsity.chunk, sparsity.keep, sparsity.longest()].map(|number| number as i32);
    let [q, k, v] = host;
    Ok(Bench {
        kernels: [kernel("dense")?, kernel("summarize")?, kernel("choose")?, kernel("idle")?, kernel("sparse")?],
        shape: Shape {
            rows: rows as i32,
            columns: WIDTH as i32,
            heads: HEADS as i32,
            scale: 1.0 / (SIZE as f32).sqrt(),
        },
        cut: Cut { blocks: cut[0], chunk: cut[1], keep: cut[2], longest: cut[3] },
        batch,
        inputs: [stream.clone_htod(q)?, stream.clone_htod(k)?, stream.clone_htod(v)?],
        spans: stream.clone_htod(&spans)?,
        tiles: stream.clone_htod(&tiles)?,
        sums: stream.alloc_zeros(batch * blocks.len() * 2 * WIDTH)?,
        lists: stream.alloc_zeros(batch * blocks.len() * sparsity.longest())?,
        counts: stream.alloc_zeros(batch * blocks.len())?,
        out: stream.alloc_zeros(batch * rows * WIDTH)?,
        stream,
    })
}

fn bench(jobs: usize, batch: usize) -> Result<(), Box<dyn Error>> {
    let name = Cuda::new()?.name();
    let (rows, sparsity) = (jobs + 1, Sparsity::paper(jobs));
    let mut rng = Pcg64::seed_from_u64(1);
    let host: [Vec<f32>; 3] =
        std::array::from_fn(|_| (0..batch * rows * WIDTH).map(|_| 4.0 * rng.random::<f32>() - 2.0).collect());
    let mut bench = prepare(sparsity, batch, &host)?;
    bench.dense()?;
    let dense_error = bench.error(&host, |_, _| (0..rows).collect())?;
    bench.stream.memset_zeros(&mut bench.out)?;
    bench.choose()?;
    bench.sparse()?;
    let (lists, counts) = (bench.stream.clone_dtoh(&bench.lists)?, bench.stream.clone_dtoh(&bench.counts)?);
    let blocks = sparsity.blocks();
    let list = |sample: usize, block: usize| {
        let place = sample * blocks.len() + block;
        &lists[place * sparsity.longest()..][..counts[place] as usize]
    };
    for sample in 0..batch {
        let here = sample * rows * WIDTH..(sample + 1) * rows * WIDTH;
        for (block, own) in blocks.iter().enumerate() {
            sparsity.check(own, list(sample, block), [&host[0][here.clone()], &host[1][here.clone()]])?;
        }
    }
    let sparse_error =
        bench.error(&host, |sample, query| match blocks.iter().position(|rows| rows.contains(&query)) {
            Some(block) => list(sample, block).iter().map(|row| *row as usize).collect(),
            None => (0..rows).collect(),
        })?;
    for (name, error) in [("dense", dense_error), ("sparse", sparse_error)] {
        if error.is_nan() || error > CLOSE {
            return Err(format!("{name} attention is {error:e} from the processor's").into());
        }
    }
    let dense = bench.time(Bench::dense)?;
    let chosen = bench.time(Bench::choose)?;
    let sparse = bench.time(|bench| bench.choose().and_then(|()| bench.sparse()))?;
    // Counted over the lists that the GPU has made: pairs that are scored, and rows of keys and values that thread blocks load, once for up to 32 queries.
    let (mut pairs, mut loaded) = (batch * rows, batch * rows);
    for (place, count) in counts.iter().enumerate() {
        let queries = blocks[place % blocks.len()].len();
        pairs += queries * *count as usize;
        loaded += queries.div_ceil(QUERIES) * *count as usize;
    }
    let bytes = |rows: usize| 2 * rows * HEADS * SIZE * 4;
    let (all_pairs, all_loaded) = (batch * rows * rows, batch * rows.div_ceil(QUERIES) * rows);
    let Sparsity { chunk, block, keep, .. } = sparsity;
    println!("{{");
    println!(
        "  \"card\": \"{name}\", \"jobs\": {jobs}, \"rows\": {rows}, \"batch\": {batch}, \"width\": {WIDTH}, \"heads\": {HEADS},"
    );
    let per_query = pairs as f64 / (batch * rows) as f64;
    println!("  \"chunk\": {chunk}, \"block\": {block}, \"keep\": {keep}, \"keys_per_query\": {per_query:.1},");
    println!(
        "  \"dense\": {{ \"median_ms\": {dense:.4}, \"error\": {dense_error:.1e}, \"key_value_bytes_loaded\": {} }},",
        bytes(all_loaded)
    );
    println!(
        "  \"sparse\": {{ \"median_ms\": {sparse:.4}, \"choice_ms\": {chosen:.4}, \"error\": {sparse_error:.1e}, \"key_value_bytes_loaded\": {} }},",
        bytes(loaded)
    );
    println!("  \"time_ratio\": {:.3},", sparse / dense);
    println!("  \"pairs_ratio\": {:.3},", pairs as f64 / all_pairs as f64);
    println!("  \"bytes_ratio\": {:.3}", loaded as f64 / all_loaded as f64);
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
