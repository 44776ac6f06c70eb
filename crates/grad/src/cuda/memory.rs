//! Pool of GPU memory. Dropped buffers are kept in lists by the power of two that they hold, and reused. All work of a
//! pool is on one stream, so the next user of a buffer runs after its last user. A training step like the one before it
//! allocates nothing.

use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError, result};

use super::gang::Seat;
use super::staging::Staging;

/// Greatest number of values in a buffer: kernels count with 32-bit integers and may step beyond the end by less than
/// the margin.
const MOST: usize = i32::MAX as usize - (1 << 20);

/// The first error on a GPU, after which no more work is done there.
pub type Failure = Arc<OnceLock<String>>;

/// Memory of one stream.
pub struct Pool {
    stream: Arc<CudaStream>,
    /// Free buffers, by the binary logarithm of their size in bytes.
    free: Mutex<Vec<Vec<CudaSlice<u8>>>>,
    /// Bytes allocated from the driver.
    taken: AtomicUsize,
    staging: Mutex<Staging>,
    /// Place in a gang, which then does all work of the pool.
    seat: Option<Seat>,
    failure: Failure,
}

/// Buffer in the GPU's memory.
pub struct Memory {
    pool: Arc<Pool>,
    /// `None` if there was no memory left. The pool has failed then, and the pointer is never used.
    slice: Option<CudaSlice<u8>>,
    pointer: CUdeviceptr,
    /// Number of values.
    len: usize,
    /// Size of all values in bytes.
    bytes: usize,
}

#[allow(unsafe_code)]
impl Pool {
    pub fn new(stream: Arc<CudaStream>, seat: Option<Seat>, failure: Failure) -> Arc<Pool> {
        let free = Mutex::new((0..64).map(|_| Vec::new()).collect());
        Arc::new(Pool { stream, free, taken: AtomicUsize::new(0), staging: Mutex::default(), seat, failure })
    }

    /// Place in a gang; `None` for a device by itself.
    pub fn seat(&self) -> Option<&Seat> {
        self.seat.as_ref()
    }

    /// Bytes allocated from the driver. They are released when the pool is dropped, or when the driver has no other
    /// memory left.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// The first error, if there was one.
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// Returns `true` after an error; no more work may be done then.
    pub fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// Records an error, unless there was one before.
    pub fn fail(&self, why: impl Display) {
        let _ = self.failure.set(format!("the GPU failed: {why}"));
    }

    /// Returns the result of a call, or records its error.
    pub fn check<T, E: Display>(&self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.fail(error)).ok()
    }

    /// Binds the GPU to this thread and makes a call, unless there was an error before.
    pub fn ask<T>(&self, call: impl FnOnce() -> Result<T, DriverError>) -> Option<T> {
        if self.has_failed() {
            return None;
        }
        self.check(self.stream.context().bind_to_thread().and_then(|()| call()))
    }

    /// Waits until all queued work is done.
    pub fn settle(&self) {
        if let Some(seat) = &self.seat {
            return seat.settle();
        }
        self.ask(|| {
            self.stream.synchronize()?;
            self.staging.lock().unwrap_or_else(PoisonError::into_inner).begin_anew();
            Ok(())
        });
    }

    /// Buffer for `len` values, with arbitrary content.
    pub fn blank<T: DeviceRepr>(self: &Arc<Self>, len: usize) -> Memory {
        let bytes = len * size_of::<T>();
        let slice = self.take(len, bytes.max(256).next_power_of_two().trailing_zeros() as usize);
        let pointer = slice.as_ref().map_or(0, |slice| slice.device_ptr(&self.stream).0);
        Memory { pool: self.clone(), slice, pointer, len, bytes }
    }

    fn take(&self, len: usize, class: usize) -> Option<CudaSlice<u8>> {
        if len > MOST {
            self.fail(format_args!(
                "{len} numbers in one matrix are too many for its kernels; smaller batches have fewer"
            ));
        }
        let kept = self.free.lock().unwrap_or_else(PoisonError::into_inner)[class].pop();
        if kept.is_some() {
            return kept;
        }
        // SAFETY: all bit patterns are valid values, and the content is arbitrary by contract until it is written.
        let allocate = || unsafe { self.stream.alloc(1 << class) };
        let first = self.ask(|| Ok(allocate()))?;
        let slice = self.check(first.or_else(|_| {
            self.give_back_all();
            let wanted = |error| {
                format!(
                    "{error}: it has no {} MiB beside the {} that are taken",
                    (1usize << class) >> 20,
                    self.taken() >> 20
                )
            };
            allocate().map_err(wanted)
        }))?;
        self.taken.fetch_add(slice.len(), Ordering::Relaxed);
        Some(slice)
    }

    /// Releases all free buffers to the driver.
    fn give_back_all(&self) {
        if let Some(seat) = &self.seat {
            // What is noted may still use them.
            seat.settle();
        }
        for class in self.free.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            self.taken.fetch_sub(class.iter().map(CudaSlice::len).sum(), Ordering::Relaxed);
            class.clear();
        }
    }

    /// Copies values to the GPU. The caller may change them once this returns, although the GPU may read its copy
    /// later.
    pub fn upload<T: DeviceRepr + Copy>(self: &Arc<Self>, values: &[T]) -> Memory {
        self.upload_filled(values.len(), &mut |out: &mut [T]| out.copy_from_slice(values))
    }

    /// Copies `len` values to the GPU, which `fill` writes; see [`Staging::upload`].
    pub fn upload_filled<T: DeviceRepr>(self: &Arc<Self>, len: usize, fill: &mut dyn FnMut(&mut [T])) -> Memory {
        let memory = self.blank::<T>(len);
        if len > 0 {
            let mut fill = |staged: &mut [u8]| {
                // SAFETY: staged bytes are aligned for all numbers, any bytes are valid numbers, and they hold `len`.
                fill(unsafe { std::slice::from_raw_parts_mut(staged.as_mut_ptr().cast::<T>(), len) });
            };
            self.ask(|| {
                if let Some(seat) = &self.seat {
                    return seat.upload(memory.pointer, memory.bytes, &mut fill);
                }
                let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
                staging.upload(&self.stream, memory.bytes, memory.pointer, &mut fill)
            });
        }
        memory
    }
}

