//! Contract of the rules: whatever is submitted, served, cancelled and said anew, requests begin and leave as in a
//! queue that looks at every waiting request and follows the definitions.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use temponet_dispatch::{Clock, Dispatcher, Estimate, Policy, Reason, Request, Running, SimulatedClock, Ticket};
use temponet_task::{IndexedRequest, RequestIndex, Score};

/// What happened to a request with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begun(u64),
    Shed(u64, Reason),
}

/// What a program does. Times are in milliseconds.
#[derive(Clone, Debug)]
enum Action {
    Submit { due: Option<u64>, length: u64, value: u8 },
    Serve,
    Finish(usize),
    Cancel(usize),
    Update(usize, u64),
    Wait(u64),
}

#[derive(Clone, Debug)]
struct Naive {
    rule: Policy,
    /// Only for `Learned`.
    index: Option<RequestIndex>,
    workers: usize,
    capacity: usize,
    now: u64,
    submitted: u64,
    waiting: Vec<Item>,
    running: Vec<Serves>,
    events: Vec<Event>,
}

#[derive(Clone, Copy, Debug)]
struct Serves {
    planned_end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    number: u64,
    arrival: u64,
    due: Option<u64>,
    length: u64,
    value: f64,
    /// Whether it is in the set that can all be in time; only for `MhEdf`.
    is_accepted: bool,
    /// Only for `Learned`.
    score: Score,
}

/// Ninth decile of each estimate relative to its median, under `Learned`.
const HIGH: f64 = 1.5;

impl Item {
    /// Median in nanoseconds, and standard deviation of the logarithm.
    fn median(&self) -> (u64, f64) {
        let spread = if self.length == 0 { 0.0 } else { HIGH.ln() / 1.281_551_565_544_600_4 };
        ((self.length as f64 / 1e3 * 1e9) as u64, spread)
    }

    fn indexed(&self) -> IndexedRequest {
        let due = self.due.map_or(u64::MAX, |due| due * 1_000_000);
        let (median, spread) = self.median();
        IndexedRequest { arrival: self.arrival * 1_000_000, due, median, spread, value: self.value }
    }
}

impl Naive {
    fn reason(&self, item: &Item) -> Option<Reason> {
        let due = item.due?;
        let sheds = matches!(self.rule, Policy::EdfShed { .. } | Policy::SjfShed { .. } | Policy::MhEdf { .. });
        let planned_end = self.now * 1_000_000 + item.score.planned(item.median().0);
        let is_learned = matches!(self.rule, Policy::Learned(_));
        match () {
            () if due <= self.now => Some(Reason::Late),
            () if is_learned && planned_end > due * 1_000_000 => Some(Reason::PredictedLate),
            () if sheds && self.now + item.length > due => Some(Reason::PredictedLate),
            () => None,
        }
    }

    /// The less, the earlier it is served.
    fn key(&self, item: &Item) -> (f64, u64) {
        let key = match self.rule {
            Policy::Lifo => -(item.number as f64),
            Policy::Edf | Policy::EdfShed { .. } => item.due.map_or(f64::INFINITY, |due| due as f64),
            Policy::SjfShed { .. } => item.length as f64 / item.value,
            // Those left out come after all others.
            Policy::MhEdf { .. } if item.is_accepted => item.due.map_or(1e9, |due| due as f64),
            Policy::MhEdf { .. } => 1e10 + item.length as f64,
            Policy::Hrrn => {
                // Four classes of lengths to a doubling of nanoseconds.
                let class = (4.0 * (item.length as f64 * 1e6).max(1.0).log2()).floor();
                -((self.now - item.arrival) as f64 * 1e6 * (-class / 4.0).exp2())
            }
            // Keys are dates from -2^63 on; a float tells neighbours apart that are farther than a microsecond.
            Policy::Learned(_) => item.score.key as f64 - (1u64 << 63) as f64,
            _ => 0.0,
        };
        (key, item.number)
    }

    fn by_key(&self, a: &usize, b: &usize) -> std::cmp::Ordering {
        self.key(&self.waiting[*a]).partial_cmp(&self.key(&self.waiting[*b])).unwrap()
    }

