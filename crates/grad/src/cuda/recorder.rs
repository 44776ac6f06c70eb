//! Recording of work as a CUDA graph and repeated execution of it, which shows what starting each kernel separately
//! costs.

use std::sync::Arc;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

use super::memory::Pool;

/// Records the work that is queued on a device.
pub struct Recorder {
    pub(super) pool: Arc<Pool>,
}

impl Recorder {
    /// Records what `work` queues on the device instead of running it, then runs it `times` times and waits for the
    /// end. `work` must not download values, and must have run before, so that it allocates no memory. Anything that
    /// cannot be recorded makes the device fail.
    pub fn repeat<T>(&self, times: usize, work: impl FnOnce() -> T) -> T {
        let stream = self.pool.stream();
        self.pool.settle();
        self.pool.ask(|| stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED));
        let given = work();
        let graph = self.pool.ask(|| stream.end_capture(CUgraphInstantiate_flags(0))).flatten();
        if let Some(graph) = graph {
            self.pool.ask(|| (0..times).try_for_each(|_| graph.launch()));
            self.pool.settle();
        }
        given
    }
}
