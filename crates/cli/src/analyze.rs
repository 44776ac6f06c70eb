//! `temponet analyze`: what can be proved about a task set, how much more work it tolerates, and what to change.

mod fail_unless;

use anyhow::Result;
use temponet_analysis::{PriorityRule, ResponseTimes, Test};
use temponet_lab::analysis::{Analysis, json};
use temponet_lab::guarantee::Guaranteed;
use temponet_lab::horizon::expected_jobs;
use temponet_lab::overload::{OverloadPlan, Survivals};
use temponet_lab::progress::Progress;
use temponet_lab::stats::percent;
use temponet_lab::what_if::{self, ChangeWords, ROOM_COLUMNS, WhatToChange};
use temponet_sched::Scaling;
use temponet_task::{Arrival, Task, Time};
use temponet_wording::counted;

use self::fail_unless::Demand;
use crate::compare::chosen;
use crate::hints::with_flags;
use crate::setup::{ModelArgs, SetupArgs};
use crate::{guarantee, output, table};

/// Prove which deadlines are met, with the shield or without, and find how much longer jobs may take
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet analyze gap-avionics\n  temponet analyze mytasks.toml --cores 4 --json\n  \
    temponet analyze rosace --no-simulation\n  temponet analyze mytasks.toml --what-if\n  \
    temponet analyze robot --no-simulation --fail-unless critical\n\n\
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
    /// Say what to change so that every deadline is met, or how much room each task has
    #[arg(long)]
    what_if: bool,
    /// Exit with code 1 unless this is proved: every deadline under a SCHEDULER, under any, or by the shield those of
    /// the critical tasks or of task.NAME; may be repeated, and all that is not proved is named
    #[arg(long, value_name = "SCHEDULER|any|critical|task.NAME")]
    fail_unless: Vec<Demand>,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

/// Number of runs at each load factor if anything in the set is random.
const RUNS: u64 = 3;

/// Number of jobs up to the first deadline above which rising load is simulated only for a horizon that is asked for. A
/// default run has more than that only if a burst has.
const MOST_JOBS: f64 = 250_000.0;
/// Number of jobs of a burst above which the same holds: schedulers that look at every job take minutes for them.
const MOST_AT_ONCE: u32 = 10_000;

pub fn run(args: Args) -> Result<()> {
    let (set, horizon, mut notes) = args.setup.prepare(args.set.as_deref())?;
    fail_unless::refuse_unknown(&args.fail_unless, &set, !args.model.no_shield)?;
    let roster = args.model.roster()?;
    let schedulers = chosen(&args.schedulers, &roster)?;
    let schedulers: Vec<String> = schedulers.iter().map(|name| args.model.scheduler(name).to_string()).collect();
    let jobs = expected_jobs(&set, horizon);
    let at_once = |task: &Task| if let Arrival::Burst { jobs, .. } = task.arrival { jobs } else { 1 };
    let at_once = set.tasks().iter().map(at_once).max().unwrap_or(1);
    let too_many = match jobs > MOST_JOBS {
        true => Some(format!("a run has about {jobs:.0} jobs")),
        false => (at_once > MOST_AT_ONCE).then(|| format!("{at_once} jobs come at once")),
    };
    let survivals = match (args.no_simulation, too_many.filter(|_| args.setup.horizon.is_none())) {
        (true, _) => None,
        (false, Some(why)) => {
            let note = format!("rising load is not simulated: {why}; --horizon {horizon} does it");
            output::say(&format!("note: {note}"));
            notes.push(note);
            None
        }
        (false, None) => {
            let runs = if set.is_random() { RUNS } else { 1 };
            let plan = OverloadPlan { set: set.clone(), horizon, seed: args.setup.seed(), runs, schedulers, roster };
            Some(plan.run(&Progress::new(plan.runs_in_all(), horizon))?)
        }
    };
    let analysis = Analysis::of(set, survivals);
    let what_if = args.what_if.then(|| WhatToChange::on(&analysis.set));
    match args.json {
        true => output::print_json(&json::report(&analysis, &notes, what_if.as_ref()))?,
        false => output::print(&(text(&analysis) + &what_if.as_ref().map_or(String::new(), changes)))?,
    }
    fail_unless::check(&args.fail_unless, &analysis)
}

