//! One moment under every scheduler: who was ready, what was chosen and by which rule; and what the network thought.

use serde_json::{Value, json};
use temponet_lab::advice::Decider;
use temponet_lab::comparison::ComparisonPlan;
use temponet_lab::explain::ModelRun;
use temponet_lab::explain::decision::{explain_at, facts, json as decision_json};
use temponet_lab::guarantee::Guaranteed;
use temponet_lab::roster::{self, SHIELDED, UNSHIELDED};
use temponet_sched::Kind;
use temponet_sim::{Engine, SimError, Unobserved};
use temponet_task::{Assignment, Scheduler, SystemView, Time};

use crate::request::Run;
use crate::{Failure, failure};

/// Explains the last decision of each scheduler at or before a time, in its own run.
pub fn explain(run: &Run, at_ns: u64) -> Result<Value, Failure> {
    let plan = run.plan()?;
    let at = Time(at_ns);
    if at >= plan.horizon {
        return Err(failure(format!("{at} is beyond the horizon of {}", plan.horizon)));
    }
    plan.roster.foresee(&plan.set);
    let of_each = plan.schedulers.iter().map(|spec| match decision(&plan, spec, at) {
        Ok(found) => Ok(found),
        Err(Stopped::Set(why)) => Ok(json!({ "scheduler": spec, "not_run": why })),
        Err(Stopped::Other(failure)) => Err(failure),
    });
    let of_each = of_each.collect::<Result<Vec<_>, Failure>>()?;
    Ok(json!({ "at_ns": at_ns, "schedulers": of_each, "network": network(&plan, at)? }))
}

/// Why a scheduler has no decision.
enum Stopped {
    /// It does not apply to the set.
    Set(String),
    Other(Failure),
}

impl From<SimError> for Stopped {
    fn from(error: SimError) -> Stopped {
        if error.is_about_the_set() { Stopped::Set(error.to_string()) } else { Stopped::Other(error.into()) }
    }
}

/// Calls `seen` with each decision of a run up to a time, and returns the time of the last one.
fn run_until(
    plan: &ComparisonPlan,
    scheduler: &mut dyn Scheduler,
    at: Time,
    mut seen: impl FnMut(&SystemView<'_>, &Assignment),
) -> Result<Option<Time>, SimError> {
    let mut engine = Engine::new(&plan.set, plan.seed, plan.horizon);
    scheduler.start(engine.system()).map_err(SimError::NotApplicable)?;
    let (mut assignment, mut last) = (Assignment::default(), None);
    while engine.advance(&mut Unobserved) && engine.now() <= at {
        let view = engine.view();
        assignment.reset(plan.set.cores());
        scheduler.decide(&view, &mut assignment);
        seen(&view, &assignment);
        last = Some(view.now);
        engine.apply(&assignment, &mut Unobserved)?;
    }
    Ok(last)
}

/// Returns the last decision at or before a time.
fn decision(plan: &ComparisonPlan, spec: &str, at: Time) -> Result<Value, Stopped> {
    let build = || plan.roster.build(spec).map_err(|error| Stopped::Other(error.into()));
    let last = run_until(plan, &mut *build()?, at, |_, _| {})?;
    let mut found = Value::Null;
    if let Some(last) = last {
        run_until(plan, &mut *build()?, last, |view, chosen| {
            // Of several decisions at one instant, the last one counts.
            if view.now == last {
                found = of_view(plan, view, chosen);
            }
        })?;
    }
    let entry = roster::all().into_iter().find(|entry| spec.split(':').next() == Some(&*entry.name));
    Ok(json!({ "scheduler": spec, "rule": entry.map(|entry| &entry.summary), "decision": found }))
}

fn of_view(plan: &ComparisonPlan, view: &SystemView<'_>, chosen: &Assignment) -> Value {
    let core_of = |id| chosen.cores().iter().position(|job| *job == Some(id));
    let jobs = view.active.iter().map(|id| {
        let job = &view.jobs[id.index()];
        json!({
            "job": format!("{} #{}", plan.set.tasks()[job.task].name, job.number),
            "due_in_ns": job.deadline.signed_sub(view.now),
            "remaining_ns": job.remaining().0,
            "slack_ns": job.slack(view.now),
            "impossible": job.is_impossible(view.now),
            "was_running": job.running,
            "held": job.held,
            "core": core_of(*id),
            "given_up": chosen.abandoned().contains(id),
        })
    });
    json!({ "now_ns": view.now.0, "ready": jobs.collect::<Vec<_>>(), "cores": plan.set.cores() })
}

/// Explains the decision of the learned scheduler, if it is among the schedulers: who decides, the network's scores and
/// what the shield did.
fn network(plan: &ComparisonPlan, at: Time) -> Result<Value, Failure> {
    let Some(spec) = plan.schedulers.iter().find(|spec| roster::kind(spec).is_learned()) else {
        return Ok(Value::Null);
    };
    let is_shielded = roster::kind(spec) == Kind::Learned;
    let decider = if is_shielded { plan.roster.decider(SHIELDED, &plan.set) } else { None };
    let model = plan.roster.model.clone().ok_or_else(|| failure("there is no model"))?;
    let last = match run_until(plan, &mut *plan.roster.build(spec)?, at, |_, _| {}) {
        Ok(last) => last.unwrap_or_default(),
        Err(error) if error.is_about_the_set() => return Ok(Value::Null),
        Err(error) => return Err(error.into()),
    };
    let (mut scheduler, mut plain) = (plan.roster.build(spec)?, plan.roster.build(UNSHIELDED)?);
    let (set, seed, horizon) = (&plan.set, plan.seed, plan.horizon);
    let run = ModelRun { set, seed, horizon, model: &model, scheduler: &mut *scheduler, plain: &mut *plain };
    let Some(found) = explain_at(run, last)? else { return Ok(Value::Null) };
    let guaranteed = is_shielded.then(|| Guaranteed::on(set));
    let who = Decider::before_explanation(decider.as_ref());
    let sentences = format!("{who} {}", facts(&found, guaranteed.as_ref(), decider.as_ref()));
    let mut json = decision_json(set, &found, guaranteed.as_ref(), decider.as_ref());
    // Attention maps are large, and a page of their own shows them.
    if let Some(decision) = json.get_mut("decision").and_then(Value::as_object_mut) {
        decision.remove("attention");
    }
    Ok(json!({ "scheduler": spec, "sentences": sentences, "details": json }))
}
