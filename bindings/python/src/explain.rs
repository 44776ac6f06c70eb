//! Explanations of the learned scheduler's decisions.

use std::sync::Arc;

use pyo3::prelude::*;
use temponet_lab::advice::Decider;
use temponet_lab::explain::ModelRun;
use temponet_lab::explain::decision::{ExplainedDecision, explain_at, facts, json, page};
use temponet_lab::explain::diagnostics::RunReport;
use temponet_lab::explain::run::{self, lines};
use temponet_lab::guarantee::Guaranteed;
use temponet_lab::horizon::default_horizon;
use temponet_lab::roster::{Roster, SHIELDED, UNSHIELDED};
use temponet_task::{Scheduler, Time};

use crate::calls::interruptible;
use crate::errors;
use crate::model::Model;
use crate::task_set::TaskSet;

/// An explained decision.
#[pyclass(frozen, module = "temponet._temponet")]
pub struct Explanation {
    #[pyo3(get)]
    json: String,
    #[pyo3(get)]
    html: String,
    #[pyo3(get)]
    text: String,
}

/// Schedulers of an explanation: the one that decides, whoever it follows, and the network alone, which is explained.
struct Explained {
    roster: Roster,
    model: Arc<temponet::Model>,
    scheduler: Box<dyn Scheduler>,
    plain: Box<dyn Scheduler>,
    decider: Option<Decider>,
}

fn explained(model: Option<&Model>, shield: bool, set: &temponet_task::TaskSet) -> PyResult<Explained> {
    let (roster, _) = crate::roster::roster(model, None, vec![crate::roster::Named::Name(SHIELDED.into())])?;
    roster.foresee(set);
    let decider = if shield { roster.decider(SHIELDED, &set) } else { None };
    let model = roster.model.clone().ok_or_else(|| errors::internal("there is no model"))?;
    let scheduler = roster.build(if shield { SHIELDED } else { UNSHIELDED }).map_err(errors::input)?;
    let plain = roster.build(UNSHIELDED).map_err(errors::input)?;
    Ok(Explained { roster, model, scheduler, plain, decider })
}

/// Explains the first decision with a ready job at or after a time.
#[pyfunction]
#[pyo3(signature = (set, at, seed, horizon, model, shield))]
pub fn explain(
    py: Python<'_>,
    set: &TaskSet,
    at: u64,
    seed: u64,
    horizon: Option<u64>,
    model: Option<&Model>,
    shield: bool,
) -> PyResult<Explanation> {
    let own = set.set.clone();
    let Explained { model, mut scheduler, mut plain, decider, .. } = explained(model, shield, &own)?;
    let horizon = horizon.map_or_else(|| default_horizon(&own), Time);
    let found: Option<ExplainedDecision> = interruptible(py, || {
        let run = ModelRun { set: &own, seed, horizon, model: &model, scheduler: &mut *scheduler, plain: &mut *plain };
        explain_at(run, Time(at))
    })?
    .map_err(errors::input)?;
    let decision =
        found.ok_or_else(|| errors::input(format!("no job is ready at or after {} and before {horizon}", Time(at))))?;
    let guaranteed = shield.then(|| Guaranteed::on(&own));
    let who = Decider::before_explanation(decider.as_ref());
    let text = format!("{who} {}", facts(&decision, guaranteed.as_ref(), decider.as_ref()));
    let object = json(&own, &decision, guaranteed.as_ref(), decider.as_ref());
    let json = serde_json::to_string(&object).map_err(errors::input)?;
    Ok(Explanation { json, html: page(&own, &decision, &text), text })
}

/// Explains all decisions of a run.
#[pyfunction]
#[pyo3(signature = (set, seed, horizon, model, shield))]
pub fn explain_run(
    py: Python<'_>,
    set: &TaskSet,
    seed: u64,
    horizon: Option<u64>,
    model: Option<&Model>,
    shield: bool,
) -> PyResult<Explanation> {
    let own = set.set.clone();
    let Explained { roster, model, mut scheduler, mut plain, decider } = explained(model, shield, &own)?;
    let horizon = horizon.map_or_else(|| Time(default_horizon(&own).0.div_ceil(run::SHORTER)), Time);
    let mut others = Vec::new();
    for name in run::COMPARED {
        others.push((name, roster.build(name).map_err(errors::input)?));
    }
    let report: RunReport = interruptible(py, || {
        let all = ModelRun { set: &own, seed, horizon, model: &model, scheduler: &mut *scheduler, plain: &mut *plain };
        run::explain_run(all, &mut others)
    })?
    .map_err(errors::input)?;
    let decides = ("decides".to_string(), Decider::before_explanation(decider.as_ref()));
    let findings = lines(&report, model.provenance().unwrap_or("unknown"));
    let findings: Vec<(String, String)> = [decides].into_iter().chain(findings).collect();
    let object = run::json(&own, seed, horizon, &model, decider.as_ref(), &report);
    let text = findings.iter().map(|(name, value)| format!("{name:<30} {value}\n")).collect();
    let json = serde_json::to_string(&object).map_err(errors::input)?;
    Ok(Explanation { json, html: run::page(&own, &model.tokenizer, &report, &findings), text })
}
