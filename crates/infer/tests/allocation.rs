//! Contract: a forward pass allocates nothing unless it has more rows than ever before, or attention is sparse for the
//! first time. This is a test binary of its own because it counts all allocations.
#![allow(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use temponet_infer::{Architecture, Kernel, Network, NetworkOptions, RealInput, Rows, Sparsity, Vocabulary, Weights};

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

fn allocations(of: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    of();
    ALLOCATIONS.get() - before
}

#[test]
fn a_forward_pass_does_not_allocate() {
    let vocabulary = |name: &str, size: usize| vec![Vocabulary { name: name.into(), size }];
    let plain = Architecture::paper(vocabulary("slack", 130), vocabulary("cores", 8));
    let weights = Weights::random(Architecture { real: Some(RealInput { inputs: 1, hidden: 8 }), ..plain }, 1);
    let real = vec![0.5; 300];
    let jobs: Vec<u16> = (0..300).map(|job| job % 130).collect();
    let bias = vec![0.0; 301];
    for kernel in Kernel::available() {
        let options = NetworkOptions { rows: 200, ..NetworkOptions::of(kernel) };
        let mut network = Network::new(&weights, options).unwrap();
        let mut q = Vec::with_capacity(301);
        let mut run = |count: usize, sparsity: Option<Sparsity>| {
            let rows =
                Rows { idle: &[1], jobs: &jobs[..count], real: &real[..count], bias: &bias[..count + 1], sparsity };
            allocations(|| network.forward(&rows, &mut q))
        };
        run(3, Some(Sparsity::paper(3)));
        for count in [0, 1, 15, 16, 130, 199] {
            assert_eq!(run(count, None), 0, "{kernel}, {count} jobs");
            assert_eq!(run(count, Some(Sparsity::paper(count))), 0, "{kernel}, {count} jobs, sparse");
        }
        assert!(run(300, None) > 0, "{kernel}: more rows than ever, and the counter counts");
        assert_eq!(run(300, None), 0, "{kernel}: they have been met");
    }
}

#[test]
fn a_clone_shares_the_weights() {
    let vocabulary = |name: &str, size: usize| vec![Vocabulary { name: name.into(), size }];
    let weights = Weights::random(Architecture::paper(vocabulary("slack", 7), vocabulary("cores", 8)), 1);
    for kernel in Kernel::available() {
        let network = Network::new(&weights, NetworkOptions { rows: 1, ..NetworkOptions::of(kernel) }).unwrap();
        let before = BYTES.get();
        let clone = network.clone();
        let bytes = BYTES.get() - before;
        // A copy of the weights would take at least one byte for each.
        assert!(bytes < weights.architecture.parameters(), "{kernel}: a clone takes {bytes} bytes");
        drop(clone);
    }
}
