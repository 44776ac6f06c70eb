//! The GPU's memory. What is dropped is kept by the power of two that it holds and used again; everything happens on one stream, so whoever gets it
//! next comes after whoever had it last. A training step that is like the one before allocates nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError, result};

/// What the kernels count with are 32-bit integers, and they step beyond the end by less than this.
const MOST: usize = i32::MAX as usize - (1 << 20);

/// All memory of one stream.
pub struct Pool {
    stream: Arc<CudaStream>,
    /// Memory given back, by the logarithm of its bytes.
    free: Mutex<Vec<Vec<CudaSlice<u8>>>>,
    /// Bytes taken from the driver.
    taken: AtomicUsize,
}

/// Numbers in the GPU's memory.
pub struct Memory {
    pool: Arc<Pool>,
    slice: Option<CudaSlice<u8>>,
    pointer: CUdeviceptr,
    /// How many numbers.
    len: usize,
    /// How many bytes they take together.
    bytes: usize,
}

/// What a GPU call gave. A failure there (no memory left, a lost device) is nothing that a caller could mend.
#[track_caller]
pub fn done<T>(result: Result<T, DriverError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("the GPU failed: {error}"),
    }
}

#[allow(unsafe_code)]
impl Pool {
    pub fn new(stream: Arc<CudaStream>) -> Arc<Pool> {
        Arc::new(Pool { stream, free: Mutex::new((0..64).map(|_| Vec::new()).collect()), taken: AtomicUsize::new(0) })
    }

    /// Bytes taken from the driver so far; none of them goes back before the pool does.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Memory for so many numbers, of arbitrary content.
    pub fn blank<T: DeviceRepr>(self: &Arc<Self>, len: usize) -> Memory {
        assert!(len <= MOST, "{len} numbers in one matrix are too many for the GPU's kernels");
        let bytes = len * size_of::<T>();
        let class = bytes.max(256).next_power_of_two().trailing_zeros() as usize;
        let kept = self.free.lock().unwrap_or_else(PoisonError::into_inner)[class].pop();
        let slice = kept.unwrap_or_else(|| {
            self.taken.fetch_add(1 << class, Ordering::Relaxed);
            // SAFETY: any bytes are numbers, and what is read before it is written is arbitrary by contract.
            done(unsafe { self.stream.alloc(1 << class) })
        });
        let pointer = slice.device_ptr(&self.stream).0;
        Memory { pool: self.clone(), slice: Some(slice), pointer, len, bytes }
    }

    pub fn upload<T: DeviceRepr>(self: &Arc<Self>, values: &[T]) -> Memory {
        let memory = self.blank::<T>(values.len());
        if !values.is_empty() {
            done(self.stream.context().bind_to_thread());
            // SAFETY: the memory holds as many bytes. The values are pageable, so they have been read when the call returns.
            done(unsafe { result::memcpy_htod_async(memory.pointer, values, self.stream.cu_stream()) });
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
            done(stream.context().bind_to_thread());
            // SAFETY: the memory holds as many bytes, and the values outlive the copy, which is waited for.
            done(unsafe { result::memcpy_dtoh_async(&mut values, self.pointer, stream.cu_stream()) });
            done(stream.synchronize());
        }
        values
    }

    pub fn clear(&mut self) {
        if self.len > 0 {
            let stream = &self.pool.stream;
            done(stream.context().bind_to_thread());
            // SAFETY: the memory holds so many bytes.
            done(unsafe { result::memset_d8_async(self.pointer, 0, self.bytes, stream.cu_stream()) });
        }
    }

    pub fn copy_from(&mut self, from: &Memory) {
        assert_eq!(self.bytes, from.bytes);
        if self.len > 0 {
            let stream = &self.pool.stream;
            done(stream.context().bind_to_thread());
            let from = from.pointer(&self.pool);
            // SAFETY: both hold so many bytes and are different memory.
            done(unsafe { result::memcpy_dtod_async(self.pointer, from, self.bytes, stream.cu_stream()) });
        }
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
