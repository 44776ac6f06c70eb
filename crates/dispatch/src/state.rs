//! What a dispatcher knows, and how it changes. Nothing here waits, locks or calls foreign code: what is to be done
//! afterwards is collected in [`Effects`].
//!
//! ```text
//!             submit                 start                  leave
//!   Request ──────────► waiting ──────────────► running ──────────────► Met, Late, Failed, Cancelled
//!      │                   │
//!      │ submit            │ advance, start, cancel, shut_down, submit of another
//!      └───────────────────┴──────────────────────────────────────────► Shed(reason)
//! ```

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use temponet_task::{IndexedRequest, RequestIndex, Score};

use crate::estimator::{Facts, Length, Lengths, NINTH_DECILE};
use crate::guard::{Guard, Switch};
use crate::handles::{End, Notice};
use crate::policy::MOST_CANDIDATES;
use crate::queue::{Leaving, NEVER, Place, Queue, Waiting};
use crate::waiters::Waiters;
use crate::{BuildError, Estimate, Estimator, Outcome, Policy, Reason, Request, Stats};

pub(crate) struct State<T> {
    workers: usize,
    cancels: bool,
    /// Rules that may be followed, with the places of their quantiles.
    rules: Vec<(Policy, usize)>,
    /// Place of the rule that is followed.
    followed: usize,
    /// Number of quantiles that are planned by; the first is the median.
    quantiles: usize,
    /// Place of the ninth decile, if a learned index asks for it.
    ninth_decile: Option<usize>,
    /// Latest time seen. Threads that read the clock in one order may come here in another.
    now: u64,
    next_seq: u64,
    queue: Queue<Entry<T>>,
    running: HashMap<u64, Run>,
    /// Due times of those that run and have not been told to end.
    dues: BTreeSet<(u64, u64)>,
    lengths: Lengths,
    guard: Option<Guard>,
    stats: Stats,
    pub is_closed: bool,
    /// Those who wait for a request to serve.
    pub idle: Waiters,
    /// Those who wait for the last request to leave.
    pub drained: Waiters,
    /// Number of calls that have yet to tell the listener of requests that left.
    pub listeners: usize,
}

/// What waits with a request.
pub(crate) struct Entry<T> {
    pub payload: T,
    pub facts: Facts,
    pub notice: Arc<Notice>,
}

/// A request that runs.
struct Run {
    due: u64,
    start: u64,
    /// Time at which it should have ended by what was planned.
    planned_end: u64,
    /// Whether it was let through although its learned length says that it is late.
    is_probe: bool,
    facts: Facts,
    /// The request as a learned index sees it.
    indexed: IndexedRequest,
    notice: Arc<Notice>,
}

/// A request that a worker gets.
pub(crate) struct Started<T> {
    pub place: Place,
    pub due: u64,
    pub waited: u64,
    pub class: u32,
    pub notice: Arc<Notice>,
    pub payload: T,
}

/// What is to be done once the lock is free.
pub(crate) struct Effects<T> {
    pub leaving: Leaving<Entry<T>>,
    pub told: Vec<(Arc<Notice>, Outcome)>,
    pub cancelled: Vec<(Arc<Notice>, Reason)>,
    pub wake: Vec<Waker>,
    /// Wakers that are only dropped.
    pub unused: Option<Waker>,
    pub switch: Option<Switch>,
    pub retry_after: Duration,
    /// Next time at which something happens by itself.
    pub alarm: Option<u64>,
    /// Whether the listener is to be told of those that leave.
    pub listener_waits: bool,
}

impl<T> Effects<T> {
    pub fn new() -> Effects<T> {
        Effects {
            leaving: Vec::new(),
            told: Vec::new(),
            cancelled: Vec::new(),
            wake: Vec::new(),
            unused: None,
            switch: None,
            retry_after: Duration::ZERO,
            alarm: None,
            listener_waits: false,
        }
    }
}

