//! An entry of the catalog: one scheduler.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use temponet_task::{Attribute, Scheduler};

use super::needs::{Checked, Need};
use super::options::{OptionHelp, Options};
use crate::proofs::Facts;

/// What a scheduler is. Tables, verdicts and lists go by it and never by names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The learned scheduler behind its shield.
    Learned,
    /// The network of the learned scheduler alone.
    Network,
    /// Follows the simple scheduler that simulations of the set choose.
    Tuned,
    /// Tries its decisions out in simulated futures: the online reference. Slow, and run only if named.
    Planning,
    /// Decides by a published rule.
    Classical,
    /// Decides by a rule of this project.
    Simple,
    /// A scheduler of the embedding program.
    User,
    /// Searches orders of jobs in simulated futures. Slow, and run only if named.
    Searching,
}

impl Kind {
    /// Whether the scheduler decides by a rule that is not this project's.
    pub fn is_classical(self) -> bool {
        matches!(self, Kind::Classical | Kind::User)
    }

    /// Whether the scheduler decides by a rule, so that it is built from its name alone.
    pub fn is_rule(self) -> bool {
        matches!(self, Kind::Classical | Kind::Simple | Kind::User)
    }

    /// Whether the network decides, behind its shield or alone.
    pub fn is_learned(self) -> bool {
        matches!(self, Kind::Learned | Kind::Network)
    }

    /// Whether a decision takes milliseconds, so that the scheduler is run only if it is named.
    pub fn is_slow(self) -> bool {
        matches!(self, Kind::Planning | Kind::Searching)
    }

    /// Name of the kind in lists for programs: `classical`, `search`, `user`, or `own` for this project's.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Classical => "classical",
            Kind::Searching => "search",
            Kind::User => "user",
            Kind::Learned | Kind::Network | Kind::Tuned | Kind::Planning | Kind::Simple => "own",
        }
    }

    /// Reason why a scheduler of this kind does not go behind the shield; none if it does. `name` is its name.
    pub(super) fn why_unshielded(self, name: &str) -> Option<String> {
        match self {
            Kind::Learned | Kind::Network => Some(format!("{name} has no options and needs no other shield")),
            Kind::Planning | Kind::Searching => {
                Some(format!("{name} runs without a shield: {name} or {name}:OPTION=…"))
            }
            Kind::Tuned | Kind::Classical | Kind::Simple | Kind::User => None,
        }
    }

    /// Place of the kind in lists.
    pub(super) fn shelf(self) -> u8 {
        match self {
            Kind::Learned | Kind::Network => 0,
            Kind::Tuned => 1,
            Kind::Planning => 2,
            Kind::Classical | Kind::Simple => 3,
            Kind::User => 4,
            Kind::Searching => 5,
        }
    }
}

/// What a scheduler stands for, where something is decided by more than its [`Kind`]. At most one scheduler has a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mark {
    /// The baseline that tables, curves and pictures always show.
    Baseline,
    /// Keeps critical jobs by construction: a job waits for less critical ones at no time.
    CriticalFirst,
    /// Orders jobs by value.
    ValueFirst,
    /// Knows which jobs others wait for.
    DueDatesFirst,
}

/// What a scheduler is built from.
pub struct Request<'a> {
    /// Options that the user gave, with their defaults.
    pub options: &'a Options,
    /// Whether the scheduler goes behind the shield.
    pub is_shielded: bool,
    pub(super) context: &'a dyn Any,
}

impl Request<'_> {
    /// Returns what the caller has for schedulers of this kind, such as the model of the learned one; none if the
    /// caller is another one.
    pub fn context<C: Any>(&self) -> Option<&C> {
        self.context.downcast_ref()
    }
}

type Build = Arc<dyn Fn(&Request<'_>) -> Result<Box<dyn Scheduler>, String> + Send + Sync>;

/// A scheduler that users can name. It is made by [`Entry::new`] and the methods after it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Entry {
    /// Name that users write.
    pub name: Cow<'static, str>,
    /// The rule of the scheduler, in one line.
    pub summary: Cow<'static, str>,
    /// What the scheduler is good for, or what it guarantees, in one line.
    pub purpose: Cow<'static, str>,
    /// What the scheduler is.
    pub kind: Kind,
    /// What the scheduler stands for, if it does for anything.
    pub mark: Option<Mark>,
    /// What a system must have or must not have, so that the scheduler makes sense on it.
    pub needs: &'static [Need],
    /// Attributes of tasks beyond those that every scheduler may read, which this one reads.
    pub reads: &'static [Attribute],
    /// Options that users can give.
    pub options: &'static [OptionHelp],
    proof: fn(&Facts<'_>, &Options) -> Option<String>,
    build: Build,
}

impl Entry {
    /// A classical scheduler without needs, options and proof. `build` makes one; its error is the reason why the
    /// options do not go together.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        summary: impl Into<Cow<'static, str>>,
        purpose: impl Into<Cow<'static, str>>,
        build: impl Fn(&Request<'_>) -> Result<Box<dyn Scheduler>, String> + Send + Sync + 'static,
    ) -> Entry {
        Entry {
            name: name.into(),
            summary: summary.into(),
            purpose: purpose.into(),
            kind: Kind::Classical,
            mark: None,
            needs: &[],
            reads: &[],
            options: &[],
            proof: |_, _| None,
            build: Arc::new(build),
        }
    }

    /// The same entry of another kind.
    pub fn kind(self, kind: Kind) -> Entry {
        Entry { kind, ..self }
    }

    /// The same entry with a mark.
    pub fn mark(self, mark: Mark) -> Entry {
        Entry { mark: Some(mark), ..self }
    }

    /// The same entry with needs, which are checked in this order before the scheduler is started.
    pub fn needs(self, needs: &'static [Need]) -> Entry {
        Entry { needs, ..self }
    }

    /// The same entry with attributes of tasks that the scheduler reads.
    pub fn reads(self, reads: &'static [Attribute]) -> Entry {
        Entry { reads, ..self }
    }

    /// The same entry with options.
    pub fn options(self, options: &'static [OptionHelp]) -> Entry {
        Entry { options, ..self }
    }

    /// The same entry with a proof that the scheduler with these options meets every deadline: the name of the test or
    /// theorem, or none.
    pub fn proof(self, proof: fn(&Facts<'_>, &Options) -> Option<String>) -> Entry {
        Entry { proof, ..self }
    }

    /// Returns the proof that the scheduler, with its default options, meets every deadline of the set behind `facts`.
    pub fn proved_by(&self, facts: &Facts<'_>) -> Option<String> {
        (self.proof)(facts, &Options::of(self))
    }

    /// Makes the scheduler. What it needs is checked whenever it is started.
    pub(super) fn build(&self, request: &Request<'_>) -> Result<Box<dyn Scheduler>, String> {
        let scheduler = (self.build)(request)?;
        Ok(match self.needs {
            [] => scheduler,
            needs => Box::new(Checked::new(scheduler, &self.name, needs, request.options)),
        })
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Entry").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}
