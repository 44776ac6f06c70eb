//! Traffic in overload on real threads, with everything that can happen to a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use temponet_dispatch::{Dispatcher, Estimate, Policy, Request, Stats};

/// What became of the traffic.
pub struct Report {
    pub stats: Stats,
    /// Requests that were answered, each counted by whoever answers it.
    pub answers: u64,
    /// Resident bytes after each fifth of the requests; empty where that is not known.
    pub memory: Vec<u64>,
}

/// Submits this many requests to four workers, through a queue of 1 000 under the guard.
pub fn run(requests: u64) -> Report {
    let answers = Arc::new(AtomicU64::new(0));
    let answer = {
        let answers = answers.clone();
        move || _ = answers.fetch_add(1, Ordering::Relaxed)
    };
    let dispatcher = Dispatcher::builder()
        .workers(4)
        .capacity(1_000)
        .policy(Policy::guarded())
        .on_shed({
            let answer = answer.clone();
            move |_| answer()
        })
        .build()
        .expect("the settings are sound");
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (dispatcher, answer) = (dispatcher.clone(), answer.clone());
            std::thread::spawn(move || {
                while let Some((number, running)) = dispatcher.next_blocking() {
                    // Some work.
                    (0..number % 200).for_each(|step| _ = std::hint::black_box(step));
                    answer();
                    match number % 64 {
                        0 => drop(running),
                        _ if running.token().is_cancelled() => running.give_up(),
                        _ => _ = running.finish(),
                    }
                }
            })
        })
        .collect();
    let mut memory = Vec::new();
    for number in 0..requests {
        let due = Instant::now() + Duration::from_micros(50 + number * 7_919 % 2_000);
        let estimate = Estimate::seconds(if number % 5 == 0 { f64::NAN } else { 1e-6 });
        let request = Request::new().due(due).estimate(estimate).class((number % 3_000) as u32);
        match dispatcher.submit(request, number) {
            Ok(ticket) if number % 50 == 0 => ticket.cancel(),
            Ok(_) => {}
            Err(_) => answer(),
        }
        if (number + 1) % (requests / 5) == 0 {
            memory.extend(resident());
        }
    }
    dispatcher.shutdown();
    dispatcher.wait_drained();
    workers.into_iter().for_each(|worker| worker.join().expect("no worker panics"));
    Report { stats: dispatcher.stats(), answers: answers.load(Ordering::Relaxed), memory }
}

/// Resident bytes of this process.
pub fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse::<u64>().ok()?;
    Some(pages * 4096)
}