impl<T> State<T> {
    pub fn new(
        workers: usize,
        capacity: usize,
        policy: &Policy,
        estimator: Estimator,
        cancels: bool,
    ) -> Result<State<T>, BuildError> {
        let candidates = policy.candidates()?;
        let mut quantiles = vec![0.5];
        let mut rules = Vec::new();
        for rule in &candidates {
            let place = quantiles.iter().position(|share| *share == rule.quantile()).unwrap_or_else(|| {
                quantiles.push(rule.quantile());
                quantiles.len() - 1
            });
            rules.push((rule.clone(), place));
        }
        let is_guarded = matches!(policy, Policy::Guarded(_));
        let index = Policy::weights(&candidates);
        let index = index.map(|weights| RequestIndex::new(weights.clone(), workers, cancels));
        let ninth_decile = index.is_some().then(|| {
            quantiles.push(NINTH_DECILE);
            quantiles.len() - 1
        });
        Ok(State {
            workers,
            cancels,
            followed: 0,
            quantiles: quantiles.len(),
            ninth_decile,
            now: 0,
            next_seq: 0,
            queue: Queue::new(candidates[0].clone(), capacity, workers, index),
            running: HashMap::new(),
            dues: BTreeSet::new(),
            lengths: Lengths::new(estimator, &quantiles),
            guard: is_guarded.then(|| Guard::new(&candidates, workers, capacity, cancels)),
            rules,
            stats: Stats::default(),
            is_closed: false,
            idle: Waiters::default(),
            drained: Waiters::default(),
            listeners: 0,
        })
    }

    pub fn stats(&self) -> Stats {
        let mut stats = self.stats;
        stats.queued = self.queue.len() as u64;
        stats.running = self.running.len() as u64;
        stats
    }

    /// The rule that is followed.
    pub fn rule(&self) -> &Policy {
        self.queue.rule()
    }

    pub fn is_drained(&self) -> bool {
        self.is_closed && self.running.is_empty() && self.queue.len() == 0 && self.listeners == 0
    }

    /// The listener has been told. Returns whom to wake.
    pub fn listener_returns(&mut self) -> Vec<Waker> {
        self.listeners -= 1;
        if self.is_drained() { self.drained.take().collect() } else { Vec::new() }
    }

    /// Lets time pass: what is late leaves, or is told to end. Returns the time that it is.
    pub fn advance(&mut self, now: u64, effects: &mut Effects<T>) -> u64 {
        self.now = self.now.max(now);
        let (at, lengths) = (self.rules[self.followed].1, &mut self.lengths);
        let current = |waiting: &Waiting<Entry<T>>| lengths.length_by_now(&waiting.content.facts, at, waiting.length);
        self.queue.expire(self.now, current, &mut effects.leaving);
        while let Some((due, seq)) = self.dues.first().copied()
            && due <= self.now
        {
            self.dues.pop_first();
            if let Some(run) = self.running.get(&seq) {
                effects.cancelled.push((run.notice.clone(), Reason::Late));
            }
        }
        self.now
    }

