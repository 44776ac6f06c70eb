//! The runs of all schedulers, put together: the rows of a comparison, what was measured besides, and what the
//! simulator says of the same jobs.

use anyhow::Result;
use temponet_lab::advice::{MeasuredMachine, Premise, rank};
use temponet_lab::clairvoyant::clairvoyant;
use temponet_lab::comparison::{Comparison, ComparisonPlan, ComparisonRow, picture_window, report, task_shares};
use temponet_lab::progress::Progress;
use temponet_lab::roster::{Roster, is_shielded};
use temponet_runtime::platform_sheet::PlatformSheet;
use temponet_runtime::trial::LinuxScheduler;
use temponet_runtime::wire::Wire;
use temponet_runtime::{Counts, Latencies, Report};
use temponet_sched::shield::Role;
use temponet_sim::{JobRecord, Recorder, Unobserved, simulate};
use temponet_task::{Costs, TaskSet, Time};

use super::host_time::{self, HostTime};
use super::undo::Instance;
use super::{Args, ExecPlan, PICTURE_JOBS, child};

/// Seconds of one core for the clairvoyant optimum.
const ORACLE: f64 = 2.0;

/// What was measured of one scheduler beside the figures of a comparison.
pub struct Measured {
    /// Latencies of all runs.
    pub latencies: Latencies,
    /// Counts of all runs.
    pub counts: Counts,
    /// Share of a core that the dispatcher used, 0 to 1; none under schedulers of Linux.
    pub dispatcher: Option<f64>,
    /// Costs as they were measured, for the simulator.
    pub costs: Costs,
    /// Share of deadlines met in the simulator with these costs, run by run; empty if nothing there decides alike.
    pub simulated: Vec<f64>,
    /// Names of tasks whose code did not return, over all runs.
    pub lost: Vec<String>,
    /// Every run.
    pub runs: Vec<Run>,
}

/// One run.
pub struct Run {
    pub report: Report,
    pub wire: Wire,
}

impl Measured {
    /// Median switch as a multiple of the median bare one; none where either was not measured.
    pub fn against_bare(&self, sheet: &PlatformSheet) -> Option<f64> {
        let bare = sheet.bare_switch.as_ref()?.took_ns.quantile(0.5)?;
        Some(self.latencies.switch.quantile(0.5)? as f64 / bare.max(1) as f64)
    }

    /// Mean share of deadlines met in the simulator.
    pub fn simulated_share(&self) -> Option<f64> {
        (!self.simulated.is_empty()).then(|| self.simulated.iter().sum::<f64>() / self.simulated.len() as f64)
    }
}

/// Result of the command.
pub struct ExecResult {
    /// The rows as a comparison has them, the best first.
    pub comparison: Comparison,
    /// What was measured besides, in the order of the rows.
    pub measured: Vec<Measured>,
    pub sheet: PlatformSheet,
    /// Share of the processors' time that the host took during the runs; none where that cannot be told.
    pub stolen: Option<f64>,
    pub notes: Vec<String>,
    /// Length of the picture.
    pub window: Time,
}