    /// Accepted requests by due time, up to the first that would be late behind those before it; none if all are in time.
    fn up_to_first_late(&self) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.waiting.len()).filter(|place| self.waiting[*place].is_accepted).collect();
        order.sort_by_key(|place| (self.waiting[*place].due.unwrap_or(u64::MAX), self.waiting[*place].number));
        let mut before: u64 = self.running.iter().map(|serves| serves.planned_end.saturating_sub(self.now)).sum();
        for (count, place) in order.iter().enumerate() {
            let Item { due, length, .. } = self.waiting[*place];
            let room = due.map_or(i64::MAX, |due| self.workers as i64 * (due as i64 - length as i64 - self.now as i64));
            if (before as i64) > room {
                return Some(order[..=count].to_vec());
            }
            before += length;
        }
        None
    }

    /// Moore and Hodgson's rule, as stated; then the shortest of those left out is tried again.
    fn revise(&mut self) {
        while let Some(places) = self.up_to_first_late() {
            let longest = places.iter().max_by_key(|place| self.waiting[**place].length).unwrap();
            self.waiting[*longest].is_accepted = false;
        }
        let left_out = (0..self.waiting.len()).filter(|place| !self.waiting[*place].is_accepted);
        if let Some(shortest) = left_out.min_by_key(|place| (self.waiting[*place].length, self.waiting[*place].number))
        {
            self.waiting[shortest].is_accepted = true;
            self.waiting[shortest].is_accepted = self.up_to_first_late().is_none();
        }
    }

    fn expire(&mut self) {
        let (kept, gone): (Vec<Item>, Vec<Item>) = self.waiting.iter().partition(|item| self.reason(item).is_none());
        let gone: Vec<Event> = gone.iter().map(|item| Event::Shed(item.number, self.reason(item).unwrap())).collect();
        self.events.extend(gone);
        self.waiting = kept;
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Wait(time) => self.now += time,
            Action::Submit { due, length, value } => {
                let number = self.submitted;
                self.submitted += 1;
                let due = due.map(|due| self.now + due);
                let (arrival, value, score) = (self.now, f64::from(value), Score::default());
                let mut item = Item { number, arrival, due, length, value, is_accepted: true, score };
                if let Some(index) = &mut self.index {
                    index.observe(&item.indexed());
                    item.score = index.score(&item.indexed(), self.waiting.len());
                }
                let room = match self.rule {
                    Policy::RejectWhenBusy { queue } => self.workers + queue,
                    _ => usize::MAX,
                };
                if let Some(reason) = self.reason(&item) {
                    self.events.push(Event::Shed(number, reason));
                } else if self.running.len() + self.waiting.len() >= room {
                    self.events.push(Event::Shed(number, Reason::Full));
                } else {
                    self.waiting.push(item);
                    if self.waiting.len() > self.capacity {
                        let last = (0..self.waiting.len()).max_by(|a, b| self.by_key(a, b)).unwrap();
                        self.events.push(Event::Shed(self.waiting.remove(last).number, Reason::Full));
                    }
                }
            }
            Action::Serve if self.running.len() < self.workers && !self.waiting.is_empty() => {
                self.revise();
                let first = (0..self.waiting.len()).min_by(|a, b| self.by_key(a, b)).unwrap();
                let Item { number, length, .. } = self.waiting.remove(first);
                self.running.push(Serves { planned_end: self.now + length });
                self.events.push(Event::Begun(number));
            }
            Action::Finish(which) if !self.running.is_empty() => _ = self.running.remove(which % self.running.len()),
            Action::Cancel(which) if !self.waiting.is_empty() => {
                let number = self.waiting.remove(which % self.waiting.len()).number;
                self.events.push(Event::Shed(number, Reason::Cancelled));
            }
            Action::Update(which, length) if !self.waiting.is_empty() => {
                let place = which % self.waiting.len();
                self.waiting[place].length = length;
                self.waiting[place].is_accepted = true;
                if let Some(index) = &self.index {
                    self.waiting[place].score = index.score(&self.waiting[place].indexed(), self.waiting.len() - 1);
                }
            }
            _ => {}
        }
        self.expire();
    }
}

