//! An allocator that counts, for test programs about allocations. It counts for each thread alone.
#![allow(unsafe_code, reason = "an allocator")]
// Not every test counts bytes.
#![allow(dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Returns the number of allocations of this thread so far.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Returns the number of allocations of a call.
pub fn allocations_of(call: impl FnOnce()) -> u64 {
    let before = allocations();
    call();
    allocations() - before
}

/// Returns the result of a call and the number of bytes that it allocates.
pub fn bytes_of<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let before = BYTES.get();
    let result = call();
    (result, BYTES.get() - before)
}
