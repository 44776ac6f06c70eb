//! Contract of the guard: it follows the rule that meets the most, soon after the load has changed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use temponet_dispatch::{
    Clock, Dispatcher, Estimate, Estimator, Outcome, Policy, Request, Running, SimulatedClock, Switch,
};

/// Uniform numbers from 0 to 1.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A request: its arrival, its length and its relative due time, in microseconds.
type Arrival = (u64, u64, u64);

/// Twice the capacity of four workers. One length in four is twenty times as long.
fn overload(draws: &mut Draws, count: usize, start: u64) -> Vec<Arrival> {
    let mut now = start as f64;
    let mut arrival = |_| {
        // Mean length 5.75 ms on four workers.
        now += -draws.next().ln() * 5_750.0 / 4.0 / 2.0;
        let length = (0.5 + draws.next()) * if draws.next() < 0.25 { 20_000.0 } else { 1_000.0 };
        (now as u64, length as u64, 30_000)
    };
    (0..count).map(&mut arrival).collect()
}

/// Serves all requests on four workers. Returns which were met, and where the guard switched.
fn served(arrivals: &[Arrival], policy: Policy, knows_lengths: bool) -> (Vec<bool>, Vec<Switch>) {
    let us = Duration::from_micros;
    let clock = SimulatedClock::new();
    let switches: Arc<Mutex<Vec<Switch>>> = Arc::default();
    let told = switches.clone();
    let dispatcher = Dispatcher::builder()
        .workers(4)
        .policy(policy)
        .estimator(if knows_lengths { Estimator::Given } else { Estimator::Class })
        .clock(clock.clone())
        .on_switch(move |switch| told.lock().unwrap().push(switch.clone()))
        .build()
        .unwrap();
    let start = clock.now();
    let mut tickets = Vec::new();
    let mut running: Vec<Option<(Running, bool)>> = Vec::new();
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut coming = arrivals.iter().copied().peekable();
    loop {
        let end = ends.peek().map(|Reverse((end, _))| *end);
        let Some(now) = coming.peek().map(|next| next.0).into_iter().chain(end).min() else { break };
        clock.advance((start + us(now)).saturating_duration_since(clock.now()));
        if end == Some(now) {
            let Reverse((_, place)) = ends.pop().unwrap();
            match running[place].take().unwrap() {
                (running, true) => _ = running.finish(),
                (running, false) => running.give_up(),
            }
        } else {
            let (_, length, due) = coming.next().unwrap();
            let request = Request::new().due(clock.now() + us(due)).estimate(Estimate::from(us(length)));
            tickets.push(dispatcher.submit(request, (length, now + due)).ok());
        }
        while let Some(((length, due), serves)) = dispatcher.try_next() {
            ends.push(Reverse(((now + length).min(due), running.len())));
            running.push(Some((serves, now + length <= due)));
        }
    }
    let met = tickets.into_iter().map(|ticket| ticket.is_some_and(|ticket| ticket.outcome() == Some(Outcome::Met)));
    let met = met.collect();
    (met, std::mem::take(&mut switches.lock().unwrap()))
}

fn count(met: &[bool]) -> usize {
    met.iter().filter(|met| **met).count()
}

#[test]
fn the_guard_is_near_the_best_of_its_rules_with_and_without_lengths() {
    let arrivals = overload(&mut Draws(5), 6_000, 0);
    for knows_lengths in [true, false] {
        let Policy::Guarded(rules) = Policy::guarded() else { unreachable!() };
        let each: Vec<usize> =
            rules.iter().map(|rule| count(&served(&arrivals, rule.clone(), knows_lengths).0)).collect();
        let (met, switches) = served(&arrivals, Policy::guarded(), knows_lengths);
        let (met, best, worst) = (count(&met), *each.iter().max().unwrap(), *each.iter().min().unwrap());
        let lines: Vec<String> = switches.iter().map(Switch::to_string).collect();
        eprintln!("lengths {knows_lengths}: {each:?}, guarded {met}\n{}", lines.join("\n"));
        assert!(best > worst + 300, "{each:?}: the rules differ");
        assert!(met + 150 > best, "{met} against {each:?}\n{}", lines.join("\n"));
    }
}

/// It begins with the worst rule, and meets as much as the best from the five hundredth request on.
#[test]
fn the_guard_leaves_a_bad_rule_within_500_requests() {
    let arrivals = overload(&mut Draws(9), 3_000, 0);
    let rules = Policy::Guarded(vec![Policy::Fcfs, Policy::SjfShed { q: 0.5 }]);
    let (met, switches) = served(&arrivals, rules, true);
    let (best, _) = served(&arrivals, Policy::SjfShed { q: 0.5 }, true);
    assert_eq!(switches.len(), 1, "{switches:?}");
    assert!(switches[0].requests <= 500, "{}", switches[0]);
    assert_eq!((&switches[0].from, &switches[0].to), (&Policy::Fcfs, &Policy::SjfShed { q: 0.5 }));
    assert!(count(&met[500..]) + 15 > count(&best[500..]), "{} {}", count(&met[500..]), count(&best[500..]));
}

/// Estimates of a century, never due, withdrawn at once. They would hold all workers of the shadows for a century.
#[test]
fn lengths_that_nothing_bears_out_do_not_stop_the_guard() {
    let us = Duration::from_micros;
    let clock = SimulatedClock::new();
    let switches: Arc<Mutex<Vec<Switch>>> = Arc::default();
    let told = switches.clone();
    let settings = Dispatcher::builder()
        .policy(Policy::Guarded(vec![Policy::Fcfs, Policy::SjfShed { q: 0.5 }]))
        .clock(clock.clone())
        .on_switch(move |switch| told.lock().unwrap().push(switch.clone()));
    let dispatcher = settings.build().unwrap();
    for _ in 0..20 {
        let ticket = dispatcher.submit(Request::new().estimate(Estimate::seconds(3e9)), ()).unwrap();
        ticket.cancel();
        clock.advance(us(500));
    }
    // Twice what one worker can do, of which first come, first served meets next to nothing.
    for number in 0..2_000 {
        let length = us(if number % 2 == 0 { 1_500 } else { 500 });
        let request = Request::new().due(clock.now() + us(3_000)).estimate(Estimate::from(length));
        _ = dispatcher.submit(request, ());
        if let Some((_, running)) = dispatcher.try_next() {
            clock.advance(us(500));
            running.finish();
        }
    }
    assert!(!switches.lock().unwrap().is_empty());
}
