//! Pinned memory that other threads write, piece by piece, while the thread of the GPU queues work. A piece comes back
//! once the GPU has read it.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, PinnedHostSlice, result};

use crate::{Real, Staged};

/// Pinned memory to lend.
pub struct Lender {
    context: Arc<CudaContext>,
    pieces: Mutex<Pieces>,
}

#[derive(Default)]
struct Pieces {
    free: Vec<PinnedHostSlice<Real>>,
    /// Pieces that the GPU is still to read, with the event after which it has.
    read: Vec<(CudaEvent, PinnedHostSlice<Real>)>,
}

/// A piece of pinned memory. It may be longer than what is written.
pub struct Piece {
    memory: PinnedHostSlice<Real>,
    len: usize,
}

impl Lender {
    pub fn new(context: Arc<CudaContext>) -> Arc<Lender> {
        Arc::new(Lender { context, pieces: Mutex::default() })
    }

    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends memory for as many numbers; memory of the processor if there is no other.
    pub fn lend(&self, len: usize) -> Box<dyn Staged> {
        match self.pinned(len) {
            Ok(piece) => Box::new(piece),
            Err(_) => Box::new(vec![0.0; len]),
        }
    }

    #[allow(unsafe_code)]
    fn pinned(&self, len: usize) -> Result<Piece, DriverError> {
        self.context.bind_to_thread()?;
        let fitting = {
            let Pieces { free, read } = &mut *self.pieces();
            let (done, waiting) = std::mem::take(read).into_iter().partition(|(event, _)| event.is_complete());
            *read = waiting;
            let done: Vec<(CudaEvent, PinnedHostSlice<Real>)> = done;
            free.extend(done.into_iter().map(|(_, piece)| piece));
            free.iter().position(|piece| piece.len() >= len).map(|place| free.swap_remove(place))
        };
        let memory = match fitting {
            Some(memory) => memory,
            // SAFETY: any bytes are valid numbers, and the borrower writes them before the GPU reads them.
            None => unsafe { self.context.alloc_pinned(len.next_power_of_two()) }?,
        };
        // Waits for nothing: no work was recorded at this memory's own event.
        memory.as_slice()?;
        Ok(Piece { memory, len })
    }

    /// Queues a copy to the GPU's memory, which must hold as many numbers.
    #[allow(unsafe_code)]
    pub fn upload(&self, stream: &Arc<CudaStream>, mut piece: Piece, to: CUdeviceptr) -> Result<(), DriverError> {
        // SAFETY: the GPU's memory holds as many numbers, and the piece is not lent again before the event.
        unsafe { result::memcpy_htod_async(to, piece.values(), stream.cu_stream()) }?;
        let event = stream.record_event(None)?;
        self.pieces().read.push((event, piece.memory));
        Ok(())
    }
}

impl Drop for Lender {
    /// Memory must not go before the GPU has read it.
    fn drop(&mut self) {
        for (event, _) in &self.pieces().read {
            // After an error nothing is read any more.
            let _ = event.synchronize();
        }
    }
}

impl Staged for Piece {
    fn values(&mut self) -> &mut [Real] {
        // It was asked for before, when the piece was lent.
        self.memory.as_mut_slice().map_or(&mut [], |values| &mut values[..self.len])
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
