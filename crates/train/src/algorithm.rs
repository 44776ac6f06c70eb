//! The learning algorithms as the training loop sees them: a trait that each implements in a file of its own, and the enum of all of them.
//!
//! The loop ([`crate::TrainingRun`]) owns the network, the validation and the checkpoints. An algorithm owns what it remembers from phase to
//! phase, such as a replay buffer or a target network.

use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet::Model;
use temponet::stages::Tokenizer;
use temponet_grad::{Device, LearningLosses, Tensors};
use temponet_infer::Weights;

use crate::a2c::A2c;
use crate::error::TrainError;
use crate::fleet::Episodes;
use crate::hierarchical::{Hierarchical, HierarchicalMemory};
use crate::learner::Learner;
use crate::methods::cloning::{Cloning, Demonstration};
use crate::methods::dqn::{Dqn, DqnMemory};
use crate::methods::offline::Offline;
use crate::methods::ppo::Ppo;
use crate::methods::rollouts::{RolloutMemory, Rollouts};
use crate::methods::stay::Stay;
use crate::priorities::{Priorities, PriorityMemory};
use crate::recipe::{Method, Recipe};
use crate::ring_buffer::RingBuffer;
use crate::sac::{Sac, SacMemory};
use crate::updates::Updates;

/// One phase of a stage, as an algorithm runs it.
pub(crate) struct Phase<'a, D: Device> {
    /// Index of the phase in its stage, counted from 0.
    pub index: u64,
    /// Number of phases in the stage.
    pub count: u64,
    /// Whether the weights at the start of the stage were learned before, by an earlier stage or by the model that the training began with.
    pub is_warm_start: bool,
    /// Seed of the whole training.
    pub training_seed: u64,
    /// Seed of the stage; `mix(stage_seed, index)` is the seed of each of its phases.
    pub stage_seed: u64,
    /// Seed of this phase.
    pub seed: u64,
    /// Random numbers of this phase's updates.
    pub rng: Pcg64,
    /// Episodes to act in, without a teacher or a base scheduler.
    pub episodes: Episodes,
    /// Learning rates and reports of the phase's updates.
    pub updates: Updates<'a, D>,
}

/// What an algorithm keeps in a checkpoint besides its tensors. Each algorithm fills the fields it needs. The order of the fields is part of
/// the checkpoint format.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Optimizer steps of the critics of implicit Q-learning.
    pub critic_steps: [u64; 2],
    /// Demonstrations of cloning.
    pub demonstrations: Option<RingBuffer<Demonstration>>,
    /// Comparisons of learning from rollouts.
    pub rollouts: Option<RolloutMemory>,
    /// Replay buffer and counters of Q-learning, online or offline.
    pub dqn: Option<DqnMemory>,
    /// Replay buffer, counters and temperature of soft actor–critic.
    pub sac: Option<SacMemory>,
    /// Replay buffer, counters and temperature of actor–critics over priorities.
    pub priorities: Option<PriorityMemory>,
    /// Replay buffers and counter of the hierarchical scheduler.
    pub hierarchical: Option<HierarchicalMemory>,
}

impl Memory {
    /// Error for a checkpoint that lacks a field its algorithm needs.
    pub(crate) fn missing(what: &str) -> TrainError {
        TrainError::Checkpoint(format!("its {what} are missing"))
    }
}

/// Callback that is shown the tensors of a checkpoint: the name of their list, the device they live on, and the list.
pub(crate) type TensorVisitor<'a, D> = &'a mut dyn FnMut(String, &mut D, &mut Tensors<D>);

/// A learning algorithm.
pub(crate) trait Algorithm<D: Device> {
    /// Runs one phase: acts, learns, and reports each update to `phase.updates`.
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError>;

    /// Whether the policy may leave cores idle while jobs wait.
    fn may_idle(&self) -> bool {
        false
    }

