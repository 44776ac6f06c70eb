//! The guard: which of several rules would have met the most of late.
//!
//! Every rule has a shadow, a simulation of the same arrivals on as many workers. A request enters the shadows once its
//! length is known, in the order of arrival. Where it is not known, because the request was refused, cut off, or takes
//! long, it is drawn from the lengths that others had for what was predicted of them, beyond where this one came. So a
//! rule that refuses long requests does not make them look short. Which shadow leads is told in `contest.rs`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;

use temponet_task::{IndexedRequest, RequestIndex, RequestLengths, Score};

use crate::Policy;
use crate::contest::{BLOCK, Contest, Lead};
use crate::estimator::Length;
use crate::policy::MOST_CANDIDATES;
use crate::queue::{Leaving, Queue, Waiting};
use crate::sketch::{Sketch, UNIT};

/// Number of requests over which the time between two arrivals is averaged.
const MEMORY: f64 = 200.0;
/// Number of requests whose work bounds what a drawn length may be.
const LONGEST: f64 = 1000.0;
/// The most requests whose lengths are waited for.
const MOST_PENDING: usize = 200;
/// Another rule is followed. As text it is a line for a log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Switch {
    /// Rule that was followed.
    pub from: Policy,
    /// Rule that is followed from now on.
    pub to: Policy,
    /// Share of the value of recent requests that the former would have met, 0 to 1.
    pub met_from: f64,
    /// Share that the latter would have met.
    pub met_to: f64,
    /// Number of requests so far.
    pub requests: u64,
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Switch { from, to, met_from, met_to, requests } = self;
        let (met_from, met_to) = (100.0 * met_from, 100.0 * met_to);
        write!(f, "after {requests} requests {to} is followed, which would meet {met_to:.1}%; {from} {met_from:.1}%")
    }
}

pub(crate) struct Guard {
    shadows: Vec<Shadow>,
    followed: usize,
    /// Requests that are not in the shadows yet, in the order of arrival.
    pending: VecDeque<Pending>,
    /// Number of the first of them.
    first: u64,
    /// What due times and medians tell of lengths, and ratios of lengths to what is predicted by that.
    lengths: RequestLengths,
    ratios: Sketch,
    contest: Contest,
    workers: usize,
    /// Time of the last arrival, and mean time between two of late.
    last_arrival: u64,
    gap: f64,
    /// The longest that a request has been served.
    longest: u64,
    entered: u64,
    /// Number of entered requests at which rules are compared again.
    next_review: u64,
}

/// A request that is not in the shadows yet.
struct Pending {
    arrival: u64,
    due: u64,
    value: f64,
    /// Lengths at the quantiles of the rules.
    lengths: [Length; MOST_CANDIDATES],
    /// Median of its length, and standard deviation of its logarithm.
    median: Length,
    spread: f64,
    /// Logarithm by which its length is expected to be beyond the median.
    correction: f64,
    start: Option<u64>,
    length: Option<u64>,
}

impl Pending {
    fn indexed(&self) -> IndexedRequest {
        let Pending { arrival, due, value, spread, .. } = *self;
        IndexedRequest { arrival, due, median: self.median.nanoseconds(), spread, value }
    }

    /// Median of its length by what has left, in nanoseconds; zero if nothing is known.
    fn expected(&self) -> f64 {
        self.median.nanoseconds() as f64 * self.correction.exp()
    }
}

struct Shadow {
    queue: Queue<u64>,
    workers: usize,
    cancels: bool,
    /// Times at which workers become free, and at which they should by what was planned.
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    /// Numbers of requests that have been decided on, and how much of their value is met, until the contest is told.
    decided: Vec<(u64, f64)>,
}

