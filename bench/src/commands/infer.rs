//! `temponet bench infer`: time of a decision and of a forward pass, and its growth with the number of jobs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Serialize;
use temponet::Model;
use temponet::stages::Tokenizer;
use temponet_infer::{Architecture, Kernel, Network, NetworkOptions, Precision, Rows, Vocabulary, Weights, reference};

use crate::{attention as measured, control, decision, shield};
use temponet_lab::progress::Progress;
use temponet_lab::stats::power_law;

use super::{agreement, attention};
use temponet_cli::paths::{Kind, Output, Replace};
use temponet_cli::{output, setup, table};

/// Measure the learned scheduler: time per decision and per forward pass, by number of jobs and kernel
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet bench infer\n  temponet bench infer --all-kernels --json\n  \
    temponet bench infer --decisions\n\n\
    Decisions: tokens, network and mapping to 8 cores, for untrained weights with the paper's tokens and with ours, and for the built-in model.\n\
    Shield: time that the shield adds, with half of the tasks guaranteed and the slack of every core to compute. It is not part of \"decision\".\n\
    Dense and sparse attention, and its rivals with as many keys per query: every job has its own row, random weights of the paper's shape; \"read\" is the size of the keys and values that the kernel reads.\n\
    Agreement: share of decisions in which reduced precision puts the same jobs on 8 cores as single precision, for random networks.\n\
    Slacks are drawn over the whole vocabulary; equal jobs are merged into one row, as in a decision. The last case has no two equal rows.\n\
    Results are checked against the reference implementation before anything is timed. control_ns is the time of one step of a fixed loop, \
    which tells a slow machine from slow code.")]
pub struct Args {
    /// Kernel to measure [default: the fastest on this machine]
    #[arg(long, value_name = "NAME", conflicts_with = "all_kernels")]
    kernel: Option<String>,
    /// Measure every kernel that this machine supports
    #[arg(long)]
    all_kernels: bool,
    /// Model whose decisions to measure as well
    #[arg(long, value_name = "FILE|random:SEED")]
    model: Option<String>,
    /// Measure only decisions of the built-in model, or of the given one, part by part
    #[arg(long, conflicts_with_all = ["kernel", "all_kernels", "write"])]
    decisions: bool,
    /// Number of decisions and forward passes per case
    #[arg(long, value_name = "K", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    passes: u64,
    /// Measure only 20 decisions and passes per case, which takes seconds
    #[arg(long, conflicts_with = "passes")]
    quick: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
    /// Write the random weights, the inputs and the outputs into this folder instead of measuring, for other runtimes
    #[arg(long, value_name = "FOLDER", hide = true)]
    write: Option<PathBuf>,
    /// Replace existing files of any kind in that folder
    #[arg(long, requires = "write", hide = true)]
    force: bool,
}

/// Number of times that the control loop is timed between decisions.
const CONTROLS: u64 = 21;
/// Time after which no further decision is taken with each kind of attention, in seconds.
const ATTENTION_SECONDS: f64 = 5.0;
/// With `--quick`: number of decisions and passes, and number of times that the control loop is timed.
const QUICK: (u64, u64) = (20, 1);
/// Size of the vocabulary of slack, the only feature of a job in the paper's architecture.
const SLACKS: u16 = 130;
/// Numbers of jobs that are measured.
const JOBS: [usize; 6] = [16, 64, 200, 600, 2000, 10_000];
/// Number of jobs in the case without equal rows.
const ALL_DISTINCT: usize = 600;
/// Size of the vocabulary of the second feature, which makes these jobs distinct.
const OTHERS: u16 = 5;
const SEED: u64 = 1;
/// Idle token: one core, half loaded.
const IDLE: [u16; 2] = [0, 8];
/// Greatest difference from the reference in single precision, for outputs of about 1.
const CLOSE: f32 = 1e-4;
/// The same in reduced precision.
const ROUGH: f32 = 0.05;
/// Longest duration of one case, in seconds.
const MOST: f64 = 20.0;

