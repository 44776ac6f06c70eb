//! The sensitivity curve: the share of deadlines met over the load, point by point.

use serde_json::{Value, json};
use temponet_lab::comparison::compare;
use temponet_lab::progress::Progress;

use crate::request::Run;
use crate::{Failure, failure};

/// Greatest mean load per core of a point.
const MOST_LOAD: f64 = 10.0;
/// Parts in which the factor on execution times is counted, as `temponet analyze` does.
const WHOLE: u64 = 1_000_000;

/// Returns the share of deadlines met under each scheduler if all execution times are changed by one factor, such that
/// the mean load per core is `load`.
pub fn point(run: &Run, load: f64) -> Result<Value, Failure> {
    if !(load > 0.0 && load <= MOST_LOAD) {
        return Err(failure(format!("a load of {load} is not above 0 and at most {MOST_LOAD}")));
    }
    let mut plan = run.plan()?;
    let now = plan.set.mean_utilization() / plan.set.capacity();
    if now <= 0.0 {
        return Err(failure("the load of a set of single jobs cannot be changed"));
    }
    let factor = load / now;
    plan.set = plan.set.with_work((factor * WHOLE as f64).round() as u64, WHOLE);
    plan.oracle = None;
    let comparison = compare(plan, &Progress::new(1, temponet_task::Time(1)))?;
    let shares =
        comparison.rows.iter().map(|row| json!({ "scheduler": row.scheduler, "share": row.metrics.jobs.compliance() }));
    Ok(json!({ "load": load, "factor": factor, "now": now, "shares": shares.collect::<Vec<_>>() }))
}
