//! E8: whether tasks with short deadlines fare worse where deadlines are heavy-tailed. The experiment reports the share
//! of jobs in time by quartile of the deadlines, and a Kolmogorov–Smirnov test between the shortest and the longest
//! quartile.

use rayon::prelude::*;
use serde::Deserialize;
use temponet_sim::{Count, Unobserved, simulate};

use crate::{Context, Entrant, Findings, Line, ReproduceError, Size, Unit, Verdict};
use temponet_lab::arena::Case;
use temponet_lab::comparison::CompareError;
use temponet_lab::stats::{kolmogorov_smirnov, mean, percent};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    size: Size,
}

/// Prefix of the figures and name of each workload: the paper's workload, and an overload in which some jobs must be
/// missed.
const WORKLOADS: [(&str, &str); 2] = [("", "sets"), ("overload_", "overload")];

/// Greatest p-value at which the quartiles differ, as in the paper.
const SIGNIFICANT: f64 = 0.05;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let size = settings.size;
    let mut series: Vec<(String, Vec<f64>)> = Vec::new();
    for (prefix, workload) in WORKLOADS {
        let cases = protocol.cases(workload, size)?;
        let borders = borders(&cases);
        let entrants = context.learned_and(&["edf", "mh-edf"].map(String::from))?;
        if context.is_planning() {
            return Ok(());
        }
        let shares = entrants.iter().map(|entrant| by_quartile(entrant, &cases, borders));
        let shares = shares.collect::<Result<Vec<_>, ReproduceError>>()?;
        let [learned, shipped, edf, planner] = &shares[..] else { continue };
        for (of, name) in [(learned, ""), (shipped, "temponet_")] {
            for quartile in 0..4 {
                let mean_of = |all: &[Vec<f64>; 4]| Some(mean(&all[quartile]));
                let line = Line::share(format!("{name}{prefix}q{}", quartile + 1), &of[quartile]);
                let line = line.beside("edf", None, mean_of(edf)).beside("mh-edf", None, mean_of(planner));
                findings.add(line.headline_if(name.is_empty()));
            }
        }
        if let Some(test) = kolmogorov_smirnov(&learned[0], &learned[3]) {
            findings.add(Line::neither(format!("{prefix}p_value"), Unit::Number, test.p));
            findings.add(Line::neither(format!("{prefix}distance"), Unit::Number, test.statistic));
        }
        if prefix.is_empty() {
            add_deadlines(findings, &cases, borders);
        }
        let load = if prefix.is_empty() { "load up to 1" } else { "overload" };
        for (name, of) in [("paper", learned), ("temponet", shipped), ("edf", edf)] {
            series.push((format!("{name}, {load}"), of.iter().map(|shares| mean(shares)).collect()));
        }
    }
    let groups = ["q1, shortest", "q2", "q3", "q4, longest"].map(String::from);
    let caption = "Means over the sets that have such tasks.";
    findings.share_bars("In time by quartile of the deadlines", caption, &groups, &series);
    conclude(findings);
    Ok(())
}

fn conclude(findings: &mut Findings) {
    let of = |name: &str| findings.value(name);
    let is_biased = of("overload_p_value") < SIGNIFICANT;
    let beside = format!(
        "without a shield, up to a load of 1 the test has p = {:.3}; in overload q1 meets {} and q4 {}, p = {:.2e}, {}; the stated distribution has quartile means of \
         {:.1}, {:.1}, {:.1} and {:.1} ms, not 12, 25, 55 and 180",
        of("p_value"),
        percent(of("overload_q1")),
        percent(of("overload_q4")),
        of("overload_p_value"),
        if is_biased { "so the deadline does matter there" } else { "no difference that can be told" },
        of("q1_deadline"),
        of("q2_deadline"),
        of("q3_deadline"),
        of("q4_deadline"),
    );
    if of("p_value") < SIGNIFICANT {
        let claim = findings.paper_value("p_value");
        let why = format!(
            "whether a deadline is short does matter: p = {:.2e} against the paper's {claim}; {beside}",
            of("p_value")
        );
        findings.conclude(Verdict::Refuted, &why);
    } else {
        findings.judge(&beside);
    }
}

/// Returns the relative deadlines of all tasks in ascending order, in milliseconds.
fn deadlines(cases: &[Case]) -> Vec<f64> {
    let mut all: Vec<f64> =
        cases.iter().flat_map(|case| case.set.tasks()).map(|task| task.deadline.0 as f64 / 1e6).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Returns the deadlines, in milliseconds, that separate the four quartiles of all tasks.
fn borders(cases: &[Case]) -> [f64; 3] {
    let all = deadlines(cases);
    [1, 2, 3].map(|quarter| all[(all.len() * quarter / 4).min(all.len() - 1)])
}

/// Returns the quartile of a deadline, from 0 to 3.
fn quartile_of(deadline: f64, borders: [f64; 3]) -> usize {
    borders.iter().filter(|border| deadline >= **border).count()
}

/// Adds the mean deadline of each quartile.
fn add_deadlines(findings: &mut Findings, cases: &[Case], borders: [f64; 3]) {
    let mut groups: [Vec<f64>; 4] = Default::default();
    deadlines(cases).into_iter().for_each(|deadline| groups[quartile_of(deadline, borders)].push(deadline));
    for (quartile, group) in groups.iter().enumerate() {
        let name = format!("q{}_deadline", quartile + 1);
        findings.add(Line::neither(name, Unit::Milliseconds, group));
    }
}

/// Returns the share of jobs in time of each quartile, set by set, over all trainings. Sets without such jobs are left out.
fn by_quartile(entrant: &Entrant<'_>, cases: &[Case], borders: [f64; 3]) -> Result<[Vec<f64>; 4], ReproduceError> {
    let one = |case: &Case| -> Result<[Count; 4], CompareError> {
        let mut counts = [Count::default(); 4];
        for scheduler in entrant.schedulers() {
            let metrics = simulate(&case.set, case.seed, case.horizon, &mut *scheduler?, &mut Unobserved)
                .map_err(|error| CompareError::Run(entrant.name.clone(), error))?;
            for (task, of) in case.set.tasks().iter().zip(&metrics.tasks) {
                let count = &mut counts[quartile_of(task.deadline.0 as f64 / 1e6, borders)];
                count.released += of.jobs.released;
                count.met += of.jobs.met;
            }
        }
        Ok(counts)
    };
    let counts = cases.par_iter().map(one).collect::<Result<Vec<_>, CompareError>>()?;
    let shares = |quartile: usize| {
        let of = counts.iter().map(move |counts| counts[quartile]);
        of.filter(|count| count.released > 0).map(|count| count.compliance()).collect()
    };
    Ok([0, 1, 2, 3].map(shares))
}
