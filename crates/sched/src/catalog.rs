//! Every scheduler by name, and how a user's `name:option=value` becomes one.

use temponet_task::wording::did_you_mean;
use temponet_task::{Scheduler, Time};

use crate::partition::Fit;
use crate::shield::Shield;
use crate::{
    amc, cbs, cd_split, d_over, dasa, dios, dm, dp_wrap, dvfs, edcl, edf, edf_skip, edf_us, edf_vd, edzl, fcfs, fp,
    fpedf, g_fl, lbesa, llf, llref, look_ahead, mh_edf, mk_dbp, mllf, muf, p_edf, p_rm, pd2, red, rm, rr, run,
    skip_over, srpt,
};

/// A scheduler that can be asked for by name.
pub struct Entry {
    /// What users write.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What it is for, or what it guarantees.
    pub purpose: &'static str,
    /// What can be set: name, default and meaning.
    pub options: &'static [(&'static str, &'static str, &'static str)],
    build: fn(&Options) -> Result<Box<dyn Scheduler>, String>,
}

const QUANTUM: (&str, &str, &str) = ("quantum", "1ms", "time between comparisons; follows sets far from milliseconds");
const FIT: (&str, &str, &str) = ("fit", "first", "packing by decreasing load: first, best or worst");

/// The schedulers in the order in which they are listed.
pub const ALL: &[Entry] = &[
    Entry {
        name: "fcfs",
        summary: "first come, first served",
        purpose: "the careless baseline",
        options: &[],
        build: |_| Ok(Box::new(fcfs::fcfs())),
    },
    Entry {
        name: "rr",
        summary: "round robin",
        purpose: "fair turns, blind to deadlines",
        options: &[("quantum", "1ms", "length of a turn; follows sets far from milliseconds")],
        build: |options| Ok(Box::new(rr::RoundRobin::new(options.quantum()?))),
    },
    Entry {
        name: "fp",
        summary: "fixed priorities from the file, the larger number first",
        purpose: "what most RTOSes do with the priorities you gave",
        options: &[],
        build: |_| Ok(Box::new(fp::fp())),
    },
    Entry {
        name: "rm",
        summary: "rate monotonic: shortest period first",
        purpose: "best fixed priorities for implicit deadlines; meets all if Π(Ui + 1) <= 2 on one core",
        options: &[],
        build: |_| Ok(Box::new(rm::rm())),
    },
    Entry {
        name: "dm",
        summary: "deadline monotonic: shortest relative deadline first",
        purpose: "best fixed priorities for constrained deadlines on one core",
        options: &[],
        build: |_| Ok(Box::new(dm::dm())),
    },
    Entry {
        name: "edf",
        summary: "earliest deadline first (global)",
        purpose: "optimal on one core up to U = 1; falls apart in overload",
        options: &[],
        build: |_| Ok(Box::new(edf::edf())),
    },
    Entry {
        name: "llf",
        summary: "least laxity first (global)",
        purpose: "optimal on one core up to U = 1; many preemptions",
        options: &[QUANTUM],
        build: |options| Ok(Box::new(llf::Llf::new(options.quantum()?))),
    },
    Entry {
        name: "srpt",
        summary: "shortest remaining processing time first",
        purpose: "shortest mean response time; blind to deadlines",
        options: &[],
        build: |_| Ok(Box::new(srpt::Srpt::new())),
    },
    Entry {
        name: "edf-skip",
        summary: "EDF that runs jobs late by wcet last",
        purpose: "the simplest good scheduler in overload",
        options: &[],
        build: |_| Ok(Box::new(edf_skip::EdfSkip::new())),
    },
    Entry {
        name: "mh-edf",
        summary: "EDF over the largest set of ready jobs that fits (Moore-Hodgson)",
        purpose: "the classical scheduler to beat in overload",
        options: &[],
        build: |_| Ok(Box::new(mh_edf::MhEdf::default())),
    },
    Entry {
        name: LOOK_AHEAD,
        summary: "as mh-edf, minding the jobs that periodic tasks will release (ours)",
        purpose: "the best simple scheduler in most overloads; the learned one asks it for advice",
        options: &[
            ("caution", "0.5", "how work is estimated: 0 by its mean, 1 by its wcet"),
            ("capacity", "1", "share of the cores' time to plan with"),
        ],
        build: |options| {
            let (caution, capacity) = (options.share("caution")?, options.share("capacity")?);
            Ok(Box::new(look_ahead::LookAhead::new(caution, capacity)))
        },
    },
    Entry {
        name: "edzl",
        summary: "EDF, but jobs without slack go first",
        purpose: "several cores: meets whatever global EDF meets, and more",
        options: &[],
        build: |_| Ok(Box::new(edzl::Edzl::new())),
    },
    Entry {
        name: "d-over",
        summary: "Koren and Shasha's value-based overload scheduler, one core",
        purpose: "at least 1/(1+sqrt(k))^2 of the best possible value; all of it if feasible",
        options: &[("k", "of the set", "ratio of the highest to the lowest value density")],
        build: |options| Ok(Box::new(d_over::DOver::new(options.number("k")?))),
    },
    Entry {
        name: "p-edf",
        summary: "partitioned EDF",
        purpose: "no migrations; meets all where every core's load is at most 1",
        options: &[FIT],
        build: |options| Ok(Box::new(p_edf::clustered_edf(options.fit()?, 1))),
    },
    Entry {
        name: "c-edf",
        summary: "clustered EDF: global EDF inside clusters of cores",
        purpose: "migrations only where they are cheap, such as within a cache",
        options: &[("size", "2", "cores per cluster"), FIT],
        build: |options| Ok(Box::new(p_edf::clustered_edf(options.fit()?, options.count("size")?))),
    },
    Entry {
        name: "p-rm",
        summary: "partitioned rate monotonic",
        purpose: "no migrations; meets all where every core is within the hyperbolic bound",
        options: &[FIT],
        build: |options| Ok(Box::new(p_rm::partitioned_rm(options.fit()?))),
    },
    Entry {
        name: "pd2",
        summary: "PD2 Pfair: proportional progress by quanta",
        purpose: "optimal on any number of cores up to U = m, for whole quanta",
        options: &[("quantum", "1ms", "length of a subtask; follows sets far from milliseconds")],
        build: |options| Ok(Box::new(pd2::Pd2::new(options.quantum()?))),
    },
    Entry {
        name: "mllf",
        summary: "least laxity first without needless swaps",
        purpose: "as LLF with few of its preemptions",
        options: &[],
        build: |_| Ok(Box::new(mllf::Mllf::new())),
    },
    Entry {
        name: "muf",
        summary: "critical jobs first, then least laxity, then priority",
        purpose: "transient overload: critical jobs keep their deadlines",
        options: &[QUANTUM],
        build: |options| Ok(Box::new(muf::Muf::new(options.quantum()?))),
    },
    Entry {
        name: "edcl",
        summary: "EDF, jobs about to lose their laxity first, looked at only at events",
        purpose: "several cores: most of EDZL's gain at EDF's cost",
        options: &[],
        build: |_| Ok(Box::new(edcl::Edcl::new())),
    },
    Entry {
        name: "edf-us",
        summary: "heavy tasks first, then EDF",
        purpose: "several cores: meets all up to U = m*m/(2m-1)",
        options: &[],
        build: |_| Ok(Box::new(edf_us::edf_us())),
    },
    Entry {
        name: "fpedf",
        summary: "up to m - 1 heavy tasks first, then EDF",
        purpose: "several cores: meets all up to U = (m+1)/2, the best such bound",
        options: &[],
        build: |_| Ok(Box::new(fpedf::FpEdf::new())),
    },
    Entry {
        name: "g-fl",
        summary: "global EDF by fair-lateness priority points",
        purpose: "several cores, soft deadlines: the least bound on lateness",
        options: &[],
        build: |_| Ok(Box::new(g_fl::g_fl())),
    },
    Entry {
        name: "red",
        summary: "EDF with admission: the least valuable job is rejected in overload",
        purpose: "overload with values; rejected jobs come back when others end early",
        options: &[],
        build: |_| Ok(Box::new(red::Red::default())),
    },
    Entry {
        name: "lbesa",
        summary: "EDF plan that sheds the lowest value density while overloaded",
        purpose: "overload with values (Locke's best effort)",
        options: &[],
        build: |_| Ok(Box::new(lbesa::Lbesa::default())),
    },
    Entry {
        name: "dasa",
        summary: "EDF plan filled by decreasing value density",
        purpose: "overload with values",
        options: &[],
        build: |_| Ok(Box::new(dasa::Dasa::default())),
    },
    Entry {
        name: "dios",
        summary: "admission by importance (criticality, then value density), EDF inside",
        purpose: "overload with criticalities; our reading of the paper's baseline",
        options: &[],
        build: |_| Ok(Box::new(dios::Dios::default())),
    },
    Entry {
        name: "skip-over-rto",
        summary: "skippable jobs are always skipped, the others run by EDF",
        purpose: "guaranteed skips: one job in every `skip` may be lost",
        options: &[],
        build: |_| Ok(Box::new(skip_over::SkipOver::red_tasks_only())),
    },
    Entry {
        name: "skip-over-bwp",
        summary: "skippable jobs run when nothing else is ready",
        purpose: "as skip-over-rto, and as many skippable jobs as fit",
        options: &[],
        build: |_| Ok(Box::new(skip_over::SkipOver::blue_when_possible())),
    },
    Entry {
        name: "mk-dbp",
        summary: "nearest to violating its (m,k) first",
        purpose: "overload of (m,k)-firm tasks",
        options: &[],
        build: |_| Ok(Box::new(mk_dbp::MkDbp::new())),
    },
    Entry {
        name: "er-pd2",
        summary: "PD2 whose subtasks may run early",
        purpose: "optimal as pd2, with shorter responses",
        options: &[("quantum", "1ms", "length of a subtask; follows sets far from milliseconds")],
        build: |options| Ok(Box::new(pd2::Pd2::with_early_release(options.quantum()?))),
    },
    Entry {
        name: "llref",
        summary: "most of its fluid share left first",
        purpose: "optimal on any number of cores up to U = m",
        options: &[],
        build: |_| Ok(Box::new(llref::Llref::default())),
    },
    Entry {
        name: "lre-tl",
        summary: "fluid shares, preempting only when it must",
        purpose: "optimal as llref, with far fewer preemptions",
        options: &[],
        build: |_| Ok(Box::new(llref::Llref::lazy())),
    },
    Entry {
        name: "dp-wrap",
        summary: "fluid shares wrapped around the cores",
        purpose: "optimal on any number of cores up to U = m, few migrations",
        options: &[],
        build: |_| Ok(Box::new(dp_wrap::DpWrap::default())),
    },
    Entry {
        name: "run",
        summary: "reduction to uniprocessor: EDF over the servers that must not run",
        purpose: "optimal on any number of cores up to U = m, fewest preemptions of them all",
        options: &[],
        build: |_| Ok(Box::new(run::Run::default())),
    },
    Entry {
        name: "cd-split",
        summary: "partitioned EDF that splits one task per core (C=D)",
        purpose: "nearly all of U = m with at most m - 1 tasks that migrate",
        options: &[],
        build: |_| Ok(Box::new(cd_split::CdSplit::default())),
    },
    Entry {
        name: "edf-vd",
        summary: "EDF with virtual deadlines for critical jobs",
        purpose: "mixed criticality: critical jobs survive overruns of their wcet",
        options: &[],
        build: |_| Ok(Box::new(edf_vd::EdfVd::new())),
    },
    Entry {
        name: "amc",
        summary: "fixed priorities; low criticality is dropped on an overrun",
        purpose: "mixed criticality under fixed priorities",
        options: &[],
        build: |_| Ok(Box::new(amc::Amc::new())),
    },
    Entry {
        name: "static-edf",
        summary: "EDF at the lowest constant speed that suffices",
        purpose: "saves energy; meets all up to U = 1 on one core",
        options: &[],
        build: |_| Ok(Box::new(dvfs::SlowEdf::fixed())),
    },
    Entry {
        name: "cc-edf",
        summary: "EDF that slows down when jobs end early (cycle conserving)",
        purpose: "saves more energy; meets all up to U = 1 on one core",
        options: &[],
        build: |_| Ok(Box::new(dvfs::SlowEdf::cycle_conserving())),
    },
    Entry {
        name: "cbs",
        summary: "constant bandwidth servers for tasks with a server, EDF for the rest",
        purpose: "hard tasks keep their deadlines beside aperiodic work",
        options: &[],
        build: |_| Ok(Box::new(cbs::Cbs::new())),
    },
];

