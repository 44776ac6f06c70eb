//! The GPU's memory. What is dropped is kept by the power of two that it holds and used again; everything happens on one stream, so whoever gets it
//! next comes after whoever had it last. A training step that is like the one before allocates nothing.

use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError, result};

use super::staging::Staging;

/// What the kernels count with are 32-bit integers, and they step beyond the end by less than this.
const MOST: usize = i32::MAX as usize - (1 << 20);

/// What went wrong first on a card; nothing is done there any more.
pub type Failure = Arc<OnceLock<String>>;

/// All memory of one stream.
pub struct Pool {
    stream: Arc<CudaStream>,
    /// Memory given back, by the logarithm of its bytes.
    free: Mutex<Vec<Vec<CudaSlice<u8>>>>,
    /// Bytes taken from the driver.
    taken: AtomicUsize,
    staging: Mutex<Staging>,
    failure: Failure,
}

/// Numbers in the GPU's memory.
pub struct Memory {
    pool: Arc<Pool>,
    /// None if there was none left: then the pool has failed, and nobody looks where it points.
    slice: Option<CudaSlice<u8>>,
    pointer: CUdeviceptr,
    /// How many numbers.
    len: usize,
    /// How many bytes they take together.
    bytes: usize,
}

#[allow(unsafe_code)]
impl Pool {
    pub fn new(stream: Arc<CudaStream>, failure: Failure) -> Arc<Pool> {
        let free = Mutex::new((0..64).map(|_| Vec::new()).collect());
        Arc::new(Pool { stream, free, taken: AtomicUsize::new(0), staging: Mutex::default(), failure })
    }

    /// Bytes taken from the driver so far; none of them goes back before the pool does, unless there is no other left.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// What went wrong first, if anything did.
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// Whether anything went wrong, so that nothing may be done any more.
    pub fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// Keeps why the GPU cannot go on.
    pub fn fail(&self, why: impl Display) {
        let _ = self.failure.set(format!("the GPU failed: {why}"));
    }

    /// What a call gave, if it gave anything.
    pub fn check<T, E: Display>(&self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.fail(error)).ok()
    }

    /// Makes the card this thread's and asks something of it, unless anything went wrong before.
    pub fn ask<T>(&self, call: impl FnOnce() -> Result<T, DriverError>) -> Option<T> {
        if self.has_failed() {
            return None;
        }
        self.check(self.stream.context().bind_to_thread().and_then(|()| call()))
    }

    /// Waits until everything asked for is done.
    pub fn settle(&self) {
        self.ask(|| {
            self.stream.synchronize()?;
            self.staging.lock().unwrap_or_else(PoisonError::into_inner).begin_anew();
            Ok(())
        });
    }

    /// Memory for so many numbers, of arbitrary content.
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
        // SAFETY: any bytes are numbers, and what is read before it is written is arbitrary by contract.
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

    /// Gives what is kept back to the driver.
    fn give_back_all(&self) {
        for class in self.free.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            self.taken.fetch_sub(class.iter().map(CudaSlice::len).sum(), Ordering::Relaxed);
            class.clear();
        }
    }

    /// A copy of these values; they are not needed any more when this returns, though the GPU may get them later.
    pub fn upload<T: DeviceRepr>(self: &Arc<Self>, values: &[T]) -> Memory {
        let memory = self.blank::<T>(values.len());
        if !values.is_empty() {
            // SAFETY: these are plain numbers, as many bytes as they say.
            let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
            self.ask(|| {
                let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
                staging.upload(&self.stream, bytes, memory.pointer)
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

    /// Where it is, for a kernel on its stream.
    pub fn pointer(&self, pool: &Arc<Pool>) -> CUdeviceptr {
        assert!(Arc::ptr_eq(&self.pool, pool), "memory of another device");
        self.pointer
    }

    /// Waits until it is computed.
    pub fn download<T: DeviceRepr + Default + Copy>(&self) -> Vec<T> {
        let mut values = vec![T::default(); self.len];
        if self.len > 0 {
            assert_eq!(size_of_val(values.as_slice()), self.bytes);
            let stream = &self.pool.stream;
            self.pool.ask(|| {
                // SAFETY: the memory holds as many bytes, and the values outlive the copy, which is waited for.
                unsafe { result::memcpy_dtoh_async(&mut values, self.pointer, stream.cu_stream()) }?;
                stream.synchronize()
            });
        }
        values
    }

    pub fn clear(&mut self) {
        if self.len > 0 {
            let stream = self.pool.stream.cu_stream();
            // SAFETY: the memory holds so many bytes.
            self.pool.ask(|| unsafe { result::memset_d8_async(self.pointer, 0, self.bytes, stream) });
        }
    }

    pub fn copy_from(&mut self, from: &Memory) {
        assert_eq!(self.bytes, from.bytes);
        if self.len > 0 {
            let (from, stream) = (from.pointer(&self.pool), self.pool.stream.cu_stream());
            // SAFETY: both hold so many bytes and are different memory.
            self.pool.ask(|| unsafe { result::memcpy_dtod_async(self.pointer, from, self.bytes, stream) });
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Nothing may be read from memory that is given back. If this fails, so has everything before it.
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
