//! E18: the miss rate in rising overload on one core, beside the reference 1 − 1/U, and the ratio of miss rates to EDF's.

use serde::Deserialize;
use temponet_task::Aim;

use crate::{Better, Context, Estimate, Findings, FindingsTable, Line, ReproduceError, Size, Unit};
use temponet_lab::stats::{mean, percent};
use temponet_page::plot::{Panel, Span, svg};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// At each load.
    size: Size,
    loads: Vec<f64>,
}

/// The paper names its figure at this load.
const NAMED: f64 = 1.3;
/// The standard set's variants.
const VARIANTS: [&str; 3] = ["112", "125", "145"];

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let Settings { size, loads } = protocol.settings(context.mode);
    let entrants = context.learned_and(&protocol.schedulers);
    let names: Vec<String> = entrants.iter().map(|entrant| entrant.name.clone()).collect();
    let mut curves: Vec<Vec<(f64, f64)>> = vec![Vec::new(); names.len() + 2];
    let mut rows = Vec::new();
    for (n, load) in loads.iter().enumerate() {
        let cases = protocol.cases_at("overload", *size, *load, n)?;
        let what = format!("load {load}");
        let contest = context.contest(&what, &cases, &entrants, Some((Aim::Met, size.oracle_seconds)))?;
        let missed =
            |name: &String| contest.of(name).and_then(|of| of.mean(|run| run.in_time())).map(|share| 1.0 - share);
        let optimum = contest.optimum().map_or(f64::NAN, |(share, _)| 1.0 - share);
        let reference = 1.0 - 1.0 / load;
        let mut row = vec![format!("{load:.2}")];
        for (curve, name) in curves.iter_mut().zip(&names) {
            let share = missed(name).unwrap_or(f64::NAN);
            curve.push((*load, share));
            row.push(percent(share));
        }
        curves[names.len()].push((*load, optimum));
        curves[names.len() + 1].push((*load, reference));
        row.extend([percent(optimum), percent(reference)]);
        rows.push(row);
        let (Some(learned), Some(edf)) = (contest.learned(), contest.of("edf")) else { continue };
        if (load - NAMED).abs() < 1e-9 {
            let misses = |of: &crate::Contender| of.values(|run| Some(1.0 - run.compliance));
            let best = contest.best_classical(Better::Higher, |run| run.in_time());
            findings.add(
                Line::new("miss_130", Unit::Share, Better::Lower, Estimate::of(&misses(learned)))
                    .headline()
                    .beside("edf", None, Some(mean(&misses(edf))))
                    .beside(
                        "best classical",
                        best.map(|(best, _)| best.name.as_str()),
                        best.map(|(_, share)| 1.0 - share),
                    )
                    .beside("optimum", None, Some(optimum))
                    .beside("1 − 1/U", None, Some(reference)),
            );
            let ratio = mean(&misses(learned)) / mean(&misses(edf));
            findings.add(Line::new("ratio_130", Unit::Number, Better::Lower, Estimate::single(ratio)));
        }
    }
    standard(context, findings, *size)?;
    let header: Vec<String> = ["load"]
        .into_iter()
        .map(String::from)
        .chain(names.iter().cloned())
        .chain(["optimum", "1 − 1/U"].map(String::from))
        .collect();
    findings.tables.push(FindingsTable { title: "Miss rate".into(), header, rows });
    let below = |curve: &Vec<(f64, f64)>| curve.iter().filter(|(load, share)| *share < 1.0 - 1.0 / load).count();
    let (ours, best) = (below(&curves[0]), below(&curves[names.len()]));
    let legend: Vec<String> = names.iter().cloned().chain(["optimum", "1 − 1/U"].map(String::from)).collect();
    let most = curves.iter().flatten().map(|(_, share)| *share).fold(0.0, f64::max);
    let panel = Panel {
        title: "Jobs missed".into(),
        x_label: "utilisation",
        curves,
        y: Span::Shares(0.0, (most * 20.0).ceil().max(1.0) / 20.0),
        marks: Vec::new(),
        is_log: false,
    };
    let caption = "1 − 1/U is the share of the work that does not fit; whoever drops long jobs misses a smaller share of the jobs.";
    findings.picture("Miss rate over utilisation", caption, svg(&[panel], 1, &legend));
    let of = |name: &str| findings.line(name).map_or("–".into(), |line| line.shown());
    let beside = format!(
        "below 1 − 1/U at {ours} of {} loads, the optimum at {best}; on the standard set's variants the ratio to EDF's miss rate is {}, {} and {} against the \
         paper's 0.238, which rests on an EDF that meets 11.67%",
        loads.len(),
        of("ratio_standard_112"),
        of("ratio_standard_125"),
        of("ratio_standard_145"),
    );
    findings.judge(&beside);
    Ok(())
}

/// The ratio on E1's variants.
fn standard(context: &Context<'_>, findings: &mut Findings, size: Size) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let cases = protocol.cases("standard", Size { sets: VARIANTS.len() as u64, ..size })?;
    let contest = context.contest("standard set", &cases, &context.learned_and(&["edf".into()]), None)?;
    let (Some(learned), Some(edf)) = (contest.learned(), contest.of("edf")) else { return Ok(()) };
    for (at, variant) in VARIANTS.iter().enumerate() {
        let ratio = (1.0 - learned.runs[at].compliance) / (1.0 - edf.runs[at].compliance);
        let name = format!("ratio_standard_{variant}");
        findings.add(Line::new(name, Unit::Number, Better::Lower, Estimate::single(ratio)));
    }
    Ok(())
}