/// How any of them is put behind the shield ([`crate::shield`]): `shield:` before its name. For listings.
pub const SHIELD: Entry = Entry {
    name: "shield:NAME",
    summary: "any of these, overruled where its choice could cost a deadline that is safe otherwise",
    purpose: "misses nothing that is proved schedulable, whoever chooses; in overload impossible jobs make way",
    options: &[],
    build: |_| Err(SHIELD_USE.into()),
};
const SHIELD_USE: &str = "write the name of the scheduler behind it, as in shield:srpt";

/// Global EDF, the field's yardstick.
pub fn global_edf() -> Box<dyn Scheduler> {
    Box::new(edf::edf())
}

/// The scheduler to fall back on: one of the best classical ones in overload, and EDF where everything fits. Where jobs differ in importance it is one
/// that minds it.
pub fn fallback(minds_importance: bool) -> Box<dyn Scheduler> {
    if minds_importance { Box::new(dios::Dios::default()) } else { Box::new(mh_edf::MhEdf::default()) }
}

/// The simple schedulers that the learned one takes advice from: EDF that runs late jobs last, shortest remaining first, MH-EDF, the same by mean
/// execution times, and importance-aware planning. All look at nothing but the ready jobs, so they can be asked at any decision.
pub fn advisors() -> [Box<dyn Scheduler>; 5] {
    [
        Box::new(edf_skip::EdfSkip::new()),
        Box::new(srpt::Srpt::skipping()),
        Box::new(mh_edf::MhEdf::default()),
        Box::new(mh_edf::MhEdf::by_mean()),
        Box::new(dios::Dios::default()),
    ]
}

