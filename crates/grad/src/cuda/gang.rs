//! Devices that compute together, for many trainings of small networks at once.
//!
//! A small network does not fill a GPU, and starting its kernels takes longer than they run: one training after the
//! other, or each on a stream of its own, leaves the GPU idle for most of the time. The devices of a gang only note
//! what they are to do. When a thread needs a result, it waits until enough others do, and one of them goes through all
//! notes in step: calls of the same kernel by several devices become one launch, whose blocks find out which call they
//! belong to.
//!
//! Each device has memory of its own, and does what it noted in that order. Nothing that is computed depends on which
//! other calls are in a launch, so a training in a gang is the same as alone in one. It differs from one on a device by
//! itself in rounding, because cuBLAS does not promise that and the gang's own products are slower, but alike. A gang
//! does not pay for large networks and batches, which fill the GPU alone.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::sys::{CUdeviceptr, CUfunction};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DriverError, result};

use super::launch::{Grid, THREADS};
use super::memory::Failure;

/// Greatest number of calls in a launch, and of arguments of a call; as in `gang_head.cu`.
const MEMBERS: usize = 64;
const SLOTS: usize = 16;
/// Time after which a thread no longer waits for others.
const PATIENCE: Duration = Duration::from_millis(2);
/// Least size in bytes of the memory through which a device exchanges numbers with the processor.
const LEAST_DESK: usize = 4 << 20;
/// Alignment in it.
const ALIGNMENT: usize = 16;
/// Words that a thread fills or copies.
const WORDS: usize = 4;

/// Functions of the driver may be called by any thread.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Function(CUfunction);

