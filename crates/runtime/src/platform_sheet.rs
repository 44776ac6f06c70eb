//! What a reader has to know about the machine beside every figure.

use temponet_sim::Histogram;

/// How late timers are on one processor.
#[derive(Clone, Debug)]
pub struct TimerLatency {
    /// Number of the processor.
    pub cpu: usize,
    /// Lateness of a wake-up with the dispatcher's priority, in nanoseconds.
    pub late_ns: Histogram,
}

/// How long the least takes that the kernel has to do for a switch: a thread is woken from another processor and takes
/// the core from one with a lower priority.
#[derive(Clone, Debug)]
pub struct BareSwitch {
    /// Processor that the order comes from.
    pub from: usize,
    /// Processor of the two threads.
    pub to: usize,
    /// From the order to the first instruction, in nanoseconds.
    pub took_ns: Histogram,
}

/// Something that a run may need.
#[derive(Clone, Debug)]
pub struct Ability {
    /// What it is.
    pub what: &'static str,
    /// Why it cannot be had; none if it can.
    pub problem: Option<String>,
}

/// The machine in words.
#[derive(Clone, Debug)]
pub struct PlatformSheet {
    /// Name and release of the kernel.
    pub kernel: String,
    /// Architecture.
    pub machine: String,
    /// Ticks a second, if they can be told.
    pub hz: Option<u64>,
    /// Preemption model of the kernel.
    pub preemption: String,
    /// Processors that the kernel keeps free of other work.
    pub isolated: String,
    /// Processors without ticks while one thread runs.
    pub no_ticks: String,
    /// Throttling of real-time threads.
    pub throttling: String,
    /// Clock source.
    pub clock: String,
    /// Processors that this process may use.
    pub usable: Vec<usize>,
    /// How late timers are.
    pub timers: Vec<TimerLatency>,
    /// What a switch takes at least, if it was measured.
    pub bare_switch: Option<BareSwitch>,
    /// What would work.
    pub abilities: Vec<Ability>,
}

impl PlatformSheet {
    /// Looks at the machine. Measures timers on the processors named, about half a second each, and switches on the
    /// second one that are ordered from the first; an empty list measures none.
    pub fn of_this_machine(cpus: &[usize]) -> PlatformSheet {
        #[cfg(target_os = "linux")]
        return crate::linux::platform_sheet::platform_sheet(cpus);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = cpus;
            let unknown = || "unknown".to_string();
            let problem = Some("running threads needs Linux".into());
            PlatformSheet {
                kernel: std::env::consts::OS.into(),
                machine: std::env::consts::ARCH.into(),
                hz: None,
                preemption: unknown(),
                isolated: unknown(),
                no_ticks: unknown(),
                throttling: unknown(),
                clock: unknown(),
                usable: Vec::new(),
                timers: Vec::new(),
                bare_switch: None,
                abilities: vec![Ability { what: "threads", problem }],
            }
        }
    }

    /// Whether a run on threads would work.
    pub fn problem(&self) -> Option<&str> {
        self.abilities.iter().take(2).find_map(|ability| ability.problem.as_deref())
    }
}

/// The processors that a run uses unless it is told: the lowest usable one for housekeeping, and the next `cores` for
/// jobs. None if there are too few.
pub fn usual_cpus(cores: usize) -> Option<(usize, Vec<usize>)> {
    #[cfg(target_os = "linux")]
    let usable = crate::linux::usable_cpus();
    #[cfg(not(target_os = "linux"))]
    let usable: Vec<usize> = Vec::new();
    let (housekeeping, rest) = usable.split_first()?;
    Some((*housekeeping, rest.get(..cores)?.to_vec()))
}