/// Time of forward passes with a kernel.
#[derive(Serialize)]
struct KernelFigures {
    kernel: &'static str,
    jobs: usize,
    /// Number of distinct rows, without the idle row.
    distinct: usize,
    passes: usize,
    median_ns: f64,
    p99_ns: f64,
    p999_ns: f64,
    control_ns: f64,
}

/// Growth of the time with the number of jobs.
#[derive(Serialize)]
struct Growth {
    kernel: &'static str,
    /// Exponent of the power law that fits the time over the number of jobs.
    exponent: f64,
    /// Time with the most jobs divided by the time with 600.
    most_over_600: f64,
}

/// Input rows of a forward pass.
struct ForwardCase {
    jobs: usize,
    features: Vec<u16>,
    /// Number of jobs that each row stands for.
    counts: Vec<u32>,
    bias: Vec<f32>,
}

impl ForwardCase {
    /// Jobs whose slacks are drawn over the whole vocabulary. Equal jobs share a row.
    fn drawn(jobs: usize) -> ForwardCase {
        let mut rng = Pcg64::seed_from_u64(jobs as u64);
        let mut counts = vec![0u32; usize::from(SLACKS)];
        (0..jobs).for_each(|_| counts[rng.random_range(0..usize::from(SLACKS))] += 1);
        let present = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let (features, counts) = present.map(|(slack, count)| (slack as u16, *count)).unzip();
        ForwardCase::new(jobs, features, counts)
    }

    /// Jobs without equal rows.
    fn all_distinct() -> ForwardCase {
        let row = |job: usize| [(job % usize::from(SLACKS)) as u16, (job / usize::from(SLACKS)) as u16];
        ForwardCase::new(ALL_DISTINCT, (0..ALL_DISTINCT).flat_map(row).collect(), vec![1; ALL_DISTINCT])
    }

    fn new(jobs: usize, features: Vec<u16>, counts: Vec<u32>) -> ForwardCase {
        let bias = [0.0].into_iter().chain(counts.iter().map(|count| (*count as f32).ln())).collect();
        ForwardCase { jobs, features, counts, bias }
    }

    fn rows(&self) -> Rows<'_> {
        Rows { idle: &IDLE, jobs: &self.features, real: &[], bias: &self.bias, sparsity: None }
    }
}

/// All measurements.
struct Measured {
    kernels: Vec<KernelFigures>,
    growths: Vec<Growth>,
    decisions: Vec<decision::DecisionFigures>,
    shields: Vec<shield::ShieldFigures>,
    attentions: Vec<measured::AttentionFigures>,
    agreements: Vec<agreement::AgreementFigures>,
}

pub fn run(args: Args) -> Result<()> {
    if let Some(folder) = &args.write {
        return write(folder, &Weights::random(paper(1), SEED), args.force);
    }
    if args.decisions {
        return decisions(&args);
    }
    let measured = Measured::of(&args)?;
    // Growth of a decision's time with the number of jobs.
    let of_paper = measured.decisions.iter().filter(|figures| figures.model == "paper");
    let times = of_paper.map(|figures| (figures.n as f64, figures.end_to_end_ns_p50)).collect::<Vec<_>>();
    let exponent = power_law(&times).exponent;
    if args.json {
        let Measured { kernels, growths, decisions, shields, attentions, agreements } = &measured;
        return output::print_json(&serde_json::json!({
            "cases": decisions, "exponent": exponent, "kernels": kernels, "growth": growths,
            "shield": shields, "attention": attentions, "agreement": agreements,
        }));
    }
    output::print(&measured.text(exponent))
}

/// Returns the kernels that the user asks for; default: the fastest one.
fn kernels(args: &Args) -> Result<Vec<Kernel>> {
    Ok(match &args.kernel {
        _ if args.all_kernels => Kernel::available(),
        None => vec![Kernel::best()],
        Some(name) => {
            let names = Kernel::ALL.map(|kernel| kernel.name()).join(", ");
            vec![Kernel::from_name(name).with_context(|| format!("there is no kernel {name:?}; there are {names}"))?]
        }
    })
}

