//! A method of learning, as a recipe names it and as the training loop runs it.
//!
//! The settings of a method are a type that implements [`Method`], in the file of the method. They say what is wrong
//! with themselves, how long a phase is, and begin an [`Algorithm`], which does the work. A recipe holds the settings
//! of any method as a [`StageMethod`]; `registry.rs` finds the type by its name, so that other crates can add methods
//! of their own.
//!
//! The loop ([`crate::TrainingRun`]) owns the network, the validation and the checkpoints. An algorithm owns what it
//! remembers from phase to phase, such as a replay buffer or a target network.

use std::any::Any;
use std::fmt;

use rand_pcg::Pcg64;
use serde::Serialize;
use serde::de::DeserializeOwned;
use temponet::Model;
use temponet::stages::Tokenizer;
use temponet_grad::{Cpu, Device, LearningLosses, Tensors};
use temponet_infer::Weights;

use crate::error::TrainError;
use crate::fleet::Episodes;
use crate::learner::Learner;
use crate::recipe::Recipe;
use crate::updates::Updates;

/// Settings of a method of learning: the table `[stage.method.NAME]` of a recipe.
pub trait Method: Clone + fmt::Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Name of the method in a recipe file.
    const NAME: &'static str;

    /// Returns why these settings cannot be used in a recipe, or `None`. The text begins with the name of the setting.
    fn problem(&self, recipe: &Recipe) -> Option<String>;

    /// Whether the method learns a part that not every network has. Unless it says otherwise, it learns an actor and
    /// nothing else.
    fn learns(&self, part: NetworkPart) -> bool {
        part == NetworkPart::Actor
    }

    /// Number of updates per phase. A method may make fewer, for example while it waits for its first transitions.
    fn updates(&self) -> u64;

    /// Names of the schedulers that it learns from; [`crate::OPTIMUM`] may be one.
    fn teachers(&self) -> &[String] {
        &[]
    }

    /// Starts the algorithm on a network, with nothing remembered.
    fn begin<D: MethodDevice>(&self, recipe: &Recipe, learner: &mut Learner<D>) -> Box<dyn Algorithm<D>>;
}

/// Part of a network that only some methods learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPart {
    /// Actor head beside the critic.
    Actor,
    /// Gains of speeds below full speed.
    Speeds,
    /// Distribution of returns in place of their mean.
    Atoms,
    /// State of a recurrent network.
    Memory,
}

/// One phase of a stage, as an algorithm runs it.
pub struct Phase<'a, D: Device> {
    /// Index of the phase in its stage, counted from 0.
    pub index: u64,
    /// Number of phases in the stage.
    pub count: u64,
    /// Whether the weights at the start of the stage were learned before, by an earlier stage or by the model that the
    /// training began with.
    pub is_warm_start: bool,
    /// Seed of the whole training.
    pub training_seed: u64,
    /// Seed of the stage; [`crate::training_seed`] of it and the index is the seed of each of its phases.
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

/// Callback that is shown the tensors of a checkpoint: the name of their list, the device they live on, and the list.
pub type TensorVisitor<'a, D> = &'a mut dyn FnMut(String, &mut D, &mut Tensors<D>);

/// A method at work: what it does in a phase, and what it remembers from phase to phase.
pub trait Algorithm<D: Device> {
    /// Runs one phase: acts, learns, and reports each update to `phase.updates`.
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError>;

    /// Whether the policy may leave cores idle while jobs wait.
    fn may_idle(&self) -> bool {
        false
    }

    /// Model to validate after a phase: unless an algorithm says otherwise, the weights as the phase left them.
    /// `phases` is the number of phases of the stage that are done, and `best` are the best weights so far.
    fn candidate(&self, learner: &Learner<D>, tokenizer: Tokenizer, _best: &Weights, _phases: u64) -> Model {
        let mut model = Model { tokenizer, weights: learner.weights() };
        model.set_never_idles(!self.may_idle());
        model
    }

    /// Returns what a checkpoint keeps besides tensors, as [`crate::encode_memory`] writes it; by default nothing.
    fn memory(&self) -> Result<Vec<u8>, TrainError> {
        Ok(Vec::new())
    }

    /// Goes back to what [`Algorithm::memory`] returned.
    fn restore(&mut self, _memory: &[u8]) -> Result<(), TrainError> {
        Ok(())
    }

    /// Shows all tensors of a checkpoint: those of the learner, and those of the algorithm.
    fn visit_tensors(&mut self, learner: &mut Learner<D>, each: TensorVisitor<'_, D>) {
        learner.visit(Vec::new(), |name, device, tensors| each(name.into(), device, tensors));
    }
}

