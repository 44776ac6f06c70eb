//! The analysis as a JSON object.

use serde_json::{Value, json};
use temponet_analysis::{ChainBound, Outcome, Test};

use super::Analysis;
use crate::guarantee::Guaranteed;
use crate::overload::{Survival, Survivals};
use crate::what_if::WhatToChange;

/// Returns the analysis as a JSON object, with the notes on an imported file, and with what to change if that was asked
/// for.
pub fn report(analysis: &Analysis, notes: &[String], what_if: Option<&WhatToChange<'_>>) -> Value {
    let set = &analysis.set;
    let not_covered = analysis
        .not_covered
        .iter()
        .map(|item| json!({ "what": item.what, "tasks": item.tasks, "tests": item.tests, "assumed": item.assumed }));
    let rest = analysis.rest.as_ref().map(|rest| {
        let proved: Vec<&str> = rest.proofs.iter().map(|proof| proof.scheduler).collect();
        json!({
            "sentence": analysis.rest_in_words(), "verdict": rest.verdict(), "overloaded": rest.is_overloaded(),
            "tests": tests(rest), "proved": proved,
        })
    });
    let responses = analysis.responses.iter().map(|(rule, responses)| {
        let wholes = set.tasks().iter().zip(&responses.bounds).filter(|(task, _)| !task.is_part);
        let bounds = wholes.map(|(task, bound)| {
            json!({ "task": task.name, "deadline_ns": task.deadline.0, "response_ns": bound.map(|bound| bound.0) })
        });
        let bounds: Vec<Value> = bounds.collect();
        json!({ "scheduler": rule.scheduler(), "from_schedule": responses.from_schedule, "tasks": bounds })
    });
    let proofs = analysis.proofs.iter().map(|proof| json!({ "scheduler": proof.scheduler, "by": proof.by }));
    let scalings = analysis.scalings.iter();
    let scalings = scalings.map(|row| json!({ "scheduler": row.scheduler, "factor": row.factor, "by": row.by }));
    json!({
        "task_set": set.name,
        "tasks": set.task_count(),
        "cores": set.cores(),
        "utilization": set.utilization(),
        "density": analysis.worst_case.as_ref().ok().map(|worst_case| worst_case.density()),
        "hyperperiod_ns": set.hyperperiod().map(|time| time.0),
        "verdict": analysis.verdict(),
        "not_analysable": analysis.worst_case.as_ref().err().map(ToString::to_string),
        "overloaded": analysis.is_overloaded(),
        "impossible": analysis.refutations.iter().map(|refutation| analysis.in_words(refutation)).collect::<Vec<_>>(),
        "not_covered": not_covered.collect::<Vec<_>>(),
        "rest": rest,
        "tests": tests(analysis),
        "response_times": responses.collect::<Vec<_>>(),
        "proved": proofs.collect::<Vec<_>>(),
        "proved_scaling": scalings.collect::<Vec<_>>(),
        "chains": chains(analysis),
        "guarantee": Guaranteed::on(set).json_with_cores(),
        "survived": analysis.survivals.as_ref().map(survived),
        "what_if": what_if.map(WhatToChange::json),
        "notes": notes,
    })
}

fn tests(analysis: &Analysis) -> Vec<Value> {
    let row = |(test, outcome): &(&'static Test, Outcome)| {
        let (name, reason) = match outcome {
            Outcome::Schedulable => ("schedulable", None),
            Outcome::NotSchedulable => ("not schedulable", None),
            Outcome::NotProved => ("not proved", None),
            Outcome::Undecided => ("undecided", None),
            Outcome::NotApplicable(why) => ("not applicable", Some(why)),
        };
        json!({ "test": test.name, "for": test.scheduler, "exact": test.is_exact, "result": name, "reason": reason })
    };
    analysis.tests.iter().map(row).collect()
}

fn chains(analysis: &Analysis) -> Vec<Value> {
    let bound = |(index, scheduler, bound): &(usize, &str, ChainBound)| {
        json!({
            "chain": analysis.set.chains()[*index].name, "scheduler": scheduler, "by": bound.by,
            "deadline_ns": analysis.set.chains()[*index].deadline.map(|deadline| deadline.0),
            "reaction_ns": bound.reaction.map(|time| time.0), "age_ns": bound.age.map(|time| time.0),
        })
    };
    analysis.chains.iter().map(bound).collect()
}

fn survived(survivals: &Survivals) -> Value {
    let figures = |row: &Survival| {
        json!({
            "scheduler": row.scheduler, "factor": row.factor, "load": row.load, "compliance": row.compliance,
            "is_limit": row.is_limit,
        })
    };
    let rows = survivals.rows.iter().map(figures);
    let skipped = survivals.skipped.iter();
    let skipped = skipped.map(|(name, why)| json!({ "scheduler": name, "reason": why }));
    json!({ "clairvoyant_at_least": survivals.possible.as_ref().map(figures), "rows": rows.collect::<Vec<_>>(), "skipped": skipped.collect::<Vec<_>>() })
}
