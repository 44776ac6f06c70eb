//! All rivals: every learned and every search baseline that the paper names, beside TempoNet, EDF, the best classical
//! scheduler and the optimum, on the loads of E1 to E4 and on four scenarios of the arena.

mod field;
mod scores;

use serde::Deserialize;
use temponet_lab::latency::Timed;
use temponet_lab::stats::{mean, percent};
use temponet_sim::{Unobserved, simulate};
use temponet_task::Time;

use crate::plots::{Curve, share_panel};
use crate::rivals::SEARCHING;
use crate::{
    Baselines, Context, Findings, FindingsTable, Line, PAPER, RepeatedMean, ReproduceError, RunFigures, Size,
    TimedSize, Unit, Verdict,
};
use field::{Competitor, CompetitorKind};
use scores::{Column, Heat, HeatResult, scenario_cases};
use temponet_lab::clairvoyant::OptimumRange;
use temponet_page::plot::Panel;

/// Scenarios of the arena that everyone runs.
const SCENARIOS: [&str; 4] = ["one-core-overload", "four-cores-uncertain", "bursts", "inference-requests"];
/// Scenario on which the number of evaluations is varied.
const CURVE: &str = SCENARIOS[0];
/// Heats whose first runs are timed.
const TIMED: [&str; 2] = ["e1", "e3-100"];

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Number of candidates that a search judges.
    evaluations: usize,
    /// Time of a decision, in milliseconds, that decides the number of candidates of each search instead.
    budget_ms: Option<f64>,
    standard: Size,
    heterogeneous: Size,
    hundred: TimedSize,
    six_hundred: TimedSize,
    industrial: Size,
    /// Runs of each scenario.
    scenario: Size,
    /// Numbers of evaluations on the curve, and its runs.
    curve: Vec<usize>,
    curve_runs: Size,
    /// Simulated length of the runs whose decisions are timed, in seconds.
    timed_seconds: f64,
}

/// A column with the results of everyone.
struct Scored {
    column: Column,
    /// Estimate of each competitor, or why there is none.
    estimates: Vec<Result<RepeatedMean, String>>,
    baselines: Baselines,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    if context.is_planning() {
        return context.field(&[settings.evaluations; SEARCHING.len()], &[]).map(drop);
    }
    let heats = Heat::all(protocol, settings)?;
    let evaluations = evaluations(context, settings, &heats)?;
    let field = context.field(&evaluations, &protocol.schedulers)?;
    let mut columns = Vec::new();
    for heat in &heats {
        columns.extend(scored(context, heat, &field)?);
    }
    for scored in &columns {
        add_lines(findings, scored, &field);
    }
    // A rival that is not trained has no figures to stand beside the paper's.
    let known: Vec<String> = findings.lines.iter().map(|line| line.name.clone()).collect();
    findings.paper.retain(|name, _| known.contains(name));
    let (papers, arena) = columns.split_at(columns.len() - SCENARIOS.len());
    let title = "The loads of E1 to E4; in brackets the paper's figure; ★: nobody is above it";
    findings.tables.push(score_table(findings, title, papers, &field));
    findings.tables.push(score_table(findings, "Scenarios of the arena; ★: nobody is above it", arena, &field));
    let followed = heats.iter().map(|heat| vec![heat.title.clone(), context.followed(&heat.cases)]).collect();
    let title = "Whom temponet follows: its network, or a simple scheduler that it found to be better by simulation";
    findings.tables.push(FindingsTable::new(title, &["runs", "who decides"], followed));
    let heats: Vec<&Heat> = heats.iter().filter(|heat| TIMED.contains(&heat.id)).collect();
    let table = field_table(findings, &field, &heats, settings.timed_seconds)?;
    findings.tables.push(table);
    draw_curve(context, findings, settings, &field)?;
    draw_trainings(findings, &field);
    add_notes(context, findings, &field);
    conclude(findings, &columns, &field);
    Ok(())
}

/// Most candidates that a search with a time budget judges.
const MOST_EVALUATIONS: f64 = 100_000.0;

