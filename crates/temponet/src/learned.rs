//! The network as a scheduler: observe, read, map. What makes it safe is around it (`scheduler.rs`).

use std::sync::Arc;

use temponet_infer::{Network, NetworkError};
use temponet_sched::fallback;
use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView};

use crate::mapping::{Mapper, Mapping};
use crate::staying::Staying;
use crate::tokenizer::Scale;
use crate::{Model, Observation};

/// How a model is used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// From Q-values to cores.
    pub mapping: Mapping,
    /// The paper's sparse attention instead of the dense one over distinct rows.
    pub sparse: bool,
    /// Keep sparse attention whole in overload too, without the paper's mitigation.
    pub keep_attention: bool,
    /// The kernel and its precision.
    pub network: temponet_infer::NetworkOptions,
    /// A decision that is expected to take longer than this many ns is left to the fallback; none: there is no limit.
    pub budget_ns: Option<u64>,
}

/// The share of urgent jobs above which sparse attention is halved, and below which it is whole again.
const OVERLOAD: (f32, f32) = (0.30, 0.20);

/// The learned scheduler, without a shield.
pub struct Learned {
    model: Arc<Model>,
    network: Network,
    options: Options,
    scale: Scale,
    observation: Observation,
    mapper: Mapper,
    is_overloaded: bool,
    /// More ready jobs than this are beyond what the model has learned.
    most_jobs: usize,
    /// Decides where the network cannot: beyond its reach, over budget, or not finite.
    fallback: Box<dyn Scheduler>,
    fallbacks: u64,
    q: Vec<f32>,
}

impl Learned {
    /// A scheduler that asks this model.
    pub fn new(model: Arc<Model>, options: Options) -> Result<Learned, NetworkError> {
        Ok(Learned {
            network: Network::new(&model.weights, options.network)?,
            model,
            options,
            scale: Scale::default(),
            observation: Observation::default(),
            mapper: Mapper::default(),
            is_overloaded: false,
            most_jobs: usize::MAX,
            fallback: fallback(false),
            fallbacks: 0,
            q: Vec::new(),
        })
    }

    /// Whether its overload detector fired when the network was last asked; it minds this even where attention is kept whole.
    pub fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }

    /// What a decision over so many rows takes at most, in ns: the work of the network at a rate that every machine reaches.
    fn expected_ns(&self, rows: usize) -> u64 {
        2_000 + self.model.weights.architecture.operations(rows) as u64 / FLOP_PER_NS
    }
}

/// Floating-point operations per nanosecond that are taken for granted.
const FLOP_PER_NS: u64 = 20;

impl Scheduler for Learned {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        if let Some(problem) = self.model.tokenizer.not_applicable(system) {
            return Err(NotApplicable(problem));
        }
        self.scale = Scale::of(&self.model.tokenizer, system);
        self.mapper.reserve(self.options.mapping, system.cores);
        self.observation.start(system);
        self.is_overloaded = false;
        let reach = self.model.reach().map(|reach| (reach * system.cores as f64).ceil() as usize);
        self.most_jobs = reach.unwrap_or(usize::MAX);
        self.mapper.staying = Staying::on(system, self.model.stay());
        self.fallbacks = 0;
        self.fallback = fallback(self.scale.differs);
        self.fallback.start(system)
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.q.clear();
        if view.active.len() <= view.cores() {
            // There is nothing to choose.
            return assignment.place(view, view.active);
        }
        if view.active.len() > self.most_jobs {
            self.fallbacks += 1;
            return self.fallback.decide(view, assignment);
        }
        self.observation.read(&self.model.tokenizer, &self.scale, view, self.options.sparse);
        let limit = if self.is_overloaded { OVERLOAD.1 } else { OVERLOAD.0 };
        self.is_overloaded = self.observation.urgent() > limit;
        if self.is_overloaded && !self.options.keep_attention {
            self.observation.halve_attention();
        }
        let is_affordable =
            self.options.budget_ns.is_none_or(|budget| self.expected_ns(1 + self.observation.distinct()) <= budget);
        self.q.reserve(1 + self.observation.jobs().len());
        if is_affordable {
            self.network.forward(&self.observation.rows(), &mut self.q);
        }
        if !is_affordable || self.q.iter().any(|q| !q.is_finite()) {
            self.fallbacks += 1;
            self.q.clear();
            return self.fallback.decide(view, assignment);
        }
        let jobs = self.observation.jobs().iter().map(|(id, row)| (*id, self.q[*row as usize]));
        let idle = self.model.threshold(self.q[0]);
        self.mapper.assign(self.options.mapping, jobs, idle, view, assignment);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("fallbacks", self.fallbacks)]
    }
}
