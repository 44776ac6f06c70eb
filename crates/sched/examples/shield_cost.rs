//! Cost of a shielded decision compared with a bare one: `cargo run --release -p temponet-sched --example shield_cost`.

use std::time::Instant;

use temponet_sched::build;
use temponet_sched::shield::Shield;
use temponet_sim::generate::{Lengths, Rule, Spec, generate};
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Assignment, Scheduler, SystemView, Time};

/// A scheduler and the duration of each of its decisions, in nanoseconds.
struct Timed<S>(S, Vec<u64>);

impl<S: Scheduler> temponet_task::Wrapper for Timed<S> {
    temponet_task::wraps!(0: S);

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let begun = Instant::now();
        self.0.decide(view, assignment);
        self.1.push(begun.elapsed().as_nanos() as u64);
    }
}

fn row(name: &str, tasks: usize, cores: usize, load: f64, times: &mut [u64], note: &str) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let mean = times.iter().sum::<u64>() / times.len() as u64;
    println!("{name:14} {tasks:5} {cores:5} {load:5} {mean:8} {:8} {:8} {:9}  {note}", at(0.5), at(0.99), at(1.0));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:14} {:>5} {:>5} {:>5} {:>8} {:>8} {:>8} {:>9}  ns",
        "scheduler", "tasks", "cores", "load", "mean", "p50", "p99", "max"
    );
    // Load per core; below one everything is guaranteed, above it a third of the tasks.
    for (load, cores) in [(0.7, 1), (0.95, 1), (0.7, 4), (1.5, 1), (1.5, 4)] {
        for tasks in [64, 600] {
            let lengths = Lengths::Periods(Rule::LogUniform(Time::from_ms(1), Time::from_ms(1_000)));
            let spec = Spec { lengths, granularity: Time(100), ..Spec::new(tasks, cores, load * cores as f64) };
            let mut set = generate(&spec, 1)?;
            set.system.tasks_mut().iter_mut().step_by(3).for_each(|task| task.criticality = 1);
            for name in ["fcfs", "srpt", "rr"] {
                let mut bare = Timed(build(name)?, Vec::new());
                simulate(&set, 1, Time::from_secs(2), &mut bare, &mut Unobserved)?;
                row(name, tasks, cores, load, &mut bare.1, "");
                let mut shielded = Timed(Shield::new(build(name)?), Vec::new());
                let metrics = simulate(&set, 1, Time::from_secs(2), &mut shielded, &mut Unobserved)?;
                let critical = metrics.critical();
                let note =
                    format!("{} critical jobs missed, {:?}", critical.released - critical.met, shielded.0.counters());
                row(&format!("shield:{name}"), tasks, cores, load, &mut shielded.1, &note);
            }
        }
    }
    Ok(())
}