/// The planners that it takes advice from as well: look-ahead with three estimates of what jobs will take.
pub fn planners() -> [look_ahead::LookAhead; 3] {
    [(0.5, 0.95), (0.2, 0.85), (0.0, 0.85)].map(|(caution, capacity)| look_ahead::LookAhead::new(caution, capacity))
}

const LOOK_AHEAD: &str = "look-ahead";

/// Whether a scheduler of the catalog, named with or without options, is one that others have published.
pub fn is_classical(spec: &str) -> bool {
    spec.split(':').all(|word| word != LOOK_AHEAD)
}

/// Why a text names no scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No such name.
    #[error("there is no scheduler {0:?}; `temponet schedulers` lists them{1}")]
    Unknown(String, String),
    /// An option that it does not have, or a value that the option cannot take.
    #[error("scheduler {0:?}: {1}")]
    Option(String, String),
}

/// Makes the scheduler that `spec` names: `edf`, `llf:quantum=500us`, `c-edf:size=4:fit=worst`, `shield:srpt`.
pub fn build(spec: &str) -> Result<Box<dyn Scheduler>, SpecError> {
    match spec.split_once(':').unwrap_or((spec, "")) {
        ("shield", inner) if inner.is_empty() || inner.starts_with("shield") => {
            return Err(SpecError::Option(spec.into(), SHIELD_USE.into()));
        }
        ("shield", inner) => return Ok(Box::new(Shield::new(build(inner)?))),
        _ => {}
    }
    let mut parts = spec.split(':');
    let name = parts.next().unwrap_or_default();
    let entry = ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        SpecError::Unknown(name.into(), did_you_mean(name, ALL.iter().map(|entry| entry.name).chain(["shield"])))
    })?;
    let wrong = |message: String| SpecError::Option(spec.into(), message);
    let mut given = Vec::new();
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| wrong(format!("{part:?} is not option=value")))?;
        if !entry.options.iter().any(|(known, ..)| *known == key) {
            let known: Vec<&str> = entry.options.iter().map(|(known, ..)| *known).collect();
            let hint = did_you_mean(key, known.iter().copied());
            let known = if known.is_empty() { "it has none".into() } else { format!("it has {}", known.join(", ")) };
            return Err(wrong(format!("there is no option {key:?}; {known}{hint}")));
        }
        given.push((key, value));
    }
    (entry.build)(&Options { entry, given }).map_err(wrong)
}

