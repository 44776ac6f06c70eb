//! Schedulers by name, with the model and the Python schedulers of a call.

use std::sync::Arc;

use pyo3::prelude::*;
use temponet::{Calibration, Options};
use temponet_lab::roster::{self, Roster};
use temponet_sched::catalog::{OptionHelp, SHIELD_PREFIX};

use crate::errors;
use crate::model::Model;
use crate::python_scheduler;

/// Schedulers of a call: names, and objects of Python classes.
#[derive(FromPyObject)]
pub enum Named<'py> {
    /// Name of a scheduler, with its options.
    #[pyo3(transparent)]
    Name(String),
    /// Name and object of a scheduler written in Python.
    #[pyo3(transparent)]
    Own((String, Bound<'py, PyAny>)),
}

/// Makes a roster with a model (the built-in one without), a budget in nanoseconds, and the Python schedulers among the
/// names. Returns it with the names that were meant.
pub fn roster(model: Option<&Model>, budget: Option<u64>, named: Vec<Named<'_>>) -> PyResult<(Roster, Vec<String>)> {
    let model = match model {
        Some(model) => model.model.clone(),
        None => Arc::new(temponet::Model::built_in().map_err(errors::input)?),
    };
    let mut options = Options { budget_ns: budget, ..Options::default() };
    if budget.is_some() {
        options.calibration = Some(Calibration::measure(&model, options).map_err(errors::input)?);
    }
    let mut roster = Roster { model: Some(model), options, ..Roster::default() };
    let mut names = Vec::new();
    for named in named {
        match named {
            Named::Name(name) => names.push(name),
            Named::Own((name, object)) => {
                if names.contains(&name) || roster.build(&name).is_ok() {
                    return Err(errors::input(format!(
                        "two schedulers are called {name:?}; give yours a `name` of its own"
                    )));
                }
                roster.own.push(python_scheduler::own(name.clone(), object)?);
                names.push(name);
            }
        }
    }
    let names = roster.chosen(names.iter().map(String::as_str));
    if names.is_empty() {
        return Err(errors::input("schedulers: the list is empty"));
    }
    for name in &names {
        roster.build(name).map_err(errors::input)?;
    }
    Ok((roster, names))
}

/// Name, summary, purpose and options of every scheduler; an option has a name, a default and a meaning.
type Listed = (String, String, String, Vec<(String, String, String)>);

/// Returns the schedulers, as `temponet schedulers` lists them.
#[pyfunction]
pub fn schedulers() -> Vec<Listed> {
    let listed = |name: &str, summary: &str, purpose: &str, options: &[OptionHelp]| {
        let options =
            options.iter().map(|(name, default, meaning)| (name.to_string(), default.to_string(), meaning.to_string()));
        (name.to_string(), summary.to_string(), purpose.to_string(), options.collect())
    };
    let all = roster::all().into_iter();
    let all = all.map(|entry| listed(&entry.name, &entry.summary, &entry.purpose, entry.options));
    let (name, summary, purpose) = SHIELD_PREFIX;
    all.chain([listed(name, summary, purpose, &[])]).collect()
}