/// Returns the number of candidates that each search judges: that of the settings, or as many as fit into the time
/// budget of a decision among 100 tasks. The number is found once and kept, so that the results read no clock.
fn evaluations(
    context: &Context<'_>,
    settings: &Settings,
    heats: &[Heat],
) -> Result<[usize; SEARCHING.len()], ReproduceError> {
    let mut all = [settings.evaluations; SEARCHING.len()];
    let (Some(budget), Some(heat)) = (settings.budget_ms, heats.iter().find(|heat| heat.id == TIMED[1])) else {
        return Ok(all);
    };
    for (at, who) in context.searching(&all).iter().enumerate() {
        let found = context.kept_part(&["evaluations", &who.name, &budget.to_string()], || {
            let slow = latency(who, heat, settings.timed_seconds)?.map_or(f64::NAN, |[_, p99]| p99 / 1e3);
            let fitting = (settings.evaluations as f64 * budget / slow).clamp(1.0, MOST_EVALUATIONS);
            Ok(if fitting.is_nan() { settings.evaluations } else { fitting as usize })
        });
        all[at] = found?;
    }
    Ok(all)
}

/// Runs a heat and returns its columns.
fn scored(context: &Context<'_>, heat: &Heat, field: &[Competitor<'_>]) -> Result<Vec<Scored>, ReproduceError> {
    let mut results = Vec::new();
    for who in field {
        results.push(context.result(heat, who)?);
    }
    let bounds = context.bounds(heat)?;
    let scored = |column: &Column| {
        let estimate = |result: &Option<HeatResult>| match result {
            Some(HeatResult::Runs { runs, trainings }) => {
                let values = |runs: &[RunFigures]| runs.iter().filter_map(column.of).collect::<Vec<f64>>();
                // The interval covers the trainings as well.
                let by_training: Vec<f64> = trainings.iter().map(|runs| mean(&values(runs))).collect();
                let values = values(runs);
                let estimate = || RepeatedMean::of(&values).with_trainings(&by_training);
                if values.is_empty() { Err("no such jobs".into()) } else { Ok(estimate()) }
            }
            Some(HeatResult::NotApplicable(why)) => Err(why.clone()),
            None => Err("not trained".into()),
        };
        let estimates: Vec<Result<RepeatedMean, String>> = results.iter().map(estimate).collect();
        let baselines = baselines(field, &estimates, column.has_optimum.then_some(&bounds));
        Scored { column: *column, estimates, baselines }
    };
    Ok(heat.columns.iter().map(scored).collect())
}

