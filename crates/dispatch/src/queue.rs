//! Requests that wait, in the order of a rule. No clock and no lock: the dispatcher and the guard's shadows use it alike.
//!
//! Two orders are kept: who is next, and who expires next. Either costs a logarithm of the number of waiting requests.
//! A request expires at its due time, or, where the rule refuses what would be late, at the last time at which it could
//! begin. Times are nanoseconds.

use std::collections::{BTreeMap, BTreeSet};

use temponet_task::{IndexedRequest, RequestIndex, Score};

use crate::estimator::Length;
use crate::plan::Plan;
use crate::{Policy, Reason};

/// Due time of a request that is never late.
pub(crate) const NEVER: u64 = u64::MAX;

/// A request that waits.
pub(crate) struct Waiting<P> {
    /// Place in the order of arrival; also decides between equals.
    pub seq: u64,
    pub arrival: u64,
    pub due: u64,
    pub value: f64,
    /// Length at the quantile of the rule.
    pub length: Length,
    /// Standard deviation of the logarithm of the length; only a learned index asks for it.
    pub spread: f64,
    /// What a learned index says of the request; see [`Queue::observe`].
    pub score: Score,
    pub content: P,
}

impl<P> Waiting<P> {
    /// The request as a learned index sees it.
    pub fn indexed(&self) -> IndexedRequest {
        let Waiting { arrival, due, value, spread, .. } = *self;
        let median = match self.length {
            Length::Probe(learned) => learned,
            length => length.nanoseconds(),
        };
        IndexedRequest { arrival, due, median, spread, value }
    }
}

/// Where a request waits. Out of date once it has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub seq: u64,
    slot: u32,
}

/// Requests that leave without having begun.
pub(crate) type Leaving<P> = Vec<(Waiting<P>, Reason)>;

pub(crate) struct Queue<P> {
    rule: Policy,
    capacity: usize,
    workers: usize,
    /// Scores requests where the learned rule is followed, or may be.
    index: Option<RequestIndex>,
    slots: Vec<Option<Waiting<P>>>,
    free: Vec<u32>,
    order: Order,
    /// Time from which on a request may not begin any more, its number and its slot.
    expiry: BTreeSet<(u64, u64, u32)>,
    /// Sum of the lengths.
    work: u128,
}

/// Who is next.
enum Order {
    /// The least key.
    Sorted(BTreeSet<(u64, u64, u32)>),
    /// The oldest of the class of lengths in which it has waited the longest for its length.
    ByRatio(BTreeMap<u32, RatioClass>),
    /// The one due first of those that can all be in time.
    Planned(Plan),
}

/// Requests of about one length.
struct RatioClass {
    /// One over the length.
    rate: f64,
    /// Their numbers, arrivals and slots.
    members: BTreeSet<(u64, u64, u32)>,
}

impl<P> Queue<P> {
    /// Creates an empty queue for at most this many requests, and for this many workers.
    pub fn new(rule: Policy, capacity: usize, workers: usize, index: Option<RequestIndex>) -> Queue<P> {
        let order = Order::of(&rule, workers);
        let (slots, free, expiry) = (Vec::new(), Vec::new(), BTreeSet::new());
        Queue { rule, capacity, workers, index, slots, free, order, expiry, work: 0 }
    }

    /// Takes note of a request that comes, whether or not it is pushed then, and scores it.
    pub fn observe(&mut self, new: &mut Waiting<P>) {
        if let Some(index) = &mut self.index {
            index.observe(&new.indexed());
        }
        self.score(new);
    }

    /// Learns from a request that has left after it was served this long.
    pub fn learn(&mut self, request: &IndexedRequest, executed: u64, is_complete: bool) {
        if let Some(index) = &mut self.index {
            index.learn(request, executed, is_complete);
        }
    }

    fn score(&self, waiting: &mut Waiting<P>) {
        if let (Policy::Learned(_), Some(index)) = (&self.rule, &self.index) {
            waiting.score = index.score(&waiting.indexed(), self.len());
        }
    }

    /// Length that is planned for a request, in nanoseconds.
    fn planned(&self, waiting: &Waiting<P>) -> u64 {
        let length = waiting.length.nanoseconds();
        match self.rule {
            Policy::Learned(_) => waiting.score.planned(length),
            _ => length,
        }
    }

