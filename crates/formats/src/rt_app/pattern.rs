//! What a thread of rt-app does over and over: the events of its phases, and the period and the work that they make.

use temponet_task::Time;

use super::micros;
use crate::Problem;
use crate::node::{Fields, Node};
use crate::notes::Notes;

/// Events by how their keys begin, as rt-app recognises them: `run`, `run1` and `run_b` are runs. The first match counts.
const EVENTS: [&str; 20] = [
    "lock", "unlock", "wait", "signal", "broad", "sync", "sleep", "runtime", "run", "timer", "suspend", "resume",
    "memrun", "mem", "iorun", "yield", "barrier", "fork", "sem_post", "sem_wait",
];

/// Events that end when another thread lets them.
const WAITS: [&str; 5] = ["wait", "sync", "suspend", "barrier", "sem_wait"];

pub(super) fn event(key: &str) -> Option<&'static str> {
    EVENTS.into_iter().find(|event| key.starts_with(event))
}

/// The events of one phase up to a timer, or all of them where there is none.
#[derive(Clone, Copy, Default)]
struct Stretch {
    run: Time,
    sleep: Time,
    timer: Option<Time>,
}

/// A phase: what is done `loops` times.
#[derive(Default)]
pub(super) struct Phase {
    /// None: without end.
    pub loops: Option<u64>,
    stretches: Vec<Stretch>,
    waits_for: Option<&'static str>,
    /// Timers by name, except those that each thread has of its own.
    pub shared_timers: Vec<String>,
}

impl Phase {
    /// Reads the events among the entries of `thread`'s phase; what is not represented goes to the notes.
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
                Some(event) => {
                    notes.task(node.line, thread, format_args!("{event:?} is not represented"));
                    if WAITS.contains(&event) {
                        phase.waits_for = Some(event);
                    }
                }
                None => notes.task(node.line, thread, format_args!("unknown key {key:?} is ignored")),
            }
        }
        // What comes after the last timer is done before the first one of the next loop.
        match phase.stretches.first_mut() {
            Some(first) => (first.run, first.sleep) = (first.run + stretch.run, first.sleep + stretch.sleep),
            None => phase.stretches.push(stretch),
        }
        Ok(phase)
    }

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

    /// How long a phase that only sleeps takes: a pause before the others.
    pub fn pause(&self) -> Option<Time> {
        match self.stretches[..] {
            [Stretch { run: Time::ZERO, sleep, timer: None }] if self.waits_for.is_none() => {
                let pause = sleep.0.checked_mul(self.loops?).map(Time)?;
                (pause > Time::ZERO && pause <= Time::MAX_INPUT).then_some(pause)
            }
            _ => None,
        }
    }
}

/// Two lengths of time, which together must still be one.
fn sum(one: Time, other: Time, node: &Node) -> Result<Time, Problem> {
    match one.0.checked_add(other.0).map(Time) {
        // The half leaves room for what is added after the last timer.
        Some(sum) if sum.0 <= Time::MAX_INPUT.0 / 2 => Ok(sum),
        _ => Err(Problem::at(node.line, "the times of this thread add up to more than 15 years")),
    }
}

/// The job that a thread does again and again.
pub(super) struct Pattern {
    pub period: Time,
    pub wcet: Time,
    /// What the shortest job runs.
    pub least: Time,
    /// The period is that of a run and a sleep, so that it stretches when a job is late.
    pub from_sleep: bool,
    /// Jobs sleep on the way.
    pub sleeps_within: bool,
}

impl Pattern {
    /// The one job of all phases, or why there is none. `stated` is a period from outside the events.
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
