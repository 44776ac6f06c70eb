//! Long calls: the work runs on a thread of its own without the interpreter lock, while the calling thread waits for
//! signals and for messages to Python.
//!
//! Ctrl-C requests the cancellation of the work ([`temponet_cancel`]), waits for it to end, and raises
//! `KeyboardInterrupt`. Exceptions of Python code inside the work, such as of a scheduler, unwind with the exception as
//! their payload.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use temponet_cancel::Cancelled;

use crate::errors;

/// Interval at which signals are looked for.
const POLL: Duration = Duration::from_millis(20);

/// Stack of the thread that works: that of a main thread.
const STACK: usize = 8 << 20;

/// Something to do with the interpreter lock, on the calling thread.
pub type Message = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

/// The pool of this process. A forked process has none of its parent's threads, so it makes a pool of its own; the old
/// one is not dropped, because dropping waits for threads.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Returns the threads to work on.
pub fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut made = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match &*made {
        Some((of, pool)) if *of == process => Ok(pool.clone()),
        _ => {
            let pool =
                ThreadPoolBuilder::new().stack_size(STACK).thread_name(|place| format!("temponet-{place}")).build();
            let pool = Arc::new(pool.map_err(|error| errors::internal(&error.to_string()))?);
            std::mem::forget(made.replace((process, pool.clone())));
            Ok(pool)
        }
    }
}

/// Runs `work` without the interpreter lock. Ctrl-C ends it.
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    reporting(py, |_| work())
}

/// Runs `work` without the interpreter lock, and the messages that it sends with it. Ctrl-C, or a message that fails,
/// ends it.
pub fn reporting<T: Send>(py: Python<'_>, work: impl FnOnce(Sender<Message>) -> T + Send) -> PyResult<T> {
    let pool = pool()?;
    py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = channel::<Message>();
            let work = move || catch_unwind(AssertUnwindSafe(|| pool.install(|| work(sender))));
            let thread = std::thread::Builder::new().name("temponet".into()).stack_size(STACK);
            let thread = thread.spawn_scoped(scope, work).map_err(|error| errors::internal(&error.to_string()))?;
            loop {
                let outcome = match receiver.recv_timeout(POLL) {
                    Ok(message) => Python::attach(message),
                    Err(RecvTimeoutError::Timeout) if thread.is_finished() => break,
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals()),
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                if let Err(error) = outcome {
                    let _request = temponet_cancel::request();
                    let _ = thread.join();
                    return Err(error);
                }
            }
            thread.join().and_then(|outcome| outcome).map_err(exception)
        })
    })
}

/// Number of pieces of work that are given to the thread pool at once. A pool that is cancelled still begins every
/// piece that it was given, so a million of them would take long to end.
pub fn at_once() -> usize {
    32 * rayon::current_num_threads().max(4)
}

/// Ends the work on this thread with a Python exception, which the call raises.
pub fn fail(error: PyErr) -> ! {
    std::panic::resume_unwind(Box::new(error))
}

/// Returns the exception for work that unwound.
fn exception(payload: Box<dyn Any + Send>) -> PyErr {
    match payload.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(payload) if payload.is::<Cancelled>() => PyKeyboardInterrupt::new_err("cancelled"),
        Err(payload) => {
            let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
            let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
            errors::internal(&text.unwrap_or_else(|| "unknown".into()))
        }
    }
}
