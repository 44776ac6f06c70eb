//! `temponet explain`: inspection of one decision of the learned scheduler, or of all decisions of a run.

use std::path::PathBuf;

use anyhow::{Context, Result};
use temponet::Tuning;
use temponet_lab::explain::ModelRun;
use temponet_lab::explain::decision::{ExplainedDecision, explain_at, page};
use temponet_lab::explain::diagnostics::{Agreement, Distribution, RunReport, Spread};
use temponet_lab::explain::run::{explain_run, page as run_page};
use temponet_lab::roster::{SHIELDED, UNSHIELDED};
use temponet_task::Time;

use crate::guarantee::Guaranteed;
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
    /// Explain all decisions up to the horizon (about 1 000 jobs by default): alignment, entropy, Q-values, and the simple rule that decides most
    /// alike
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
    let mut roster = args.model.roster()?;
    // The network is explained, so it is the network that decides.
    roster.options.tuning = Tuning::Off;
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
        for name in ["edf", "srpt"] {
            others.push((name, roster.build(name)?));
        }
        let run = explain_run(explained, &mut others)?;
        let lines = run_lines(&run, model.provenance().unwrap_or("unknown"));
        if let Some(file) = report {
            file.write(run_page(&set, &model.tokenizer, &run, &lines))?;
        }
        if args.json {
            let horizon_ns = horizon.0;
            return output::print_json(&serde_json::json!({
                "task_set": set.name, "horizon_ns": horizon_ns, "seed": seed, "provenance": model.provenance(), "untrained": model.is_untrained(), "shield": !args.model.no_shield, "run": run,
            }));
        }
        let line = |(name, value): &(String, String)| format!("{name:<30} {value}\n");
        return output::print(&(heading(&set, horizon) + "\n\n" + &lines.iter().map(line).collect::<String>()));
    }
    let found = explain_at(explained, args.at)?;
    let decision = found.with_context(|| format!("no job is ready at or after {} and before {horizon}", args.at))?;
    let guaranteed = (!args.model.no_shield).then(|| Guaranteed::on(&set));
    let facts = facts(&decision, guaranteed.as_ref());
    if let Some(file) = report {
        file.write(page(&set, &decision, &facts))?;
    }
    if args.json {
        let ExplainedDecision { network, done, wanted, edf, kept } = &decision;
        let kept = guaranteed.as_ref().map(|_| kept);
        return output::print_json(&serde_json::json!({
            "task_set": set.name, "decision": network, "done": done, "wanted": wanted, "edf": edf,
            "shield": !args.model.no_shield, "shield_changed_it": done != wanted,
            "guarantee": guaranteed.as_ref().map(Guaranteed::json), "kept": kept,
        }));
    }
    output::print(&text(&decision, &facts))
}

fn cores(jobs: &[Option<String>]) -> String {
    jobs.iter().map(|job| job.as_deref().unwrap_or("idle")).collect::<Vec<_>>().join(", ")
}

/// States what the shield guarantees, and the guaranteed jobs that cores keep time for.
fn guarantee(decision: &ExplainedDecision, guaranteed: &Guaranteed<'_>) -> String {
    let kept =
        decision.kept.iter().enumerate().filter_map(|(core, job)| Some(format!("core {core} for {}", job.as_ref()?)));
    let kept = kept.collect::<Vec<_>>().join(", ");
    let kept = if kept.is_empty() { kept } else { format!(" Time is kept on {kept}.") };
    format!(" The shield {}.{kept}", guaranteed.sentence())
}

/// Describes the decision in a few sentences. `guaranteed` is `None` without a shield.
fn facts(decision: &ExplainedDecision, guaranteed: Option<&Guaranteed<'_>>) -> String {
    let ExplainedDecision { network, done, wanted, edf, .. } = decision;
    let shield = match done == wanted {
        _ if guaranteed.is_none() => "and no shield was asked".to_string(),
        true => "which the shield let pass".to_string(),
        false => format!("but the shield ran {}", cores(done)),
    };
    let same = if edf == wanted {
        "EDF would have done the same".into()
    } else {
        format!("EDF would have run {}", cores(edf))
    };
    let idling = match network.idle_q {
        None => "It never idles".into(),
        Some(idle_q) => format!("Idling was worth {idle_q:.4}"),
    };
    let stayed = |kept: &temponet_lab::explain::diagnostics::KeptLine| {
        let name = |(task, job): &(String, u64)| format!("{task}#{job}");
        format!(
            " {} kept its core from {}, whose Q is {:.4} more: moving would have wasted {}, so that staying was worth {:.4}.",
            name(&kept.job),
            name(&kept.instead_of),
            kept.lacked,
            Time(kept.cost_ns),
            kept.worth
        )
    };
    let staying: String = network.kept.iter().map(stayed).collect();
    let guarantee = guaranteed.map_or(String::new(), |guaranteed| guarantee(decision, guaranteed));
    format!(
        "At {} the network wanted {}, {shield}. {same}. {idling}.{staying}{guarantee} Attention entropy by layer: {} bits; alignment {:.0}%.",
        Time(network.now_ns),
        cores(wanted),
        network.entropy_bits.iter().map(|bits| format!("{bits:.2}")).collect::<Vec<_>>().join(", "),
        100.0 * network.alignment
    )
}

