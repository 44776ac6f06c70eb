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
    let jobs = [Job::first(0, &system.tasks[0]), Job::first(1, &system.tasks[1])];
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