impl Guard {
    pub fn new(rules: &[Policy], workers: usize, capacity: usize, cancels: bool) -> Guard {
        let index = |rule: &Policy| match rule {
            Policy::Learned(weights) => Some(RequestIndex::new(weights.clone(), workers, cancels)),
            _ => None,
        };
        let shadow = |rule: &Policy| Shadow {
            queue: Queue::new(rule.clone(), capacity, workers, index(rule)),
            workers,
            cancels,
            ends: BinaryHeap::new(),
            decided: Vec::new(),
        };
        Guard {
            shadows: rules.iter().map(shadow).collect(),
            followed: 0,
            pending: VecDeque::new(),
            first: 0,
            lengths: RequestLengths::default(),
            ratios: Sketch::new(),
            contest: Contest::new(rules.len()),
            workers,
            last_arrival: 0,
            gap: 0.0,
            longest: 0,
            entered: 0,
            next_review: BLOCK,
        }
    }

    /// Returns the place of the rule to follow before anything is known of lengths, if it is another one. A learned index
    /// has met such traffic. Other rules that plan would go by due times alone, which is the worst to do in overload. The
    /// newest first wastes the least; where what is late ends, so does the order of arrival, and it keeps nobody waiting
    /// for nothing.
    pub fn follow_blindly(&mut self, cancels: bool) -> Option<usize> {
        if matches!(self.shadows.get(self.followed)?.queue.rule(), Policy::Learned(_)) {
            return None;
        }
        let wanted = if cancels { Policy::Fcfs } else { Policy::Lifo };
        let place = self.shadows.iter().position(|shadow| *shadow.queue.rule() == wanted)?;
        (std::mem::replace(&mut self.followed, place) != place).then_some(place)
    }

    /// A request arrives; its number is one more than that of the one before.
    pub fn arrive(
        &mut self,
        now: u64,
        due: u64,
        value: f64,
        lengths: [Length; MOST_CANDIDATES],
        median: (Length, f64),
    ) {
        let seen = (self.first + self.pending.len() as u64) as f64;
        if seen > 0.0 {
            self.gap += (now.saturating_sub(self.last_arrival) as f64 - self.gap) / seen.min(MEMORY);
        }
        self.last_arrival = now;
        let (median, spread) = median;
        let (start, length) = (None, None);
        let mut pending = Pending { arrival: now, due, value, lengths, median, spread, correction: 0.0, start, length };
        pending.correction = self.lengths.correction(&pending.indexed()).0;
        self.pending.push_back(pending);
        if self.pending.len() > MOST_PENDING {
            self.enter(now);
        }
        self.enter_if_known(now);
    }

    pub fn start(&mut self, seq: u64, now: u64) {
        if let Some(pending) = self.pending_at(seq) {
            pending.start = Some(now);
        }
    }

    /// A request leaves after this much work, `None` if it was never begun.
    pub fn leave(&mut self, seq: u64, now: u64, executed: Option<u64>, is_complete: bool) {
        self.longest = self.longest.max(executed.unwrap_or(0));
        let Some(pending) = self.pending_at(seq) else { return };
        let (median, indexed) = (pending.expected(), pending.indexed());
        if let Some(executed) = executed {
            self.lengths.learn(&indexed, executed, is_complete);
            if median > 0.0 {
                self.ratios.add((UNIT * executed as f64 / median) as u64, is_complete);
            }
        }
        let length = match (executed, is_complete) {
            (Some(executed), true) => executed,
            (executed, _) => self.drawn(seq, median, executed.unwrap_or(0)),
        };
        if let Some(pending) = self.pending_at(seq) {
            pending.length = Some(length);
        }
        self.enter_if_known(now);
    }

    /// Returns the place of another rule if that is better by now.
    pub fn review(&mut self) -> Option<(usize, Switch)> {
        if self.entered < self.next_review {
            return None;
        }
        self.next_review = self.entered + BLOCK;
        let Lead { place, met: [met_from, met_to] } = self.contest.leader(self.followed)?;
        let rule = |place: usize| self.shadows[place].queue.rule().clone();
        let switch = Switch {
            from: rule(self.followed),
            to: rule(place),
            met_from,
            met_to,
            requests: self.first + self.pending.len() as u64,
        };
        self.followed = place;
        Some((place, switch))
    }