/// Number of decisions per case, and number of times that the control loop is timed among them.
fn effort(args: &Args) -> (u64, u64) {
    if args.quick { QUICK } else { (args.passes, CONTROLS) }
}

/// Measures the decisions of one model, part by part.
fn decisions(args: &Args) -> Result<()> {
    let model = match &args.model {
        Some(name) => setup::model(name)?,
        None => Model::built_in()?,
    };
    let ((passes, controls), name) = (effort(args), if args.model.is_some() { "given" } else { "built-in" });
    let (model, progress) = (Arc::new(model), Progress::steps(2 * JOBS.len() as u64));
    let effort = decision::TimingEffort { passes, controls, ..Default::default() };
    let (mut decisions, mut shields) = (Vec::new(), Vec::new());
    for jobs in JOBS {
        decisions.push(decision::measure(name, &model, jobs, effort)?);
        progress.step();
        shields.push(shield::measure(jobs, passes)?);
        progress.step();
    }
    progress.finish();
    match args.json {
        true => output::print_json(&serde_json::json!({ "cases": decisions, "shield": shields })),
        false => output::print(&parts_text(&decisions, &shields)),
    }
}

/// The parts of decisions, each as its best hundredth and its median.
fn parts_text(decisions: &[decision::DecisionFigures], shields: &[shield::ShieldFigures]) -> String {
    let header = ["jobs", "distinct", "tokens", "network", "mapping", "decision", "shield", "control ns"];
    let both = |best: f64, median: f64| format!("{:.1}, {:.1} µs", best / 1e3, median / 1e3);
    let row = |(figures, shield): (&decision::DecisionFigures, &shield::ShieldFigures)| {
        vec![
            figures.n.to_string(),
            figures.distinct.to_string(),
            both(figures.tokens_ns_best, figures.tokens_ns_p50),
            both(figures.encoder_ns_best, figures.encoder_ns_p50),
            both(figures.mapping_ns_best, figures.mapping_ns_p50),
            both(figures.end_to_end_ns_best, figures.end_to_end_ns_p50),
            both(shield.shield_ns_best, shield.shield_ns_p50),
            format!("{:.3}", figures.control_ns_p50),
        ]
    };
    let rows: Vec<Vec<String>> = decisions.iter().zip(shields).map(row).collect();
    format!(
        "Best hundredth and median on the kernel {}; the shield's time comes on top of a decision\n{}",
        Kernel::best(),
        table::render(&header, &rows)
    )
}

/// Returns the models whose decisions are timed, by name.
fn models(args: &Args) -> Result<Vec<(&'static str, Model)>> {
    let mut models = vec![
        ("paper", Model::random(Tokenizer::paper(), SEED)),
        ("full", Model::random(Tokenizer::full(), SEED)),
        ("built-in", Model::built_in()?),
    ];
    if let Some(name) = &args.model {
        models.push(("given", setup::model(name)?));
    }
    Ok(models)
}

impl Measured {
    fn of(args: &Args) -> Result<Measured> {
        let (kernels, models) = (kernels(args)?, models(args)?);
        let (passes, controls) = effort(args);
        let cases_in_all =
            kernels.len() * (JOBS.len() + 1) + (models.len() + 1) * JOBS.len() + attention::JOBS.len() + 1;
        let progress = Progress::steps(cases_in_all as u64);
        let (kernels, growths) = measure_kernels(kernels, passes, &progress)?;
        let effort = decision::TimingEffort { passes, controls, ..Default::default() };
        let mut decisions = Vec::new();
        for (name, model) in models {
            let model = Arc::new(model);
            progress.say(name);
            for jobs in JOBS {
                decisions.push(decision::measure(name, &model, jobs, effort)?);
                progress.step();
            }
        }
        progress.say("shield");
        let shields = JOBS.into_iter().map(|jobs| {
            let measured = shield::measure(jobs, passes);
            progress.step();
            measured
        });
        let shields = shields.collect::<Result<Vec<_>, _>>()?;
        progress.say("attention");
        let model = Model::random(Tokenizer::full(), 1);
        let effort = measured::AttentionEffort { passes, seconds: ATTENTION_SECONDS };
        let attentions = attention::JOBS.into_iter().map(|jobs| {
            let measured = measured::measure(&model, jobs, &measured::Method::ALL, effort);
            progress.step();
            measured
        });
        let attentions = attentions.collect::<Result<Vec<_>, _>>()?;
        progress.say("agreement");
        let agreements = agreement::measure(passes)?;
        progress.finish();
        Ok(Measured { kernels, growths, decisions, shields, attentions, agreements })
    }

