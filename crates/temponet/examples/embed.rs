//! The learned scheduler in a program of your own: report what happens, ask, dispatch.
//!
//! `cargo run -p temponet --example embed`
//!
//! A real program waits for timers and for its workers. This one plays 100 ms of them: both tasks are periodic, and
//! jobs take less than their wcet.

use temponet::{JobHandle, ReadyJobs, Task, TaskSet, Temponet, Time};
use temponet_task::TaskId;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Once, before real time begins: the tasks, the cores, the model (`Temponet::load("mine.safetensors")?` for one of
    // your own).
    let tasks = vec![
        Task::periodic("control", Time::from_ms(10), Time::from_ms(4)),
        Task::periodic("vision", Time::from_ms(40), Time::from_ms(22)),
    ];
    let mut ready = ReadyJobs::new(TaskSet::new("robot", tasks, 1).system)?;
    let mut scheduler = Temponet::built_in()?;
    ready.start(&mut scheduler)?;
    println!("the shield {}", scheduler.shield_role().sentence("the network"));

    let periods = [Time::from_ms(10), Time::from_ms(40)];
    let takes = [Time::from_ms(3), Time::from_ms(20)];
    let mut next_release = [Time::ZERO; 2];
    let mut running: Option<JobHandle> = None;
    let mut latest: Option<Time> = None;
    loop {
        // 1. Sleep until something happens: a release, the end of the running job, or the date that the scheduler asked
        //    for.
        let end = running.and_then(|job| ready.job(job)).map(|job| {
            let left = takes[job.task].saturating_sub(job.executed);
            ready.now() + left
        });
        let now = next_release.into_iter().chain(end).chain(latest).min().unwrap_or(Time::NEVER);
        if now >= Time::from_ms(100) {
            return Ok(());
        }
        // 2. Report it: first the time, then completions, then releases.
        ready.advance(now)?;
        if let Some(job) = running.filter(|_| end == Some(now)) {
            assert!(ready.complete(job)?, "on time");
        }
        for (task, date) in next_release.iter_mut().enumerate().filter(|(_, date)| **date == now) {
            ready.release(TaskId::new(task))?;
            *date = now + periods[task];
        }
        // 3. Ask, and dispatch. A real program sets a timer for `decision.next()` and stops the jobs in
        //    `decision.stopped()`.
        let decision = ready.decide(&mut scheduler)?;
        assert!(decision.stopped().is_empty(), "the shield guarantees this set");
        (running, latest) = (decision.cores()[0], decision.next());
        let name = running.and_then(|job| ready.job(job)).map(|job| &ready.system().tasks()[job.task].name);
        println!("{now:>6}  {}", name.map_or("idle", String::as_str));
    }
}
