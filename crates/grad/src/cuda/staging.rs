//! Uploads to the GPU through pinned memory, which the GPU reads by itself. The CPU does not wait for the copies and
//! can be several batches ahead.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaEvent, CudaStream, DriverError, PinnedHostSlice, result};

/// Least number of bytes of each of the two halves: one is filled while the GPU reads the other.
const LEAST_HALF: usize = 64 << 20;
/// Alignment of each upload in bytes.
const ALIGNMENT: usize = 256;

/// Pinned memory in two halves, which grow to the largest upload.
#[derive(Default)]
pub struct Staging {
    memory: Option<PinnedHostSlice<u8>>,
    /// Bytes of each half.
    size: usize,
    /// The half that is being filled, and the number of its bytes in use.
    half: usize,
    taken: usize,
    /// Event after which the GPU has read each half, if it has been full.
    read: [Option<CudaEvent>; 2],
}

#[allow(unsafe_code)]
impl Staging {
    /// Queues a copy of this many bytes, which `fill` writes, to the GPU's memory, which must hold as many.
    pub fn upload(
        &mut self,
        stream: &Arc<CudaStream>,
        bytes: usize,
        to: CUdeviceptr,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), DriverError> {
        let place = self.room(stream, bytes)?;
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let staged = &mut memory.as_mut_slice()?[place..][..bytes];
        fill(staged);
        // SAFETY: the memory holds as many bytes, and `room` makes sure that the staged bytes are not overwritten
        // before the GPU has read them.
        unsafe { result::memcpy_htod_async(to, staged, stream.cu_stream()) }
    }

    /// Marks all staging memory as free. The GPU must have read all of it.
    pub fn begin_anew(&mut self) {
        self.taken = 0;
        self.read = [None, None];
    }

    /// Reserves a place for `bytes` bytes. Waits until the GPU has read what was there before.
    fn room(&mut self, stream: &Arc<CudaStream>, bytes: usize) -> Result<usize, DriverError> {
        if self.size < bytes || self.memory.is_none() {
            stream.synchronize()?;
            self.begin_anew();
            self.size = bytes.next_power_of_two().max(LEAST_HALF);
            // The old memory is released before the new one is taken.
            self.memory = None;
            // SAFETY: nothing is read before it is written.
            self.memory = Some(unsafe { stream.context().alloc_pinned(2 * self.size) }?);
        }
        if self.taken + bytes > self.size {
            self.read[self.half] = Some(stream.record_event(None)?);
            self.half = 1 - self.half;
            self.taken = 0;
            if let Some(read) = self.read[self.half].take() {
                read.synchronize()?;
            }
        }
        let place = self.half * self.size + self.taken;
        self.taken = (self.taken + bytes).next_multiple_of(ALIGNMENT);
        Ok(place)
    }
}