#[allow(unsafe_code)]
impl Memory {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Address of the buffer, for a kernel on the stream of its pool. Panics if it is another pool.
    pub fn pointer(&self, pool: &Arc<Pool>) -> CUdeviceptr {
        assert!(Arc::ptr_eq(&self.pool, pool), "memory of another device");
        self.pointer
    }

    /// Waits until the values are computed and copies them from the GPU.
    pub fn download<T: DeviceRepr + Default + Copy>(&self) -> Vec<T> {
        let mut values = vec![T::default(); self.len];
        if self.len > 0 {
            assert_eq!(size_of_val(values.as_slice()), self.bytes);
            let stream = &self.pool.stream;
            self.pool.ask(|| {
                if let Some(seat) = &self.pool.seat {
                    // SAFETY: any bytes are valid numbers.
                    let bytes = unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), self.bytes) };
                    return seat.download(self.pointer, bytes);
                }
                // A copy to memory that is not pinned spins until the work before it is done.
                stream.synchronize()?;
                // SAFETY: both sides have the same number of bytes, and the values outlive the copy, which is waited
                // for.
                unsafe { result::memcpy_dtoh_async(&mut values, self.pointer, stream.cu_stream()) }?;
                stream.synchronize()
            });
        }
        values
    }

    pub fn clear(&mut self) {
        if self.len > 0 {
            let stream = self.pool.stream.cu_stream();
            self.pool.ask(|| match &self.pool.seat {
                Some(seat) => {
                    seat.fill_zero(self.pointer, self.bytes);
                    Ok(())
                }
                // SAFETY: the buffer holds `bytes` bytes.
                None => unsafe { result::memset_d8_async(self.pointer, 0, self.bytes, stream) },
            });
        }
    }

    pub fn copy_from(&mut self, from: &Memory) {
        assert_eq!(self.bytes, from.bytes);
        if self.len > 0 {
            let (from, stream) = (from.pointer(&self.pool), self.pool.stream.cu_stream());
            self.pool.ask(|| match &self.pool.seat {
                Some(seat) => {
                    seat.copy(from, self.pointer, self.bytes);
                    Ok(())
                }
                // SAFETY: both buffers hold `bytes` bytes and do not overlap.
                None => unsafe { result::memcpy_dtod_async(self.pointer, from, self.bytes, stream) },
            });
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Memory must not be released while queued work may still read it. If this fails, all work before it has failed
        // as well.
        let _ = self.stream.synchronize();
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(slice) = self.slice.take() {
            let class = slice.len().trailing_zeros() as usize;
            self.pool.free.lock().unwrap_or_else(PoisonError::into_inner)[class].push(slice);
        }
    }
}
