//! The network as a scheduler: read the ready jobs, run the network, map Q-values to cores. The shield around it is in
//! `scheduler.rs`.
//!
//! With a budget, each decision is taken by the best of three levels that is expected to fit: the network, the usual
//! fallback, or EDF.

mod budget;
mod following;
mod measurement;

use std::sync::Arc;

use temponet_infer::{Network, NetworkError};
use temponet_sched::fallback;
use temponet_task::{Assignment, CoreId, JobId, NotApplicable, Scheduler, System, SystemView, Time};

use crate::mapping::{Mapper, Mapping};
use crate::scale::Scale;
use crate::speed::{best_speed, core_speed};
use crate::stages::Observation;
use crate::staying::Staying;
use crate::tuning::Tuning;
use crate::{Calibration, Model};
use budget::{Allowance, Budget};
use following::Following;

/// Options of the learned scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Mapping from Q-values to cores.
    pub mapping: Mapping,
    /// Whether attention is sparse, as in the paper, instead of dense over distinct rows. A model that was trained with
    /// sparse attention always has it; one that sees coming jobs never does.
    pub sparse: bool,
    /// Whether sparse attention looks into all its blocks in overload, without the paper's mitigation.
    pub keep_attention: bool,
    /// Kernel and precision of the network.
    pub network: temponet_infer::NetworkOptions,
    /// Time budget of a decision, in nanoseconds; none, the default, is no limit. Where the network is expected to take
    /// longer, the fallback scheduler decides, and EDF where that one is expected to take longer, too.
    pub budget_ns: Option<u64>,
    /// Expected latencies that the budget is compared with. By default they are measured when a scheduler with a budget
    /// is built.
    pub calibration: Option<Calibration>,
    /// When the scheduler to follow is chosen by simulation: the network or a simple one. It does not concern the
    /// network alone.
    pub tuning: Tuning,
}

/// Shares of urgent jobs above which sparse attention is halved, and below which it is whole again.
const OVERLOAD: (f32, f32) = (0.30, 0.20);

/// The overload detector: whether it is on after it has seen a share of urgent jobs, 0 to 1, if it `was_on` before. It
/// goes on above 0.30 and off at 0.20.
pub fn is_overloaded(was_on: bool, urgent: f32) -> bool {
    urgent > if was_on { OVERLOAD.1 } else { OVERLOAD.0 }
}

/// The learned scheduler without a shield.
pub struct Learned {
    model: Arc<Model>,
    network: Network,
    options: Options,
    scale: Scale,
    observation: Observation,
    mapper: Mapper,
    is_overloaded: bool,
    /// Period of additional decision points, if the model has been trained with them.
    tick: Option<Time>,
    /// Scheduler for decisions that the network cannot take: more jobs than it was trained for, over budget, or an
    /// output that is not finite. It looks only at the ready jobs, so it need not see every decision.
    fallback: Box<dyn Scheduler>,
    /// Number of decisions that the network has not taken, those of EDF included.
    fallbacks: u64,
    budget: Option<Budget>,
    /// Q-values of the rows, each at its best speed, and then what the network gives for its speeds.
    q: Vec<f32>,
    /// Best speed of each job row, if the network has speeds.
    speeds: Vec<u8>,
    /// Whether cores run at full speed, whatever the network says.
    is_full_speed: bool,
    /// Whether the network chooses speeds on this system. It is then asked wherever a job is ready.
    chooses_speeds: bool,
    /// Upper level of a hierarchical model.
    following: Following,
    /// Ready jobs, those that may be chosen first; working memory.
    ready: Vec<JobId>,
}

/// Q-value of a job without a row.
const LEFT_OUT: f32 = -1e29;
/// Q-value of a job that is chosen only if nothing else is left.
const LAST_CHOICE: f32 = -1e30;

impl Learned {
    /// A scheduler with this model. With a budget but no calibration in the options, it measures one.
    pub fn new(model: Arc<Model>, mut options: Options) -> Result<Learned, NetworkError> {
        let network = Network::new(&model.weights, options.network)?;
        options.sparse |= model.tokenizer.sparse;
        if options.budget_ns.is_some() && options.calibration.is_none() {
            options.calibration = Some(measurement::measure(&network, &model, options));
        }
        Ok(Learned::over(network, model, options))
    }

    /// Another scheduler over the same prepared weights, with the same calibration. It has to be started like a new
    /// one.
    pub fn share(&self) -> Learned {
        let is_full_speed = self.is_full_speed;
        Learned { is_full_speed, ..Learned::over(self.network.clone(), self.model.clone(), self.options) }
    }

    /// The same scheduler with all cores at full speed, as a shield around it needs.
    pub(crate) fn at_full_speed(self) -> Learned {
        Learned { is_full_speed: true, ..self }
    }

    fn over(network: Network, model: Arc<Model>, options: Options) -> Learned {
        Learned {
            budget: Budget::new(&options, &model.tokenizer),
            network,
            model,
            options,
            scale: Scale::default(),
            observation: Observation::default(),
            mapper: Mapper::default(),
            is_overloaded: false,
            tick: None,
            fallback: fallback(false),
            fallbacks: 0,
            q: Vec::new(),
            speeds: Vec::new(),
            is_full_speed: false,
            chooses_speeds: false,
            following: Following::default(),
            ready: Vec::new(),
        }
    }

