//! The learned scheduler in a program of your own: fill a view from your queues, ask, dispatch.
//!
//! `cargo run -p temponet --example embed`

use temponet::{Model, Options, Temponet, Tokenizer};
use temponet_task::{Assignment, Event, Job, JobId, Scheduler, SystemView, Task, TaskSet, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Once, before real time begins: what runs here, and the model (`Temponet::load("mine.safetensors")?` for your own).
    let tasks = vec![
        Task::periodic("control", Time::from_ms(10), Time::from_ms(4)),
        Task::periodic("vision", Time::from_ms(40), Time::from_ms(25)),
    ];
    let system = TaskSet::new("robot", tasks, 1).system();
    let model = Model::random(Tokenizer::full(), 1);
    let mut scheduler = Temponet::new(model.into(), Options::default())?;
    scheduler.start(&system)?;

    // At every release, completion and deadline: the ready jobs, and who is running.
    let job = |task: u32, wcet_ms: u64, deadline_ms: u64| Job {
        task,
        criticality: 0,
        running: false,
        last_core: None,
        number: 0,
        release: Time::ZERO,
        deadline: Time::from_ms(deadline_ms),
        wcet: Time::from_ms(wcet_ms),
        bcet: Time::from_ms(wcet_ms),
        executed: Time::ZERO,
        overhead: Time::ZERO,
        value: 1.0,
    };
    let jobs = [job(0, 4, 10), job(1, 25, 40)];
    let active = [JobId(0), JobId(1)];
    let events = active.map(Event::Released);
    let view = SystemView {
        now: Time::ZERO,
        system: &system,
        active: &active,
        jobs: &jobs,
        running: &[None],
        events: &events,
    };
    let mut assignment = Assignment::default();
    assignment.reset(1);
    scheduler.decide(&view, &mut assignment);
    println!("core 0 runs {:?}; ask again at {:?} at the latest", assignment.cores()[0], assignment.wake());
    Ok(())
}
