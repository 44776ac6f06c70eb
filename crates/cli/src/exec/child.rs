//! One run in a process of its own, and how it is started. The child prints what it measured as JSON.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use temponet::tuning::Tuning;
use temponet_lab::roster::kind;
use temponet_runtime::trial::{Chooser, LinuxScheduler, Trial, fast_fallback};
use temponet_runtime::wire::Wire;
use temponet_runtime::{RuntimeError, kernel_trace};
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Scheduler, TaskSet, Time};

use super::{Args, ExecPlan};
use crate::output;

/// What a child prints.
#[derive(Serialize, Deserialize)]
pub enum ChildResult {
    /// The run is over.
    Ran(Box<Wire>),
    /// The scheduler or the kernel refused it, for this reason.
    Refused(String),
}

/// Greatest number of slices that a thread records in the first run.
const SLICES: usize = 20_000;
/// Length of the simulation that warms a scheduler up, in expected decisions of the set.
const WARM_UP: Time = Time::from_ms(500);

/// Runs one scheduler once and prints the result.
pub fn run(args: &Args, plan: ExecPlan) -> Result<()> {
    #[cfg(target_os = "linux")]
    temponet_runtime::die_with_parent()?;
    let (spec, run) = (args.child[0].as_str(), args.child[1].parse::<u64>().context("--child")?);
    let instance = args.child.get(2).map(Path::new);
    let chooser = match LinuxScheduler::from_name(spec) {
        Some(scheduler) => Chooser::Linux(scheduler),
        None => ours(args, &plan.set, spec)?,
    };
    if let Some(instance) = instance {
        kernel_trace::prepare(instance).context("--trace")?;
    }
    let trace = |threads: &[(i32, usize)]| {
        if let Some(instance) = instance {
            let ids: Vec<i32> = threads.iter().map(|(id, _)| *id).collect();
            if let Err(error) = kernel_trace::record(instance, &ids) {
                output::say(&format!("warning: --trace: {error}"));
            }
        }
    };
    let trial = Trial {
        set: &plan.set,
        seed: args.seed.wrapping_add(run),
        horizon: args.duration,
        cpus: plan.cpus,
        housekeeping: plan.housekeeping,
        slices: if run == 0 { SLICES } else { 0 },
        started: Some(Box::new(trace)),
    };
    let result = match trial.run(chooser) {
        Ok(report) => {
            let switches = instance.map(kernel_trace::read).transpose().context("--trace")?.unwrap_or_default();
            ChildResult::Ran(Box::new(Wire::of(&report, &switches)))
        }
        Err(RuntimeError::NotPermitted(why) | RuntimeError::Setup(why)) => ChildResult::Refused(why),
        Err(RuntimeError::Scheduler(why)) => ChildResult::Refused(why.to_string()),
        Err(error) => return Err(error.into()),
    };
    output::print_bytes(&serde_json::to_vec(&result)?)
}

/// A scheduler of ours. The learned one decides on a thread of its own, while its fallback decides at once.
fn ours(args: &Args, set: &TaskSet, spec: &str) -> Result<Chooser> {
    let mut roster = args.model.roster()?;
    // Simulations belong before the run, not into it.
    roster.options.tuning = Tuning::AtStart;
    let warm = |mut scheduler: Box<dyn Scheduler>| -> Box<dyn Scheduler> {
        // Memory is touched and sized by decisions like those to come. A scheduler that does not apply says so again
        // when it starts.
        let _ = simulate(set, args.seed, WARM_UP.min(args.duration), &mut *scheduler, &mut Unobserved);
        scheduler
    };
    let scheduler = warm(roster.build(spec)?);
    match kind(spec).is_learned() {
        true => Ok(Chooser::Ours(warm(fast_fallback(&set.system)), Some(scheduler))),
        false => Ok(Chooser::Ours(scheduler, None)),
    }
}

/// Starts a child, waits for it and reads what it prints.
pub fn start(scheduler: &str, run: u64, instance: Option<&Path>) -> Result<ChildResult> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).arg("--child").arg(scheduler).arg(run.to_string());
    command.args(instance);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let done = command.output().context("cannot start a run")?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr);
        let last = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&done.status) {
            bail!("the run was killed by signal {signal}; the guard does so if the dispatcher stalls for 50 ms");
        }
        bail!("{last}");
    }
    serde_json::from_slice(&done.stdout).map_err(|error| anyhow!("the run reported nonsense: {error}"))
}
