//! Calls of Linux that `rustix` does not have: the only module of this crate with `unsafe` code.
//!
//! Each function is a thin, checked wrapper: pointers come from references that outlive the call, sizes from the types
//! behind them.

#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// How the kernel schedules a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The usual time sharing (EEVDF), without priority over anyone.
    Other,
    /// First in, first out at a priority from 1 to 99.
    Fifo(u32),
    /// Round robin at a priority from 1 to 99.
    RoundRobin(u32),
    /// The class of an extension that is loaded into the kernel.
    Extension,
    /// Earliest deadline first with a budget. Times are in nanoseconds.
    Deadline { runtime: u64, deadline: u64, period: u64 },
}

/// `struct sched_attr`, version 0 of the kernel's interface.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Threads that a thread makes do not inherit its priority.
const RESET_ON_FORK: u64 = 1;
const SCHED_DEADLINE: u32 = 6;
const SCHED_EXT: u32 = 7;

/// Sets the policy of a thread; 0 is the calling one.
pub fn set_policy(tid: i32, policy: Policy) -> io::Result<()> {
    let mut attr = SchedAttr { size: size_of::<SchedAttr>() as u32, flags: RESET_ON_FORK, ..SchedAttr::default() };
    match policy {
        Policy::Other => attr.policy = libc::SCHED_OTHER as u32,
        Policy::Fifo(priority) => (attr.policy, attr.priority) = (libc::SCHED_FIFO as u32, priority),
        Policy::RoundRobin(priority) => (attr.policy, attr.priority) = (libc::SCHED_RR as u32, priority),
        Policy::Extension => attr.policy = SCHED_EXT,
        Policy::Deadline { runtime, deadline, period } => {
            attr.policy = SCHED_DEADLINE;
            (attr.runtime, attr.deadline, attr.period) = (runtime, deadline, period);
        }
    }
    // SAFETY: the kernel reads `size` bytes of `attr`, which is that long.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attr, 0u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Processor time that a thread of this process has used, in nanoseconds.
pub fn processor_time_of(tid: i32) -> io::Result<u64> {
    // The kernel's encoding of a per-thread clock: the complement of the thread id, and the bits for "thread" and
    // "scheduler's clock".
    let clock = (!tid << 3) | 0b110;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec` to a reference that outlives it.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Number of times that the kernel took the processor from the calling thread.
pub fn own_preemptions() -> u32 {
    // SAFETY: all bits zero is a valid `rusage`, and the call writes one to a reference that outlives it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    usage.ru_nivcsw as u32
}

/// Sets the limit of processor time that a real-time thread may use without sleeping, in microseconds. Returns the
/// limit before.
pub fn limit_real_time(soft_us: u64) -> io::Result<u64> {
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls take a reference to one `rlimit` that outlives them.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_RTTIME, &mut old) != 0 {
            return Err(io::Error::last_os_error());
        }
        let new = libc::rlimit { rlim_cur: soft_us.min(old.rlim_max), rlim_max: old.rlim_max };
        if libc::setrlimit(libc::RLIMIT_RTTIME, &new) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(old.rlim_cur)
}

/// Has the kernel send the calling process a signal when its parent ends.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: the call takes integers only.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Greatest number of real-time threads that a guard knows.
pub const MOST_THREADS: usize = 1024;

/// The page that a program shares with its guard.
#[repr(C)]
pub struct SharedPage {
    /// Date of the last beat on the monotonic clock, in nanoseconds; zero before the first.
    pub beat: AtomicU64,
    /// Whether the program has ended in order.
    pub done: AtomicU32,
    /// Number of entries of `threads`.
    pub count: AtomicU32,
    /// Thread ids of the real-time threads. The guard takes their priority away if the beat stops.
    pub threads: [AtomicI32; MOST_THREADS],
}

/// Maps a page that a forked process shares. It stays mapped until the process ends, because a guard may still read it.
pub fn shared_page() -> io::Result<&'static SharedPage> {
    let (size, protection) = (size_of::<SharedPage>(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: an anonymous mapping at an address of the kernel's choice is new memory. It is zeroed, which is a valid
    // `SharedPage` of atomics, aligned to a page, and never unmapped, so the reference is good for ever.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0);
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(&*page.cast::<SharedPage>())
    }
}

/// Forks a guard of this process on a processor. Returns its process id.
///
/// The guard looks at the beat every `interval_ns`. If the beat is older than `patience_ns`, it takes the priority from
/// the program's threads and kills the program. It ends when the program does.
pub fn fork_guard(page: &'static SharedPage, cpu: usize, interval_ns: u64, patience_ns: u64) -> io::Result<i32> {
    // SAFETY: the child of a fork of a program with threads may only use functions that are safe in signal handlers.
    // `guard_loop` allocates nothing, takes no lock, makes plain system calls, and never returns.
    unsafe {
        let program = libc::getpid();
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => guard_loop(page, program, cpu, interval_ns, patience_ns),
            guard => Ok(guard),
        }
    }
}

/// The life of a guard. Runs in a forked process.
///
/// # Safety
///
/// Must be called in a process that was forked for it; it ends that process.
unsafe fn guard_loop(page: &SharedPage, program: i32, cpu: usize, interval_ns: u64, patience_ns: u64) -> ! {
    // SAFETY: plain system calls with pointers to locals that outlive them.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut cpus);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &cpus);
        let _ = set_policy(0, Policy::Fifo(99));
        // An interruption from the terminal is for the program.
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        let interval = libc::timespec { tv_sec: 0, tv_nsec: interval_ns as libc::c_long };
        let mut looked = 0;
        loop {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &interval, std::ptr::null_mut());
            if page.done.load(Ordering::Acquire) != 0 || libc::getppid() != program {
                libc::_exit(0);
            }
            let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now);
            let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
            // Where this process was late itself, the machine stood still, as a virtual one may. The program gets time
            // to beat again.
            let stood_still = now.saturating_sub(std::mem::replace(&mut looked, now)) > 3 * interval_ns;
            let beat = page.beat.load(Ordering::Acquire);
            if beat == 0 || stood_still || now.saturating_sub(beat) <= patience_ns {
                continue;
            }
            // The machine first: without priority, nothing that the program does can hold a processor.
            let count = (page.count.load(Ordering::Acquire) as usize).min(MOST_THREADS);
            for thread in &page.threads[..count] {
                let _ = set_policy(thread.load(Ordering::Relaxed), Policy::Other);
            }
            libc::kill(program, libc::SIGKILL);
            libc::_exit(1);
        }
    }
}

/// Waits for a guard to end.
pub fn wait_for(guard: i32) {
    // SAFETY: a null pointer asks for no status.
    unsafe { libc::waitpid(guard, std::ptr::null_mut(), 0) };
}