/// Runs everything. Runs of the schedulers take turns, so that a change of the machine's mood meets all of them.
pub fn gather(
    args: &Args,
    plan: ExecPlan,
    roster: Roster,
    sheet: PlatformSheet,
    instance: Option<&Instance>,
    progress: &Progress,
) -> Result<ExecResult> {
    let ExecPlan { mut set, mut notes, schedulers, housekeeping, cpus } = plan;
    let host_time = HostTime::begin(&[&[housekeeping][..], &cpus].concat());
    let mut skipped: Vec<(String, String)> = Vec::new();
    let mut runs: Vec<Vec<Run>> = schedulers.iter().map(|_| Vec::new()).collect();
    for run in 0..args.runs {
        for (name, runs) in schedulers.iter().zip(&mut runs) {
            if skipped.iter().any(|(known, _)| known == name) {
                continue;
            }
            progress.say(name);
            let instance = instance.map(Instance::path).filter(|_| run == 0);
            match progress.during(args.duration, || child::start(name, run, instance)) {
                Ok(child::ChildResult::Ran(wire)) => {
                    let report = wire.report(set.tasks(), set.cores(), args.duration);
                    runs.push(Run { report, wire: *wire });
                }
                Ok(child::ChildResult::Refused(why)) => skipped.push((name.clone(), why)),
                Err(error) => skipped.push((name.clone(), format!("{error:#}"))),
            }
        }
    }
    let stolen = host_time.stolen();
    let window =
        picture_window(&set, args.duration, if args.report.is_some() { report::MOST_JOBS } else { PICTURE_JOBS });
    let window = args.gantt_until.map_or(window, |until| until.min(args.duration));
    let goal = set.goal().clone();
    let mut rows: Vec<(ComparisonRow, Measured)> = Vec::new();
    for (name, runs) in schedulers.iter().zip(runs) {
        if runs.is_empty() || skipped.iter().any(|(known, _)| known == name) {
            continue;
        }
        for note in runs.iter().flat_map(|run| &run.report.notes) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        let decider = roster.decider(name, &set);
        let row = ComparisonRow { decider, ..row(&roster, name, &runs, &goal, window) };
        rows.push((row, measured(args, &set, &roster, name, runs)));
    }
    rank(&goal, &mut rows, |(row, _)| row);
    let optimum = clairvoyant(&set, args.duration, args.seed, args.runs, ORACLE);
    let optimum = optimum.map_err(|why| skipped.push(("clairvoyant optimum".into(), why))).ok();
    let shield = schedulers.iter().any(|name| is_shielded(name)).then(|| Role::on(&set.system));
    let (rows, measured): (Vec<ComparisonRow>, Vec<Measured>) = rows.into_iter().unzip();
    let premise = Some(Premise::of(&set, &machine(&rows, &measured, &sheet)));
    set.description = described(&set, &sheet, stolen);
    let plan = ComparisonPlan {
        set,
        goal,
        horizon: args.duration,
        seed: args.seed,
        runs: args.runs,
        schedulers,
        roster,
        latency: true,
        charge_latency: false,
        record_until: window,
        oracle: None,
    };
    let clairvoyant = optimum.filter(|optimum| optimum.released > 0).map(|mut optimum| {
        optimum.forget_schedules();
        optimum
    });
    Ok(ExecResult {
        comparison: Comparison { plan, premise, rows, skipped, clairvoyant, shield },
        measured,
        sheet,
        stolen,
        notes,
        window,
    })
}

/// What was measured of the machine under all schedulers.
fn machine(rows: &[ComparisonRow], measured: &[Measured], sheet: &PlatformSheet) -> MeasuredMachine {
    let mut machine = MeasuredMachine::default();
    for (row, measured) in rows.iter().zip(measured) {
        machine.switch.merge(&measured.latencies.switch);
        machine.start.merge(&measured.latencies.start);
        machine.jobs += row.metrics.jobs.released;
        machine.overruns += measured.counts.overruns;
        machine.skipped += measured.counts.skipped;
    }
    sheet.timers.iter().for_each(|timer| machine.timers.merge(&timer.late_ns));
    machine
}

/// What the page says of the set: its description, and the machine that it ran on.
fn described(set: &TaskSet, sheet: &PlatformSheet, stolen: Option<f64>) -> String {
    let before = if set.description.is_empty() { String::new() } else { format!("{}; ", set.description) };
    let PlatformSheet { kernel, machine, preemption, throttling, clock, .. } = sheet;
    let ticks = sheet.hz.map_or(String::new(), |hz| format!("{hz} ticks a second, "));
    let warning = host_time::warning(stolen).map_or(String::new(), |warning| format!(". {warning}"));
    format!(
        "{before}measured on real threads of {kernel} ({machine}, {ticks}preemption {preemption}, clock {clock}, throttling: {throttling}){warning}"
    )
}

