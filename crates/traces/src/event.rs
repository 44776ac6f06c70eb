//! Events, whatever format they come from, and the names in them.
//!
//! Names are kept once and stand in events as numbers, so that an event is copied without an allocation.

use std::collections::HashMap;

/// Number of a processor that the trace does not state.
pub(crate) const NO_CPU: u32 = u32::MAX;
/// Priority that the trace does not state.
pub(crate) const NO_PRIORITY: i32 = i32::MIN;

/// Number of a name in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(pub u32);

/// Names of threads and markers, each kept once.
pub(crate) struct Names {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<[u8]>, Name>,
    /// Whether a name came after the last one that was kept.
    pub overflowed: bool,
}

/// Most names that are kept. A program that numbers its markers would otherwise fill the memory.
const MOST_NAMES: usize = 1 << 17;
/// Longest name, in bytes.
const LONGEST: usize = 256;

impl Names {
    pub fn new() -> Names {
        let mut names = Names { texts: Vec::new(), numbers: HashMap::new(), overflowed: false };
        names.number(b"<unknown>");
        names
    }

    /// The name of what has none.
    pub const UNKNOWN: Name = Name(0);

    /// Returns the number of a name. Bytes that are not UTF-8 are replaced.
    pub fn number(&mut self, name: &[u8]) -> Name {
        let name = &name[..name.len().min(LONGEST)];
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.texts.len() >= MOST_NAMES {
            self.overflowed = true;
            return Names::UNKNOWN;
        }
        let number = Name(self.texts.len() as u32);
        self.texts.push(String::from_utf8_lossy(name).into());
        self.numbers.insert(name.into(), number);
        number
    }

    pub fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }
}

/// A thread in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Party {
    pub tid: i32,
    pub name: Name,
    /// Priority of the kernel: below 100 real-time, from 100 on 120 plus the nice value; [`NO_PRIORITY`] if unknown.
    pub priority: i32,
}

/// How a thread leaves its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It is preempted, and ready to go on.
    Preempted,
    /// It sleeps until something happens: its job is done.
    Sleeps,
    /// It waits within its job, for a disk or a lock of the kernel (state D).
    Waits,
    /// It ends.
    Ends,
}

impl Leaving {
    /// Reads the letters that perf and ftrace write: `R`, `R+`, `S`, `D`, `D|K`, …; or the number of older kernels.
    pub fn of_letters(state: &[u8]) -> Option<Leaving> {
        match state.first()? {
            b'R' => Some(Leaving::Preempted),
            b'D' => Some(Leaving::Waits),
            b'X' | b'x' | b'Z' => Some(Leaving::Ends),
            b'S' | b'T' | b't' | b'I' | b'P' | b'K' | b'W' | b'N' | b'w' | b'p' => Some(Leaving::Sleeps),
            b'0'..=b'9' => Some(Leaving::of_number(crate::number::integer(state)? as u64)),
            _ => None,
        }
    }

    /// Reads the kernel's number of the state, as binary traces have it.
    pub fn of_number(state: u64) -> Leaving {
        // Bits from 0x100 on say that the thread was preempted or how it may be woken.
        match state & 0xff {
            0 => Leaving::Preempted,
            bits if bits & 0x30 != 0 => Leaving::Ends,
            bits if bits & 0x02 != 0 && bits & 0x80 == 0 => Leaving::Waits,
            _ => Leaving::Sleeps,
        }
    }
}

/// An event of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Date in nanoseconds, on the clock of the trace.
    pub time: u64,
    /// Processor, or [`NO_CPU`].
    pub cpu: u32,
    /// Thread that was running; negative if unknown.
    pub tid: i32,
    /// Its process; negative if unknown.
    pub pid: i32,
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// The processor goes from one thread to another.
    Switch { from: Party, leaving: Leaving, to: Party },
    /// A thread is started by the running one.
    Start(i32),
    /// A thread is woken.
    Wake { who: Party, is_new: bool },
    /// The running thread opens a marker.
    Begin(Name),
    /// The running thread closes its last marker, or the last one of this name.
    End(Option<Name>),
    /// A stretch of a job that is known as a whole. Jobs without a number have a single stretch.
    Slice { name: Name, job: Option<u64>, length: u64 },
    /// A callback begins, by its address.
    CallbackStart(u64),
    /// A callback ends.
    CallbackEnd(u64),
    /// The running thread publishes, with the handle of the publisher.
    Publish { publisher: u64, layer: Layer },
    /// Something that ROS 2 says once.
    Ros(Box<Initialized>),
    /// Events were lost before the date of this one, as many as the trace says.
    Lost { count: Option<u64> },
}

/// Layer of ROS 2 that reports a publication; each reports all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Layer {
    Rclcpp,
    Rcl,
    Intra,
}

/// What tracepoints of ROS 2 say when an object is made.
#[derive(Clone, Debug)]
pub(crate) enum Initialized {
    Node { node: u64, name: String },
    Publisher { publisher: u64, topic: String },
    Subscription { handle: u64, node: u64, topic: String },
    SubscriptionObject { object: u64, handle: u64 },
    SubscriptionCallback { object: u64, callback: u64 },
    Timer { timer: u64, period: u64 },
    TimerNode { timer: u64, node: u64 },
    TimerCallback { timer: u64, callback: u64 },
    Service { service: u64, node: u64, name: String },
    ServiceCallback { service: u64, callback: u64 },
    Symbol { callback: u64, symbol: String },
}
