//! Another way to carry out choices than real-time priorities: the kernel's extensible scheduler class (`crates/scx`).

/// Tells the kernel which thread a processor runs. The workers are then threads of the class SCHED_EXT.
///
/// If an order fails, for example because the kernel has thrown the extension out, the run goes on with priorities, and [`Report::notes`](crate::Report) says so.
pub trait Carrier: Send {
    /// States the deadline of the job that a thread is about to begin, in nanoseconds of `CLOCK_MONOTONIC`.
    fn admit(&mut self, thread: i32, deadline_ns: u64) -> Result<(), String>;

    /// Makes a processor run a thread from now on; with `None`, nothing is meant for it.
    fn choose(&mut self, cpu: usize, thread: Option<i32>) -> Result<(), String>;

    /// Says that the choices are still meant. Called at least every 10 ms.
    fn renew(&mut self) -> Result<(), String>;
}
