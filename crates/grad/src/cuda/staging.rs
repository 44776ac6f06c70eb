//! The way numbers take to the GPU: through memory that it reads by itself, so that the processor waits for nothing and can be several batches ahead.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaEvent, CudaStream, DriverError, PinnedHostSlice, result};

/// Bytes of each of the two halves; one is filled while the GPU reads the other. What is larger goes the slow way.
const HALF: usize = 8 << 20;
/// Each upload begins at a multiple of so many bytes.
const ALIGNMENT: usize = 256;

/// Memory that the GPU reads by itself.
#[derive(Default)]
pub struct Staging {
    memory: Option<PinnedHostSlice<u8>>,
    /// Which half is being filled, and how many of its bytes are taken.
    half: usize,
    taken: usize,
    /// When the GPU will have read each half, if it was full once.
    read: [Option<CudaEvent>; 2],
}

#[allow(unsafe_code)]
impl Staging {
    /// Queues a copy of these bytes to the GPU's memory, which holds as many.
    pub fn upload(&mut self, stream: &Arc<CudaStream>, bytes: &[u8], to: CUdeviceptr) -> Result<(), DriverError> {
        if bytes.len() > HALF {
            // SAFETY: the memory holds as many bytes. These are pageable, so they have been read when the call returns.
            return unsafe { result::memcpy_htod_async(to, bytes, stream.cu_stream()) };
        }
        let place = self.room(stream, bytes.len())?;
        let memory = match &mut self.memory {
            Some(memory) => memory,
            // SAFETY: nothing is read before it was written.
            place => place.insert(unsafe { stream.context().alloc_pinned(2 * HALF) }?),
        };
        let staged = &mut memory.as_mut_slice()?[place..][..bytes.len()];
        staged.copy_from_slice(bytes);
        // SAFETY: the memory holds as many bytes, and `room` sees to it that these are not written again before they were read.
        unsafe { result::memcpy_htod_async(to, staged, stream.cu_stream()) }
    }

    /// All of it is free again: the GPU has read what was there.
    pub fn begin_anew(&mut self) {
        self.taken = 0;
        self.read = [None, None];
    }

    /// A place for so many bytes; waits until the GPU has read what was there.
    fn room(&mut self, stream: &Arc<CudaStream>, bytes: usize) -> Result<usize, DriverError> {
        if self.taken + bytes > HALF {
            self.read[self.half] = Some(stream.record_event(None)?);
            self.half = 1 - self.half;
            self.taken = 0;
            if let Some(read) = self.read[self.half].take() {
                read.synchronize()?;
            }
        }
        let place = self.half * HALF + self.taken;
        self.taken = (self.taken + bytes).next_multiple_of(ALIGNMENT);
        Ok(place)
    }
}
