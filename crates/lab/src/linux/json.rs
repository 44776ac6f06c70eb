//! Advice on settings as a JSON object.

use serde_json::{Value, json};
use temponet_task::TaskId;

use super::advice::{Line, Means, SettingsAdvice, Verdict};
use super::settings::{Policy, Setting};

/// Returns the report.
pub fn report(advice: &SettingsAdvice, notes: &[String]) -> Value {
    let set = &advice.plan.set;
    let notes: Vec<&String> = notes.iter().chain(&advice.notes).collect();
    json!({
        "task_set": set.name,
        "cores": set.cores(),
        "tasks": set.tasks().len(),
        "verdict": advice.verdict(),
        "margin": advice.plan.margin,
        "horizon_ns": advice.plan.horizon.0,
        "seed": advice.plan.seed,
        "lines": advice.lines.iter().map(|line| one(advice, line)).collect::<Vec<_>>(),
        "notes": notes,
    })
}

fn one(advice: &SettingsAdvice, line: &Line) -> Value {
    let set = &advice.plan.set;
    let name = |task: &TaskId| set.tasks()[*task].name.as_str();
    let names = |tasks: &[TaskId]| tasks.iter().map(name).collect::<Vec<_>>();
    let reason = match line.verdict() {
        Verdict::Unknown(why) => Some(why),
        _ => None,
    };
    let claim = advice.against_today(line);
    let gain = claim.as_ref().map(|claim| {
        json!({
            "measure": temponet_sim::labels::measure(&advice.goal, claim.edge.measure),
            "points": 100.0 * claim.edge.difference,
            "interval": claim.edge.interval.map(|interval| [100.0 * interval.low, 100.0 * interval.high]),
            "is_clear": claim.is_lead() || claim.is_deficit(),
        })
    });
    let thread = |task: TaskId| {
        let bound = line.bounds[task.index()];
        let setting = line.settings().map(|settings| setting(set.cores(), &settings.threads[task.index()]));
        let jobs = line.simulated.as_ref().map(|runs| runs.metrics.tasks[task.index()].jobs);
        json!({
            "name": name(&task),
            "setting": setting,
            "proved": bound.is_some(),
            "response_bound_ns": bound.map(|bound| bound.response.0),
            "proved_by": bound.map(|bound| bound.by),
            "deadline_ns": set.tasks()[task].deadline.0,
            "met_share": jobs.map(|jobs| jobs.compliance()),
            "given_up": line.given_up.contains(&task),
        })
    };
    json!({
        "name": line.name,
        "today": line.is_today,
        "by": match &line.means {
            Means::Linux(_) => "linux".to_string(),
            Means::Runtime(scheduler) => scheduler.clone(),
        },
        "verdict": line.verdict().name(),
        "reason": reason,
        "proved_tasks": line.proved_tasks(),
        "proved_up_to": line.growth,
        "met_share": line.share(),
        "met_ci95": line.margin(),
        "jobs": line.simulated.as_ref().map(|runs| runs.metrics.jobs.released),
        "gain": gain,
        "changed_policies": line.changed.as_ref().map(|[policies, _]| names(policies)),
        "changed_affinities": line.changed.as_ref().map(|[_, cores]| names(cores)),
        "cpuset_partitions": line.settings().map(|settings| settings.has_partitions),
        "threads": set.task_ids().map(thread).collect::<Vec<_>>(),
        "notes": line.notes,
    })
}

fn setting(cores: usize, setting: &Setting) -> Value {
    let own: Vec<usize> = setting.cores.iter(cores).map(|core| core.index()).collect();
    let mut out = json!({ "policy": setting.policy.name(), "cores": own });
    match setting.policy {
        Policy::Other { nice } => out["nice"] = nice.into(),
        Policy::Fifo { priority } => out["priority"] = priority.into(),
        Policy::Deadline { budget, deadline, period } => {
            out["runtime_ns"] = budget.0.into();
            out["deadline_ns"] = deadline.0.into();
            out["period_ns"] = period.0.into();
        }
    }
    out
}
