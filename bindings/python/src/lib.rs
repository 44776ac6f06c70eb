//! The native half of the Python package `temponet`.
//!
//! It is a thin layer over the lab: every function here has a typed Python function over it in `python/temponet`, which
//! turns arguments into what this module takes and the JSON objects that it returns, the same as those of the command
//! line, into result objects. Long calls release the interpreter lock and end on Ctrl-C (`calls.rs`); tables leave as
//! Arrow (`table.rs`); the vector environment writes into NumPy's buffers (`environment.rs`).

mod analysis;
mod arena;
mod calls;
mod compare;
mod environment;
mod errors;
mod explain;
mod jobs;
mod model;
mod python_scheduler;
mod roster;
mod runs;
mod simulate;
mod sweep;
mod table;
mod task_set;
mod train;

use pyo3::prelude::*;

/// Native module.
#[pymodule]
fn _temponet(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<task_set::TaskSet>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<simulate::Run>()?;
    module.add_class::<compare::Comparison>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<arena::Arena>()?;
    module.add_class::<explain::Explanation>()?;
    module.add_class::<train::Training>()?;
    module.add_class::<python_scheduler::View>()?;
    module.add_class::<python_scheduler::Job>()?;
    module.add_class::<environment::Environments>()?;
    module.add("LONGEST", task_set::LONGEST)?;
    module.add_function(wrap_pyfunction!(task_set::time, module)?)?;
    module.add_function(wrap_pyfunction!(task_set::generate, module)?)?;
    module.add_function(wrap_pyfunction!(task_set::sets, module)?)?;
    module.add_function(wrap_pyfunction!(task_set::schema, module)?)?;
    module.add_function(wrap_pyfunction!(roster::schedulers, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(runs::runs, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::analyze, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::optimum, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep, module)?)?;
    module.add_function(wrap_pyfunction!(arena::arena, module)?)?;
    module.add_function(wrap_pyfunction!(arena::scenarios, module)?)?;
    module.add_function(wrap_pyfunction!(explain::explain, module)?)?;
    module.add_function(wrap_pyfunction!(explain::explain_run, module)?)?;
    module.add_function(wrap_pyfunction!(train::train, module)?)?;
    module.add_function(wrap_pyfunction!(train::recipe, module)?)?;
    module.add_function(wrap_pyfunction!(model::observations, module)?)?;
    Ok(())
}