#[allow(unsafe_code)]
// SAFETY: a function is a handle that the driver does not tie to a thread, and its module lives as long as the gang.
unsafe impl Send for Function {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Function {}

/// A call that a device has noted.
struct Noted {
    function: Function,
    threads: (u32, u32),
    shared: u32,
    /// Number of blocks, and the width of their grid.
    blocks: i32,
    width: i32,
    arguments: [u64; SLOTS],
}

impl Noted {
    /// What calls of one launch have in common.
    fn kind(&self) -> (Function, (u32, u32), u32) {
        (self.function, self.threads, self.shared)
    }
}

/// Calls of one launch; as in `gang_head.cu`.
#[repr(C)]
struct Calls {
    count: i32,
    first: [i32; MEMBERS + 1],
    width: [i32; MEMBERS],
    arguments: [[u64; SLOTS]; MEMBERS],
}

/// What one thread waits for.
struct Waiting {
    notes: Vec<Noted>,
    is_done: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    /// Devices that have noted anything so far and are still there.
    members: usize,
    waiting: Vec<Waiting>,
    is_busy: bool,
}

/// Devices that compute together, on one stream.
pub struct Gang {
    stream: Arc<CudaStream>,
    failure: Failure,
    state: Mutex<State>,
    changed: Condvar,
    fill: CudaFunction,
    copy: CudaFunction,
}

#[allow(unsafe_code)]
impl Gang {
    pub fn new(stream: Arc<CudaStream>, failure: Failure, fill: CudaFunction, copy: CudaFunction) -> Arc<Gang> {
        Arc::new(Gang { stream, failure, state: Mutex::default(), changed: Condvar::new(), fill, copy })
    }

    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out what a device has noted, together with others that wait. Half of the members are enough, so that the
    /// others prepare their next step meanwhile.
    fn carry_out(&self, notes: Vec<Noted>) {
        let is_done = Arc::new(AtomicBool::new(false));
        let since = Instant::now();
        let mut state = self.state();
        state.waiting.push(Waiting { notes, is_done: is_done.clone() });
        self.changed.notify_all();
        while !is_done.load(Ordering::Acquire) {
            let is_enough = 2 * state.waiting.len() >= state.members || since.elapsed() >= PATIENCE;
            if state.is_busy || !is_enough {
                let waited = self.changed.wait_timeout(state, PATIENCE);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state.is_busy = true;
            let together = std::mem::take(&mut state.waiting);
            drop(state);
            if let Err(error) = self.in_step(&together) {
                let _ = self.failure.set(format!("the GPU failed: {error}"));
            }
            together.iter().for_each(|one| one.is_done.store(true, Ordering::Release));
            state = self.state();
            state.is_busy = false;
            self.changed.notify_all();
        }
    }

    /// Launches all calls, those of each device in their order, and waits for the end. Whoever has most left goes
    /// first, so that devices that once got out of step get into step again.
    fn in_step(&self, together: &[Waiting]) -> Result<(), DriverError> {
        if self.failure.get().is_some() {
            return Ok(());
        }
        self.stream.context().bind_to_thread()?;
        let mut next = vec![0; together.len()];
        let mut of_launch = Vec::new();
        let mut calls =
            Calls { count: 0, first: [0; MEMBERS + 1], width: [0; MEMBERS], arguments: [[0; SLOTS]; MEMBERS] };
        loop {
            let left = |one: usize| together[one].notes.len() - next[one];
            let Some(leader) = (0..together.len()).max_by_key(|one| (left(*one), usize::MAX - one)) else { break };
            if left(leader) == 0 {
                break;
            }
            let head = |one: usize| &together[one].notes[next[one]];
            let kind = head(leader).kind();
            of_launch.clear();
            of_launch.extend((0..together.len()).filter(|one| left(*one) > 0 && head(*one).kind() == kind));
            for part in of_launch.chunks(MEMBERS) {
                let mut blocks = 0;
                for (place, one) in part.iter().enumerate() {
                    let noted = head(*one);
                    calls.first[place] = blocks;
                    calls.width[place] = noted.width;
                    calls.arguments[place] = noted.arguments;
                    blocks += noted.blocks;
                }
                calls.first[part.len()] = blocks;
                calls.count = part.len() as i32;
                let (function, (across, down), shared) = kind;
                let parameters = &mut [std::ptr::from_mut(&mut calls).cast::<c_void>()];
                let grid = ((blocks as u32, 1, 1), (across, down, 1));
                // SAFETY: the kernel takes these calls, which the launch copies; who noted them promises the rest.
                unsafe {
                    result::launch_kernel(function.0, grid.0, grid.1, shared, self.stream.cu_stream(), parameters)
                }?;
            }
            of_launch.iter().for_each(|one| next[*one] += 1);
        }
        self.stream.synchronize()
    }
}

/// Memory of the processor that the GPU can reach.
struct Desk {
    context: Arc<CudaContext>,
    at: *mut u8,
    size: usize,
}

#[allow(unsafe_code)]
// SAFETY: the memory is not tied to a thread.
unsafe impl Send for Desk {}

#[allow(unsafe_code)]
impl Desk {
    fn new(context: &Arc<CudaContext>, size: usize) -> Result<Desk, DriverError> {
        context.bind_to_thread()?;
        // SAFETY: nothing is read before it is written.
        let at = unsafe { result::malloc_host(size, 0) }?.cast();
        Ok(Desk { context: context.clone(), at, size })
    }
}

#[allow(unsafe_code)]
impl Drop for Desk {
    fn drop(&mut self) {
        let _ = self.context.bind_to_thread();
        // SAFETY: it came from `malloc_host`, and nothing that the GPU still has to do reads or writes it.
        let _ = unsafe { result::free_host(self.at.cast()) };
    }
}

/// Notes of a device, and its desk.
#[derive(Default)]
struct Notes {
    calls: Vec<Noted>,
    is_member: bool,
    desk: Option<Desk>,
    /// Bytes of the desk that notes will read or write.
    taken: usize,
}

/// Place of a device in a gang.
pub struct Seat {
    gang: Arc<Gang>,
    notes: Mutex<Notes>,
}

#[allow(unsafe_code)]
impl Seat {
    pub fn new(gang: Arc<Gang>) -> Seat {
        Seat { gang, notes: Mutex::default() }
    }

