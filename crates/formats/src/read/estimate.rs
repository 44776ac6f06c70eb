//! Estimates: the key `estimate` of a task, which is `estimate_error` in a CSV, and the columns `estimate` and `estimate_p90` of
//! a list of jobs.

use temponet_task::{Estimate, Task, Time, TimeUnit};

use crate::Problem;
use crate::node::{Fields, Node, Value};

/// Reads the error of the estimates that the jobs of a task carry; `None` if they carry none.
pub(super) fn error(fields: &mut Fields<'_>) -> Result<Option<f64>, Problem> {
    let number = |node: &Node, key: &'static str| node.number(key, 0.0, Task::MOST_ESTIMATE_ERROR);
    match (fields.take("estimate"), fields.take("estimate_error")) {
        (Some(_), Some(node)) => Err(Problem::at(node.line, "estimate_error beside estimate, which states an error")),
        (None, Some(node)) => number(node, "estimate_error").map(Some),
        (Some(node), None) if matches!(node.value, Value::Table(_)) => {
            let mut fields = Fields::of(node, "estimate")?.only(&["error"])?;
            let error = number(fields.need("error")?, "error")?;
            fields.finish()?;
            Ok(Some(error))
        }
        (Some(node), None) => {
            let wrong = format!("estimate = {} is not {{ error = NUMBER }}", node.shown());
            Err(Problem::at(node.line, wrong))
        }
        (None, None) => Ok(None),
    }
}

/// Reads the estimate of a single job with this wcet, which is `None` if the list does not state it.
pub(crate) fn of_job(fields: &mut Fields<'_>, wcet: Option<Time>) -> Result<Option<Estimate>, Problem> {
    let (median, high) = (fields.take("estimate"), fields.take("estimate_p90"));
    let Some(node) = median else {
        let alone = |node: &Node| Err(Problem::at(node.line, "estimate_p90 needs an estimate"));
        return high.map_or(Ok(None), alone);
    };
    let line = node.line;
    let wrong = |message: String| Err(Problem::at(line, message));
    let median = node.positive_time("estimate", TimeUnit::Ms)?;
    let high = high.map(|node| node.positive_time("estimate_p90", TimeUnit::Ms)).transpose()?.unwrap_or(median);
    match (wcet, Estimate::new(median, high)) {
        (None, _) => wrong("an estimate needs a wcet: without one, the execution time is known".into()),
        (_, None) => wrong(format!("estimate_p90 {high} is less than the estimate {median}")),
        (Some(wcet), _) if high > wcet => {
            let column = if median > wcet { "estimate" } else { "estimate_p90" };
            wrong(format!("{column} {} is more than the wcet {wcet}", if median > wcet { median } else { high }))
        }
        (Some(_), estimate) => Ok(estimate),
    }
}
