//! `temponet analyze`: what can be proved about a task set, and how much more work it tolerates.

mod json;

use anyhow::Result;
use temponet_analysis::{NotAnalyzable, Outcome, PriorityRule, ResponseTimes, TESTS, Test, WorstCase, response_times};
use temponet_lab::comparison::listed;
use temponet_lab::overload::{OverloadPlan, Survivals};
use temponet_lab::progress::Progress;
use temponet_lab::stats::percent;
use temponet_sched::{LARGEST_SCALING, Proof, Scaling, proofs, scalings};
use temponet_task::wording::counted;
use temponet_task::{TaskSet, Time};

use crate::compare::chosen;
use crate::guarantee::Guaranteed;
use crate::setup::{ModelArgs, SetupArgs, cores};
use crate::{output, table};

/// Prove which deadlines are met, with the shield or without, and find how much longer jobs may take
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet analyze gap-avionics\n  temponet analyze mytasks.toml --cores 4 --json\n  \
    temponet analyze rosace --no-simulation\n\n\
    docs/analysis.md describes the tests and their assumptions."
)]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml) or a built-in set's name [default: robot]
    #[arg(value_name = "FILE|NAME")]
    set: Option<String>,
    #[command(flatten)]
    setup: SetupArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Schedulers to simulate under rising load, separated by commas, or all; temponet is the learned scheduler
    #[arg(long, value_name = "LIST", default_value = "edf,rm,dm,llf,srpt,edf-skip,mh-edf,edzl,d-over")]
    schedulers: String,
    /// Skip the simulation that finds how much overload each scheduler survives
    #[arg(long)]
    no_simulation: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

/// Number of runs at each load factor if anything in the set is random.
const RUNS: u64 = 3;

/// Results of the analysis.
struct Analysis {
    set: TaskSet,
    /// Worst case of the set, or the reason why it is not analyzable.
    worst_case: Result<WorstCase, NotAnalyzable>,
    tests: Vec<(&'static Test, Outcome)>,
    /// Response times by priority rule; on one core only.
    responses: Vec<(PriorityRule, ResponseTimes)>,
    proofs: Vec<Proof>,
    scalings: Vec<Scaling>,
    /// Overload that each scheduler survives; none if no simulation was wanted.
    survivals: Option<Survivals>,
}

pub fn run(args: Args) -> Result<()> {
    let (set, horizon, notes) = args.setup.prepare(args.set.as_deref())?;
    let roster = args.model.roster()?;
    let schedulers = chosen(&args.schedulers, &roster)?;
    let schedulers: Vec<String> = schedulers.iter().map(|name| args.model.scheduler(name).to_string()).collect();
    let survivals = match args.no_simulation {
        true => None,
        false => {
            let runs = if set.is_random() { RUNS } else { 1 };
            let plan = OverloadPlan { set: set.clone(), horizon, seed: args.setup.seed(), runs, schedulers, roster };
            Some(plan.run(&Progress::new(plan.runs_in_all(), horizon))?)
        }
    };
    let analysis = Analysis::of(set, survivals);
    match args.json {
        true => output::print_json(&json::report(&analysis, &notes)),
        false => output::print(&analysis.text()),
    }
}

impl Analysis {
    fn of(set: TaskSet, survivals: Option<Survivals>) -> Analysis {
        let progress = Progress::busy("analysis");
        let worst_case = WorstCase::of(&set);
        let (mut tests, mut responses) = (Vec::new(), Vec::new());
        if let Ok(worst_case) = &worst_case {
            let concerned = TESTS.iter().filter(|test| (test.concerns)(&set));
            for test in concerned {
                progress.say(test.name);
                tests.push((test, (test.run)(&set, worst_case)));
            }
            progress.say("response times");
            let has_priorities = set.tasks.iter().any(|task| task.priority.is_some());
            let policies = [PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic, PriorityRule::Given];
            let asked = policies.into_iter().filter(|rule| *rule != PriorityRule::Given || has_priorities);
            responses.extend(asked.filter(|_| set.cores == 1).map(|rule| (rule, response_times(worst_case, rule))));
        }
        progress.say("proofs");
        let proofs = proofs(&set);
        progress.say("longer execution times");
        let scalings = scalings(&set);
        Analysis { set, worst_case, tests, responses, proofs, scalings, survivals }
    }

    /// Returns the conclusion in one sentence.
    fn verdict(&self) -> String {
        let worst_case = match &self.worst_case {
            Ok(worst_case) => worst_case,
            Err(why) => return format!("Not analysable: {why}."),
        };
        let (cores, utilization) = (cores(&self.set), worst_case.utilization());
        let best = self.scalings.first();
        let shrunk = best.filter(|best| best.factor < 1.0).map_or(String::new(), |best| {
            format!(
                "; with execution times at {} of these, {} is proved to meet all",
                percent(best.factor),
                best.scheduler
            )
        });
        if !self.proofs.is_empty() {
            let growth = best.filter(|best| best.factor >= 1.0).map_or(String::new(), |best| {
                let factor = best.factor;
                let by =
                    if factor < 2.0 { format!("by {}", percent(factor - 1.0)) } else { format!("{factor:.2}-fold") };
                let by = if factor < LARGEST_SCALING { by } else { format!("at least {by}") };
                format!("; execution times may grow {by} ({})", best.scheduler)
            });
            return format!(
                "On {cores} every deadline is proved to be met under {}{growth}.",
                listed(&self.proved_names())
            );
        }
        let held =
            |name: &str| self.tests.iter().any(|(test, outcome)| test.name == name && *outcome == Outcome::Schedulable);
        let keeping = [("EDF-VD", "edf-vd"), ("AMC-rtb", "amc")].into_iter().filter(|(test, _)| held(test));
        let keeping: Vec<&str> = keeping.map(|(_, scheduler)| scheduler).collect();
        if !keeping.is_empty() {
            return format!(
                "On {cores} every critical deadline is proved to be met under {}, and all others as long as no job overruns.",
                listed(&keeping)
            );
        }
        if worst_case.is_overloaded() == Some(true) {
            // More digits are shown where rounding would hide the overload.
            let near = utilization / (self.set.cores as f64) < 1.005;
            let utilization = if near { utilization.to_string() } else { format!("{utilization:.2}") };
            return format!(
                "Overloaded: utilization {utilization} on {cores}, so no scheduler can meet every deadline if every job takes its wcet{shrunk}."
            );
        }
        let edf = self.tests.iter().find(|(test, _)| test.name == "QPA");
        if let Some((_, Outcome::NotSchedulable)) = edf {
            return format!(
                "On {cores} even EDF misses deadlines if every job takes its wcet, so no scheduler can meet every deadline then{shrunk}."
            );
        }
        let fits = if utilization <= self.set.cores as f64 {
            " fits"
        } else {
            " may fit: costs count as work that need not be paid each time"
        };
        format!("Nothing is proved on {cores}, though the utilization of {utilization:.2}{fits}{shrunk}.")
    }