struct Real {
    /// Ninth decile of each estimate relative to its median.
    high: f64,
    dispatcher: Dispatcher<u64>,
    clock: SimulatedClock,
    start: Instant,
    tickets: Vec<Option<Ticket>>,
    running: Vec<Running>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Real {
    fn new(rule: Policy, workers: usize, capacity: usize) -> Real {
        let clock = SimulatedClock::new();
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let told = events.clone();
        let high = if matches!(rule, Policy::Learned(_)) { HIGH } else { 1.0 };
        let dispatcher = Dispatcher::builder()
            .workers(workers)
            .capacity(capacity)
            .policy(rule)
            .clock(clock.clone())
            .on_shed(move |shed| told.lock().unwrap().push(Event::Shed(shed.payload, shed.reason)))
            .build()
            .unwrap();
        Real { high, dispatcher, start: clock.now(), clock, tickets: Vec::new(), running: Vec::new(), events }
    }

    /// `naive` tells which requests wait.
    fn act(&mut self, action: &Action, naive: &Naive) {
        let ms = Duration::from_millis;
        let waiting = |which: usize| naive.waiting.get(which % naive.waiting.len().max(1)).map(|item| item.number);
        match *action {
            Action::Wait(time) => {
                self.clock.advance(ms(time));
                self.dispatcher.tick();
            }
            Action::Submit { due, length, value } => {
                // A length of zero is no estimate at all.
                let estimate = self.estimate(length);
                let mut request = Request::new().estimate(estimate).value(f64::from(value));
                request.due = due.map(|due| self.clock.now() + ms(due));
                let number = self.tickets.len() as u64;
                let ticket = self.dispatcher.submit(request, number);
                if let Err(shed) = &ticket {
                    self.events.lock().unwrap().push(Event::Shed(shed.payload, shed.reason));
                }
                self.tickets.push(ticket.ok());
            }
            Action::Serve => {
                if let Some((number, running)) = self.dispatcher.try_next() {
                    assert_eq!(number, running.number());
                    self.events.lock().unwrap().push(Event::Begun(number));
                    self.running.push(running);
                }
            }
            Action::Finish(which) => {
                if !self.running.is_empty() {
                    // Nothing is learned from a failure, so that lengths stay what they are.
                    self.running.remove(which % self.running.len()).fail();
                }
            }
            Action::Cancel(which) => {
                if let Some(number) = waiting(which) {
                    self.tickets[number as usize].as_ref().unwrap().cancel();
                }
            }
            Action::Update(which, length) => {
                if let Some(number) = waiting(which) {
                    let ticket = self.tickets[number as usize].as_ref().unwrap();
                    ticket.update_estimate(self.estimate(length));
                }
            }
        }
    }

    fn estimate(&self, length: u64) -> Estimate {
        let median = length as f64 / 1e3;
        Estimate::seconds(median).ninth_decile(self.high * median)
    }

    fn take_events(&self) -> Vec<Event> {
        let mut events = std::mem::take(&mut *self.events.lock().unwrap());
        events.sort();
        events
    }
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        6 => (prop::option::weighted(0.9, 0u64..60), 0u64..40, 1u8..4)
            .prop_map(|(due, length, value)| Action::Submit { due, length, value }),
        4 => Just(Action::Serve),
        3 => any::<usize>().prop_map(Action::Finish),
        1 => any::<usize>().prop_map(Action::Cancel),
        1 => (any::<usize>(), 0u64..40).prop_map(|(which, length)| Action::Update(which, length)),
        3 => (1u64..12).prop_map(Action::Wait),
    ];
    prop::collection::vec(action, 1..200)
}

fn rules() -> impl Strategy<Value = Policy> {
    prop::sample::select(vec![
        Policy::Fcfs,
        Policy::Lifo,
        Policy::Edf,
        Policy::EdfShed { q: 0.5 },
        Policy::SjfShed { q: 0.7 },
        Policy::MhEdf { q: 0.5 },
        Policy::MhEdf { q: 0.9 },
        Policy::Hrrn,
        Policy::RejectWhenBusy { queue: 0 },
        Policy::RejectWhenBusy { queue: 3 },
        Policy::learned(),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rules_are_their_definitions(rule in rules(), workers in 1usize..4, capacity in 1usize..12, actions in actions()) {
        let mut real = Real::new(rule.clone(), workers, capacity);
        let index = match &rule {
            Policy::Learned(weights) => Some(RequestIndex::new(weights.clone(), workers, true)),
            _ => None,
        };
        let mut naive = Naive {
            rule, index, workers, capacity, now: 0, submitted: 0, waiting: vec![], running: vec![], events: vec![],
        };
        for action in &actions {
            real.act(action, &naive);
            naive.act(action);
            let mut expected = std::mem::take(&mut naive.events);
            expected.sort();
            prop_assert_eq!(real.take_events(), expected, "{:?} at {:?}", action, real.clock.now() - real.start);
        }
        let stats = real.dispatcher.stats();
        prop_assert_eq!(stats.queued, naive.waiting.len() as u64);
        let left = stats.met + stats.late + stats.failed + stats.cancelled + stats.all_shed();
        prop_assert_eq!(stats.submitted, left + stats.queued + stats.running);
    }
}