    fn text(&self, exponent: f64) -> String {
        let mut text = kernels_text(&self.kernels);
        for Growth { kernel, exponent, most_over_600 } in &self.growths {
            let most = JOBS[JOBS.len() - 1];
            text += &format!(
                "{kernel}: time grows as N^{exponent:.2}; {most} jobs take {most_over_600:.2} times as long as 600\n"
            );
        }
        text += "\n";
        text += &decisions_text(&self.decisions, &self.shields);
        text += &format!("paper: a decision's time grows as N^{exponent:.2}\n\n");
        text += &attention::text(&self.attentions);
        text += "\n";
        text + &agreement::text(&self.agreements)
    }
}

/// Measures forward passes with each kernel.
fn measure_kernels(
    kernels: Vec<Kernel>,
    passes: u64,
    progress: &Progress,
) -> Result<(Vec<KernelFigures>, Vec<Growth>)> {
    let (drawn, distinct) = (Weights::random(paper(1), SEED), Weights::random(paper(2), SEED));
    let (mut figures, mut growths) = (Vec::new(), Vec::new());
    for kernel in kernels {
        progress.say(kernel.name());
        let first = figures.len();
        for jobs in JOBS {
            figures.push(measure(kernel, &drawn, &ForwardCase::drawn(jobs), passes)?);
            progress.step();
        }
        growths.push(growth(kernel, &figures[first..]));
        figures.push(measure(kernel, &distinct, &ForwardCase::all_distinct(), passes)?);
        progress.step();
    }
    Ok((figures, growths))
}

/// Formats a time in nanoseconds as microseconds.
fn micro(ns: f64) -> String {
    format!("{:.1} µs", ns / 1e3)
}

fn kernels_text(kernels: &[KernelFigures]) -> String {
    let header = ["kernel", "jobs", "distinct", "median", "p99", "p99.9", "control ns"];
    let row = |figures: &KernelFigures| {
        vec![
            figures.kernel.to_string(),
            figures.jobs.to_string(),
            figures.distinct.to_string(),
            micro(figures.median_ns),
            micro(figures.p99_ns),
            micro(figures.p999_ns),
            format!("{:.3}", figures.control_ns),
        ]
    };
    table::render(&header, &kernels.iter().map(row).collect::<Vec<_>>())
}

fn decisions_text(decisions: &[decision::DecisionFigures], shields: &[shield::ShieldFigures]) -> String {
    let header = [
        "model",
        "jobs",
        "distinct",
        "tokens",
        "network",
        "mapping",
        "decision",
        "p99",
        "p99.9",
        "shield",
        "control ns",
    ];
    let shield_of = |jobs: usize| shields.iter().find(|figures| figures.n == jobs);
    let row = |figures: &decision::DecisionFigures| {
        let whole = [figures.end_to_end_ns_p50, figures.end_to_end_ns_p99, figures.end_to_end_ns_p999];
        let parts = [figures.tokens_ns_p50, figures.encoder_ns_p50, figures.mapping_ns_p50];
        let mut cells = vec![figures.model.to_string(), figures.n.to_string(), figures.distinct.to_string()];
        cells.extend(parts.into_iter().chain(whole).map(micro));
        cells.push(shield_of(figures.n).map_or("–".into(), |figures| {
            format!("{}{}", micro(figures.shield_ns_p50), if figures.gives_up { "†" } else { "" })
        }));
        cells.push(format!("{:.3}", figures.control_ns_p50));
        cells
    };
    let mut text = table::render(&header, &decisions.iter().map(row).collect::<Vec<_>>());
    if shields.iter().any(|figures| figures.gives_up) {
        text += "† the slack of some cores takes too long to compute: they run EDF instead\n";
    }
    text
}

