//! No sequence of calls of the C interface panics, returns what it must not, or leaks: see the player.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

#[path = "../../bindings/c/tests/random_calls/player.rs"]
mod player;

/// Bytes that are allocated now.
static LIVE: AtomicIsize = AtomicIsize::new(0);

struct Counting;

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Tables keep their room, and the last error its text. What grows every time is a leak.
const REPETITIONS: usize = 4;

/// Bytes that are allocated after playing once more.
fn live_after(data: &[u8]) -> isize {
    player::play(&mut Unstructured::new(data));
    LIVE.load(Ordering::Relaxed)
}

fuzz_target!(|data: &[u8]| {
    let mut live = live_after(data);
    for _ in 0..REPETITIONS {
        let again = live_after(data);
        if again <= live {
            return;
        }
        live = again;
    }
    panic!("every repetition leaves more bytes allocated");
});