    pub fn rule(&self) -> &Policy {
        &self.rule
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Time in which all that wait can be served, or have left because of their due times, in nanoseconds.
    pub fn time_to_serve(&self, now: u64) -> u64 {
        let served = u64::try_from(self.work / self.workers as u128).unwrap_or(u64::MAX);
        match self.expiry.last() {
            Some((last, ..)) if self.expiry.len() == self.len() => served.min(last.saturating_sub(now)),
            _ => served,
        }
    }

    /// Adds a request, while `busy` workers are at work. If there is no room, the one that would be served last leaves,
    /// be it the new one.
    pub fn push(&mut self, new: Waiting<P>, busy: usize, leaving: &mut Leaving<P>) -> Option<Place> {
        if let Policy::RejectWhenBusy { queue } = self.rule
            && busy + self.len() >= self.workers.saturating_add(queue)
        {
            leaving.push((new, Reason::Full));
            return None;
        }
        let now = new.arrival;
        let place = self.insert(new);
        if self.len() > self.capacity
            && let Some(last) = self.order.last(now)
            && let Some(last) = self.take(last)
        {
            let is_new = last.seq == place.seq;
            leaving.push((last, Reason::Full));
            return (!is_new).then_some(place);
        }
        Some(place)
    }

    /// Removes what is late, or would be. `current` says what the length of a request is by now.
    pub fn expire(&mut self, now: u64, mut current: impl FnMut(&Waiting<P>) -> Length, leaving: &mut Leaving<P>) {
        while let Some((expires, _, slot)) = self.expiry.first().copied()
            && expires <= now
        {
            let Some(mut waiting) = self.take(slot) else { continue };
            waiting.length = current(&waiting);
            match self.reason_to_refuse(&waiting, now) {
                Some(reason) => leaving.push((waiting, reason)),
                // Others have turned out to be shorter since it came.
                None => _ = self.insert(waiting),
            }
        }
    }

    /// Removes the request that is next, and all before it that would be late. `busy` is the work that is still being
    /// served.
    pub fn pop(
        &mut self,
        now: u64,
        busy: u64,
        mut current: impl FnMut(&Waiting<P>) -> Length,
        leaving: &mut Leaving<P>,
    ) -> Option<(Place, Waiting<P>)> {
        if let Order::Planned(plan) = &mut self.order {
            plan.revise(now, busy);
        }
        loop {
            let slot = self.order.first(now)?;
            let mut waiting = self.take(slot)?;
            waiting.length = current(&waiting);
            match self.reason_to_refuse(&waiting, now) {
                Some(reason) => leaving.push((waiting, reason)),
                None => return Some((Place { seq: waiting.seq, slot }, waiting)),
            }
        }
    }

    /// Returns the earliest time at which a request expires.
    pub fn next_expiry(&self) -> Option<u64> {
        self.expiry.first().map(|(expires, ..)| *expires)
    }

    /// Removes a request, if it still waits.
    pub fn remove(&mut self, place: Place) -> Option<Waiting<P>> {
        let is_there = self.get(place).is_some();
        is_there.then(|| self.take(place.slot)).flatten()
    }

    /// Returns a request, if it still waits.
    pub fn get(&self, place: Place) -> Option<&Waiting<P>> {
        self.slots.get(place.slot as usize)?.as_ref().filter(|waiting| waiting.seq == place.seq)
    }

    /// Changes a request that waits. Its place stays as it is.
    pub fn change(&mut self, place: Place, change: impl FnOnce(&mut Waiting<P>)) {
        if let Some(mut waiting) = self.remove(place) {
            change(&mut waiting);
            self.score(&mut waiting);
            self.insert(waiting);
        }
    }

    /// Removes all requests.
    pub fn drain(&mut self) -> Vec<Waiting<P>> {
        self.order.clear();
        self.expiry.clear();
        self.free.clear();
        self.work = 0;
        let mut all: Vec<Waiting<P>> = std::mem::take(&mut self.slots).into_iter().flatten().collect();
        all.sort_unstable_by_key(|waiting| waiting.seq);
        all
    }

    /// Goes on by another rule, with lengths for it. Places stay as they are.
    pub fn follow(&mut self, rule: Policy, mut current: impl FnMut(&Waiting<P>) -> Length) {
        self.rule = rule;
        self.order = Order::of(&self.rule, self.workers);
        self.expiry.clear();
        self.work = 0;
        for slot in 0..self.slots.len() {
            if let Some(mut waiting) = self.slots[slot].take() {
                waiting.length = current(&waiting);
                self.score(&mut waiting);
                self.place(slot as u32, waiting);
            }
        }
    }

    /// Returns why a request is not to begin, now or later.
    pub fn reason_to_refuse(&self, waiting: &Waiting<P>, now: u64) -> Option<Reason> {
        if waiting.due <= now {
            return Some(Reason::Late);
        }
        let would_be_late = self.rule.sheds() && now.saturating_add(self.planned(waiting)) > waiting.due;
        would_be_late.then_some(Reason::PredictedLate)
    }

    /// Time from which on a request may not begin any more; none if it always may.
    fn expires(&self, waiting: &Waiting<P>) -> Option<u64> {
        let length = if self.rule.sheds() { self.planned(waiting).max(1) } else { 1 };
        (waiting.due != NEVER).then(|| (waiting.due + 1).saturating_sub(length))
    }

    fn insert(&mut self, waiting: Waiting<P>) -> Place {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        let place = Place { seq: waiting.seq, slot };
        self.place(slot, waiting);
        place
    }

    fn place(&mut self, slot: u32, waiting: Waiting<P>) {
        self.order.insert(&self.rule, &waiting, slot);
        if let Some(expires) = self.expires(&waiting) {
            self.expiry.insert((expires, waiting.seq, slot));
        }
        self.work += u128::from(waiting.length.nanoseconds());
        self.slots[slot as usize] = Some(waiting);
    }

    fn take(&mut self, slot: u32) -> Option<Waiting<P>> {
        let waiting = self.slots[slot as usize].take()?;
        self.order.remove(&self.rule, &waiting, slot);
        if let Some(expires) = self.expires(&waiting) {
            self.expiry.remove(&(expires, waiting.seq, slot));
        }
        self.work -= u128::from(waiting.length.nanoseconds());
        self.free.push(slot);
        Some(waiting)
    }
}

impl Order {
    fn of(rule: &Policy, workers: usize) -> Order {
        match rule {
            Policy::MhEdf { .. } => Order::Planned(Plan::new(workers)),
            Policy::Hrrn => Order::ByRatio(BTreeMap::new()),
            _ => Order::Sorted(BTreeSet::new()),
        }
    }

