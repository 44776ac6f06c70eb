//! `temponet bench infer`: how long a decision takes, and the network in it, and how that grows with the jobs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Serialize;
use temponet::{Mapping, Model, Tokenizer};
use temponet_infer::{Architecture, Kernel, Network, Options, Precision, Rows, Vocabulary, Weights, reference};

use temponet_lab::measure::{attention as measured, control, decision};
use temponet_lab::progress::Progress;
use temponet_lab::stats::power_law;

use super::{agreement, attention};
use crate::paths::{Kind, Output, Replace};
use crate::{output, setup, table};

/// The learned scheduler: time per decision and per forward pass, by number of jobs and kernel
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet bench infer\n  temponet bench infer --all-kernels --json\n\n\
    Decisions: tokens, network and mapping to 8 cores, with the paper's tokens and with ours, untrained weights, and of the built-in model.\n\
    Dense and sparse attention: every job its own row; kept is what queries attend to, in bytes of keys and values.\n\
    Agreement: random networks decide with rougher numbers as in single precision, the same jobs on 8 cores.\n\
    Jobs' slacks are drawn over the whole vocabulary; equal ones are one row, as in a decision. The last case has no two equal rows.\n\
    Results are held against the reference before anything is timed. control_ns is one step of a fixed loop, to tell a slow machine\n\
    from slow code.")]
pub struct Args {
    /// Compute with this kernel [default: the fastest there is]
    #[arg(long, value_name = "NAME", conflicts_with = "all_kernels")]
    kernel: Option<String>,
    /// Compute with each kernel that this machine has
    #[arg(long)]
    all_kernels: bool,
    /// Time decisions of this model as well
    #[arg(long, value_name = "FILE|random:SEED")]
    model: Option<String>,
    /// Decisions and forward passes per case
    #[arg(long, value_name = "K", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    passes: u64,
    /// A first impression in seconds: 20 decisions and passes per case, and the machine is looked at less often
    #[arg(long, conflicts_with = "passes")]
    quick: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Write the random weights, the rows and what comes out into this folder instead, for other runtimes
    #[arg(long, value_name = "FOLDER", hide = true)]
    write: Option<PathBuf>,
    /// Replace existing files in it, whatever is in them
    #[arg(long, requires = "write", hide = true)]
    force: bool,
}

/// Steps of the control loop between decisions are timed so often.
const CONTROLS: u64 = 21;
/// In a hurry: the decisions and passes, and how often the control loop is timed.
const QUICK: (u64, u64) = (20, 1);
/// Values of the job's only feature in the paper's architecture.
const SLACKS: u16 = 130;
const JOBS: [usize; 6] = [16, 64, 200, 600, 2000, 10_000];
/// A second feature of so many values makes so many jobs all distinct.
const ALL_DISTINCT: usize = 600;
const OTHERS: u16 = 5;
const SEED: u64 = 1;
/// One core, half its load.
const IDLE: [u16; 2] = [0, 8];
/// Greatest gap to the reference by precision, for outputs of about one.
const CLOSE: f32 = 1e-4;
const ROUGH: f32 = 0.05;
/// At most this long for one case, in seconds.
const MOST: f64 = 20.0;

#[derive(Serialize)]
struct Figures {
    kernel: &'static str,
    jobs: usize,
    /// Rows that differ, without the idle row.
    distinct: usize,
    passes: usize,
    median_ns: f64,
    p99_ns: f64,
    p999_ns: f64,
    control_ns: f64,
}

#[derive(Serialize)]
struct Growth {
    kernel: &'static str,
    /// Time grows as the number of jobs to this power, fitted over all numbers.
    exponent: f64,
    /// The most jobs' time over that of 600.
    most_over_600: f64,
}

/// The rows of one case.
struct Case {
    jobs: usize,
    features: Vec<u16>,
    /// How many jobs each row stands for.
    counts: Vec<u32>,
    bias: Vec<f32>,
}

