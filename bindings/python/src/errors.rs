//! Errors as the exceptions of `temponet.errors`. Those about a file carry its name and the line.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use temponet_formats::LoadError;

/// Makes an exception of a class of `temponet.errors`.
fn exception(class: &str, message: &str, file: Option<&str>, line: Option<usize>) -> PyErr {
    let made = Python::attach(|py| -> PyResult<PyErr> {
        let class = py.import("temponet.errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call1((message, file, line))?))
    });
    made.unwrap_or_else(|error| error)
}

/// An input that cannot be used: `temponet.errors.InputError`.
pub fn input(error: impl std::fmt::Display) -> PyErr {
    exception("InputError", &error.to_string(), None, None)
}

/// A file that cannot be used: `temponet.errors.FileError`, with file and line.
pub fn file(error: &LoadError) -> PyErr {
    exception("FileError", &error.message, Some(&error.file), error.line)
}

/// A bug of ours.
pub fn internal(message: &str) -> PyErr {
    PyRuntimeError::new_err(format!("internal error of temponet: {message}"))
}