    fn insert<P>(&mut self, rule: &Policy, waiting: &Waiting<P>, slot: u32) {
        match self {
            Order::Sorted(order) => _ = order.insert((key(rule, waiting), waiting.seq, slot)),
            Order::Planned(plan) => plan.insert(waiting.due, waiting.seq, waiting.length.nanoseconds(), slot),
            Order::ByRatio(classes) => {
                let class = ratio_class(waiting.length);
                let new = || RatioClass { rate: (-f64::from(class) / PER_DOUBLING).exp2(), members: BTreeSet::new() };
                classes.entry(class).or_insert_with(new).members.insert((waiting.seq, waiting.arrival, slot));
            }
        }
    }

    fn remove<P>(&mut self, rule: &Policy, waiting: &Waiting<P>, slot: u32) {
        match self {
            Order::Sorted(order) => _ = order.remove(&(key(rule, waiting), waiting.seq, slot)),
            Order::Planned(plan) => plan.remove(waiting.due, waiting.seq, waiting.length.nanoseconds(), slot),
            Order::ByRatio(classes) => {
                let class = ratio_class(waiting.length);
                if let Some(RatioClass { members, .. }) = classes.get_mut(&class) {
                    members.remove(&(waiting.seq, waiting.arrival, slot));
                    if members.is_empty() {
                        classes.remove(&class);
                    }
                }
            }
        }
    }

    /// Slot of the request that is next.
    fn first(&self, now: u64) -> Option<u32> {
        match self {
            Order::Sorted(order) => order.first().map(|(.., slot)| *slot),
            Order::Planned(plan) => plan.first(),
            Order::ByRatio(classes) => {
                let oldest = classes.values().filter_map(|class| class.ratio(now, class.members.first()));
                oldest.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).map(|(.., slot)| slot)
            }
        }
    }

    /// Slot of the request that would be served last.
    fn last(&self, now: u64) -> Option<u32> {
        match self {
            Order::Sorted(order) => order.last().map(|(.., slot)| *slot),
            Order::Planned(plan) => plan.last(),
            Order::ByRatio(classes) => {
                let newest = classes.values().filter_map(|class| class.ratio(now, class.members.last()));
                newest.min_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).map(|(.., slot)| slot)
            }
        }
    }

    fn clear(&mut self) {
        match self {
            Order::Sorted(order) => order.clear(),
            Order::Planned(plan) => plan.clear(),
            Order::ByRatio(classes) => classes.clear(),
        }
    }
}

/// Key by which requests are sorted; the least is next.
fn key<P>(rule: &Policy, waiting: &Waiting<P>) -> u64 {
    match rule {
        Policy::Lifo => u64::MAX - waiting.seq,
        Policy::Edf | Policy::EdfShed { .. } => waiting.due,
        Policy::Learned(_) => waiting.score.key,
        Policy::SjfShed { .. } => (waiting.length.nanoseconds() as f64 / waiting.value) as u64,
        _ => 0,
    }
}

/// Number of classes of lengths to a doubling, for ratios of waiting time to length.
const PER_DOUBLING: f64 = 4.0;

/// Class of a length, for ratios of waiting time to length.
fn ratio_class(length: Length) -> u32 {
    (PER_DOUBLING * (length.nanoseconds().max(1) as f64).log2()) as u32
}

impl RatioClass {
    /// Ratio of the waiting time of a member to its length, its number and its slot.
    fn ratio(&self, now: u64, member: Option<&(u64, u64, u32)>) -> Option<(f64, u64, u32)> {
        member.map(|(seq, arrival, slot)| (now.saturating_sub(*arrival) as f64 * self.rate, *seq, *slot))
    }
}
