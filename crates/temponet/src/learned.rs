//! The network as a scheduler: read the ready jobs, run the network, map Q-values to cores. The shield around it is in `scheduler.rs`.

use std::sync::Arc;

use temponet_infer::{Network, NetworkError};
use temponet_sched::fallback;
use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView};

use crate::Model;
use crate::mapping::{Mapper, Mapping};
use crate::stages::Observation;
use crate::staying::Staying;
use crate::tokenizer::Scale;

/// Options of the learned scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Mapping from Q-values to cores.
    pub mapping: Mapping,
    /// Whether attention is sparse, as in the paper, instead of dense over distinct rows.
    pub sparse: bool,
    /// Whether sparse attention keeps all its blocks in overload, without the paper's mitigation.
    pub keep_attention: bool,
    /// Kernel and precision of the network.
    pub network: temponet_infer::NetworkOptions,
    /// Time budget of a decision, in nanoseconds. A decision that is expected to take longer is left to the fallback. There is no limit by default.
    pub budget_ns: Option<u64>,
}

/// Shares of urgent jobs above which sparse attention is halved, and below which it is whole again.
const OVERLOAD: (f32, f32) = (0.30, 0.20);

/// The learned scheduler without a shield.
pub struct Learned {
    model: Arc<Model>,
    network: Network,
    options: Options,
    scale: Scale,
    observation: Observation,
    mapper: Mapper,
    is_overloaded: bool,
    /// Number of ready jobs up to which the model has been trained.
    most_jobs: usize,
    /// Scheduler for decisions that the network cannot take: more jobs than it was trained for, over budget, or an output that is not finite.
    fallback: Box<dyn Scheduler>,
    fallbacks: u64,
    q: Vec<f32>,
}

impl Learned {
    /// A scheduler with this model.
    pub fn new(model: Arc<Model>, options: Options) -> Result<Learned, NetworkError> {
        Ok(Learned::over(Network::new(&model.weights, options.network)?, model, options))
    }

    /// Another scheduler over the same prepared weights. It has to be started like a new one.
    pub fn share(&self) -> Learned {
        Learned::over(self.network.clone(), self.model.clone(), self.options)
    }

    fn over(network: Network, model: Arc<Model>, options: Options) -> Learned {
        Learned {
            network,
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
        }
    }

    /// Whether the overload detector fired at the last decision of the network. The detector works even where attention is kept whole.
    pub fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }

    /// Upper estimate of the time of a decision over this many rows, in nanoseconds: the work of the network at a rate that every machine reaches.
    fn expected_ns(&self, rows: usize) -> u64 {
        2_000 + self.model.weights.architecture.operations(rows) as u64 / FLOP_PER_NS
    }
}

/// Floating-point operations per nanosecond that every machine is assumed to reach.
const FLOP_PER_NS: u64 = 20;

impl Scheduler for Learned {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        if let Some(problem) = self.model.tokenizer.not_applicable(system) {
            return Err(NotApplicable(problem.to_string()));
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
            // Every job gets a core.
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
