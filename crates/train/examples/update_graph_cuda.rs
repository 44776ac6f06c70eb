//! Measures a whole update of Q-learning on a GPU in two ways: with each kernel launched by itself, and recorded once
//! as a CUDA graph and replayed; and how many updates a second many learners make beside each other, each on a queue of
//! its own and as a gang. The network is the paper's (d = 128, two layers, four heads, feed-forward 512), and all
//! batches have one shape. Prints JSON.
//!
//!     cargo run --release -p temponet-train --features cuda --example update_graph_cuda [-- BATCH TOKENS]

use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet::Model;
use temponet::stages::Tokenizer;
use temponet_grad::{AdamSettings, Cuda, Device, Recorder};
use temponet_train::{Dqn, DqnSettings, Learner, PendingUpdate, ReplaySettings, Sample, StepSize, Transition};

/// Updates before the first measurement.
const WARM: usize = 100;
/// Updates or replays per round.
const UPDATES: usize = 200;
/// Updates that are queued to measure the queueing itself; few enough that the queue never fills.
const FEW: usize = 3;
/// Rounds, of which the median counts.
const ROUNDS: usize = 5;
/// Learners beside each other.
const BESIDE: usize = 64;
/// Step size of every update.
const SIZE: StepSize = StepSize { rate: 1e-4, clip: 10.0 };

/// A learner with its own queue on the GPU.
struct Learning {
    learner: Learner<Cuda>,
    dqn: Dqn<Cuda>,
    rng: Pcg64,
    recorder: Recorder,
}

impl Learning {
    fn new(gpu: &Cuda, batch: usize, tokens: usize) -> Learning {
        let device = gpu.another();
        let recorder = device.recorder();
        let weights = Model::random(Tokenizer::paper(), 1).weights;
        let mut learner = Learner::new(device, &weights, AdamSettings::default());
        let mut dqn = Dqn::new(
            DqnSettings { replay: ReplaySettings { batch, ..ReplaySettings::default() }, ..DqnSettings::default() },
            &mut learner,
        );
        let mut rng = Pcg64::seed_from_u64(1);
        let mut sample = || {
            Arc::new(Sample {
                idle: vec![0, 8],
                tokens: (1..tokens).map(|_| rng.random_range(0..128)).collect(),
                real: Vec::new(),
                counts: vec![1; tokens - 1],
                bias: vec![0.0; tokens],
                cores: 1,
                past: None,
            })
        };
        for _ in 0..200 {
            let (state, next) = (sample(), sample());
            dqn.replay.push(Transition { state, chosen: vec![1], speeds: vec![], reward: 1.0, discount: 0.9, next });
        }
        let mut learning = Learning { learner, dqn, rng, recorder };
        learning.launched(WARM);
        learning
    }

    fn update(&mut self) -> PendingUpdate<Cuda> {
        self.dqn.update(&mut self.learner, &mut self.rng, SIZE)
    }

    /// Queues this many updates. Returns the time that queueing takes the processor, and the time until all updates are
    /// done, each in microseconds per update.
    fn launched(&mut self, updates: usize) -> (f64, f64) {
        let begin = Instant::now();
        let last = (0..updates).map(|_| self.update()).last();
        let queued = begin.elapsed();
        last.iter().for_each(|last| assert!(self.learner.figures(last).norm.is_finite()));
        (each(queued, updates), each(begin.elapsed(), updates))
    }

    /// Records an update and replays it this many times.
    fn repeated(&mut self, times: usize) -> Duration {
        let Learning { learner, dqn, rng, recorder } = self;
        let begin = Instant::now();
        recorder.repeat(times, || dqn.update(learner, rng, SIZE));
        begin.elapsed()
    }
}

/// Updates a second of many learners beside each other, on devices made of this one.
fn beside(gpu: &Cuda, batch: usize, tokens: usize) -> f64 {
    let ready = Barrier::new(BESIDE + 1);
    std::thread::scope(|scope| {
        let learn = || {
            let mut learning = Learning::new(gpu, batch, tokens);
            ready.wait();
            // As in a training, the figures of an update are read while the next one is queued.
            (0..UPDATES / FEW).for_each(|_| _ = learning.launched(FEW));
        };
        let threads: Vec<_> = (0..BESIDE).map(|_| scope.spawn(learn)).collect();
        ready.wait();
        let begin = Instant::now();
        threads.into_iter().for_each(|thread| assert!(thread.join().is_ok(), "a learner failed"));
        (BESIDE * (UPDATES / FEW) * FEW) as f64 / begin.elapsed().as_secs_f64()
    })
}

/// Returns the microseconds per repetition.
fn each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

fn median(mut round: impl FnMut() -> f64) -> f64 {
    let mut times = [0.0; ROUNDS].map(|_: f64| round());
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

/// Whether a recorded and replayed update gives the same weights as one that is launched directly.
fn is_the_same(gpu: &Cuda, batch: usize, tokens: usize) -> bool {
    let [mut launched, mut recorded] = [(); 2].map(|()| Learning::new(gpu, batch, tokens));
    let before = launched.learner.weights();
    launched.launched(1);
    recorded.repeated(1);
    let after = launched.learner.weights();
    after != before && after == recorded.learner.weights()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: usize| arguments.get(place).map_or(Ok(default), |text| text.parse::<usize>());
    let (Ok(batch @ 1..=4096), Ok(tokens @ 2..=2000)) = (number(0, 64), number(1, 6)) else {
        eprintln!("error: BATCH from 1 to 4096 and TOKENS from 2 to 2000 are wanted, not {arguments:?}");
        return ExitCode::from(2);
    };
    let (gpu, gang) = match Cuda::new().and_then(|gpu| gpu.gang().map(|gang| (gpu, gang))) {
        Ok(opened) => opened,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let is_the_same = is_the_same(&gpu, batch, tokens);
    let mut learning = Learning::new(&gpu, batch, tokens);
    let launched = median(|| learning.launched(UPDATES).1);
    // Few enough that the queue never fills.
    let queueing = median(|| learning.launched(FEW).0);
    let recording = median(|| each(learning.repeated(0), 1));
    let replayed = median(|| (each(learning.repeated(UPDATES), 1) - recording) / UPDATES as f64);
    let by_themselves = beside(&gpu, batch, tokens);
    let as_gang = beside(&gang, batch, tokens);
    if let Some(failure) = gpu.failure() {
        eprintln!("error: {failure}");
        return ExitCode::from(2);
    }
    println!(
        "{{ \"card\": \"{}\", \"batch\": {batch}, \"tokens\": {tokens}, \"launched_us\": {launched:.1}, \"queueing_us\": {queueing:.1}, \
         \"recording_us\": {recording:.1}, \"replayed_us\": {replayed:.1}, \"same_weights\": {is_the_same}, \"beside\": {BESIDE}, \"by_themselves_per_s\": {by_themselves:.0}, \
         \"as_gang_per_s\": {as_gang:.0} }}",
        gpu.name()
    );
    if is_the_same { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