/// Factor by which the default horizon is shorter than in other commands, because inspecting a decision is slow.
const SHORTER: u64 = 10;

/// Returns the findings of a run as pairs of name and value.
fn run_lines(run: &RunReport, model: &str) -> Vec<(String, String)> {
    let spread = |spread: &Spread| format!("{:.3} ± {:.3} bits", spread.mean, spread.deviation);
    let share = |share: f64| format!("{:.1}%", 100.0 * share);
    let agreement =
        |of: &Agreement| format!("{} of decisions, {} of contested ones", share(of.all), share(of.contested));
    let correlation = |of: Option<f64>| of.map_or("– (one of them never varies)".into(), |r| format!("{r:.3}"));
    let quantiles = |of: &Distribution| {
        let value = |(at, q): &(f64, f32)| format!("p{:.0} {q:.4}", 100.0 * at);
        of.quantiles.iter().map(value).collect::<Vec<_>>().join(", ")
    };
    let mut lines = vec![
        ("model".to_string(), model.to_string()),
        ("decisions".into(), table::count(run.decisions)),
        ("more ready jobs than cores in".into(), table::count(run.contested)),
        ("alignment".into(), share(run.alignment)),
    ];
    lines.extend(run.top_k_alignment.iter().map(|top| (format!("top-{} alignment", top.k), share(top.alignment))));
    let layers = run.entropy_bits.iter().enumerate();
    lines.extend(layers.map(|(layer, of)| (format!("attention entropy, layer {}", layer + 1), spread(of))));
    lines.extend([
        ("of the decision token".into(), spread(&run.decision_entropy_bits)),
        ("attention and criticality, r".into(), correlation(run.attention_criticality)),
        ("attention and urgency, r".into(), correlation(run.attention_urgency)),
        (format!("Q of {} chosen", table::count(run.q_chosen.count)), quantiles(&run.q_chosen)),
        (format!("Q of {} others", table::count(run.q_others.count)), quantiles(&run.q_others)),
        (format!("rule {:.2}/(s+1) + {:.2}/(c+1)", run.rule.alpha, run.rule.beta), agreement(&run.rule.agreement)),
    ]);
    lines.extend(
        run.agreement.iter().map(|named| (format!("same as {}", named.scheduler), agreement(&named.agreement))),
    );
    lines
}

/// Greatest number of jobs in the table.
const MOST_ROWS: usize = 40;

fn text(decision: &ExplainedDecision, facts: &str) -> String {
    let network = &decision.network;
    let header = ["job", "due in", "slack", "remaining", "token", "Q", "attention", "core"];
    let row = |job: &temponet_lab::explain::diagnostics::JobLine| {
        let row = &network.rows[job.row as usize - 1];
        let token = row.token.iter().map(u16::to_string).chain(row.real.iter().map(|number| format!("{number:.3}")));
        vec![
            format!("{}#{}", job.task, job.job),
            table::time(job.due_in_ns as f64),
            table::time(job.slack_ns as f64),
            table::time(job.remaining_ns as f64),
            token.collect::<Vec<_>>().join(" "),
            format!("{:.4}", job.q),
            format!("{:.1}%", 100.0 * job.attention),
            job.core.map_or("–".into(), |core| core.to_string()),
        ]
    };
    let rows: Vec<Vec<String>> = network.jobs.iter().take(MOST_ROWS).map(row).collect();
    let more = network.jobs.len().saturating_sub(MOST_ROWS);
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    format!("{}{more}\n{facts}\n", table::render(&header, &rows))
}
