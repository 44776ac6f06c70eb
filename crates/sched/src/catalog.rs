//! Every scheduler by name, and how a user's `name:option=value` becomes one.

use temponet_task::{Scheduler, Time, TimeUnit};

use crate::partition::Fit;
use crate::{d_over, dm, edf, edf_skip, edzl, fcfs, fp, llf, mh_edf, p_edf, p_rm, pd2, rm, rr, srpt};

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

const QUANTUM: (&str, &str, &str) = ("quantum", "1ms", "time between comparisons");
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
        options: &[("quantum", "1ms", "length of a turn")],
        build: |options| Ok(Box::new(rr::RoundRobin::new(options.time("quantum")?))),
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
        build: |options| Ok(Box::new(llf::Llf::new(options.time("quantum")?))),
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
        build: |_| Ok(Box::new(mh_edf::MhEdf::new())),
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
        options: &[("quantum", "1ms", "length of a subtask")],
        build: |options| Ok(Box::new(pd2::Pd2::new(options.time("quantum")?))),
    },
];

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

/// Makes the scheduler that `spec` names: `edf`, `llf:quantum=500us`, `c-edf:size=4:fit=worst`.
pub fn build(spec: &str) -> Result<Box<dyn Scheduler>, SpecError> {
    let mut parts = spec.split(':');
    let name = parts.next().unwrap_or_default();
    let entry = ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let close = ALL.iter().map(|entry| entry.name).min_by_key(|known| edit_distance(known, name));
        let hint = close.filter(|known| edit_distance(known, name) <= 2);
        SpecError::Unknown(name.into(), hint.map(|known| format!("; did you mean {known:?}?")).unwrap_or_default())
    })?;
    let wrong = |message: String| SpecError::Option(spec.into(), message);
    let mut given = Vec::new();
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| wrong(format!("{part:?} is not option=value")))?;
        if !entry.options.iter().any(|(known, ..)| *known == key) {
            let known: Vec<&str> = entry.options.iter().map(|(known, ..)| *known).collect();
            let known = if known.is_empty() { "it has none".into() } else { format!("it has {}", known.join(", ")) };
            return Err(wrong(format!("there is no option {key:?}; {known}")));
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

    fn time(&self, key: &str) -> Result<Time, String> {
        match Time::parse(self.text(key), TimeUnit::Ms) {
            Ok(Time::ZERO) => Err(format!("{key} must be greater than zero")),
            Ok(time) => Ok(time),
            Err(error) => Err(format!("{key} = {:?} {error}", self.text(key))),
        }
    }

    fn number(&self, key: &str) -> Result<Option<f64>, String> {
        let Some(text) = self.given(key) else { return Ok(None) };
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 1.0);
        number.map(Some).ok_or_else(|| format!("{key} = {text:?} must be a number, at least 1"))
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

/// How many letters must change to turn one word into the other.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, cb) in b.iter().enumerate() {
            let changed = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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
        assert!(error("edf:quantum=1ms").contains("it has none"));
        assert!(error("llf:quantum=0").contains("greater than zero"));
        assert!(error("p-edf:fit=tight").contains("first, best, worst"));
        assert!(error("d-over:k=nan").contains("at least 1"));
    }
}