    /// Takes a request in. If it is refused it is among those that leave.
    pub fn submit(&mut self, request: Request, due: u64, payload: T, effects: &mut Effects<T>) -> (u64, Option<Place>) {
        let Request { estimate, value, class, features, .. } = request;
        let facts = Facts { class, estimate: estimate.and_then(Estimate::parameters), features };
        let (seq, now) = (self.next_seq, self.now);
        self.next_seq += 1;
        self.stats.submitted += 1;
        let value = if value.is_finite() && value > 0.0 { value.min(1e100) } else { 1.0 };
        let spread = self.ninth_decile.map_or(0.0, |at| self.lengths.spread(&facts, at));
        if let Some(guard) = &mut self.guard {
            // The median, the quantiles of the rules, most of which are the same, and the ninth decile.
            let mut quantiles = [Length::Unknown; MOST_CANDIDATES + 2];
            for (at, length) in quantiles[..self.quantiles].iter_mut().enumerate() {
                *length = self.lengths.length(&facts, at);
            }
            let mut lengths = [Length::Unknown; MOST_CANDIDATES];
            for (length, (_, at)) in lengths.iter_mut().zip(&self.rules) {
                *length = quantiles[*at];
            }
            guard.arrive(now, due, value, lengths, (quantiles[0], spread));
            if seq == 0
                && quantiles[0] == Length::Unknown
                && let Some(place) = guard.follow_blindly(self.cancels)
            {
                self.follow(place);
            }
        }
        let at = self.rules[self.followed].1;
        let length = self.lengths.length(&facts, at);
        let content = Entry { payload, facts, notice: Arc::new(Notice::default()) };
        let mut waiting = Waiting { seq, arrival: now, due, value, length, spread, score: Score::default(), content };
        self.queue.observe(&mut waiting);
        let refused = |queue: &Queue<_>, waiting: &Waiting<_>| queue.reason_to_refuse(waiting, now);
        let mut reason = self.is_closed.then_some(Reason::Shutdown).or_else(|| refused(&self.queue, &waiting));
        if reason == Some(Reason::PredictedLate) && self.lengths.lets_through(&waiting.content.facts, length) {
            waiting.length = Length::Probe(length.nanoseconds());
            reason = refused(&self.queue, &waiting);
        }
        if let Some(reason) = reason {
            effects.leaving.push((waiting, reason));
            return (seq, None);
        }
        (seq, self.queue.push(waiting, self.running.len(), &mut effects.leaving))
    }

    /// Returns what is told to those who hold a request that waits.
    pub fn notice(&self, place: Place) -> Option<Arc<Notice>> {
        self.queue.get(place).map(|waiting| waiting.content.notice.clone())
    }

    /// Hands out the next request, if a worker is free.
    pub fn start(&mut self, effects: &mut Effects<T>) -> Option<Started<T>> {
        if self.running.len() >= self.workers {
            return None;
        }
        let (at, lengths, now) = (self.rules[self.followed].1, &mut self.lengths, self.now);
        let busy = match self.queue.rule() {
            Policy::MhEdf { .. } => {
                let left = self.running.values().map(|run| run.planned_end.saturating_sub(now));
                left.fold(0, u64::saturating_add)
            }
            _ => 0,
        };
        let current = |waiting: &Waiting<Entry<T>>| lengths.length_by_now(&waiting.content.facts, at, waiting.length);
        let (place, waiting) = self.queue.pop(now, busy, current, &mut effects.leaving)?;
        let planned_end = now.saturating_add(waiting.length.nanoseconds());
        let (is_probe, indexed) = (matches!(waiting.length, Length::Probe(_)), waiting.indexed());
        let Waiting { seq, arrival, due, content: Entry { payload, facts, notice }, .. } = waiting;
        if self.cancels && due != NEVER {
            self.dues.insert((due, seq));
        }
        if let Some(guard) = &mut self.guard {
            guard.start(seq, now);
        }
        let started =
            Started { place, due, waited: now - arrival, class: facts.class, notice: notice.clone(), payload };
        self.running.insert(seq, Run { due, start: now, planned_end, is_probe, facts, indexed, notice });
        Some(started)
    }

    /// A request that ran has ended. None if it had before.
    pub fn leave(&mut self, seq: u64, end: End, effects: &mut Effects<T>) -> Option<Outcome> {
        let run = self.running.remove(&seq)?;
        self.dues.remove(&(run.due, seq));
        let executed = self.now - run.start;
        let outcome = match end {
            End::Finished if self.now <= run.due => Outcome::Met,
            End::Finished => Outcome::Late,
            End::GivenUp => Outcome::Cancelled,
            End::Failed => Outcome::Failed,
            End::Unbegun(reason) => Outcome::Shed(reason),
        };
        if matches!(end, End::Finished | End::GivenUp) {
            self.lengths.observe(&run.facts, executed, end == End::Finished);
            self.queue.learn(&run.indexed, executed, end == End::Finished);
        }
        if let Some(guard) = &mut self.guard {
            let executed = if matches!(end, End::Unbegun(_)) { None } else { Some(executed) };
            guard.leave(seq, self.now, executed, end == End::Finished);
        }
        if end != End::Finished {
            // Work that was handed on, to another thread or task, watches the token.
            effects.cancelled.push((run.notice.clone(), Reason::Cancelled));
        }
        self.stats.count(outcome);
        effects.told.push((run.notice, outcome));
        Some(outcome)
    }

