//! Contract of the learned index: the dispatcher and the scheduler of the lab begin the same requests at the same times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use temponet_dispatch::{Clock, Dispatcher, Estimate, Policy, Request, Running, SimulatedClock};
use temponet_sched::build;
use temponet_sim::{Recorder, simulate};
use temponet_task::{Arrival, ExecutionModel, ListedJob, Preemption, Task, TaskSet, Time};

/// A request, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Asked {
    release: u64,
    due: u64,
    length: u64,
    median: u64,
    high: u64,
    value: f64,
}

/// A sixty-fourth of a second, which is a whole number of nanoseconds and an exact number of seconds.
const PART: u64 = 15_625_000;

/// Requests at about 1.5 times the capacity.
fn drawn(seed: u64, workers: u64) -> Vec<Asked> {
    let mut state = seed;
    let mut below = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut now = 0;
    let mut asked = |_| {
        now += 1 + below(2 * 14 * PART * 2 / 3 / workers);
        let parts = 1 + below(16) + if below(5) == 0 { 30 } else { 0 };
        let median = 1 + parts * (50 + below(100)) / 100;
        let high = median * (10 + below(20)) / 10;
        let due = now + (10 + below(150)) * PART;
        // No request ends when another one comes.
        let length = parts * PART + below(1_000);
        Asked { release: now, due, length, median: median * PART, high: high * PART, value: (1 + below(4)) as f64 }
    };
    (0..400).map(&mut asked).collect()
}

/// Starts of the requests under the scheduler of the lab.
fn in_the_lab(requests: &[Asked], workers: usize, cancels: bool) -> Vec<Option<u64>> {
    let longest = Time(1_000_000 * PART);
    let job = |asked: &Asked| {
        ListedJob::new(Time(asked.release), Time(asked.due), Time(asked.length))
            .with_wcet(longest)
            .with_bcet(Time(1))
            .with_value(asked.value)
            .with_estimate(temponet_task::Estimate::new(Time(asked.median), Time(asked.high)))
    };
    let jobs: Vec<ListedJob> = requests.iter().map(job).collect();
    let task = Task::periodic("request", Time(1_000_000_000), longest)
        .with_bcet(Time(1))
        .with_arrival(Arrival::Listed(jobs.into()))
        .with_execution(ExecutionModel::Wcet)
        .with_preemption(if cancels { Preemption::Cancel } else { Preemption::None });
    let set = TaskSet::new("requests", vec![task], workers);
    let mut recorder = Recorder::until(Time::NEVER);
    let horizon = Time(requests.iter().map(|asked| asked.due).max().unwrap() + longest.0);
    simulate(&set, 0, horizon, &mut *build("request-index").unwrap(), &mut recorder).unwrap();
    recorder.jobs.sort_by_key(|job| job.number);
    recorder.jobs.iter().map(|job| job.start.map(|start| start.0)).collect()
}

/// Starts of the requests under the dispatcher.
fn dispatched(requests: &[Asked], workers: usize, cancels: bool) -> Vec<Option<u64>> {
    let clock = SimulatedClock::new();
    let settings = Dispatcher::builder().workers(workers).policy(Policy::learned()).cancel_when_due(cancels);
    let dispatcher = settings.clock(clock.clone()).build().unwrap();
    let begin = clock.now();
    let mut starts = vec![None; requests.len()];
    let mut running: Vec<Option<Running>> = requests.iter().map(|_| None).collect();
    let mut ends = BinaryHeap::new();
    let mut coming = requests.iter().enumerate().peekable();
    loop {
        let next = coming.peek().map(|(_, asked)| asked.release);
        let Some(now) = next.into_iter().chain(ends.peek().map(|Reverse((end, _))| *end)).min() else { return starts };
        clock.advance((begin + Duration::from_nanos(now)).saturating_duration_since(clock.now()));
        match ends.pop() {
            Some(Reverse((end, place))) if end == now => {
                let place = place as usize;
                let (begun, is_done) = (running[place].take().unwrap(), !cancels || end <= requests[place].due);
                if is_done && end == starts[place].unwrap() + requests[place].length {
                    _ = begun.finish();
                } else {
                    begun.give_up();
                }
            }
            other => {
                ends.extend(other);
                let (place, asked) = coming.next().unwrap();
                let seconds = |time: u64| time as f64 / 1e9;
                let estimate = Estimate::seconds(seconds(asked.median)).ninth_decile(seconds(asked.high));
                let request = Request::new().due(begin + Duration::from_nanos(asked.due)).value(asked.value);
                _ = dispatcher.submit(request.estimate(estimate), place);
            }
        }
        while let Some((place, begun)) = dispatcher.try_next() {
            starts[place] = Some(now);
            let end = now + requests[place].length;
            ends.push(Reverse((if cancels { end.min(requests[place].due) } else { end }, place as u64)));
            running[place] = Some(begun);
        }
    }
}

#[test]
fn the_dispatcher_follows_the_index_of_the_lab() {
    let (mut begun, mut left_out) = (0, 0);
    for round in 0..30 {
        let workers = [1, 3, 8][round as usize % 3];
        let requests = drawn(round, workers as u64);
        for cancels in [false, true] {
            let expected = in_the_lab(&requests, workers, cancels);
            assert_eq!(
                dispatched(&requests, workers, cancels),
                expected,
                "{workers} workers, {cancels}, round {round}"
            );
            begun += expected.iter().flatten().count();
            left_out += expected.iter().filter(|start| start.is_none()).count();
        }
    }
    assert!(begun > 3_000 && left_out > 3_000, "{begun} and {left_out}");
}
