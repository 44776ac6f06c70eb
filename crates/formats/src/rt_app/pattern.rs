//! The repeated behavior of an rt-app thread: the events of its phases, and the period and work that result from them.

use temponet_task::Time;

use super::locks::LockEvent;
use super::micros;
use crate::Problem;
use crate::node::{Fields, Node};
use crate::notes::Notes;

/// Prefixes of the keys of events, by which rt-app recognizes them: `run`, `run1` and `run_b` are runs. The first match
/// counts.
const EVENTS: [&str; 20] = [
    "lock", "unlock", "wait", "signal", "broad", "sync", "sleep", "runtime", "run", "timer", "suspend", "resume",
    "memrun", "mem", "iorun", "yield", "barrier", "fork", "sem_post", "sem_wait",
];

/// Events that wait for another thread.
const WAITS: [&str; 5] = ["wait", "sync", "suspend", "barrier", "sem_wait"];

/// Returns the event that a key stands for.
pub(super) fn event(key: &str) -> Option<&'static str> {
    EVENTS.into_iter().find(|event| key.starts_with(event))
}

/// Total of the events of a phase up to a timer, or of all its events if it has no timer.
#[derive(Clone, Copy, Default)]
struct Stretch {
    run: Time,
    sleep: Time,
    timer: Option<Time>,
}

/// A phase: events that are repeated `loops` times.
#[derive(Default)]
pub(super) struct Phase {
    /// Number of repetitions; `None` means forever.
    pub loops: Option<u64>,
    stretches: Vec<Stretch>,
    /// Event in this phase that waits for another thread.
    waits_for: Option<&'static str>,
    /// Names of the timers, except those that every thread has for itself.
    pub shared_timers: Vec<String>,
    /// Locks and unlocks, in order.
    pub locks: Vec<LockEvent>,
}

impl Phase {
    /// Reads the events of a phase of `thread`. Events that are not represented become notes.
    pub fn of(entries: Vec<(&str, &Node)>, thread: &str, notes: &mut Notes) -> Result<Phase, Problem> {
        let mut phase = Phase { loops: Some(1), ..Phase::default() };
        let mut stretch = Stretch::default();
        for (key, node) in entries {
            match event(key) {
                Some("run" | "runtime") => stretch.run = sum(stretch.run, micros(node, key)?, node)?,
                Some("sleep") => stretch.sleep = sum(stretch.sleep, micros(node, key)?, node)?,
                Some("timer") => {
                    let period = phase.timer(node, thread, notes)?;
                    if period > Time::ZERO {
                        phase.stretches.push(Stretch { timer: Some(period), ..std::mem::take(&mut stretch) });
                    }
                }
                Some(event @ ("lock" | "unlock")) => phase.locks.push(LockEvent {
                    stretch: phase.stretches.len(),
                    run: stretch.run,
                    locks: event == "lock",
                    mutex: node.text(key)?.to_string(),
                    line: node.line,
                }),
                Some(event) => {
                    notes.task(node.line, thread, format_args!("{event:?} is not represented"));
                    if WAITS.contains(&event) {
                        phase.waits_for = Some(event);
                    }
                }
                None => notes.task(node.line, thread, format_args!("unknown key {key:?} is ignored")),
            }
        }
        // Events after the last timer happen before the first timer of the next repetition.
        let timers = phase.stretches.len();
        if timers > 0 {
            phase.locks.iter_mut().filter(|event| event.stretch == 0).for_each(|event| event.run += stretch.run);
            phase.locks.iter_mut().filter(|event| event.stretch == timers).for_each(|event| event.stretch = 0);
            phase.locks.sort_by_key(|event| (event.stretch, event.run));
        }
        match phase.stretches.first_mut() {
            Some(first) => (first.run, first.sleep) = (first.run + stretch.run, first.sleep + stretch.sleep),
            None => phase.stretches.push(stretch),
        }
        Ok(phase)
    }

