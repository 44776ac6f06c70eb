//! The paper's micro-benchmark of sparse attention (E7): one layer on a GPU, rows in deadline order, sparse attention
//! compared with dense attention and with two rivals, which get as many keys. Prints JSON.
//!
//!     cargo run --release -p temponet-paper --features cuda --example attention_cuda [-- JOBS BATCH]
//!
//! All are checked against the CPU before they are timed. Times are medians between events on the GPU's own stream;
//! they include the choice of the keys. The inputs stay in the caches as the pass before left them, as the activations
//! of a network do.

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
/// Greatest allowed difference from the CPU's result, and of two scores that rounding may swap.
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

/// Which keys are kept: rows per chunk (none: block-drop, which knows no chunks), rows per block, and blocks that are
/// looked into.
#[derive(Clone, Copy)]
struct Sparsity {
    jobs: usize,
    chunk: Option<usize>,
    block: usize,
    keep: usize,
}

impl Sparsity {
    fn paper(jobs: usize) -> Sparsity {
        let n = jobs as f64;
        let block = n.sqrt().ceil() as usize;
        let keep = if jobs <= 100 { (block / 10).max(1) } else { block.ilog2() as usize + 1 };
        Sparsity { jobs, chunk: Some(jobs.div_ceil((n.ln().ceil() as usize).max(1))), block, keep }
    }

    /// Block-drop with about this many keys per query.
    fn block_drop(jobs: usize, keys: f64) -> Sparsity {
        let block = Sparsity::paper(jobs).block;
        Sparsity { jobs, chunk: None, block, keep: ((keys - 1.0) / block as f64).round().max(1.0) as usize }
    }

    fn chunk_len(self) -> usize {
        self.chunk.unwrap_or(self.jobs)
    }

    fn chunks(self) -> impl Iterator<Item = Range<usize>> {
        let chunk = self.chunk_len();
        (0..self.jobs).step_by(chunk).map(move |start| 1 + start..1 + (start + chunk).min(self.jobs))
    }

    /// Rows of each block. Blocks do not cross the border of a chunk.
    fn blocks(self) -> Vec<Range<usize>> {
        let of = |chunk: Range<usize>| {
            let end = chunk.end;
            chunk.step_by(self.block).map(move |start| start..(start + self.block).min(end))
        };
        self.chunks().flat_map(of).collect()
    }

    fn is_of_one_chunk(self, a: usize, b: usize) -> bool {
        self.chunk.is_some_and(|chunk| (a - 1) / chunk == (b - 1) / chunk)
    }

    /// Greatest length of a list.
    fn longest(self) -> usize {
        1 + self.chunk.map_or(0, |chunk| chunk + self.chunks().count()) + self.keep * self.block
    }

