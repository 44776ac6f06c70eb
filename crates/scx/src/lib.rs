//! Threads of Linux's extensible scheduler class (sched_ext) that run when a scheduler in user space has chosen them.
//!
//! Threads join the class with `join`. A program loads the kernel's part with `Extension::load`, and from then on
//! `Extension::choose` says which thread a core runs. Orders are valid for a time that the program states; when no
//! order has come for that long, the kernel's part serves the waiting threads by their deadlines
//! (`Extension::set_deadline`). A thread that could run and has not run for three seconds makes the kernel's watchdog
//! throw the part out; the threads are then ordinary ones. The same happens when the program ends, however it ends.
//! Threads of other classes are never touched.
//!
//! The kernel's part, `src/temponet.bpf.c`, is under GPL-2.0-only, which the kernel demands. Everything else is
//! licensed as the rest of the project.
//!
//! Without the feature `scx` this crate is empty: building it needs clang, libelf and zlib. It runs on kernels with
//! `CONFIG_SCHED_CLASS_EXT` (6.12 and later). `crates/scx/vm-test` boots such a kernel and tries it.

#![cfg(all(target_os = "linux", feature = "scx"))]

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, ProgramInput};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/temponet.bpf.o"));
/// Number of the scheduling class, which `libc` does not name.
const SCHED_EXT: libc::c_int = 7;
/// Number of cores that the kernel's part knows.
const CORES: u32 = 256;
const STATE: &str = "/sys/kernel/sched_ext/state";

/// Why the extension could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ScxError {
    /// The kernel has no extensible scheduler class.
    #[error(
        "this kernel has no sched_ext: {STATE} cannot be read ({0}); a kernel with CONFIG_SCHED_CLASS_EXT is needed"
    )]
    NoClass(io::Error),
    /// Another scheduler is loaded.
    #[error("another sched_ext scheduler is loaded: {STATE} says {0}")]
    Taken(String),
    /// The kernel refused the programs, or an order.
    #[error("the kernel refused {0}: {1}")]
    Refused(&'static str, libbpf_rs::Error),
    /// The object lacks a part, which only another build of it could.
    #[error("the compiled object has no {0}")]
    Missing(&'static str),
    /// A core that the kernel's part does not know.
    #[error("core {0} is beyond the {CORES} that are supported")]
    Core(u32),
    /// A thread could not join the class.
    #[error("thread {0} cannot join SCHED_EXT: {1}")]
    Join(i32, io::Error),
}

/// Moves a thread of this or another process into the class. Until an [`Extension`] is loaded it runs as an ordinary
/// thread.
pub fn join(thread: i32) -> Result<(), ScxError> {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads `param`, which lives until it returns, and changes nothing in this process's memory.
    #[allow(unsafe_code)]
    let result = unsafe { libc::sched_setscheduler(thread, SCHED_EXT, &raw const param) };
    if result == 0 { Ok(()) } else { Err(ScxError::Join(thread, io::Error::last_os_error())) }
}

/// Returns what the kernel says of the class: `enabled` while an extension is loaded, `disabled` before and after.
pub fn state() -> Result<String, ScxError> {
    fs::read_to_string(STATE).map(|state| state.trim().to_string()).map_err(ScxError::NoClass)
}

/// The kernel's part, which is loaded until this is dropped.
pub struct Extension {
    object: Object,
    deadlines: MapHandle,
    valid: Duration,
    /// Date of the last look at the state of the class.
    looked: Instant,
    /// Held for its end: dropping it takes the part out of the kernel.
    _link: Link,
}

impl Extension {
    /// Loads the kernel's part. Orders are valid for `valid`.
    pub fn load(valid: Duration) -> Result<Extension, ScxError> {
        let before = state()?;
        if before != "disabled" {
            return Err(ScxError::Taken(before));
        }
        let refused = |what| move |error| ScxError::Refused(what, error);
        let open = ObjectBuilder::default().name("temponet").and_then(|it| it.open_memory(OBJECT));
        let mut object = open.and_then(|open| open.load()).map_err(refused("the programs"))?;
        let map = |name| object.maps().find(|map| map.name() == name);
        let deadlines = map("deadlines").ok_or(ScxError::Missing("deadlines"))?;
        let deadlines = MapHandle::try_from(&deadlines).map_err(refused("the deadlines"))?;
        let mut operations = object.maps_mut().find(|map| map.name() == "temponet");
        let operations = operations.as_mut().ok_or(ScxError::Missing("operations"))?;
        let link = operations.attach_struct_ops().map_err(refused("the scheduler"))?;
        Ok(Extension { object, deadlines, valid, looked: Instant::now(), _link: link })
    }

    /// Makes a core run a thread from now on, or the first of the waiting ones.
    pub fn choose(&mut self, core: u32, thread: Option<i32>) -> Result<(), ScxError> {
        if core >= CORES {
            return Err(ScxError::Core(core));
        }
        self.order(core, thread.unwrap_or(0))
    }

    /// Says that the orders given are still meant.
    pub fn renew(&mut self) -> Result<(), ScxError> {
        self.order(u32::MAX, 0)
    }

    /// States the deadline of a thread's job, in nanoseconds of `CLOCK_MONOTONIC`, before the thread is woken.
    pub fn set_deadline(&self, thread: i32, deadline_ns: u64) -> Result<(), ScxError> {
        let (key, value) = (thread.to_ne_bytes(), deadline_ns.to_ne_bytes());
        self.deadlines.update(&key, &value, MapFlags::ANY).map_err(|error| ScxError::Refused("a deadline", error))
    }

    /// Gives an order to the kernel's part.
    fn order(&mut self, core: u32, thread: i32) -> Result<(), ScxError> {
        let mut order = [0; 16];
        order[..4].copy_from_slice(&core.to_ne_bytes());
        order[4..8].copy_from_slice(&thread.to_ne_bytes());
        order[8..].copy_from_slice(&(self.valid.as_nanos() as u64).to_ne_bytes());
        let input = ProgramInput { context_in: Some(&mut order), ..ProgramInput::default() };
        let program = self.object.progs_mut().find(|program| program.name() == "order");
        let program = program.ok_or(ScxError::Missing("order"))?;
        program.test_run(input).map(drop).map_err(|error| ScxError::Refused("an order", error))
    }
}

/// The dispatcher of the runtime decides, and the kernel's part carries it out.
impl temponet_runtime::Carrier for Extension {
    fn admit(&mut self, thread: i32, deadline_ns: u64) -> Result<(), String> {
        self.set_deadline(thread, deadline_ns).map_err(|error| error.to_string())
    }

    fn choose(&mut self, cpu: usize, thread: Option<i32>) -> Result<(), String> {
        Extension::choose(self, cpu as u32, thread).map_err(|error| error.to_string())
    }

    fn renew(&mut self) -> Result<(), String> {
        Extension::renew(self).map_err(|error| error.to_string())?;
        // Orders succeed even after the watchdog has thrown the scheduler out. Once per time of validity is soon enough
        // to notice.
        if self.looked.elapsed() < self.valid {
            return Ok(());
        }
        self.looked = Instant::now();
        match state() {
            Ok(state) if state == "enabled" => Ok(()),
            Ok(state) => Err(format!("{STATE} says {state}")),
            Err(error) => Err(error.to_string()),
        }
    }
}