    /// Reads a timer and returns its period.
    fn timer(&mut self, node: &Node, thread: &str, notes: &mut Notes) -> Result<Time, Problem> {
        let mut fields = Fields::of(node, "timer")?;
        let name = fields.take("ref").map_or(Ok("unknown"), |node| node.text("ref"))?;
        let period = fields.take("period").map_or(Ok(Time::ZERO), |node| micros(node, "period"))?;
        if let Some(node) = fields.take("mode") {
            let mode = node.text("mode")?;
            if mode != "relative" && mode != "absolute" {
                return Err(Problem::at(node.line, format!("mode = {} is none of relative, absolute", node.shown())));
            }
        }
        for (key, node) in fields.rest()? {
            notes.task(node.line, thread, format_args!("unknown key {key:?} of a timer is ignored"));
        }
        if !name.starts_with("unique") {
            self.shared_timers.push(name.to_string());
        }
        Ok(period)
    }

    /// Returns the number of jobs in a repetition.
    pub fn stretches(&self) -> usize {
        self.stretches.len()
    }

    /// Returns the duration of a phase that only sleeps, which is a pause before the other phases.
    pub fn pause(&self) -> Option<Time> {
        match self.stretches[..] {
            [Stretch { run: Time::ZERO, sleep, timer: None }] if self.waits_for.is_none() && self.locks.is_empty() => {
                let pause = sleep.0.checked_mul(self.loops?).map(Time)?;
                (pause > Time::ZERO && pause <= Time::MAX_INPUT).then_some(pause)
            }
            _ => None,
        }
    }
}

/// Adds two durations. The sum must be a valid time.
fn sum(one: Time, other: Time, node: &Node) -> Result<Time, Problem> {
    match one.0.checked_add(other.0).map(Time) {
        // Half of the maximum leaves room for the events after the last timer.
        Some(sum) if sum.0 <= Time::MAX_INPUT.0 / 2 => Ok(sum),
        _ => Err(Problem::at(node.line, "the times of this thread add up to more than 15 years")),
    }
}

/// The periodic job of a thread.
pub(super) struct Pattern {
    pub period: Time,
    pub wcet: Time,
    /// Execution time of the shortest job.
    pub least: Time,
    /// Whether the period is the sum of a run and a sleep, so that it grows when a job is late.
    pub from_sleep: bool,
    /// Whether jobs sleep before they are complete.
    pub sleeps_within: bool,
}

impl Pattern {
    /// Derives the job from all phases, or returns the reason why there is none. `stated` is a period that does not
    /// come from the events.
    pub fn of(phases: &[Phase], stated: Option<Time>) -> Result<Pattern, String> {
        let stretches: Vec<&Stretch> = phases.iter().flat_map(|phase| &phase.stretches).collect();
        let wcet = stretches.iter().map(|stretch| stretch.run).max().unwrap_or_default();
        let least = stretches.iter().map(|stretch| stretch.run).min().unwrap_or_default();
        if wcet == Time::ZERO {
            return Err("it never runs".into());
        }
        let mut periods = Vec::new();
        for stretch in &stretches {
            let by_sleep = (stretch.sleep > Time::ZERO).then_some(stretch.run + stretch.sleep);
            let waits = phases.iter().find_map(|phase| phase.waits_for);
            periods.push(stretch.timer.or(stated).or(by_sleep).ok_or_else(|| match waits {
                Some(event) => format!("it has no timer, no sleep and no dl-period, but waits ({event})"),
                None => "it runs without a pause: it has no timer, no sleep and no dl-period".into(),
            })?);
        }
        let (period, slept) = (periods[0], |stretch: &Stretch| stretch.sleep > Time::ZERO);
        if let Some(other) = periods.iter().find(|other| **other != period) {
            return Err(format!("it has several periods, such as {period} and {other}"));
        }
        let timed = |stretch: &Stretch| stretch.timer.is_some() || stated.is_some();
        Ok(Pattern {
            period,
            wcet,
            least,
            from_sleep: stretches.iter().any(|stretch| !timed(stretch)),
            sleeps_within: stretches.iter().any(|stretch| timed(stretch) && slept(stretch)),
        })
    }
}