/// Returns EDF, the best classical scheduler and the optimum.
fn baselines(
    field: &[Competitor<'_>],
    estimates: &[Result<RepeatedMean, String>],
    bounds: Option<&Vec<OptimumRange>>,
) -> Baselines {
    let means = || field.iter().zip(estimates).filter_map(|(who, estimate)| Some((who, estimate.as_ref().ok()?.mean)));
    let classical = means().filter(|(who, _)| who.kind == CompetitorKind::Classical);
    let best = classical.reduce(|best, next| if next.1 > best.1 { next } else { best });
    let optimum = bounds.map(|bounds| {
        let upper: Vec<f64> = bounds.iter().map(|range| range.upper).collect();
        (mean(&upper), bounds.iter().all(OptimumRange::is_exact))
    });
    Baselines {
        edf: means().find(|(who, _)| who.name == "edf").map(|(_, mean)| mean),
        best: best.map(|(_, mean)| mean),
        best_name: best.map(|(who, _)| who.name.clone()),
        optimum,
    }
}

fn add_lines(findings: &mut Findings, scored: &Scored, field: &[Competitor<'_>]) {
    for (who, estimate) in field.iter().zip(&scored.estimates) {
        if let (true, Ok(estimate)) = (who.is_shown(), estimate) {
            let line = Line::share(format!("{}_{}", scored.column.id, who.name), *estimate);
            let line = line.beside_baselines(&scored.baselines);
            findings.add(line.headline_if(who.name == PAPER));
        }
    }
}

/// Returns the index of the best competitor of a column among those that `is_meant`.
fn best(scored: &Scored, field: &[Competitor<'_>], is_meant: impl Fn(&Competitor<'_>) -> bool) -> Option<usize> {
    let mean = |at: &usize| scored.estimates[*at].as_ref().map_or(f64::MIN, |estimate| estimate.mean);
    let meant = (0..field.len()).filter(|at| scored.estimates[*at].is_ok() && is_meant(&field[*at]));
    meant.reduce(|best, next| if mean(&next) > mean(&best) { next } else { best })
}

/// Whether nobody is better than a competitor in a column.
fn is_first(scored: &Scored, field: &[Competitor<'_>], at: usize) -> bool {
    let mean = |at: usize| scored.estimates[at].as_ref().map_or(f64::MIN, |estimate| estimate.mean);
    best(scored, field, |_| true).is_some_and(|best| mean(at) >= mean(best))
}

/// A row for each competitor, a column for each figure.
fn score_table(findings: &Findings, title: &str, columns: &[Scored], field: &[Competitor<'_>]) -> FindingsTable {
    let titles = columns.iter().map(|scored| scored.column.title.to_string());
    let header = ["scheduler".to_string()].into_iter().chain(titles).collect();
    let cell = |at: usize, scored: &Scored| match &scored.estimates[at] {
        Ok(estimate) => {
            let star = if is_first(scored, field, at) { "★ " } else { "" };
            let half = estimate.ci95.map(|half| format!(" ± {}", Unit::Share.show_width(half))).unwrap_or_default();
            let paper = findings.paper.get(&format!("{}_{}", scored.column.id, field[at].name));
            let paper = paper.map(|paper| format!(" [{}]", percent(*paper))).unwrap_or_default();
            format!("{star}{}{half}{paper}", percent(estimate.mean))
        }
        Err(_) => "–".into(),
    };
    let of = |scored: &Scored| match scored.baselines.optimum {
        Some((optimum, true)) => percent(optimum),
        Some((bound, false)) => format!("at most {}", percent(bound)),
        None => "–".into(),
    };
    let mut rows: Vec<Vec<String>> =
        vec![["clairvoyant optimum".to_string()].into_iter().chain(columns.iter().map(of)).collect()];
    for (at, who) in field.iter().enumerate().filter(|(_, who)| who.is_shown()) {
        let cells = columns.iter().map(|column| cell(at, column));
        rows.push([who.name.clone()].into_iter().chain(cells).collect());
    }
    let classical = |scored: &Scored| {
        let Some(at) = best(scored, field, |who| who.kind == CompetitorKind::Classical) else { return "–".into() };
        let name = &field[at].name;
        let star = if is_first(scored, field, at) && name != "edf" { "★ " } else { "" };
        let mean = scored.estimates[at].as_ref().map_or(f64::NAN, |estimate| estimate.mean);
        format!("{star}{} {name}", percent(mean))
    };
    let cells = columns.iter().map(classical);
    rows.push(["best classical".to_string()].into_iter().chain(cells).collect());
    FindingsTable { title: title.into(), header, rows }
}

/// A row for each competitor: source, size, training and latencies.
fn field_table(
    findings: &mut Findings,
    field: &[Competitor<'_>],
    heats: &[&Heat],
    seconds: f64,
) -> Result<FindingsTable, ReproduceError> {
    let mut header: Vec<String> = ["scheduler", "kind", "source", "parameters", "training"].map(String::from).to_vec();
    for heat in heats {
        header.extend([format!("{} median", heat.id), format!("{} p99", heat.id)]);
    }
    let mut rows = Vec::new();
    for who in field.iter().filter(|who| who.is_shown()) {
        let parameters = who.parameters.map_or("–".into(), |count| count.to_string());
        let mut row =
            vec![who.name.clone(), who.kind.name().into(), who.source.into(), parameters, who.training.clone()];
        if let Some(count) = who.parameters {
            findings.add(Line::neither(format!("parameters_{}", who.name), Unit::Number, count as f64));
        }
        for heat in heats {
            let Some(latency) = latency(who, heat, seconds)? else {
                row.extend(["–".into(), "–".into()]);
                continue;
            };
            for (part, us) in ["median", "p99"].into_iter().zip(latency) {
                let name = format!("latency-{}-{part}_{}", heat.id, who.name);
                findings.add(Line::lower(name, Unit::Microseconds, us));
                row.push(shown_time(us));
            }
        }
        rows.push(row);
    }
    Ok(FindingsTable {
        title: "Sizes, trainings and decision latencies on the last run of E1 and of 100 tasks in E3".into(),
        header,
        rows,
    })
}

/// Returns the median and the 99th percentile of the decision latency on the last run of a heat, in microseconds;
/// `None` if the scheduler cannot run there.
fn latency(who: &Competitor<'_>, heat: &Heat, seconds: f64) -> Result<Option<[f64; 2]>, ReproduceError> {
    let (Some(entrant), Some(case)) = (&who.entrant, heat.cases.last()) else { return Ok(None) };
    let mut timed = Timed::new(entrant.scheduler()?);
    let horizon = case.horizon.min(Time((seconds * 1e9) as u64));
    match simulate(&case.set, case.seed, horizon, &mut timed, &mut Unobserved) {
        Ok(_) => {}
        Err(temponet_sim::SimError::NotApplicable(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let part = |share: f64| timed.latencies.quantile(share).map_or(f64::NAN, |ns| ns as f64 / 1e3);
    Ok(Some([part(0.5), part(0.99)]))
}

/// Formats a time in microseconds.
fn shown_time(us: f64) -> String {
    if us < 1e3 { Unit::Microseconds.show(us) } else { Unit::Milliseconds.show(us / 1e3) }
}

/// Draws the share of jobs in time over the number of evaluations, beside the schedulers that do not search.
fn draw_curve(
    context: &Context<'_>,
    findings: &mut Findings,
    settings: &Settings,
    field: &[Competitor<'_>],
) -> Result<(), ReproduceError> {
    let heat = Heat {
        id: "curve",
        title: format!("{CURVE}, evaluations"),
        cases: scenario_cases(CURVE, settings.curve_runs)?,
        oracle: (temponet_task::Aim::Met, settings.curve_runs.oracle_seconds),
        columns: Vec::new(),
    };
    let share = |who: &Competitor<'_>| -> Result<Option<f64>, ReproduceError> {
        let Some(HeatResult::Runs { runs, .. }) = context.result(&heat, who)? else { return Ok(None) };
        Ok(Some(mean(&runs.iter().map(|run: &RunFigures| run.compliance).collect::<Vec<f64>>())))
    };
    let (mut names, mut curves): (Vec<String>, Vec<Curve>) = (Vec::new(), Vec::new());
    let ends = [settings.curve.first(), settings.curve.last()].map(|end| end.copied().unwrap_or(1) as f64);
    let flat = |who: &&Competitor<'_>| who.kind == CompetitorKind::TempoNet || who.name == "edf";
    for who in field.iter().filter(flat) {
        if let Some(share) = share(who)? {
            names.push(who.name.clone());
            curves.push(ends.map(|x| (x, share)).to_vec());
        }
    }
    let flat_curves = curves.len();
    for evaluations in &settings.curve {
        for (at, who) in context.searching(&[*evaluations; SEARCHING.len()]).iter().enumerate() {
            let Some(share) = share(who)? else { continue };
            let place = flat_curves + at;
            if curves.len() <= place {
                names.push(who.name.clone());
                curves.push(Vec::new());
            }
            curves[place].push((*evaluations as f64, share));
        }
    }
    for (name, curve) in names.iter().zip(&curves).skip(flat_curves) {
        for (evaluations, share) in curve {
            findings.add(Line::share(format!("curve_{name}_{evaluations}"), *share));
        }
    }
    for (name, curve) in names.iter().zip(&curves).take(flat_curves) {
        findings.add(Line::share(format!("curve_{name}"), curve[0].1));
    }
    let panel = share_panel(&format!("In time on {CURVE}"), "evaluations of a search", curves);
    let caption = "Means over the same runs. Schedulers that do not search are flat lines. enf-s searches once, all others again and again as jobs are released.";
    findings.plot("What a search gains with its budget", caption, Panel { is_log: true, ..panel }, &names);
    Ok(())
}

/// Draws the validation scores of those that were trained here. Each is validated on sets like those that it learns on.
fn draw_trainings(findings: &mut Findings, field: &[Competitor<'_>]) {
    let trained = || field.iter().filter(|who| !who.curve.is_empty());
    let names: Vec<String> = trained().map(|who| who.name.clone()).collect();
    if names.is_empty() {
        return;
    }
    let panel = share_panel(
        "In time on validation jobs",
        "phase of the training",
        trained().map(|who| who.curve.clone()).collect(),
    );
    let caption = "Means over the seeds. Each learner is validated on sets like those that it learns on.";
    findings.plot("Trainings", caption, panel, &names);
}

fn add_notes(context: &Context<'_>, findings: &mut Findings, field: &[Competitor<'_>]) {
    for who in field.iter().filter(|who| who.entrant.is_none()) {
        findings.notes.push(format!("{} is {}", who.name, who.training));
    }
    findings.notes.push("– in the first table: not trained, or not applicable (a network with a slot for each task runs only sets that fit)".into());
    context.note_clock(findings);
}

/// Difference between shares that counts as none.
const SAME: f64 = 0.01;

/// Concludes who leads where.
fn conclude(findings: &mut Findings, columns: &[Scored], field: &[Competitor<'_>]) {
    let paper = field.iter().position(|who| who.name == PAPER);
    let mean = |scored: &Scored, at: usize| scored.estimates[at].as_ref().map_or(f64::NAN, |estimate| estimate.mean);
    // Lead of the paper's TempoNet over a rival, and half its interval.
    let lead = |scored: &Scored, paper: usize, rival: usize| {
        let half =
            |at: usize| scored.estimates[at].as_ref().ok().and_then(|estimate| estimate.ci95).unwrap_or(f64::INFINITY);
        (mean(scored, paper) - mean(scored, rival), half(paper).hypot(half(rival)))
    };
    let (mut led, mut sure, mut lost, mut is_refuted) = (0, 0, Vec::new(), false);
    for scored in columns {
        let (Some(paper), Some(rival)) = (paper, best(scored, field, |who| who.kind.is_rival())) else { continue };
        let (lead, half) = lead(scored, paper, rival);
        if lead >= 0.0 {
            led += 1;
            sure += usize::from(lead - half >= -SAME);
        } else {
            is_refuted |= -lead > half;
            let (ours, theirs) = (percent(mean(scored, paper)), percent(mean(scored, rival)));
            lost.push(format!("{} ({} {theirs} against {ours})", scored.column.title, field[rival].name));
        }
    }
    let count = |at: usize| columns.iter().filter(|scored| is_first(scored, field, at)).count();
    let mut wins: Vec<(&str, usize)> = (0..field.len()).map(|at| (field[at].name.as_str(), count(at))).collect();
    wins.retain(|(_, count)| *count > 0);
    wins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let wins: Vec<String> = wins.into_iter().map(|(name, count)| format!("{name} in {count}")).collect();
    let missing: Vec<&str> = field.iter().filter(|who| who.entrant.is_none()).map(|who| who.name.as_str()).collect();
    let lost = if lost.is_empty() { String::new() } else { format!("; a rival is above it in {}", lost.join(", ")) };
    let missing = if missing.is_empty() { String::new() } else { format!("; without a model: {}", missing.join(", ")) };
    let text = format!(
        "the paper's TempoNet is at least as good as every rival in {led} of {} columns{lost}; nobody is above {}{missing}",
        columns.len(),
        wins.join(", ")
    );
    let verdict = match led == columns.len() {
        true if sure == led => Verdict::Reproduced,
        true => Verdict::Undecided,
        false if is_refuted => Verdict::Refuted,
        false => Verdict::Undecided,
    };
    findings.conclude(verdict, &text);
}