/// The runs of one scheduler as a row of a comparison.
fn row(roster: &Roster, name: &str, runs: &[Run], goal: &temponet_task::Goal, window: Time) -> ComparisonRow {
    let mut metrics = runs[0].report.metrics.clone();
    runs[1..].iter().for_each(|run| metrics.merge(&run.report.metrics));
    let mut latency = runs[0].report.latencies.decide.clone();
    runs[1..].iter().for_each(|run| latency.merge(&run.report.latencies.decide));
    let mut recording = Recorder::until(window);
    recording.slices = runs[0].wire.slices().into_iter().filter(|slice| slice.start < window).collect();
    let jobs = runs[0].report.jobs.iter().filter(|job| job.release < window);
    recording.jobs = jobs
        .map(|job| JobRecord {
            task: job.task,
            number: job.number,
            release: job.release,
            deadline: job.deadline,
            start: job.start,
            left: job.left,
            end: job.end,
            executed: job.executed,
        })
        .collect();
    let mut counters: Vec<(&'static str, u64)> = Vec::new();
    for (name, count) in runs.iter().flat_map(|run| run.wire.counters()) {
        match counters.iter_mut().find(|(known, _)| known == name) {
            Some((_, total)) => *total += count,
            // A handful of names, once a program.
            None => counters.push((name.clone().leak(), *count)),
        }
    }
    ComparisonRow {
        spec: name.into(),
        scheduler: roster.label(name),
        compliance: runs.iter().map(|run| run.report.metrics.jobs.compliance()).collect(),
        scores: runs.iter().map(|run| run.report.metrics.scores(goal)).collect(),
        tasks: runs.iter().map(|run| task_shares(&run.report.metrics)).collect(),
        metrics,
        latency: (latency.count() > 0).then_some(latency),
        recording,
        counters,
        decider: None,
    }
}

/// Everything else about one scheduler, with its simulation.
fn measured(args: &Args, set: &TaskSet, roster: &Roster, name: &str, runs: Vec<Run>) -> Measured {
    let (mut latencies, mut counts, mut lost) = (Latencies::default(), Counts::default(), Vec::new());
    for Run { report, .. } in &runs {
        latencies.merge(&report.latencies);
        counts.add(&report.counts);
        lost.extend(report.lost.iter().filter(|name| !lost.contains(*name)).cloned().collect::<Vec<_>>());
    }
    let linux = LinuxScheduler::from_name(name);
    let share = runs.iter().map(|run| run.report.dispatcher_share()).sum::<f64>() / runs.len() as f64;
    let costs = costs(&latencies);
    let charged = set.clone().with_costs(costs);
    let alike = linux.map_or(Some(name), |linux| linux.simulated());
    let simulate_run = |run: u64| -> Option<f64> {
        let mut scheduler = roster.build(alike?).ok()?;
        let seed = args.seed.wrapping_add(run);
        let metrics = simulate(&charged, seed, args.duration, &mut *scheduler, &mut Unobserved).ok()?;
        Some(metrics.jobs.compliance())
    };
    let simulated = (0..runs.len() as u64).map_while(simulate_run).collect();
    Measured { latencies, counts, dispatcher: linux.is_none().then_some(share), costs, simulated, lost, runs }
}

/// The median costs as the simulator charges them: a decision as long as it takes, and a context switch as long as it
/// takes from a release to the first instruction of a job that is started at once, less the decision.
fn costs(latencies: &Latencies) -> Costs {
    let median = |histogram: &temponet_sim::Histogram| histogram.quantile(0.5).unwrap_or(0).max(0) as u64;
    let (decide, start, switch) = (median(&latencies.decide), median(&latencies.start), median(&latencies.switch));
    let context_switch = Time(start.saturating_sub(decide).max(switch));
    Costs { context_switch, migration: Time::ZERO, decision: Time(decide) }
}