    pub fn gang(&self) -> &Arc<Gang> {
        &self.gang
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call. The caller promises what [`super::launch::launch`] wants.
    pub fn call(&self, function: &CudaFunction, grid: Grid, arguments: impl IntoIterator<Item = u64>) {
        self.note(&mut self.notes(), function, grid, arguments);
    }

    fn note(&self, notes: &mut Notes, function: &CudaFunction, grid: Grid, given: impl IntoIterator<Item = u64>) {
        if !std::mem::replace(&mut notes.is_member, true) {
            self.gang.state().members += 1;
        }
        let mut arguments = [0; SLOTS];
        let mut given = given.into_iter();
        arguments.iter_mut().zip(&mut given).for_each(|(slot, argument)| *slot = argument);
        assert!(given.next().is_none(), "more arguments than a call has places for");
        let Grid { blocks, threads, shared } = grid;
        notes.calls.push(Noted {
            function: Function(function.cu_function()),
            threads: (threads.0 as u32, threads.1 as u32),
            shared: shared as u32,
            blocks: (blocks.0 * blocks.1) as i32,
            width: blocks.0 as i32,
            arguments,
        });
    }

    /// Waits until everything noted is done.
    pub fn settle(&self) {
        self.finish(&mut self.notes());
    }

    fn finish(&self, notes: &mut Notes) {
        if !notes.calls.is_empty() {
            self.gang.carry_out(std::mem::take(&mut notes.calls));
        }
        notes.taken = 0;
    }

    /// Notes that words are to be zero.
    pub fn fill_zero(&self, to: CUdeviceptr, bytes: usize) {
        self.note(&mut self.notes(), &self.gang.fill, words(bytes), [(bytes / 4) as u64, to]);
    }

    /// Notes a copy.
    pub fn copy(&self, from: CUdeviceptr, to: CUdeviceptr, bytes: usize) {
        self.note(&mut self.notes(), &self.gang.copy, words(bytes), [(bytes / 4) as u64, from, to]);
    }

    /// Reserves a place on the desk, and returns it.
    fn place(&self, notes: &mut Notes, bytes: usize) -> Result<*mut u8, DriverError> {
        let size = notes.desk.as_ref().map_or(0, |desk| desk.size);
        if notes.taken + bytes > size {
            self.finish(notes);
            if bytes > size {
                notes.desk = None;
                notes.desk = Some(Desk::new(self.gang.stream.context(), bytes.next_power_of_two().max(LEAST_DESK))?);
            }
        }
        let at = notes.desk.as_ref().map_or(std::ptr::null_mut(), |desk| desk.at);
        // SAFETY: the desk has room for it.
        let at = unsafe { at.add(notes.taken) };
        notes.taken = (notes.taken + bytes).next_multiple_of(ALIGNMENT);
        Ok(at)
    }

    /// Notes a copy to the GPU of bytes that `fill` writes.
    pub fn upload(&self, to: CUdeviceptr, bytes: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<(), DriverError> {
        let notes = &mut *self.notes();
        let at = self.place(notes, bytes)?;
        // SAFETY: the place has as many bytes, and no other reference to them.
        fill(unsafe { std::slice::from_raw_parts_mut(at, bytes) });
        self.note(notes, &self.gang.copy, words(bytes), [(bytes / 4) as u64, at as u64, to]);
        Ok(())
    }

    /// Waits until everything noted is done, and copies bytes from the GPU.
    pub fn download(&self, from: CUdeviceptr, to: &mut [u8]) -> Result<(), DriverError> {
        let notes = &mut *self.notes();
        let at = self.place(notes, to.len())?;
        self.note(notes, &self.gang.copy, words(to.len()), [(to.len() / 4) as u64, from, at as u64]);
        self.finish(notes);
        // SAFETY: the place has as many bytes, which the GPU has written.
        to.copy_from_slice(unsafe { std::slice::from_raw_parts(at, to.len()) });
        Ok(())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.notes().is_member {
            self.gang.state().members -= 1;
            self.gang.changed.notify_all();
        }
    }
}

/// Grid that goes over the words of some bytes.
fn words(bytes: usize) -> Grid {
    assert!(bytes.is_multiple_of(4), "{bytes} bytes are no whole words");
    Grid::blocks((bytes / 4).div_ceil(WORDS * THREADS).max(1))
}