/// Writes the inputs that another runtime needs to compute the same, and our outputs.
fn write(folder: &Path, weights: &Weights, force: bool) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
    let replace = Replace::earlier_or(force);
    Output::claim(&folder.join("model.safetensors"), Kind::Model, replace)?.write(weights.to_bytes()?)?;
    let case = |case: ForwardCase| {
        let q_of = |precision: Precision| -> Result<Vec<f32>> {
            let mut q = Vec::new();
            Network::new(weights, NetworkOptions { precision, ..NetworkOptions::default() })?
                .forward(&case.rows(), &mut q);
            Ok(q)
        };
        let ForwardCase { jobs, features, counts, .. } = &case;
        let (exact, fastest) = (q_of(Precision::F32)?, q_of(Precision::Bf16)?);
        Ok(serde_json::json!({
            "jobs": jobs, "idle": IDLE, "slack": features, "count": counts, "q": exact, "q_fastest": fastest,
        }))
    };
    let cases = JOBS.into_iter().map(|jobs| case(ForwardCase::drawn(jobs))).collect::<Result<Vec<_>>>()?;
    Output::claim(&folder.join("cases.json"), Kind::BenchData, replace)?.write(serde_json::to_string(&cases)?)
}

/// Returns the paper's architecture with one or two features of a job.
fn paper(features: usize) -> Architecture {
    let vocabulary = |(name, size): (&str, u16)| Vocabulary { name: name.into(), size: size.into() };
    let job = [("slack", SLACKS), ("other", OTHERS)];
    Architecture::paper(
        job[..features].iter().copied().map(vocabulary).collect(),
        [("cores", 8), ("load", 16)].into_iter().map(vocabulary).collect(),
    )
}

/// Checks a kernel against the reference and measures its forward passes.
fn measure(kernel: Kernel, weights: &Weights, case: &ForwardCase, passes: u64) -> Result<KernelFigures> {
    let rows = case.rows();
    let options = NetworkOptions { rows: case.bias.len(), ..NetworkOptions::of(kernel) };
    let mut network = Network::new(weights, options)?;
    let mut q = Vec::with_capacity(case.bias.len());
    network.forward(&rows, &mut q);
    let allowed = if kernel.precision() == Precision::F32 { CLOSE } else { ROUGH };
    let gap = q.iter().zip(reference(weights, &rows).q).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    if gap > allowed {
        bail!("{kernel} on {} jobs is {gap} away from the reference", case.jobs);
    }
    let mut controls = vec![control()];
    let begin = Instant::now();
    let mut times = Vec::with_capacity(passes as usize);
    while times.len() < passes as usize && (times.len() < 10 || begin.elapsed().as_secs_f64() < MOST) {
        let begin = Instant::now();
        network.forward(&rows, &mut q);
        times.push(begin.elapsed().as_nanos() as f64);
    }
    controls.push(control());
    times.sort_by(f64::total_cmp);
    let quantile = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    Ok(KernelFigures {
        kernel: kernel.name(),
        jobs: case.jobs,
        distinct: case.bias.len() - 1,
        passes: times.len(),
        median_ns: quantile(0.5),
        p99_ns: quantile(0.99),
        p999_ns: quantile(0.999),
        control_ns: controls.iter().sum::<f64>() / controls.len() as f64,
    })
}

fn growth(kernel: Kernel, cases: &[KernelFigures]) -> Growth {
    let points: Vec<(f64, f64)> = cases.iter().map(|figures| (figures.jobs as f64, figures.median_ns)).collect();
    let of = |jobs: usize| cases.iter().find(|figures| figures.jobs == jobs).map_or(f64::NAN, |case| case.median_ns);
    let most_over_600 = of(JOBS[JOBS.len() - 1]) / of(600);
    Growth { kernel: kernel.name(), exponent: power_law(&points).exponent, most_over_600 }
}