impl Case {
    /// Slacks drawn over the whole range, equal ones counted.
    fn drawn(jobs: usize) -> Case {
        let mut rng = Pcg64::seed_from_u64(jobs as u64);
        let mut counts = vec![0u32; usize::from(SLACKS)];
        (0..jobs).for_each(|_| counts[rng.random_range(0..usize::from(SLACKS))] += 1);
        let present = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let (features, counts) = present.map(|(slack, count)| (slack as u16, *count)).unzip();
        Case::new(jobs, features, counts)
    }

    fn all_distinct() -> Case {
        let row = |job: usize| [(job % usize::from(SLACKS)) as u16, (job / usize::from(SLACKS)) as u16];
        Case::new(ALL_DISTINCT, (0..ALL_DISTINCT).flat_map(row).collect(), vec![1; ALL_DISTINCT])
    }

    fn new(jobs: usize, features: Vec<u16>, counts: Vec<u32>) -> Case {
        let bias = [0.0].into_iter().chain(counts.iter().map(|count| (*count as f32).ln())).collect();
        Case { jobs, features, counts, bias }
    }

    fn rows(&self) -> Rows<'_> {
        Rows { idle: &IDLE, jobs: &self.features, real: &[], bias: &self.bias, sparsity: None }
    }
}

pub fn run(args: Args) -> Result<()> {
    let (drawn, distinct) = (Weights::random(paper(1), SEED), Weights::random(paper(2), SEED));
    if let Some(folder) = &args.write {
        return write(folder, &drawn, args.force);
    }
    let kernels = match &args.kernel {
        _ if args.all_kernels => Kernel::available(),
        None => vec![Kernel::best()],
        Some(name) => {
            let names = Kernel::ALL.map(|kernel| kernel.name()).join(", ");
            vec![Kernel::from_name(name).with_context(|| format!("there is no kernel {name:?}; there are {names}"))?]
        }
    };
    let (passes, controls) = if args.quick { QUICK } else { (args.passes, CONTROLS) };
    let models = 3 + usize::from(args.model.is_some());
    let cases_in_all = kernels.len() * (JOBS.len() + 1) + models * JOBS.len() + attention::JOBS.len() + 1;
    let progress = Progress::steps(cases_in_all as u64);
    let (mut cases, mut growths) = (Vec::new(), Vec::new());
    for kernel in kernels {
        progress.say(kernel.name());
        let first = cases.len();
        for jobs in JOBS {
            cases.push(measure(kernel, &drawn, &Case::drawn(jobs), passes)?);
            progress.step();
        }
        growths.push(growth(kernel, &cases[first..]));
        cases.push(measure(kernel, &distinct, &Case::all_distinct(), passes)?);
        progress.step();
    }
    let mut models = vec![
        ("paper", Model::random(Tokenizer::paper(), SEED)),
        ("full", Model::random(Tokenizer::full(), SEED)),
        ("built-in", Model::built_in()?),
    ];
    if let Some(name) = &args.model {
        models.push(("given", setup::model(name)?));
    }
    let effort = decision::TimingEffort { passes, controls, mapping: Mapping::Greedy };
    let mut decisions = Vec::new();
    for (name, model) in models {
        let model = Arc::new(model);
        progress.say(name);
        for jobs in JOBS {
            decisions.push(decision::measure(name, &model, jobs, effort)?);
            progress.step();
        }
    }
    progress.say("attention");
    let attentions = attention::JOBS.into_iter().map(|jobs| {
        let measured = measured::measure(jobs, passes);
        progress.step();
        measured
    });
    let attentions = attentions.collect::<Result<Vec<_>, _>>()?;
    progress.say("agreement");
    let agreements = agreement::measure(passes)?;
    progress.finish();
    let of_paper = decisions.iter().filter(|figures| figures.model == "paper");
    let times = of_paper.map(|figures| (figures.n as f64, figures.end_to_end_ns_p50)).collect::<Vec<_>>();
    let exponent = power_law(&times).exponent;
    if args.json {
        return output::print_json(&serde_json::json!({
            "cases": decisions, "exponent": exponent, "kernels": cases, "growth": growths,
            "attention": attentions, "agreement": agreements,
        }));
    }
    let header = ["kernel", "jobs", "distinct", "median", "p99", "p99.9", "control ns"];
    let row = |figures: &Figures| {
        let micro = |ns: f64| format!("{:.1} µs", ns / 1e3);
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
    let mut text = table::render(&header, &cases.iter().map(row).collect::<Vec<_>>());
    for Growth { kernel, exponent, most_over_600 } in growths {
        let most = JOBS[JOBS.len() - 1];
        text += &format!(
            "{kernel}: time grows as N^{exponent:.2}; {most} jobs take {most_over_600:.2} times as long as 600\n"
        );
    }
    text += "\n";
    let header =
        ["model", "jobs", "distinct", "tokens", "network", "mapping", "decision", "p99", "p99.9", "control ns"];
    let row = |figures: &decision::DecisionFigures| {
        let micro = |ns: f64| format!("{:.1} µs", ns / 1e3);
        let whole = [figures.end_to_end_ns_p50, figures.end_to_end_ns_p99, figures.end_to_end_ns_p999];
        let parts = [figures.tokens_ns_p50, figures.encoder_ns_p50, figures.mapping_ns_p50];
        let jobs = format!("{}{}", figures.n, if figures.is_fallback { "*" } else { "" });
        let mut cells = vec![figures.model.to_string(), jobs, figures.distinct.to_string()];
        cells.extend(parts.into_iter().chain(whole).map(micro));
        cells.push(format!("{:.3}", figures.control_ns_p50));
        cells
    };
    text += &table::render(&header, &decisions.iter().map(row).collect::<Vec<_>>());
    if decisions.iter().any(|figures| figures.is_fallback) {
        text += "* beyond the model's reach: the decision is the fallback's (mh-edf); tokens, network and mapping are what they would take\n";
    }
    text += &format!("paper: a decision's time grows as N^{exponent:.2}\n\n");
    text += &attention::text(&attentions);
    text += "\n";
    text += &agreement::text(&agreements);
    output::print(&text)
}

/// What another runtime needs to compute the same, and what comes out here.
fn write(folder: &Path, weights: &Weights, force: bool) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
    let replace = Replace::earlier_or(force);
    Output::claim(&folder.join("model.safetensors"), Kind::Model, replace)?.write(weights.to_bytes()?)?;
    let case = |case: Case| {
        let q_of = |precision: Precision| -> Result<Vec<f32>> {
            let mut q = Vec::new();
            Network::new(weights, Options { precision, ..Options::default() })?.forward(&case.rows(), &mut q);
            Ok(q)
        };
        let Case { jobs, features, counts, .. } = &case;
        let (exact, fastest) = (q_of(Precision::F32)?, q_of(Precision::Bf16)?);
        Ok(serde_json::json!({
            "jobs": jobs, "idle": IDLE, "slack": features, "count": counts, "q": exact, "q_fastest": fastest,
        }))
    };
    let cases = JOBS.into_iter().map(|jobs| case(Case::drawn(jobs))).collect::<Result<Vec<_>>>()?;
    Output::claim(&folder.join("cases.json"), Kind::BenchData, replace)?.write(serde_json::to_string(&cases)?)
}

/// The paper's architecture, with one feature of a job or two.
fn paper(features: usize) -> Architecture {
    let vocabulary = |(name, size): (&str, u16)| Vocabulary { name: name.into(), size: size.into() };
    let job = [("slack", SLACKS), ("other", OTHERS)];
    Architecture::paper(
        job[..features].iter().copied().map(vocabulary).collect(),
        [("cores", 8), ("load", 16)].into_iter().map(vocabulary).collect(),
    )
}

fn measure(kernel: Kernel, weights: &Weights, case: &Case, passes: u64) -> Result<Figures> {
    let rows = case.rows();
    let options = Options { rows: case.bias.len(), ..Options::of(kernel) };
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
    Ok(Figures {
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

fn growth(kernel: Kernel, cases: &[Figures]) -> Growth {
    let points: Vec<(f64, f64)> = cases.iter().map(|figures| (figures.jobs as f64, figures.median_ns)).collect();
    let of = |jobs: usize| cases.iter().find(|figures| figures.jobs == jobs).map_or(f64::NAN, |case| case.median_ns);
    let most_over_600 = of(JOBS[JOBS.len() - 1]) / of(600);
    Growth { kernel: kernel.name(), exponent: power_law(&points).exponent, most_over_600 }
}
