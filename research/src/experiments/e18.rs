//! E18: miss rate in rising overload on one core, beside the reference 1 − 1/U, and the ratio of miss rates to EDF's.

use serde::Deserialize;

use crate::plots::{Curve, panel};
use crate::{
    Baselines, Contender, Contest, Context, Findings, FindingsTable, Line, ReproduceError, Size, TestBed, Unit,
};
use temponet_lab::stats::{mean, percent};
use temponet_page::plot::Span;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Runs at each load.
    size: Size,
    /// Utilizations of the core.
    loads: Vec<f64>,
}

/// Load at which the paper states its figure.
const NAMED: f64 = 1.3;
/// Variants of the standard set.
const VARIANTS: [&str; 3] = ["112", "125", "145"];

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, Settings { size, loads }) = &context.protocol::<Settings>()?;
    let entrants = context.learned_and(&protocol.schedulers)?;
    let mut legend: Vec<String> = entrants.iter().map(|entrant| entrant.name.clone()).collect();
    legend.extend(["optimum", "1 − 1/U"].map(String::from));
    // Miss rates by load: of every scheduler, of the optimum and of the reference.
    let mut curves: Vec<Curve> = vec![Vec::new(); legend.len()];
    for (n, load) in loads.iter().enumerate() {
        let bed = protocol.test_bed_of(format!("load {load}"), protocol.cases_at("overload", *size, *load, n)?, *size);
        let contest = context.contest_of(&bed, &entrants)?;
        let missed = |name: &String| contest.share(name).map_or(f64::NAN, |share| 1.0 - share);
        let optimum = contest.optimum().map_or(f64::NAN, |(share, _)| 1.0 - share);
        let rates = legend[..entrants.len()].iter().map(missed).chain([optimum, reference(*load)]);
        curves.iter_mut().zip(rates).for_each(|(curve, rate)| curve.push((*load, rate)));
        if (load - NAMED).abs() < 1e-9 {
            add_named(findings, &contest, optimum);
        }
    }
    add_standard(context, findings, *size)?;
    let row = |(place, load): (usize, &f64)| -> Vec<String> {
        [format!("{load:.2}")].into_iter().chain(curves.iter().map(|curve| percent(curve[place].1))).collect()
    };
    let header: Vec<&str> = ["load"].into_iter().chain(legend.iter().map(String::as_str)).collect();
    findings.tables.push(FindingsTable::new("Miss rate", &header, loads.iter().enumerate().map(row).collect()));
    let below = |curve: &Curve| curve.iter().filter(|(load, share)| *share < reference(*load)).count();
    conclude(findings, below(&curves[0]), below(&curves[entrants.len()]), loads.len());
    draw(findings, curves, &legend);
    Ok(())
}

/// Returns the share of the work that does not fit on the core.
fn reference(load: f64) -> f64 {
    1.0 - 1.0 / load
}

/// Adds the figures at the load that the paper names.
fn add_named(findings: &mut Findings, contest: &Contest, optimum: f64) {
    let (Some(paper), Some(edf)) = (contest.paper(), contest.contender("edf")) else { return };
    let misses = |of: &Contender| of.values(|run| Some(1.0 - run.compliance));
    findings.add(Line::order("lead_over_edf", paper.lead_over(edf, |run| run.in_time())));
    let (ours, edf) = (paper.estimate(|run| Some(1.0 - run.compliance)), mean(&misses(edf)));
    let Baselines { best, best_name, .. } = contest.baselines();
    // The column shows the optimum's miss rate without saying whether it is a bound.
    let optimum = Some((optimum, true));
    let baselines = Baselines { edf: Some(edf), best: best.map(|share| 1.0 - share), best_name, optimum };
    let line = Line::lower("miss_130", Unit::Share, ours).headline().beside_baselines(&baselines);
    findings.add(line.beside("1 − 1/U", None, Some(reference(NAMED))));
    if let Some(shipped) = contest.shipped() {
        findings.add(Line::lower("temponet_miss_130", Unit::Share, misses(shipped)).beside_baselines(&baselines));
    }
    findings.add(Line::lower("ratio_130", Unit::Number, ours.mean / edf));
}

/// Adds the ratio of miss rates on the variants of the standard set.
fn add_standard(context: &Context<'_>, findings: &mut Findings, size: Size) -> Result<(), ReproduceError> {
    let (protocol, _) = &context.protocol::<Settings>()?;
    let cases = protocol.cases("standard", Size { sets: VARIANTS.len() as u64, ..size })?;
    let bed = TestBed { label: "standard set".into(), cases, classical: &["edf".into()], oracle: None };
    let contest = context.contest(&bed)?;
    let Some(edf) = contest.contender("edf") else { return Ok(()) };
    for (prefix, who) in contest.learned() {
        for (at, variant) in VARIANTS.iter().enumerate() {
            let ratio = (1.0 - who.runs[at].compliance) / (1.0 - edf.runs[at].compliance);
            findings.add(Line::lower(format!("{prefix}ratio_standard_{variant}"), Unit::Number, ratio));
        }
    }
    Ok(())
}

fn draw(findings: &mut Findings, curves: Vec<Curve>, legend: &[String]) {
    let most = curves.iter().flatten().map(|(_, share)| *share).fold(0.0, f64::max);
    let y = Span::Shares(0.0, (most * 20.0).ceil().max(1.0) / 20.0);
    let caption = "1 − 1/U is the share of the work that does not fit; whoever drops long jobs misses a smaller share of the jobs.";
    findings.plot("Miss rate over utilization", caption, panel("Jobs missed", "utilization", curves, y), legend);
}

/// Sets the verdict. `ours` and `best` are the numbers of loads at which our scheduler and the optimum miss less than
/// the reference.
fn conclude(findings: &mut Findings, ours: usize, best: usize, loads: usize) {
    let of = |name: &str| findings.line(name).map_or("–".into(), |line| line.shown());
    let beside = format!(
        "below 1 − 1/U at {ours} of {loads} loads, the optimum at {best}; on the standard set's variants the ratio to EDF's miss rate is {}, {} and {} against the \
         paper's 0.238, which rests on an EDF that meets 11.67%; the scheduler that ships misses {} at a load of 1.3",
        of("ratio_standard_112"),
        of("ratio_standard_125"),
        of("ratio_standard_145"),
        of("temponet_miss_130"),
    );
    findings.judge(&beside);
}