    /// Model to validate after a phase: unless an algorithm says otherwise, the weights as the phase left them. `phases` is the number of
    /// phases of the stage that are done, and `best` are the best weights so far.
    fn candidate(&self, learner: &Learner<D>, tokenizer: Tokenizer, _best: &Weights, _phases: u64) -> Model {
        let mut model = Model { tokenizer, weights: learner.weights() };
        model.set_never_idles(!self.may_idle());
        model
    }

    /// Returns what a checkpoint keeps besides tensors.
    fn memory(&self) -> Memory {
        Memory::default()
    }

    /// Goes back to what [`Algorithm::memory`] returned.
    fn restore(&mut self, _memory: Memory) -> Result<(), TrainError> {
        Ok(())
    }

    /// Shows all tensors of a checkpoint: those of the learner, and those of the algorithm.
    fn visit_tensors(&mut self, learner: &mut Learner<D>, each: TensorVisitor<'_, D>) {
        learner.visit(Vec::new(), |name, device, tensors| each(name.into(), device, tensors));
    }
}

/// Algorithm of the stage under way.
pub(crate) enum StageAlgorithm<D: Device> {
    Cloning(Cloning),
    Rollouts(Rollouts),
    Dqn(Box<Dqn<D>>),
    Ppo(Ppo),
    A2c(A2c),
    Sac(Box<Sac<D>>),
    Priorities(Box<Priorities<D>>),
    Hierarchical(Box<Hierarchical<D>>),
    Offline(Box<Offline<D>>),
    Stay(Stay),
}

impl<D: LearningLosses> StageAlgorithm<D> {
    /// Starts the algorithm of a recipe's stage, with nothing remembered.
    pub(crate) fn begin(method: &Method, recipe: &Recipe, learner: &mut Learner<D>) -> StageAlgorithm<D> {
        match method {
            Method::Cloning(settings) => StageAlgorithm::Cloning(Cloning::new(settings.clone())),
            Method::Rollouts(settings) => StageAlgorithm::Rollouts(Rollouts::new(settings.clone())),
            Method::Dqn(settings) => StageAlgorithm::Dqn(Box::new(Dqn::new(settings.clone(), learner))),
            Method::Ppo(settings) => StageAlgorithm::Ppo(Ppo::new(settings.clone())),
            Method::A2c(settings) => StageAlgorithm::A2c(A2c::new(settings.clone())),
            Method::Sac(settings) => StageAlgorithm::Sac(Box::new(Sac::new(settings.clone(), recipe, learner))),
            Method::Priorities(settings) => {
                StageAlgorithm::Priorities(Box::new(Priorities::new(settings.clone(), recipe, learner)))
            }
            Method::Hierarchical(settings) => {
                let tokenizer = recipe.tokenizer();
                StageAlgorithm::Hierarchical(Box::new(Hierarchical::new(settings.clone(), &tokenizer, learner)))
            }
            Method::Offline(settings) => {
                StageAlgorithm::Offline(Box::new(Offline::new(settings.clone(), recipe, learner)))
            }
            Method::Stay(settings) => StageAlgorithm::Stay(Stay::new(*settings)),
        }
    }

    /// The algorithm, whichever it is.
    pub(crate) fn get(&mut self) -> &mut dyn Algorithm<D> {
        match self {
            StageAlgorithm::Cloning(cloning) => cloning,
            StageAlgorithm::Rollouts(rollouts) => rollouts,
            StageAlgorithm::Dqn(dqn) => &mut **dqn,
            StageAlgorithm::Ppo(ppo) => ppo,
            StageAlgorithm::A2c(a2c) => a2c,
            StageAlgorithm::Sac(sac) => &mut **sac,
            StageAlgorithm::Priorities(priorities) => &mut **priorities,
            StageAlgorithm::Hierarchical(hierarchical) => &mut **hierarchical,
            StageAlgorithm::Offline(offline) => &mut **offline,
            StageAlgorithm::Stay(stay) => stay,
        }
    }
}
