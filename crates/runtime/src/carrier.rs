//! Another way to carry out choices than real-time priorities: the kernel's extensible scheduler class (`crates/scx`).

/// Tells the kernel which thread a processor runs. The workers are then threads of the class SCHED_EXT.
///
/// If an order fails, for example because the kernel has thrown the extension out, the run goes on with priorities, and
/// [`Report::notes`](crate::Report) says so.
pub trait Carrier: Send {
    /// States the deadline of the job that a thread is about to begin, in nanoseconds of `CLOCK_MONOTONIC`.
    fn admit(&mut self, thread: i32, deadline_ns: u64) -> Result<(), String>;

    /// Chooses the thread that a processor runs from now on; with `None`, no thread is chosen for it.
    fn choose(&mut self, cpu: usize, thread: Option<i32>) -> Result<(), String>;

    /// Renews the choices, which an extension drops if it hears nothing for some time. Called at least every 10 ms.
    fn renew(&mut self) -> Result<(), String>;
}