    fn pending_at(&mut self, seq: u64) -> Option<&mut Pending> {
        self.pending.get_mut(usize::try_from(seq.checked_sub(self.first)?).ok()?)
    }

    /// A length for a request of which only its median and the least are known; always the same for the same request. At
    /// most the longest that any has been served, or what all workers do while the guard's memory passes: an estimate
    /// of a year that nothing bears out would else hold the workers of all shadows for that year.
    fn drawn(&self, seq: u64, median: f64, least: u64) -> u64 {
        // The multiplier of Knuth's hash spreads consecutive numbers evenly.
        let share = (seq.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
        if median <= 0.0 {
            return least;
        }
        let beyond = UNIT * least as f64 / median;
        let drawn = match self.ratios.quantile_beyond(beyond as u64, share) {
            Some(ratio) => (ratio as f64 / UNIT * median) as u64,
            None => median as u64,
        };
        drawn.min(self.longest.max((LONGEST * self.workers as f64 * self.gap) as u64)).max(least)
    }

    /// Moves the first pending request into the shadows if its length is known. One at a time, since no call should take
    /// long; more calls come than requests.
    fn enter_if_known(&mut self, now: u64) {
        if self.pending.front().is_some_and(|first| first.length.is_some()) {
            self.enter(now);
        }
    }

    /// Moves the first pending request into the shadows.
    fn enter(&mut self, now: u64) {
        let Some(pending) = self.pending.pop_front() else { return };
        let seq = self.first;
        self.first += 1;
        self.entered += 1;
        let length = pending.length.unwrap_or_else(|| {
            let executed = pending.start.map_or(0, |start| now.saturating_sub(start));
            self.drawn(seq, pending.expected(), executed)
        });
        self.contest.offer(seq, pending.value);
        for (place, (shadow, planned)) in self.shadows.iter_mut().zip(pending.lengths).enumerate() {
            let Pending { arrival, due, value, spread, .. } = pending;
            let score = Score::default();
            shadow.arrive(Waiting { seq, arrival, due, value, length: planned, spread, score, content: length });
            shadow.decided.drain(..).for_each(|(seq, met)| self.contest.decide(seq, place, met));
        }
    }
}

impl Shadow {
    fn judge(&mut self, request: &Waiting<u64>, is_met: bool) {
        self.decided.push((request.seq, if is_met { request.value } else { 0.0 }));
    }

    fn arrive(&mut self, mut request: Waiting<u64>) {
        let now = request.arrival;
        while let Some(Reverse((end, _))) = self.ends.peek().copied()
            && end <= now
        {
            self.ends.pop();
            self.begin(end);
        }
        let mut leaving = Vec::new();
        self.queue.expire(now, |waiting| waiting.length, &mut leaving);
        self.queue.observe(&mut request);
        self.queue.push(request, self.ends.len(), &mut leaving);
        self.lose(leaving);
        self.begin(now);
    }

    fn begin(&mut self, now: u64) {
        let mut leaving = Vec::new();
        while self.ends.len() < self.workers {
            let busy = match self.queue.rule() {
                Policy::MhEdf { .. } => {
                    let left = self.ends.iter().map(|Reverse((_, planned))| planned.saturating_sub(now));
                    left.fold(0, u64::saturating_add)
                }
                _ => 0,
            };
            let Some((_, next)) = self.queue.pop(now, busy, |waiting| waiting.length, &mut leaving) else { break };
            let end = now.saturating_add(next.content);
            self.judge(&next, end <= next.due);
            let is_complete = end <= next.due || !self.cancels;
            let served = if is_complete { next.content } else { next.due.saturating_sub(now) };
            self.queue.learn(&next.indexed(), served, is_complete);
            let planned = now.saturating_add(next.length.nanoseconds());
            self.ends.push(Reverse((if self.cancels { end.min(next.due) } else { end }, planned)));
        }
        self.lose(leaving);
    }

    fn lose(&mut self, leaving: Leaving<u64>) {
        leaving.iter().for_each(|(lost, _)| self.judge(lost, false));
    }
}
