//! A scheduler of your own among all others, without a change in TempoNet.
//!
//! The program is the whole command line of `temponet`. Its scheduler is in every list, table and picture:
//! `cargo run --release -- compare democar --all`, or with an option `--schedulers all,slack-ratio:hold=0.5`.

use std::process::ExitCode;

use temponet_sched::catalog::{self, Entry, Kind};
use temponet_task::{Assignment, JobId, NotApplicable, Scheduler, System, SystemView, Tie};

/// Runs the jobs with the least slack in proportion to their remaining work. Jobs that would be late by their wcet come
/// last.
struct SlackRatio {
    /// Part of its ratio, 0 to 1, that a running job is ahead of the others. It saves preemptions.
    hold: f64,
    order: Vec<(bool, f64, Tie, JobId)>,
    chosen: Vec<JobId>,
}

impl Scheduler for SlackRatio {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.order.clear();
        for (id, job) in view.ready() {
            let slack = job.slack(view.now) as f64;
            let ratio = slack / job.remaining().0.max(1) as f64;
            let ratio = if job.running { ratio * (1.0 - self.hold) } else { ratio };
            self.order.push((slack < 0.0, ratio, job.tie(), id));
        }
        self.order.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        self.chosen.clear();
        self.chosen.extend(self.order.iter().take(view.system.most_offered()).map(|(.., id)| *id));
        // Placement minds jobs that hold their cores or wait for a resource, and cores that differ.
        assignment.place(view, &self.chosen);
    }
}

fn main() -> ExitCode {
    let entry = Entry::new(
        "slack-ratio",
        "least slack in proportion to the remaining work first",
        "an example of a scheduler of one's own",
        |request| {
            Ok(Box::new(SlackRatio { hold: request.options.share("hold")?, order: Vec::new(), chosen: Vec::new() }))
        },
    );
    let entry = entry.kind(Kind::User).options(&[("hold", "0", "lead of running jobs, from 0 to 1")]);
    if let Err(error) = catalog::register(entry) {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    temponet_cli::Program::named("own-scheduler").main()
}
