//! Where the wcets of a list of jobs come from, for notes on its results: a trace has execution times, but no wcets.
//! Whoever wants some takes the longest execution of a kind of job, or a multiple of the estimate. Schedulers plan with
//! either, and their results differ.

use temponet_task::{ListedJob, Time};

/// Share of a wcet by which it may differ from a multiple of its estimate, for times that were rounded.
const ROUNDING: f64 = 1e-3;

type Jobs = [(String, Vec<ListedJob>)];

/// Gives jobs that carry estimates and no wcets the longest execution or estimate of their name as their wcet. Returns
/// the note that says so.
pub(super) fn from_estimates(tasks: &mut Jobs) -> String {
    for (_, jobs) in tasks {
        let of = |job: &ListedJob| job.estimate.map_or(job.execution, |estimate| estimate.high().max(job.execution));
        let longest = jobs.iter().map(of).max().unwrap_or_default();
        jobs.iter_mut().for_each(|job| job.wcet = longest);
    }
    "jobs have estimates and no wcets: the longest execution or estimate of each name stands for the wcet. Schedulers plan with \
     it, so results depend on it; a column wcet states others"
        .into()
}

/// Returns the note on wcets that follow from the executions or the estimates.
pub(super) fn origin(tasks: &Jobs) -> Option<String> {
    let what = match multiple(tasks) {
        Some(factor) => {
            format!("{factor:.4}").trim_end_matches('0').trim_end_matches('.').to_string() + " times its estimate"
        }
        None if are_longest(tasks) => "the longest execution of its name".into(),
        None => return None,
    };
    Some(format!("the wcet of each job is {what}: schedulers plan with it, so results depend on that choice"))
}

/// Whether every wcet is the longest execution of its name, and executions differ.
fn are_longest(tasks: &Jobs) -> bool {
    let longest = |jobs: &[ListedJob]| jobs.iter().map(|job| job.execution).max().unwrap_or_default();
    let is_longest = |jobs: &[ListedJob]| jobs.iter().all(|job| job.wcet == longest(jobs));
    tasks.iter().all(|(_, jobs)| is_longest(jobs))
        && tasks.iter().any(|(_, jobs)| jobs.iter().any(|job| job.execution < job.wcet))
}

/// Returns the factor if every wcet is this multiple of the estimate, unless the job takes longer, and estimates differ.
fn multiple(tasks: &Jobs) -> Option<f64> {
    let jobs = || tasks.iter().flat_map(|(_, jobs)| jobs);
    let medians: Vec<Time> = jobs().map(|job| job.estimate.map(|estimate| estimate.median())).collect::<Option<_>>()?;
    let differ = medians.iter().any(|median| *median != medians[0]);
    let ratio = |job: &ListedJob, median: &Time| job.wcet.0 as f64 / median.0.max(1) as f64;
    let mut ratios: Vec<f64> = jobs().zip(&medians).map(|(job, median)| ratio(job, median)).collect();
    ratios.sort_by(f64::total_cmp);
    let factor = *ratios.get(ratios.len() / 2)?;
    let is_multiple = |(job, median): (&ListedJob, &Time)| {
        let expected = factor * median.0 as f64;
        job.wcet == job.execution && job.wcet.0 as f64 >= expected * (1.0 - ROUNDING)
            || (job.wcet.0 as f64 - expected).abs() <= (ROUNDING * expected).max(1.0)
    };
    (differ && factor > 1.0 + ROUNDING && jobs().zip(&medians).all(is_multiple)).then_some(factor)
}