fn text(analysis: &Analysis) -> String {
    let set = &analysis.set;
    let density =
        analysis.worst_case.as_ref().map_or("–".into(), |worst_case| format!("{:.4}", worst_case.density()));
    let hyperperiod = set.hyperperiod().map_or("–".into(), |time| time.to_string());
    let figures = [set.task_count().to_string(), set.cores().to_string(), format!("{:.4}", set.utilization())];
    let figures = [&[set.name.clone()][..], &figures, &[density, hyperperiod]].concat();
    let header = ["set", "tasks", "cores", "utilization", "density", "hyperperiod"];
    let mut out = format!("{}\n\n{}", analysis.verdict(), table::render(&header, &[figures]));
    let not_covered =
        analysis.not_covered.iter().map(|item| vec![item.what.clone(), item.named(), item.tests.to_string()]);
    out += &section(&["not covered", "in", "by"], not_covered.collect(), 3);
    out += &tests_table(analysis);
    if let (Some(words), Some(rest)) = (analysis.rest_in_words(), &analysis.rest) {
        out += &format!("\n{words}\n{}", tests_table(rest));
    }
    let proved = analysis.proofs.iter().map(|proof| vec![proof.scheduler.to_string(), proof.by.clone()]);
    out += &section(&["proved to meet all", "by"], proved.collect(), 2);
    out += &response_table(analysis);
    out += &chain_table(analysis);
    let scaled = |row: &Scaling| vec![row.scheduler.to_string(), row.by.clone(), format!("{:.4}", row.factor)];
    let scalings: Vec<Vec<String>> = analysis.scalings.iter().map(scaled).collect();
    out += &section(&["proved up to", "by", "times the wcets"], scalings, 2);
    out += &guarantee::text(&Guaranteed::on(set));
    if let Some(Survivals { possible, rows, skipped }) = &analysis.survivals {
        let cells = possible.iter().chain(rows).map(|row| {
            let more = if row.is_limit { " or more" } else { "" };
            let figures = match row.factor > 0.0 {
                true => [format!("{:.3}{more}", row.factor), format!("{:.3}", row.load), percent(row.compliance)],
                false => ["no factor tried", "–", "–"].map(String::from),
            };
            [vec![row.scheduler.clone()], figures.to_vec()].concat()
        });
        out += &section(&["99% met up to", "times the work", "load per core", "met"], cells.collect(), 1);
        for (name, why) in skipped {
            out += &format!("not run: {name} ({})\n", with_flags(why));
        }
    }
    out
}

fn tests_table(analysis: &Analysis) -> String {
    let kind = |test: &Test| if test.is_exact { "exact" } else { "sufficient" };
    let tests = analysis.tests.iter().map(|(test, outcome)| {
        [test.name, test.scheduler, kind(test)].map(String::from).into_iter().chain([outcome.to_string()]).collect()
    });
    section(&["test", "for", "kind", "result"], tests.collect(), 4)
}

/// What to change, as text.
fn changes(advice: &WhatToChange<'_>) -> String {
    let mut out = format!("\n{}\n", advice.sentence());
    let changes: Vec<Vec<String>> = advice.changes().into_iter().map(|change| change.cells().into()).collect();
    let rooms = advice.rooms();
    let left_out = changes.len().max(rooms.len()).saturating_sub(what_if::MOST_ROWS);
    let shown = |rows: Vec<Vec<String>>| rows.into_iter().take(what_if::MOST_ROWS).collect();
    out += &section(&ChangeWords::COLUMNS, shown(changes), 5);
    out += &section(&ROOM_COLUMNS, shown(rooms), 1);
    if left_out > 0 {
        out += &format!("… and {left_out} more; --json has them all\n");
    }
    advice.notes().iter().for_each(|note| out += &format!("{note}\n"));
    out
}

fn response_table(analysis: &Analysis) -> String {
    if analysis.responses.is_empty() {
        return String::new();
    }
    let by_policy: Vec<String> =
        analysis.responses.iter().map(|(rule, _)| format!("under {}", rule.scheduler())).collect();
    let mut header = vec!["response times", "wcet", "deadline"];
    header.extend(by_policy.iter().map(String::as_str));
    let time = |time: Time| table::time(time.0 as f64);
    let set = &analysis.set;
    let rows = set.whole_tasks().take(MOST_ROWS).map(|index| {
        let task = &set.tasks()[index];
        let wcet = set.parts(index).map(|part| set.tasks()[part].wcet).fold(Time::ZERO, |sum, wcet| sum + wcet);
        let bound = |(_, responses): &(PriorityRule, ResponseTimes)| match responses.bounds[index.index()] {
            Some(bound) if bound > task.deadline => format!("{} !", time(bound)),
            Some(bound) => time(bound),
            None => "–".into(),
        };
        let own = vec![task.name.clone(), time(wcet), time(task.deadline)];
        own.into_iter().chain(analysis.responses.iter().map(bound)).collect()
    });
    let mut out = section(&header, rows.collect(), 1);
    if set.task_count() > MOST_ROWS {
        out += &format!("… and {}; --json has them all\n", counted(set.task_count() - MOST_ROWS, "more task"));
    }
    out
}

fn chain_table(analysis: &Analysis) -> String {
    let time = |time: Option<Time>| time.map_or("–".into(), |time| table::time(time.0 as f64));
    let rows = analysis.chains.iter().map(|(index, scheduler, bound)| {
        let chain = &analysis.set.chains()[*index];
        let late = |bound: Option<Time>| match (bound, chain.deadline) {
            (Some(bound), Some(deadline)) if bound > deadline => " !",
            _ => "",
        };
        let reaction = format!("{}{}", time(bound.reaction), late(bound.reaction));
        let words = [chain.name.clone(), scheduler.to_string(), bound.by.to_string()];
        words.into_iter().chain([time(chain.deadline), reaction, time(bound.age)]).collect()
    });
    section(&["chain", "under", "bound", "deadline", "reaction at most", "data age at most"], rows.collect(), 3)
}

/// Greatest number of tasks in a table.
const MOST_ROWS: usize = 40;

/// Renders a table after an empty line; an empty string if it has no rows.
fn section(header: &[&str], rows: Vec<Vec<String>>, words: usize) -> String {
    if rows.is_empty() { String::new() } else { format!("\n{}", table::render_with(header, &rows, words)) }
}
