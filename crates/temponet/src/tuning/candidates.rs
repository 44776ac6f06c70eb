//! The schedulers that a portfolio can follow.
//!
//! They are few on purpose: one of each kind that is best on some systems. A scheduler that only differs from another
//! one on systems with a certain property takes part on those systems alone, because each further candidate costs
//! effort and adds a chance of moving on noise.

use temponet_sched::build;
use temponet_sched::catalog::{Mark, is_marked};
use temponet_task::{Arrival, Attribute, Measure, Scheduler, System, Task};

use crate::stages::Learned;

/// Name of the network among the candidates.
pub const NETWORK: &str = "network";

/// Whether a candidate takes part on a system.
type Applies = fn(&System) -> bool;

/// Specs of the catalog's schedulers that take part, and the systems on which they do, as far as they do not say so
/// themselves by their needs. Ties go to the first one.
const SPECS: [(&str, Applies); 26] = [
    ("mh-edf", |_| true),
    ("edf", |_| true),
    ("edf-skip", |_| true),
    ("look-ahead:caution=0.5:capacity=0.95", |_| true),
    ("look-ahead:caution=0.2:capacity=0.85", |_| true),
    ("look-ahead:caution=0:capacity=0.85", |_| true),
    ("srpt", |_| true),
    ("fcfs", |_| true),
    ("mllf", |_| true),
    ("edzl", |_| true),
    ("edcl", |_| true),
    ("dm", |_| true),
    ("dasa", |_| true),
    ("lbesa", |_| true),
    ("dios", |_| true),
    ("red", |_| true),
    ("muf", |system| has(system, |task| task.criticality > 0)),
    // It divides the tasks by their utilization, which a list of jobs does not tell beforehand.
    ("p-edf", |system| system.cores() > 1 && !is_listed(system)),
    ("d-over", |_| true),
    // Without (m,k) it prefers tasks whose last job was missed, which evens out the shares of the tasks.
    ("mk-dbp", |system| {
        has(system, |task| task.mk.is_some()) || system.goal().measures().contains(&Measure::WorstTask)
    }),
    ("skip-over-bwp", |system| has(system, |task| task.extra.has(Attribute::Skip))),
    ("edf-vd", |system| has(system, |task| task.wcet_high.is_some())),
    ("cbs", |system| !system.servers().is_empty()),
    ("edf-chain", |_| true),
    ("egs", |_| true),
    ("hlfet", |_| true),
];

/// Specs that take part on a server ([`System::is_server`]) beside the others. What is begun there holds its core, and
/// rules that begin nothing that may be late differ from those that can still give it up. Those that shed learn the
/// lengths of requests from the ones that have left.
const SERVER_SPECS: [&str; 7] = [INDEX, "mh-edf:q=0.5", "edf-shed", "sjf-shed", "hrrn", "lifo", "reject-when-busy"];
/// Spec of the learned index for requests, which is followed on a server before anything is known.
const INDEX: &str = "request-index";

/// Returns the name of the candidate to follow where nothing is known of the jobs. Critical jobs that lead the goal are
/// not left to hope, requests of a server are left to the index that was learned for them, and value to a candidate that
/// knows of it; otherwise the first candidate is as good as any.
pub(super) fn before_evidence(system: &System, candidates: &[Candidate]) -> &'static str {
    let (goal, first) = (system.goal(), candidates.first());
    let is_of_requests = is_listed(system) && matches!(goal.first(), Measure::Met | Measure::Value);
    if is_of_requests && let Some(index) = candidates.iter().find(|candidate| candidate.name() == INDEX) {
        return index.name();
    }
    let is_simple = !matches!(first, Some(Candidate::Network(_)));
    let wanted = match goal.first() {
        Measure::Critical(_) => Some(Mark::CriticalFirst),
        Measure::Value if is_simple => Some(Mark::ValueFirst),
        Measure::Chains if is_simple => Some(Mark::DueDatesFirst),
        _ => None,
    };
    let found = wanted.and_then(|mark| candidates.iter().find(|candidate| candidate.has(mark)));
    found.or(first).map_or("", Candidate::name)
}

/// Whether a simple candidate decides alone where the shield guarantees nothing. A shield gives the cores of impossible
/// jobs to the earliest deadlines, which serves goals that count jobs. But (m,k) constraints are kept by whoever knows
/// the last jobs of each task, and one foreign choice changes all that come after it.
pub(crate) fn decides_alone(system: &System) -> bool {
    system.goal().measures().contains(&Measure::Mk)
}

fn has(system: &System, property: fn(&Task) -> bool) -> bool {
    system.tasks().iter().any(property)
}

/// Whether jobs of the system are lists, which nobody knows beforehand.
pub(super) fn is_listed(system: &System) -> bool {
    has(system, |task| matches!(task.arrival, Arrival::Listed(_)))
}

/// Returns the system without the lists of jobs, which tell the future. Everything else is what a scheduler may know.
pub(super) fn without_lists(system: &System) -> System {
    let mut tasks = system.tasks().to_vec();
    for task in &mut tasks {
        if let Arrival::Listed(jobs) = &mut task.arrival {
            *jobs = [].into();
        }
    }
    system.described_by(tasks)
}

/// A scheduler that can be followed.
pub enum Candidate {
    /// The network alone.
    Network(Box<Learned>),
    /// A scheduler of the catalog.
    Classical(&'static str),
}

impl Candidate {
    /// Name of the candidate: [`NETWORK`], or the spec of a scheduler of the catalog.
    pub fn name(&self) -> &'static str {
        match self {
            Candidate::Network(_) => NETWORK,
            Candidate::Classical(spec) => spec,
        }
    }

    /// Whether the candidate is one of a server: it has to see the whole run, in order to know the lengths of requests
    /// when it takes over.
    pub(super) fn is_of_server(&self) -> bool {
        matches!(self, Candidate::Classical(spec) if SERVER_SPECS.contains(spec))
    }

    /// Whether the candidate is the scheduler of the catalog that stands for this.
    pub(super) fn has(&self, mark: Mark) -> bool {
        matches!(self, Candidate::Classical(spec) if is_marked(spec, mark))
    }

    /// Builds a scheduler of its own; `None` if the catalog does not know it.
    pub fn scheduler(&self) -> Option<Box<dyn Scheduler>> {
        match self {
            Candidate::Network(learned) => Some(Box::new(learned.share())),
            Candidate::Classical(spec) => build(spec).ok(),
        }
    }

    /// Expected effort of a decision among this many jobs, in units of [`super::Settings::effort`].
    pub(super) fn effort(&self, jobs: usize, cores: usize) -> u64 {
        let jobs = jobs as u64;
        match self {
            Candidate::Network(_) if jobs <= cores as u64 => 1,
            Candidate::Network(_) => 18 + jobs,
            // Planners sort the jobs and insert them one by one.
            Candidate::Classical(_) => 1 + jobs / 8,
        }
    }

    /// Returns the schedulers of the catalog that take part on a system.
    pub fn classical(system: &System) -> Vec<Candidate> {
        let general = SPECS.iter().filter(|(_, applies)| applies(system)).map(|(spec, _)| *spec);
        let names = general.chain(SERVER_SPECS.into_iter().filter(|_| system.is_server()));
        let accepts = |spec: &&str| build(spec).is_ok_and(|mut scheduler| scheduler.start(system).is_ok());
        names.filter(accepts).map(Candidate::Classical).collect()
    }
}
