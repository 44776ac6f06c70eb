//! Keys of `estimate`, whose single value is a column of its own in CSV.

use temponet_task::Task;

use super::{Given, Key, Kind, Plain, Spec, Table, set};
use crate::Problem;
use crate::node::Value;
use crate::out::Out;

/// Keys of `estimate`.
pub(super) static ESTIMATE: Table<Plain<f64, f64>> = Table {
    what: "estimate",
    keys: &[Key::new(
        Spec::new(
            "error",
            Kind::Number(0.0, Task::MOST_ESTIMATE_ERROR),
            "standard deviation of the logarithm of estimate divided by execution time",
        )
        .required(),
        |error, given| set(error, given.number()),
        |_, error| Some(Out::Number(*error)),
    )],
};

/// Reads the error of the estimates, which a CSV has in a column of its own.
pub(super) fn estimate(task: &mut Task, given: Given<'_>) -> Result<(), Problem> {
    let is_table = matches!(given.node.value, Value::Table(_));
    let error = &ESTIMATE.keys[0];
    if given.name == ESTIMATE.what && !is_table {
        return Err(given.is("is not { error = NUMBER }"));
    }
    if task.estimate_error.is_some() {
        let both = format!("{} beside {}, which states an error", given.name, ESTIMATE.what);
        return Err(Problem::at(given.node.line, both));
    }
    let mut value = 0.0;
    match given.name == ESTIMATE.what {
        true => ESTIMATE.read(given.node, &mut value, given.with)?,
        false => error.set(&mut value, given.name, given.node, given.with)?,
    }
    task.estimate_error = Some(value);
    Ok(())
}