/// A device that methods learn on. The type of a recipe's settings is not known where a training begins, so each device
/// names its own constructor.
pub trait MethodDevice: LearningLosses + 'static {
    /// Starts the algorithm of a recipe's stage on a network of this device.
    fn begin(method: &StageMethod, recipe: &Recipe, learner: &mut Learner<Self>) -> Box<dyn Algorithm<Self>>
    where
        Self: Sized;
}

impl MethodDevice for Cpu {
    fn begin(method: &StageMethod, recipe: &Recipe, learner: &mut Learner<Self>) -> Box<dyn Algorithm<Self>> {
        method.0.begin_on_cpu(recipe, learner)
    }
}

#[cfg(feature = "cuda")]
impl MethodDevice for temponet_grad::Cuda {
    fn begin(method: &StageMethod, recipe: &Recipe, learner: &mut Learner<Self>) -> Box<dyn Algorithm<Self>> {
        method.0.begin_on_gpu(recipe, learner)
    }
}

/// Method of a stage: the settings of any [`Method`].
pub struct StageMethod(Box<dyn AnyMethod>);

/// [`Method`] without its type.
trait AnyMethod: erased_serde::Serialize + fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn problem(&self, recipe: &Recipe) -> Option<String>;
    fn learns(&self, part: NetworkPart) -> bool;
    fn updates(&self) -> u64;
    fn teachers(&self) -> &[String];
    fn begin_on_cpu(&self, recipe: &Recipe, learner: &mut Learner<Cpu>) -> Box<dyn Algorithm<Cpu>>;
    #[cfg(feature = "cuda")]
    fn begin_on_gpu(
        &self,
        recipe: &Recipe,
        learner: &mut Learner<temponet_grad::Cuda>,
    ) -> Box<dyn Algorithm<temponet_grad::Cuda>>;
    fn copy(&self) -> Box<dyn AnyMethod>;
    fn equals(&self, other: &dyn AnyMethod) -> bool;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<M: Method> AnyMethod for M {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn problem(&self, recipe: &Recipe) -> Option<String> {
        Method::problem(self, recipe)
    }

    fn learns(&self, part: NetworkPart) -> bool {
        Method::learns(self, part)
    }

    fn updates(&self) -> u64 {
        Method::updates(self)
    }

    fn teachers(&self) -> &[String] {
        Method::teachers(self)
    }

    fn begin_on_cpu(&self, recipe: &Recipe, learner: &mut Learner<Cpu>) -> Box<dyn Algorithm<Cpu>> {
        self.begin(recipe, learner)
    }

    #[cfg(feature = "cuda")]
    fn begin_on_gpu(
        &self,
        recipe: &Recipe,
        learner: &mut Learner<temponet_grad::Cuda>,
    ) -> Box<dyn Algorithm<temponet_grad::Cuda>> {
        self.begin(recipe, learner)
    }

    fn copy(&self) -> Box<dyn AnyMethod> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn AnyMethod) -> bool {
        other.as_any().downcast_ref::<M>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl StageMethod {
    /// Returns the name of the method, as in a recipe file.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Returns why the settings cannot be used in a recipe, or `None`; see [`Method::problem`].
    pub fn problem(&self, recipe: &Recipe) -> Option<String> {
        self.0.problem(recipe)
    }

    /// Whether the method learns a part of the network; see [`Method::learns`].
    pub fn learns(&self, part: NetworkPart) -> bool {
        self.0.learns(part)
    }

    /// Returns the number of updates per phase; see [`Method::updates`].
    pub fn updates(&self) -> u64 {
        self.0.updates()
    }

    /// Returns the names of the schedulers it learns from; see [`Method::teachers`].
    pub fn teachers(&self) -> &[String] {
        self.0.teachers()
    }

    /// Returns the settings if they are those of this method.
    pub fn settings<M: Method>(&self) -> Option<&M> {
        self.0.as_any().downcast_ref()
    }

    /// Returns the settings to change them, if they are those of this method.
    pub fn settings_mut<M: Method>(&mut self) -> Option<&mut M> {
        self.0.as_any_mut().downcast_mut()
    }

    /// The settings as they are written below the name of the method.
    pub(crate) fn erased(&self) -> &dyn erased_serde::Serialize {
        &*self.0
    }
}

impl<M: Method> From<M> for StageMethod {
    fn from(settings: M) -> StageMethod {
        StageMethod(Box::new(settings))
    }
}

impl Clone for StageMethod {
    fn clone(&self) -> StageMethod {
        StageMethod(self.0.copy())
    }
}

impl PartialEq for StageMethod {
    fn eq(&self, other: &StageMethod) -> bool {
        self.0.equals(&*other.0)
    }
}

impl fmt::Debug for StageMethod {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
