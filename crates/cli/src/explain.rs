//! `temponet explain`: inspection of one decision of the learned scheduler, or of all decisions of a run.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use temponet_lab::advice::Decider;
use temponet_lab::explain::ModelRun;
use temponet_lab::explain::decision::{ExplainedDecision, explain_at, facts, json, page};
use temponet_lab::explain::run::{COMPARED, SHORTER, explain_run, json as run_json, lines, page as run_page};
use temponet_lab::guarantee::Guaranteed;
use temponet_lab::roster::{SHIELDED, UNSHIELDED};
use temponet_task::Time;

use crate::output;
use crate::paths::{Kind, Output};
use crate::setup::{ModelArgs, SetupArgs, any_time, heading};
use crate::table;

/// Explain one decision of the learned scheduler, or all decisions of a run
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet explain standard-125 --model random:1 --at 100ms\n  \
    temponet explain standard-125 --model random:1 --run --report run.html\n  \
    temponet explain mytasks.toml --model mine.safetensors --at 2s --report decision.html\n\n\
    A decision is shown with its ready jobs, their tokens, Q-values and attention, and with what the shield and EDF do.")]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml) or a built-in set's name [default: robot]
    #[arg(value_name = "FILE|NAME")]
    set: Option<String>,
    #[command(flatten)]
    setup: SetupArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Explain the first decision with a ready job at or after this time, such as 100ms
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = any_time)]
    at: Time,
    /// Explain all decisions up to the horizon (about 1 000 jobs by default): alignment, entropy, Q-values, and the
    /// simple rule that decides most alike
    #[arg(long, conflicts_with = "at")]
    run: bool,
    /// Write an HTML page with heat maps of the attention, or of the jobs that a run chose
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
    /// Replace existing files of any kind
    #[arg(long)]
    force: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<()> {
    let (set, horizon, _) = args.setup.prepare(args.set.as_deref())?;
    if !args.run && args.at >= horizon {
        bail!("--at {} is beyond the horizon of {horizon}; --horizon sets a later one", args.at);
    }
    let roster = args.model.roster()?;
    roster.foresee(&set);
    // Without its shield, the network decides alone.
    let decider = if args.model.no_shield { None } else { roster.decider(SHIELDED, &set) };
    let who = Decider::before_explanation(decider.as_ref());
    // The run is that of the learned scheduler, whoever decides in it: the network is explained in the states of that
    // run.
    let (mut scheduler, mut plain) = (roster.build(args.model.scheduler(SHIELDED))?, roster.build(UNSHIELDED)?);
    let model = roster.model.clone().context("there is no model")?;
    let report = Output::wanted(args.report.as_deref(), Kind::Page, args.force)?;
    let seed = args.setup.seed();
    let mut explained =
        ModelRun { set: &set, seed, horizon, model: &model, scheduler: &mut *scheduler, plain: &mut *plain };
    if args.run {
        let horizon = args.setup.horizon.unwrap_or(Time(horizon.0.div_ceil(SHORTER)));
        explained.horizon = horizon;
        let mut others: Vec<_> = Vec::new();
        for name in COMPARED {
            others.push((name, roster.build(name)?));
        }
        let run = explain_run(explained, &mut others)?;
        let findings = lines(&run, model.provenance().unwrap_or("unknown"));
        if let Some(file) = report {
            let decides = decider.as_ref().map(|decider| ("decides".to_string(), decider.sentence.clone()));
            let findings: Vec<_> = decides.into_iter().chain(findings.clone()).collect();
            file.write(run_page(&set, &model.tokenizer, &run, &findings))?;
        }
        if args.json {
            return output::print_json(&run_json(&set, seed, horizon, &model, decider.as_ref(), &run));
        }
        let line = |(name, value): &(String, String)| format!("{name:<30} {value}\n");
        return output::print(
            &(who + "\n" + &heading(&set, horizon) + "\n\n" + &findings.iter().map(line).collect::<String>()),
        );
    }
    let found = explain_at(explained, args.at)?;
    let decision = found.with_context(|| format!("no job is ready at or after {} and before {horizon}", args.at))?;
    let guaranteed = (!args.model.no_shield).then(|| Guaranteed::on(&set));
    let sentences = facts(&decision, guaranteed.as_ref(), decider.as_ref());
    if let Some(file) = report {
        file.write(page(&set, &decision, &format!("{who} {sentences}")))?;
    }
    if args.json {
        return output::print_json(&json(&set, &decision, guaranteed.as_ref(), decider.as_ref()));
    }
    output::print(&(who + "\n" + &text(&decision, &sentences)))
}

/// Greatest number of jobs in the table.
const MOST_ROWS: usize = 40;

/// Why a job has no token.
fn without_row(job: &temponet_lab::explain::diagnostics::JobLine) -> String {
    if job.is_impossible { "impossible".into() } else { "no row".into() }
}

fn text(decision: &ExplainedDecision, facts: &str) -> String {
    let network = &decision.network;
    let is_estimated = network.jobs.iter().any(|job| job.estimate_ns.is_some());
    let estimate = is_estimated.then_some("estimate");
    let header = ["job", "due in", "slack", "remaining"].into_iter().chain(estimate);
    let header: Vec<&str> = header.chain(["token", "Q", "attention", "core"]).collect();
    let row = |job: &temponet_lab::explain::diagnostics::JobLine| {
        let token = job.row.checked_sub(1).map_or_else(
            || without_row(job),
            |place| {
                let row = &network.rows[place as usize];
                let bins = row.token.iter().map(u16::to_string);
                bins.chain(row.real.iter().map(|number| format!("{number:.3}"))).collect::<Vec<_>>().join(" ")
            },
        );
        let times = [job.due_in_ns as f64, job.slack_ns as f64, job.remaining_ns as f64].map(table::time);
        let quantiles = |[median, high]: [u64; 2]| [median, high].map(|time| table::time(time as f64)).join(", ");
        let estimate = estimate.map(|_| job.estimate_ns.map_or("–".into(), quantiles));
        let mut cells = vec![format!("{}#{}", job.task, job.job)];
        cells.extend(times.into_iter().chain(estimate));
        cells.extend([
            token,
            if job.q.is_finite() { format!("{:.4}", job.q) } else { "–".into() },
            format!("{:.1}%", 100.0 * job.attention),
            job.core.map_or("–".into(), |core| core.to_string()),
        ]);
        cells
    };
    let rows: Vec<Vec<String>> = network.jobs.iter().take(MOST_ROWS).map(row).collect();
    let more = network.jobs.len().saturating_sub(MOST_ROWS);
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    format!("{}{more}\n{facts}\n", table::render(&header, &rows))
}