/// What the user gave, with the defaults behind it.
struct Options<'a> {
    entry: &'static Entry,
    given: Vec<(&'a str, &'a str)>,
}

impl Options<'_> {
    fn given(&self, key: &str) -> Option<&str> {
        self.given.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn text(&self, key: &str) -> &str {
        let default = self.entry.options.iter().find(|(name, ..)| *name == key).map_or("", |(_, default, _)| *default);
        self.given(key).unwrap_or(default)
    }

    fn quantum(&self) -> Result<Option<Time>, String> {
        let Some(text) = self.given("quantum") else { return Ok(None) };
        match Time::with_unit(text) {
            Ok(Time::ZERO) => Err("quantum must be greater than zero".into()),
            Ok(time) => Ok(Some(time)),
            Err(error) => Err(format!("quantum = {text:?}: {error}")),
        }
    }

    fn number(&self, key: &str) -> Result<Option<f64>, String> {
        let Some(text) = self.given(key) else { return Ok(None) };
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 1.0);
        number.map(Some).ok_or_else(|| format!("{key} = {text:?} must be a number, at least 1"))
    }

    fn share(&self, key: &str) -> Result<f64, String> {
        let text = self.text(key);
        let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        share.ok_or_else(|| format!("{key} = {text:?} must be a number from 0 to 1"))
    }

    fn count(&self, key: &str) -> Result<usize, String> {
        let text = self.text(key);
        let count = text.parse::<usize>().ok().filter(|count| *count >= 1);
        count.ok_or_else(|| format!("{key} = {text:?} must be a whole number, at least 1"))
    }

    fn fit(&self) -> Result<Fit, String> {
        match self.text("fit") {
            "first" => Ok(Fit::First),
            "best" => Ok(Fit::Best),
            "worst" => Ok(Fit::Worst),
            other => Err(format!("fit = {other:?} is none of first, best, worst")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(spec: &str) -> String {
        build(spec).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn every_entry_builds_with_its_defaults() {
        for entry in ALL {
            assert!(build(entry.name).is_ok(), "{}", entry.name);
        }
    }

    #[test]
    fn options_are_checked() {
        assert!(build("llf:quantum=500us").is_ok());
        assert!(build("c-edf:size=4:fit=worst").is_ok());
        assert!(error("edff").contains("did you mean \"edf\""));
        assert!(error("EDF").contains("did you mean \"edf\""));
        assert!(error("llf:quntum=1ms").contains("did you mean \"quantum\""));
        assert!(error("llf:quantum=2").contains("2 what?"));
        assert!(error("edf:quantum=1ms").contains("it has none"));
        assert!(error("llf:quantum=0").contains("greater than zero"));
        assert!(error("p-edf:fit=tight").contains("first, best, worst"));
        assert!(error("d-over:k=nan").contains("at least 1"));
        assert!(build("look-ahead:caution=0:capacity=0.9").is_ok());
        assert!(error("look-ahead:caution=1.5").contains("from 0 to 1"));
        assert!(build("shield:llf:quantum=500us").is_ok());
        assert!(error("shield:edff").contains("did you mean \"edf\""));
        for spec in ["shield", "shield:", "shield:shield:edf"] {
            assert!(error(spec).contains("as in shield:srpt"), "{spec}");
        }
    }
}