    /// Whoever asked has gone.
    pub fn cancel(&mut self, place: Place, effects: &mut Effects<T>) {
        if let Some(waiting) = self.queue.remove(place) {
            effects.leaving.push((waiting, Reason::Cancelled));
        } else if let Some(run) = self.running.get(&place.seq) {
            self.dues.remove(&(run.due, place.seq));
            effects.cancelled.push((run.notice.clone(), Reason::Cancelled));
        }
    }

    /// The length of a request is said anew.
    pub fn update(&mut self, place: Place, estimate: Estimate, effects: &mut Effects<T>) {
        let (at, ninth_decile, lengths) = (self.rules[self.followed].1, self.ninth_decile, &mut self.lengths);
        if let Some(run) = self.running.get_mut(&place.seq) {
            run.facts.estimate = estimate.parameters();
            let length = lengths.length(&run.facts, at);
            run.planned_end = run.start.saturating_add(length.nanoseconds());
            let is_believed = !run.is_probe || matches!(length, Length::Given(_));
            if self.cancels && self.queue.rule().sheds() && is_believed && run.planned_end > run.due {
                self.dues.remove(&(run.due, place.seq));
                effects.cancelled.push((run.notice.clone(), Reason::PredictedLate));
            }
            return;
        }
        self.queue.change(place, |waiting| {
            waiting.content.facts.estimate = estimate.parameters();
            waiting.length = match (waiting.length, lengths.length(&waiting.content.facts, at)) {
                (Length::Probe(_), Length::Learned(learned)) => Length::Probe(learned),
                (_, length) => length,
            };
            waiting.spread = ninth_decile.map_or(0.0, |at| lengths.spread(&waiting.content.facts, at));
        });
        self.advance(self.now, effects);
    }

    /// Refuses everything that waits or comes. What runs may finish.
    pub fn shut_down(&mut self, effects: &mut Effects<T>) {
        self.is_closed = true;
        effects.leaving.extend(self.queue.drain().into_iter().map(|waiting| (waiting, Reason::Shutdown)));
        effects.wake.extend(self.idle.take());
    }

    /// Follows another rule from now on.
    fn follow(&mut self, place: usize) {
        let (rule, at) = &self.rules[place];
        let lengths = &mut self.lengths;
        self.queue.follow(rule.clone(), |waiting| lengths.length(&waiting.content.facts, *at));
        self.followed = place;
    }

    /// Counts those that leave, follows another rule if that is better, and wakes whom all this concerns.
    pub fn settle(&mut self, effects: &mut Effects<T>) {
        for (waiting, reason) in &effects.leaving {
            self.stats.count(Outcome::Shed(*reason));
            if let Some(guard) = &mut self.guard {
                guard.leave(waiting.seq, self.now, None, false);
            }
        }
        if let Some((place, switch)) = self.guard.as_mut().and_then(Guard::review) {
            self.follow(place);
            effects.switch = Some(switch);
        }
        if self.queue.len() > 0 && self.running.len() < self.workers {
            effects.wake.extend(self.idle.pop());
        }
        if self.is_drained() {
            effects.wake.extend(self.drained.take());
        }
        effects.retry_after = Duration::from_nanos(self.queue.time_to_serve(self.now));
        let due = self.dues.first().map(|(due, _)| *due);
        effects.alarm = self.queue.next_expiry().into_iter().chain(due).min();
    }
}
