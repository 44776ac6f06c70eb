//! The lab for a page in a browser: one function, [`answer`], takes a request as JSON and returns the answer as JSON.
//!
//! Everything is computed by `temponet-lab`, as on the command line, so a page shows the same figures. A request says
//! what to do and carries the whole set; nothing is remembered between requests but the schedulers that were chosen for
//! sets ([`rosters`]). Work is ended from outside, by ending the worker that runs the module.
//!
//! The module for WebAssembly has plain exports (`exports.rs`): the page writes a request into memory, calls, and reads
//! the answer.

mod about;
mod analysis;
mod comparison;
mod curve;
#[cfg(target_family = "wasm")]
mod exports;
mod files;
mod held;
mod moment;
mod request;
mod rosters;

use serde_json::{Value, json};

pub use held::ReadPiece;
pub use request::{Request, Set};

/// Reason why a request has no result, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Line of the set's text that is wrong, from 1; `None` if it is none of them.
    pub line: Option<usize>,
    /// What is wrong, as the command line says it.
    pub message: String,
    /// Whether a trace was to be imported, so that other options may help.
    pub is_of_trace: bool,
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        failure(error.to_string())
    }
}

/// A failure that is no line's.
pub(crate) fn failure(message: impl Into<String>) -> Failure {
    Failure { line: None, message: message.into(), is_of_trace: false }
}

/// Carries out a request. The answer is an object with the key `result`, or with `error` and perhaps `line`. `read` reads
/// the files that the request names.
pub fn answer(request: &str, read: ReadPiece) -> String {
    let result = serde_json::from_str(request)
        .map_err(|error| failure(format!("the request cannot be read: {error}")))
        .and_then(|request: Request| request.carry_out(read));
    match result {
        Ok(result) => json!({ "result": result }).to_string(),
        Err(Failure { line, message, is_of_trace }) => {
            json!({ "error": message, "line": line, "trace": is_of_trace }).to_string()
        }
    }
}

impl Request {
    fn carry_out(&self, read: ReadPiece) -> Result<Value, Failure> {
        match self {
            Request::About => Ok(about::about()),
            Request::Open(file) => files::open(file, read),
            Request::Write { set, to } => files::write(set, *to),
            Request::Jobs { run, scheduler } => files::jobs(run, scheduler),
            Request::Picture { run, scheduler, until } => files::picture(run, scheduler, until.as_deref()),
            Request::Schedules(run) => comparison::schedules(run),
            Request::Compare(run) => comparison::whole(run),
            Request::Analyze { set } => analysis::analyze(set),
            Request::Moment { run, at_ns } => moment::explain(run, *at_ns),
            Request::Curve { run, load } => curve::point(run, *load),
        }
    }
}