    /// Returns the schedulers that are proved to meet all deadlines, the well-known ones first.
    fn proved_names(&self) -> Vec<&'static str> {
        let known = ["edf", "rm", "dm"];
        let is_known = |proof: &&Proof| known.contains(&proof.scheduler);
        let (mut first, others): (Vec<&Proof>, Vec<&Proof>) = self.proofs.iter().partition(is_known);
        first.sort_by_key(|proof| known.iter().position(|name| *name == proof.scheduler));
        first.into_iter().chain(others).map(|proof| proof.scheduler).collect()
    }

    fn text(&self) -> String {
        let set = &self.set;
        let density =
            self.worst_case.as_ref().map_or("–".into(), |worst_case| format!("{:.4}", worst_case.density()));
        let hyperperiod = set.hyperperiod().map_or("–".into(), |time| time.to_string());
        let figures = [set.tasks.len().to_string(), set.cores.to_string(), format!("{:.4}", set.utilization())];
        let figures = [&[set.name.clone()][..], &figures, &[density, hyperperiod]].concat();
        let header = ["set", "tasks", "cores", "utilization", "density", "hyperperiod"];
        let mut out = format!("{}\n\n{}", self.verdict(), table::render(&header, &[figures]));
        let kind = |test: &Test| if test.is_exact { "exact" } else { "sufficient" };
        let tests = self.tests.iter().map(|(test, outcome)| {
            [test.name, test.scheduler, kind(test)].map(String::from).into_iter().chain([outcome.to_string()]).collect()
        });
        out += &section(&["test", "for", "kind", "result"], tests.collect(), 4);
        let proved = self.proofs.iter().map(|proof| vec![proof.scheduler.to_string(), proof.by.clone()]);
        out += &section(&["proved to meet all", "by"], proved.collect(), 2);
        out += &self.response_table();
        let scaled = |row: &Scaling| vec![row.scheduler.to_string(), row.by.clone(), format!("{:.4}", row.factor)];
        let scalings: Vec<Vec<String>> = self.scalings.iter().map(scaled).collect();
        out += &section(&["proved up to", "by", "times the wcets"], scalings, 2);
        out += &Guaranteed::on(set).text();
        if let Some(Survivals { possible, rows, skipped }) = &self.survivals {
            let cells = possible.iter().chain(rows).map(|row| {
                let more = if row.is_limit { " or more" } else { "" };
                let figures = [format!("{:.3}{more}", row.factor), format!("{:.3}", row.load), percent(row.compliance)];
                [vec![row.scheduler.clone()], figures.to_vec()].concat()
            });
            out += &section(&["99% met up to", "times the work", "load per core", "met"], cells.collect(), 1);
            for (name, why) in skipped {
                out += &format!("not run: {name} ({why})\n");
            }
        }
        out
    }

    fn response_table(&self) -> String {
        if self.responses.is_empty() {
            return String::new();
        }
        let by_policy: Vec<String> =
            self.responses.iter().map(|(rule, _)| format!("under {}", rule.scheduler())).collect();
        let mut header = vec!["response times", "wcet", "deadline"];
        header.extend(by_policy.iter().map(String::as_str));
        let time = |time: Time| table::time(time.0 as f64);
        let rows = self.set.tasks.iter().enumerate().take(MOST_ROWS).map(|(index, task)| {
            let bound = |(_, responses): &(PriorityRule, ResponseTimes)| match responses.bounds[index] {
                Some(bound) if bound > task.deadline => format!("{} !", time(bound)),
                Some(bound) => time(bound),
                None => "–".into(),
            };
            let own = vec![task.name.clone(), time(task.wcet), time(task.deadline)];
            own.into_iter().chain(self.responses.iter().map(bound)).collect()
        });
        let mut out = section(&header, rows.collect(), 1);
        if self.set.tasks.len() > MOST_ROWS {
            out += &format!("… and {}; --json has them all\n", counted(self.set.tasks.len() - MOST_ROWS, "more task"));
        }
        out
    }
}

/// Greatest number of tasks in a table.
const MOST_ROWS: usize = 40;

/// Renders a table after an empty line; an empty string if it has no rows.
fn section(header: &[&str], rows: Vec<Vec<String>>, words: usize) -> String {
    if rows.is_empty() { String::new() } else { format!("\n{}", table::render_with(header, &rows, words)) }
}
