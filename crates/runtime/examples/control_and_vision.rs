//! A robot with too much to do: a control loop, a sensor filter and a vision task that takes longer than its share, on
//! one core.
//!
//! ```sh
//! cargo run --release -p temponet-runtime --example control_and_vision -- fcfs schedule-fcfs.svg
//! cargo run --release -p temponet-runtime --example control_and_vision -- temponet schedule.svg
//! ```
//!
//! The first argument is a scheduler of `temponet schedulers`, or `temponet`, which decides on a thread of its own
//! while its fallback decides at once. The second is a picture of the first 400 ms. It needs real-time priorities;
//! without them it runs in virtual time and says so.

use std::process::ExitCode;

use temponet::Temponet;
use temponet_page::svg::{Svg, fill, line, path, rect, text};
use temponet_runtime::trial::fast_fallback;
use temponet_runtime::{Job, OnOverrun, Report, Runtime, RuntimeError, Scheduler, Time};

/// Computes until the job has used this processor time, or should return. A real task would read sensors and set motors
/// here.
fn compute(job: &Job<'_>, time: Time) {
    while job.used().is_some_and(|used| used < time) && !job.expired() {
        (0..1_000).for_each(|_| std::hint::spin_loop());
    }
}

/// The robot's tasks: 20% control, 30% filter, and vision, which was meant to take 60% and takes up to 90%.
fn robot() -> Runtime {
    let mut frame = 0u64;
    Runtime::new()
        .cores([1])
        .housekeeping(0)
        .task("control", Time::from_ms(10), Time::from_ms(2), |job| compute(job, Time::from_us(1_900)))
        .criticality(1)
        .task("filter", Time::from_ms(20), Time::from_ms(6), |job| compute(job, Time::from_us(5_800)))
        .task("vision", Time::from_ms(50), Time::from_ms(30), move |job| {
            // Every third picture has much in it.
            frame += 1;
            compute(job, Time::from_ms(if frame.is_multiple_of(3) { 45 } else { 28 }));
        })
        .bcet(Time::from_ms(20))
        .on_overrun(OnOverrun::Report)
}

/// The robot with the scheduler of this name.
fn scheduled(name: &str) -> Result<Runtime, Box<dyn std::error::Error>> {
    let robot = robot();
    if name != "temponet" {
        return Ok(robot.scheduler(temponet_sched::build(name)?));
    }
    let fast: Box<dyn Scheduler> = fast_fallback(&robot.system());
    Ok(robot.scheduler(fast).decider(Temponet::built_in()?))
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (name, picture) = (args.next().unwrap_or_else(|| "temponet".into()), args.next());
    let report = match scheduled(&name)?.run_for(Time::from_secs(2)) {
        Err(RuntimeError::NotPermitted(why)) => {
            eprintln!("in virtual time, because {why}");
            let execution = |task: &str, number: u64| match task {
                "control" => Time::from_us(1_900),
                "filter" => Time::from_us(5_800),
                _ => Time::from_ms(if number % 3 == 2 { 45 } else { 28 }),
            };
            scheduled(&name)?.run_virtual(Time::from_secs(2), execution)?
        }
        other => other?,
    };
    for (task, figures) in ["control", "filter", "vision"].iter().zip(&report.metrics.tasks) {
        println!("{task:<8} {:>3} of {:>3} jobs in time", figures.jobs.met, figures.jobs.released);
    }
    println!(
        "{} jobs took longer than their wcet; dispatcher {:.2}% of a core",
        report.counts.overruns,
        100.0 * report.dispatcher_share()
    );
    for (what, times) in [("release to start", &report.latencies.start), ("switch", &report.latencies.switch)] {
        let us = |share: f64| times.quantile(share).map_or(0.0, |ns| ns as f64 / 1e3);
        println!("{what}: p50 {:.1} us, p99 {:.1} us, max {:.1} us of {}", us(0.5), us(0.99), us(1.0), times.count());
    }
    if let Some(picture) = picture {
        std::fs::write(picture, drawn(&name, &report))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A row for each task: the window of each job, its time from first to last instruction, and a cross where it missed
/// its deadline.
fn drawn(scheduler: &str, report: &Report) -> String {
    let (left_edge, width, top, row_height) = (90.0, 1_000.0, 60.0, 44.0);
    let until = Time::from_ms(400);
    let x = |time: Time| left_edge + (width - left_edge - 40.0) * (time.0 as f64 / until.0 as f64).min(1.0);
    let missed = report.jobs.iter().filter(|job| !job.met() && job.deadline <= until).count();
    let title = format!("Control and vision under {scheduler}, on real threads");
    let subtitle = format!(
        "the first {until}; a bar from a job's first to its last instruction; {missed} deadlines missed (crosses)"
    );
    let mut out = Svg::new(width, top + 3.0 * row_height + 40.0, &format!("{title}: {subtitle}")).font(13.0);
    out.add(text(left_edge, 24.0, &title).size(16.0).bold());
    out.add(text(left_edge, 44.0, &subtitle).class("soft"));
    for (row, name) in ["control", "filter", "vision"].iter().enumerate() {
        let y = top + row as f64 * row_height;
        out.add(text(left_edge - 10.0, y + 26.0, name).end());
        out.add(line((left_edge, y + row_height), (width - 40.0, y + row_height)).class("line"));
    }
    for tick in 0..=8 {
        let at = x(Time::from_ms(50 * tick));
        out.add(line((at, top), (at, top + 3.0 * row_height)).class("line"));
        out.add(text(at, top + 3.0 * row_height + 20.0, &format!("{} ms", 50 * tick)).middle().class("soft"));
    }
    for job in report.jobs.iter().filter(|job| job.release < until) {
        let y = top + f64::from(job.task.0) * row_height;
        if let Some(start) = job.start.filter(|start| *start < until) {
            let (left, right) = (x(start), x(job.left));
            out.add(rect(left, y + 12.0, (right - left).max(0.6), 20.0).class(&fill(job.task.index())));
        }
        if !job.met() && job.deadline <= until {
            out.add(path(x(job.deadline), y + 22.0, "m-4 -4l8 8m0 -8l-8 8").class("cross"));
        }
    }
    out.file()
}