    /// Checks the list of a block of one sample: it is the idle row, the own chunk, each chunk's middle row, and as
    /// many blocks of other chunks as are kept, none of which has a lower score than another one, except for rounding.
    /// Without chunks it is the idle row and the kept blocks.
    fn check(self, own: &Range<usize>, list: &[i32], [q, k]: [&[f32]; 2]) -> Result<(), String> {
        let is_listed = |row: usize| list.contains(&(row as i32));
        let blocks = self.blocks();
        let sum = |data: &[f32], rows: &Range<usize>, column: usize| -> f64 {
            rows.clone().map(|row| f64::from(data[row * WIDTH + column])).sum()
        };
        let score = |rows: &Range<usize>| -> f64 {
            (0..WIDTH).map(|column| sum(q, own, column) * sum(k, rows, column)).sum::<f64>() / rows.len() as f64
        };
        let middle = |chunk: Range<usize>| self.chunk.map(|_| chunk.start + (chunk.len() - 1) / 2);
        let middles: Vec<usize> = self.chunks().filter_map(middle).collect();
        let (mut looked_into, mut others, mut expected) = (Vec::new(), Vec::new(), vec![0]);
        for rows in blocks {
            if self.is_of_one_chunk(rows.start, own.start) {
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

/// The numbers of a row that belong to a head, in double precision.
fn part(data: &[f32], row: usize, head: usize) -> [f64; SIZE] {
    std::array::from_fn(|c| f64::from(data[row * WIDTH + head * SIZE + c]))
}

/// Logits of a query of one sample with all rows, for one head.
fn logits(query: usize, head: usize, rows: usize, [q, k]: [&[f32]; 2]) -> Vec<f64> {
    let own = part(q, query, head);
    let dot = |row| own.iter().zip(part(k, row, head)).map(|(a, b)| a * b).sum::<f64>() / (SIZE as f64).sqrt();
    (0..rows).map(dot).collect()
}

/// Attention of a query of one sample on the CPU, for one head. `kept` has the rows that it attends to.
fn reference(kept: &[usize], logits: &[f64], head: usize, v: &[f32]) -> [f64; SIZE] {
    let powers: Vec<f64> = kept.iter().map(|row| logits[*row].exp()).collect();
    let (sum, mut out): (f64, _) = (powers.iter().sum(), [0.0; SIZE]);
    for (row, power) in kept.iter().zip(&powers) {
        for (out, value) in out.iter_mut().zip(part(v, *row, head)) {
            *out += power / sum * value;
        }
    }
    out
}

/// The idle row and the `keep` rows with the greatest logits; none if rounding may swap the last of them.
fn best_rows(logits: &[f64], keep: usize) -> Option<Vec<usize>> {
    let mut rows: Vec<usize> = (1..logits.len()).collect();
    rows.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    let is_close = keep < rows.len() && logits[rows[keep - 1]] - logits[rows[keep]] < CLOSE;
    rows.truncate(keep);
    rows.push(0);
    (!is_close).then_some(rows)
}

/// The rows that the queries keep, block by block, in the GPU's memory.
struct Lists {
    sparsity: Sparsity,
    cut: Cut,
    /// First row and number of rows of each block; block, first row and number of queries of each tile.
    spans: CudaSlice<i32>,
    tiles: CudaSlice<i32>,
    sums: CudaSlice<f32>,
    rows: CudaSlice<i32>,
    counts: CudaSlice<i32>,
}

type Checked = (Vec<Vec<i32>>, f64);

/// The kernels, and everything in the GPU's memory.
struct Bench {
    stream: Arc<CudaStream>,
    kernels: Kernels,
    shape: Shape,
    batch: usize,
    inputs: [CudaSlice<f32>; 3],
    out: CudaSlice<f32>,
}

struct Kernels {
    dense: CudaFunction,
    top_keys: CudaFunction,
    summarize: CudaFunction,
    choose: CudaFunction,
    idle: CudaFunction,
    sparse: CudaFunction,
}

/// Bytes of shared memory for attention to this many keys.
fn shared(keys: usize) -> u32 {
    (4 * ((QUERIES + KEYS) * (SIZE + 4) + QUERIES * keys.next_multiple_of(KEYS))) as u32
}

fn config(grid: (usize, usize), shared_mem_bytes: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (grid.0 as u32, grid.1 as u32, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes }
}

impl Lists {
    fn new(stream: &Arc<CudaStream>, sparsity: Sparsity, batch: usize) -> Result<Lists, Box<dyn Error>> {
        let blocks = sparsity.blocks();
        let spans: Vec<i32> = blocks.iter().flat_map(|rows| [rows.start as i32, rows.len() as i32]).collect();
        let tile = |(block, rows): (usize, &Range<usize>)| {
            let end = rows.end;
            let of = move |first: usize| [block as i32, first as i32, QUERIES.min(end - first) as i32];
            rows.clone().step_by(QUERIES).flat_map(of).collect::<Vec<i32>>()
        };
        let tiles: Vec<i32> = blocks.iter().enumerate().flat_map(tile).collect();
        let longest = sparsity.longest();
        let cut = [blocks.len(), sparsity.chunk.unwrap_or(0), sparsity.keep, longest].map(|number| number as i32);
        Ok(Lists {
            sparsity,
            cut: Cut { blocks: cut[0], chunk: cut[1], keep: cut[2], longest: cut[3] },
            spans: stream.clone_htod(&spans)?,
            tiles: stream.clone_htod(&tiles)?,
            sums: stream.alloc_zeros(batch * blocks.len() * 2 * WIDTH)?,
            rows: stream.alloc_zeros(batch * blocks.len() * longest)?,
            counts: stream.alloc_zeros(batch * blocks.len())?,
        })
    }

    /// Copies the lists from the GPU, by sample and block.
    fn read(&self, stream: &Arc<CudaStream>) -> Result<Vec<Vec<i32>>, Box<dyn Error>> {
        let (rows, counts) = (stream.clone_dtoh(&self.rows)?, stream.clone_dtoh(&self.counts)?);
        let lists = rows.chunks(self.sparsity.longest()).zip(counts);
        Ok(lists.map(|(list, count)| list[..count as usize].to_vec()).collect())
    }
}

impl Bench {
    fn dense(&mut self) -> Result<(), Box<dyn Error>> {
        let [q, k, v] = &self.inputs;
        let rows = self.shape.rows as usize;
        let mut arguments = self.stream.launch_builder(&self.kernels.dense);
        arguments.arg(&self.shape).arg(q).arg(k).arg(v).arg(&mut self.out);
        // SAFETY: the arguments are those of the kernel, and it reads no row beyond the shape.
        unsafe { arguments.launch(config((self.batch * HEADS, rows.div_ceil(QUERIES)), shared(rows))) }?;
        Ok(())
    }

    fn top_keys(&mut self, keep: usize) -> Result<(), Box<dyn Error>> {
        let [q, k, v] = &self.inputs;
        let (rows, keep) = (self.shape.rows as usize, keep as i32);
        let mut arguments = self.stream.launch_builder(&self.kernels.top_keys);
        arguments.arg(&self.shape).arg(&keep).arg(q).arg(k).arg(v).arg(&mut self.out);
        // SAFETY: the arguments are those of the kernel, and it reads no row beyond the shape.
        unsafe { arguments.launch(config((self.batch * HEADS, rows.div_ceil(QUERIES)), shared(rows))) }?;
        Ok(())
    }

    fn choose(&mut self, lists: &mut Lists) -> Result<(), Box<dyn Error>> {
        let ([q, k, _], blocks) = (&self.inputs, lists.cut.blocks as usize);
        let mut arguments = self.stream.launch_builder(&self.kernels.summarize);
        arguments.arg(&self.shape).arg(&lists.cut).arg(&lists.spans).arg(q).arg(k).arg(&mut lists.sums);
        // SAFETY: the arguments are those of the kernel, and the spans are within the shape.
        unsafe { arguments.launch(config((self.batch, blocks), 0)) }?;
        let mut arguments = self.stream.launch_builder(&self.kernels.choose);
        arguments.arg(&self.shape).arg(&lists.cut).arg(&lists.spans).arg(&lists.sums);
        arguments.arg(&mut lists.rows).arg(&mut lists.counts);
        // SAFETY: the arguments are those of the kernel, and no list is longer than the longest.
        unsafe { arguments.launch(config((self.batch, blocks), 4 * (3 * blocks as u32 + 1))) }?;
        Ok(())
    }

    /// Attention to the rows that have been chosen.
    fn sparse(&mut self, lists: &Lists) -> Result<(), Box<dyn Error>> {
        let [q, k, v] = &self.inputs;
        let (rows, tiles) = (self.shape.rows as usize, lists.tiles.len() / 3);
        let mut arguments = self.stream.launch_builder(&self.kernels.idle);
        arguments.arg(&self.shape).arg(q).arg(k).arg(v).arg(&mut self.out);
        // SAFETY: the arguments are those of the kernel, and it reads no row beyond the shape.
        unsafe { arguments.launch(config((self.batch * HEADS, 1), shared(rows))) }?;
        let mut arguments = self.stream.launch_builder(&self.kernels.sparse);
        arguments.arg(&self.shape).arg(&lists.cut).arg(&lists.tiles).arg(&lists.rows).arg(&lists.counts);
        arguments.arg(q).arg(k).arg(v).arg(&mut self.out);
        let most = shared(lists.cut.longest as usize);
        // SAFETY: the arguments are those of the kernel, and the lists have been chosen.
        unsafe { arguments.launch(config((self.batch * HEADS, tiles), most)) }?;
        Ok(())
    }

    /// Chooses rows and attends to them.
    fn choose_and_attend(&mut self, lists: &mut Lists) -> Result<(), Box<dyn Error>> {
        self.choose(lists)?;
        self.sparse(lists)
    }

    /// Median time in milliseconds.
    fn time(&mut self, mut run: impl FnMut(&mut Bench) -> Result<(), Box<dyn Error>>) -> Result<f32, Box<dyn Error>> {
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

    /// Greatest difference of the first and the last sample from the CPU's result, of which a failure names the method.
    /// `kept` has the rows that a query of a sample attends to, given the query and its logits; queries without them
    /// are not compared. Clears the result.
    fn check(
        &mut self,
        method: &str,
        host: &[Vec<f32>; 3],
        kept: impl Fn(usize, usize, &[f64]) -> Option<Vec<usize>>,
    ) -> Result<f64, Box<dyn Error>> {
        let rows = self.shape.rows as usize;
        let (found, size) = (self.stream.clone_dtoh(&self.out)?, rows * WIDTH);
        self.stream.memset_zeros(&mut self.out)?;
        let mut most = 0.0;
        for sample in [0, self.batch - 1] {
            let here = sample * size..(sample + 1) * size;
            let [q, k, v] = [0, 1, 2].map(|part| &host[part][here.clone()]);
            let found = &found[here];
            for (query, head) in (0..rows).flat_map(|query| (0..HEADS).map(move |head| (query, head))) {
                let logits = logits(query, head, rows, [q, k]);
                let Some(kept) = kept(sample, query, &logits) else { continue };
                for (expected, found) in reference(&kept, &logits, head, v).iter().zip(part(found, query, head)) {
                    let error = (expected - found).abs();
                    // NaN must not be taken for a small error.
                    most = if error <= most { most } else { error };
                }
            }
        }
        if most <= CLOSE {
            Ok(most)
        } else {
            Err(format!("{method} attention is {most:e} from the processor's").into())
        }
    }

    /// Checks sparse attention and its lists, and returns the lists, by sample and block, and the error.
    fn check_lists(
        &mut self,
        method: &str,
        host: &[Vec<f32>; 3],
        lists: &mut Lists,
    ) -> Result<Checked, Box<dyn Error>> {
        self.choose_and_attend(lists)?;
        let (rows, blocks) = (self.shape.rows as usize, lists.sparsity.blocks());
        let read = lists.read(&self.stream)?;
        for (place, list) in read.iter().enumerate() {
            let sample = place / blocks.len();
            let here = sample * rows * WIDTH..(sample + 1) * rows * WIDTH;
            lists.sparsity.check(&blocks[place % blocks.len()], list, [&host[0][here.clone()], &host[1][here]])?;
        }
        let kept = |sample: usize, query: usize, _: &[f64]| {
            Some(match blocks.iter().position(|rows| rows.contains(&query)) {
                Some(block) => read[sample * blocks.len() + block].iter().map(|row| *row as usize).collect(),
                None => (0..rows).collect(),
            })
        };
        let error = self.check(method, host, kept)?;
        Ok((read, error))
    }
}

fn prepare(rows: usize, batch: usize, host: &[Vec<f32>; 3]) -> Result<Bench, Box<dyn Error>> {
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
    let [q, k, v] = host;
    Ok(Bench {
        kernels: Kernels {
            dense: kernel("dense")?,
            top_keys: kernel("top_keys")?,
            summarize: kernel("summarize")?,
            choose: kernel("choose")?,
            idle: kernel("idle")?,
            sparse: kernel("sparse")?,
        },
        shape: Shape {
            rows: rows as i32,
            columns: WIDTH as i32,
            heads: HEADS as i32,
            scale: 1.0 / (SIZE as f32).sqrt(),
        },
        batch,
        inputs: [stream.clone_htod(q)?, stream.clone_htod(k)?, stream.clone_htod(v)?],
        out: stream.alloc_zeros(batch * rows * WIDTH)?,
        stream,
    })
}

/// What is printed of a method.
struct Row {
    method: &'static str,
    /// Median time in milliseconds, and the part of it in which keys are chosen, where that is a kernel of its own.
    time: f32,
    choice: Option<f32>,
    error: f64,
    /// Pairs of a query and a key that are scored.
    pairs: usize,
    /// Rows of keys, and of values, that thread blocks load, once for up to 32 queries.
    loaded: usize,
}

/// Checks and times attention to lists, and counts over the lists that the GPU has made.
fn by_lists(
    bench: &mut Bench,
    host: &[Vec<f32>; 3],
    sparsity: Sparsity,
    method: &'static str,
) -> Result<Row, Box<dyn Error>> {
    let (rows, batch) = (bench.shape.rows as usize, bench.batch);
    let mut lists = Lists::new(&bench.stream, sparsity, batch)?;
    let (read, error) = bench.check_lists(method, host, &mut lists)?;
    // The idle row's queries attend to all rows.
    let (mut pairs, mut loaded, blocks) = (batch * rows, batch * rows, sparsity.blocks());
    for (place, list) in read.iter().enumerate() {
        let queries = blocks[place % blocks.len()].len();
        pairs += queries * list.len();
        loaded += queries.div_ceil(QUERIES) * list.len();
    }
    let choice = Some(bench.time(|bench| bench.choose(&mut lists))?);
    let time = bench.time(|bench| bench.choose_and_attend(&mut lists))?;
    Ok(Row { method, time, choice, error, pairs, loaded })
}

fn bench(jobs: usize, batch: usize) -> Result<(), Box<dyn Error>> {
    let name = Cuda::new()?.name();
    let (rows, sparsity) = (jobs + 1, Sparsity::paper(jobs));
    let mut rng = Pcg64::seed_from_u64(1);
    let host: [Vec<f32>; 3] =
        std::array::from_fn(|_| (0..batch * rows * WIDTH).map(|_| 4.0 * rng.random::<f32>() - 2.0).collect());
    let mut bench = prepare(rows, batch, &host)?;
    bench.dense()?;
    let error = bench.check("dense", &host, |_, _, _| Some((0..rows).collect()))?;
    let (pairs, loaded) = (batch * rows * rows, batch * rows.div_ceil(QUERIES) * rows);
    let dense = Row { method: "dense", time: bench.time(Bench::dense)?, choice: None, error, pairs, loaded };
    let sparse = by_lists(&mut bench, &host, sparsity, "sparse")?;
    let keys = sparse.pairs as f64 / (batch * rows) as f64;
    let block_drop = by_lists(&mut bench, &host, Sparsity::block_drop(jobs, keys), "block_drop")?;
    let keep = ((keys - 1.0).round() as usize).max(1);
    bench.top_keys(keep)?;
    let best = |_, query, logits: &[f64]| match query {
        0 => Some((0..rows).collect()),
        _ => best_rows(logits, keep),
    };
    let error = bench.check("top-keys", &host, best)?;
    let time = bench.time(|bench| bench.top_keys(keep))?;
    let top_keys = Row { method: "top_keys", time, choice: None, error, pairs, loaded };
    let Sparsity { chunk, block, keep, .. } = sparsity;
    println!("{{");
    println!("  \"card\": \"{name}\", \"jobs\": {jobs}, \"rows\": {rows}, \"batch\": {batch}, \"width\": {WIDTH},");
    println!(
        "  \"heads\": {HEADS}, \"chunk\": {}, \"block\": {block}, \"keep\": {keep}, \"keys_per_query\": {keys:.1},",
        chunk.unwrap_or(jobs)
    );
    for row in [&sparse, &block_drop, &top_keys, &dense] {
        let choice = row.choice.map_or(String::new(), |choice| format!(" \"choice_ms\": {choice:.4},"));
        let end = if row.method == "dense" { "" } else { "," };
        println!(
            "  \"{}\": {{ \"median_ms\": {:.4},{choice} \"error\": {:.1e}, \"key_value_bytes_loaded\": {}, \"time_ratio\": {:.3}, \"pairs_ratio\": {:.3}, \"bytes_ratio\": {:.3} }}{end}",
            row.method,
            row.time,
            row.error,
            2 * row.loaded * WIDTH * 4,
            row.time / dense.time,
            row.pairs as f64 / dense.pairs as f64,
            row.loaded as f64 / dense.loaded as f64
        );
    }
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