    /// Model of the scheduler.
    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Options of the scheduler, with the calibration that it has measured if there is a budget.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Whether the overload detector fired at the last decision of the network. The detector works even where attention
    /// is kept whole.
    pub fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }

    /// Prepares for a system, except for the fallbacks.
    fn prepare(&mut self, system: &System) {
        self.scale = Scale::of(&self.model.tokenizer, system);
        self.mapper.reserve(self.options.mapping, system.cores());
        self.observation.start(system);
        self.network.reset();
        self.is_overloaded = false;
        self.tick = self.model.tick().map(|tick| Time((tick * self.scale.unit) as u64).max(Time(1)));
        self.chooses_speeds =
            self.model.weights.architecture.speeds() > 0 && !self.is_full_speed && system.speeds().len() > 1;
        self.mapper.staying = Staying::on(system, self.model.stay());
        self.following = Following::new(&self.model);
        self.fallbacks = 0;
        self.fallback = fallback(self.scale.differs);
    }

    /// Reads the ready jobs: tokens, advice and overload.
    fn observe(&mut self, view: &SystemView<'_>) {
        self.observation.read(&self.model.tokenizer, &self.scale, view, self.options.sparse);
        self.is_overloaded = is_overloaded(self.is_overloaded, self.observation.urgent());
        if self.is_overloaded && !self.options.keep_attention {
            self.observation.halve_attention();
        }
    }

    /// Computes the Q-values of the observed jobs. Returns whether they are finite.
    fn evaluate(&mut self) -> bool {
        // As many Q-values as there are jobs, so that a later decision with fewer equal jobs allocates nothing.
        let (rows, speeds) = (self.observation.capacity(), self.model.weights.architecture.speeds());
        self.q.clear();
        self.q.reserve(1 + rows * (1 + speeds));
        self.following.guide(&mut self.network, &mut self.observation, &mut self.q);
        self.q.clear();
        self.network.forward(&self.observation.rows(), &mut self.q);
        self.speeds.clear();
        if self.chooses_speeds {
            self.speeds.reserve(rows);
            let (q, gains) = self.q.split_at_mut(1 + self.observation.distinct());
            let rows = self.observation.distinct().max(1);
            for (row, q) in q[1..].iter_mut().enumerate() {
                let (speed, gain) = best_speed(gains[row..].iter().step_by(rows).copied());
                *q += gain;
                self.speeds.push(speed);
            }
        }
        self.q.iter().all(|q| q.is_finite())
    }

    /// Sets the speed of each core to the best one of its job.
    fn set_speeds(&self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let speeds = self.model.weights.architecture.speeds();
        for (id, row) in self.observation.jobs().iter().filter(|(_, row)| *row > 0) {
            let chosen = self.speeds[*row as usize - 1];
            if chosen > 0
                && let Some(core) = assignment.cores().iter().position(|job| job == &Some(*id))
            {
                assignment.set_speed(CoreId::new(core), core_speed(view.system, speeds, chosen));
            }
        }
    }

    /// Maps the Q-values of the observed jobs to cores.
    fn map(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let jobs = self.observation.jobs().iter().map(|(id, row)| {
            let q = match self.observation.may_choose(*row) {
                true => self.q[*row as usize],
                false if view.job(*id).is_impossible(view.now) => LAST_CHOICE,
                false => LEFT_OUT,
            };
            (*id, q)
        });
        let idle = self.model.threshold(self.q[0]);
        self.mapper.assign(self.options.mapping, jobs, idle, view, assignment);
        if !self.speeds.is_empty() {
            self.set_speeds(view, assignment);
        }
    }

    /// Decides without the network.
    fn fall_back(&mut self, allowance: Allowance, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.fallbacks += 1;
        match &mut self.budget {
            Some(budget) if !allowance.allows_fallback() => budget.decide_by_edf(assignment),
            _ => self.fallback.decide(view, assignment),
        }
    }
}

impl Scheduler for Learned {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        if let Some(problem) = self.model.tokenizer.not_applicable(system) {
            return Err(NotApplicable(problem.to_string()));
        }
        self.prepare(system);
        self.fallback.start(system)?;
        match &mut self.budget {
            Some(budget) => budget.start(system, self.scale.differs, !self.mapper.staying.is_zero()),
            None => Ok(()),
        }
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.observation.note(view);
        let mut allowance = match &mut self.budget {
            Some(budget) => budget.begin(view),
            None => Allowance::UNLIMITED,
        };
        if view.active.is_empty() || (view.leaves_no_choice() && !self.chooses_speeds) {
            // Every job gets a core.
            return assignment.place(view, view.active);
        }
        if self.model.tokenizer.skips_impossible && !self.chooses_speeds && view.system.machine().is_plain() {
            let choosable = self.model.tokenizer.choosable(view, &mut self.ready);
            if choosable <= view.cores() && view.locks.is_none() {
                return assignment.place(view, &self.ready);
            }
        }
        if let Some(tick) = self.tick {
            assignment.wake_at(view.now.next_multiple(tick));
        }
        if !allowance.try_observe() {
            return self.fall_back(allowance, view, assignment);
        }
        self.observe(view);
        if allowance.try_network(1 + self.observation.distinct()) && self.evaluate() {
            self.map(view, assignment);
        } else {
            self.fall_back(allowance, view, assignment);
        }
    }

    /// Only the outcomes of (m,k) constraints and EDF, the last level of a budget, rest on past events.
    fn watch(&mut self, view: &SystemView<'_>, _scratch: &mut Assignment) {
        self.observation.note(view);
        if let Some(budget) = &mut self.budget {
            budget.watch(view);
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let edf = self.budget.as_ref().map(|budget| ("edf_fallbacks", budget.edf_decisions()));
        std::iter::once(("fallbacks", self.fallbacks)).chain(edf).collect()
    }
}
