//! Requests of a real LLM service in simulated time, by policy and by what is known of lengths; percent in time.
//!
//! `cargo run --release -p temponet-dispatch --example trace -- AzureLLMInferenceTrace_conv.csv [SKIP [COUNT [proportional]]]`
//!
//! As in `bench/peers/azure_requests.py`: 0.1 ms for each token of the prompt and 25 ms for each of the answer, seven in
//! ten due in 10 s and the others in 60 s (`proportional`: in 2 s and 40 ms for each token of the answer), 16 at a time,
//! arrivals stretched to the load. *prompt* is a regression on the
//! tokens of the prompt, with nothing else known. The last row is a bound for whoever knows no more than that.

mod knowledge;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use temponet_dispatch::{Clock, Dispatcher, Estimate, Estimator, Policy, Request, Running, SimulatedClock};

const WORKERS: usize = 16;

/// A request of the trace; times in seconds.
#[derive(Clone, Copy)]
struct Asked {
    arrival: f64,
    length: f64,
    window: f64,
    prompt: f64,
    /// Error of its estimate, in standard deviations.
    error: f64,
}

/// What is known of lengths.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    Nothing,
    Prompt,
    Estimate {
        error: f64,
    },
    /// An estimate, which is one more input of the regression on the prompt.
    Both {
        error: f64,
    },
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: trace FILE [SKIP [COUNT [proportional]]]")?;
    let skip = arguments.next().map_or(Ok(0), |skip| skip.parse())?;
    let count = arguments.next().map_or(Ok(6_000), |count| count.parse())?;
    let is_proportional = arguments.next().is_some_and(|word| word == "proportional");
    let trace = read(&std::fs::read_to_string(path)?, skip, count, is_proportional).ok_or("not a trace of Azure")?;
    let policies = [
        Policy::Edf,
        Policy::Fcfs,
        Policy::RejectWhenBusy { queue: 0 },
        Policy::Lifo,
        Policy::Hrrn,
        Policy::EdfShed { q: 0.5 },
        Policy::SjfShed { q: 0.5 },
        Policy::MhEdf { q: 0.5 },
        Policy::MhEdf { q: 0.9 },
        Policy::learned(),
        Policy::guarded(),
    ];
    let known = [
        ("none", Known::Nothing),
        ("prompt", Known::Prompt),
        ("σ = 0.5", Known::Estimate { error: 0.5 }),
        ("σ = 0.5 and prompt", Known::Both { error: 0.5 }),
        ("exact", Known::Estimate { error: 0.0 }),
    ];
    for load in [1.3, 2.0] {
        let heads = known.map(|(name, _)| format!("{name} | cancelled")).join(" | ");
        println!("Load {load}:\n\n| | {heads} |\n|---|{}", "--:|".repeat(2 * known.len()));
        for policy in &policies {
            let mut line = format!("| `{policy}` |");
            for (_, known) in known {
                for cancels in [false, true] {
                    line += &format!(" {:.1} |", 100.0 * share_met(&trace, load, policy, known, cancels));
                }
            }
            println!("{line}");
        }
        let mut line = "| by what is known, at most |".to_string();
        for (_, known) in known {
            for cancels in [false, true] {
                // Due times that are in proportion to lengths tell more than what is said.
                let most = if is_proportional { None } else { knowledge::bound(&trace, load, known, cancels) };
                line += &most.map_or(" |".to_string(), |most| format!(" {:.1} |", 100.0 * most));
            }
        }
        println!("{line}\n");
    }
    Ok(())
}

fn read(text: &str, skip: usize, count: usize, is_proportional: bool) -> Option<Vec<Asked>> {
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let asked = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [date, prompt, answer] = cells[..] else { return None };
        let (day, time) = date.split_once(' ')?;
        let clock: Vec<f64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let [hours, minutes, seconds] = clock[..] else { return None };
        let day: f64 = day.rsplit('-').next()?.parse().ok()?;
        let (prompt, answer): (f64, f64) = (prompt.parse().ok()?, answer.trim().parse().ok()?);
        let mut window = if draw() < 0.7 { 10.0 } else { 60.0 };
        if is_proportional {
            window = 2.0 + 0.04 * answer;
        }
        // About normal.
        let error = (0..12).map(|_| draw()).sum::<f64>() - 6.0;
        let arrival = ((day * 24.0 + hours) * 60.0 + minutes) * 60.0 + seconds;
        Some(Asked { arrival, length: 1e-4 * prompt + 0.025 * answer, window, prompt, error })
    };
    let trace: Vec<Asked> = text.lines().skip(1 + skip).take(count).map(asked).collect::<Option<_>>()?;
    (!trace.is_empty()).then_some(trace)
}

fn share_met(trace: &[Asked], load: f64, policy: &Policy, known: Known, cancels: bool) -> f64 {
    let (first, last) = (trace[0].arrival, trace[trace.len() - 1].arrival);
    let work: f64 = trace.iter().map(|asked| asked.length).sum();
    let stretch = work / (WORKERS as f64 * load) / (last - first);
    let clock = SimulatedClock::new();
    let estimator = match known {
        Known::Prompt | Known::Both { .. } => Estimator::Regressor { features: 1 },
        Known::Nothing | Known::Estimate { .. } => Estimator::Given,
    };
    let settings = Dispatcher::builder().workers(WORKERS).policy(policy.clone()).estimator(estimator);
    let settings = settings.cancel_when_due(cancels).clock(clock.clone());
    let dispatcher = settings.build().expect("the settings are sound");
    let start = clock.now();
    let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
    let mut running: Vec<Option<Running>> = Vec::new();
    // Ends, places in `running`, and whether the request is done by then.
    let mut ends: BinaryHeap<Reverse<(u64, usize, bool)>> = BinaryHeap::new();
    let mut coming = trace.iter().peekable();
    loop {
        let arrival = coming.peek().map(|asked| nanoseconds((asked.arrival - first) * stretch));
        let end = ends.peek().map(|Reverse((end, ..))| *end);
        let Some(now) = arrival.into_iter().chain(end).min() else { break };
        clock.advance((start + Duration::from_nanos(now)).saturating_duration_since(clock.now()));
        if let Some(Reverse((end, place, is_done))) = ends.peek().copied()
            && end == now
        {
            ends.pop();
            let ended = running[place].take().expect("it ends once");
            if is_done {
                ended.finish();
            } else {
                ended.give_up();
            }
        } else if let Some(asked) = coming.next() {
            let mut request = Request::new().due(clock.now() + Duration::from_secs_f64(asked.window));
            request.features = vec![asked.prompt];
            if let Known::Estimate { error } | Known::Both { error } = known {
                let median = asked.length * (error * asked.error).exp();
                request = request.estimate(Estimate::seconds(median).ninth_decile(median * (1.2816 * error).exp()));
            }
            let due = now + nanoseconds(asked.window);
            _ = dispatcher.submit(request, (nanoseconds(asked.length), due));
        }
        while let Some(((length, due), begun)) = dispatcher.try_next() {
            let end = now + length;
            let is_done = !cancels || end <= due;
            ends.push(Reverse((if is_done { end } else { due }, running.len(), is_done)));
            running.push(Some(begun));
        }
    }
    dispatcher.stats().met as f64 / trace.len() as f64
}
