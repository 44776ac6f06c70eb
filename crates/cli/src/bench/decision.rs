//! A whole decision of the learned scheduler: tokens, network, mapping.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Serialize;
use temponet::{Learned, Mapper, Mapping, Model, Observation, Options, Scale};
use temponet_infer::Network;
use temponet_task::{Assignment, Event, Job, JobId, Scheduler, System, SystemView, Task, TaskSet, Time};

use super::sim::control;

/// What one number of jobs takes; times in ns.
#[derive(Serialize)]
pub struct Figures {
    pub model: &'static str,
    pub n: usize,
    /// Rows of the network, without the idle one.
    pub distinct: usize,
    pub tokens_ns_p50: f64,
    pub encoder_ns_p50: f64,
    pub mapping_ns_p50: f64,
    pub end_to_end_ns_p50: f64,
    pub end_to_end_ns_p99: f64,
    pub end_to_end_ns_p999: f64,
    pub control_ns_p50: f64,
    pub control_ns_p99: f64,
}

pub(super) const CORES: usize = 8;
/// Steps of the control loop between decisions are timed so often.
const CONTROLS: usize = 21;

/// Tasks of about a millisecond, each with one job whose slack lies anywhere in the range of the bins.
pub(super) struct Scene {
    pub system: System,
    jobs: Vec<Job>,
    active: Vec<JobId>,
    events: Vec<Event>,
}

impl Scene {
    pub fn new(n: usize, seed: u64) -> Scene {
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut tasks = Vec::with_capacity(n);
        let mut jobs = Vec::with_capacity(n);
        for index in 0..n {
            let wcet = Time(rng.random_range(500_000..1_500_000));
            let slack = Time(rng.random_range(0..32_000_000));
            tasks.push(Task::periodic(format!("t{index}"), wcet + slack, wcet));
            jobs.push(Job {
                task: index as u32,
                criticality: 0,
                running: false,
                last_core: None,
                number: 0,
                release: Time::ZERO,
                deadline: wcet + slack,
                wcet,
                bcet: wcet,
                executed: Time::ZERO,
                overhead: Time::ZERO,
                value: 1.0,
            });
        }
        let active: Vec<JobId> = (0..n as u32).map(JobId).collect();
        let events = active.iter().copied().map(Event::Released).collect();
        Scene { system: TaskSet::new("bench", tasks, CORES).system(), jobs, active, events }
    }

    pub fn view(&self) -> SystemView<'_> {
        let Scene { system, jobs, active, events } = self;
        SystemView { now: Time::ZERO, system, active, jobs, running: &[None; CORES], events }
    }
}

/// Times so many decisions among `n` jobs.
pub fn measure(name: &'static str, model: &Arc<Model>, n: usize, passes: u64) -> Result<Figures> {
    let scene = Scene::new(n, n as u64);
    let view = scene.view();
    let mut scheduler = Learned::new(model.clone(), Options::default())?;
    scheduler.start(&scene.system)?;
    let mut network = Network::new(&model.weights, temponet_infer::Options::default())?;
    let (scale, mut observation, mut mapper) =
        (Scale::of(&model.tokenizer, &scene.system), Observation::default(), Mapper::default());
    let (mut assignment, mut q) = (Assignment::default(), Vec::new());
    let mut times: [Vec<f64>; 4] = Default::default();
    let mut controls = Vec::new();
    let ns = |begin: Instant| begin.elapsed().as_nanos() as f64;
    let is_control = |pass: u64| pass.is_multiple_of((passes / CONTROLS as u64).max(1));
    for pass in 0..passes {
        let begin = Instant::now();
        observation.read(&model.tokenizer, &scale, &view, false);
        let tokens = ns(begin);
        let begin = Instant::now();
        network.forward(&observation.rows(), &mut q);
        let encoder = ns(begin);
        assignment.reset(CORES);
        let begin = Instant::now();
        let jobs = observation.jobs().iter().map(|(id, row)| (*id, q[*row as usize]));
        mapper.assign(Mapping::Greedy, jobs, f32::NEG_INFINITY, &view, &mut assignment);
        for (times, time) in times.iter_mut().zip([tokens, encoder, ns(begin)]) {
            times.push(time);
        }
        if is_control(pass) {
            controls.push(control());
        }
    }
    // Not in turn with the parts: the scheduler has a network of its own, and the caches have no room for two.
    for pass in 0..passes {
        assignment.reset(CORES);
        let begin = Instant::now();
        scheduler.decide(&view, &mut assignment);
        times[3].push(ns(begin));
        if is_control(pass) {
            controls.push(control());
        }
    }
    let quantile = |times: &mut Vec<f64>, share: f64| {
        times.sort_by(f64::total_cmp);
        times[((times.len() - 1) as f64 * share).round() as usize]
    };
    let [tokens, encoder, mapping, whole] = &mut times;
    Ok(Figures {
        model: name,
        n,
        distinct: observation.distinct(),
        tokens_ns_p50: quantile(tokens, 0.5),
        encoder_ns_p50: quantile(encoder, 0.5),
        mapping_ns_p50: quantile(mapping, 0.5),
        end_to_end_ns_p50: quantile(whole, 0.5),
        end_to_end_ns_p99: quantile(whole, 0.99),
        end_to_end_ns_p999: quantile(whole, 0.999),
        control_ns_p50: quantile(&mut controls, 0.5),
        control_ns_p99: quantile(&mut controls, 0.99),
    })
}
