//! Work that is recorded as a CUDA graph and done again and again, which tells what starting each kernel by itself costs.

use std::sync::Arc;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

use super::memory::Pool;

/// Records what is asked of a device.
pub struct Recorder {
    pub(super) pool: Arc<Pool>,
}

impl Recorder {
    /// Records what `work` asks of the device instead of doing it, then does it so many times over and waits for it. `work` may wait for no numbers, and
    /// must have been done before, so that the memory it takes is there: what cannot be recorded makes the device fail.
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
