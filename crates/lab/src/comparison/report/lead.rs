//! What the first screen of the page shows beside the verdict: four numbers, and two schedules from where they part on.

use std::collections::{BTreeMap, BTreeSet};

use temponet_sim::{JobRecord, Recorder};
use temponet_task::{Measure, TaskId, Time};
use temponet_wording::grouped;

use crate::comparison::{Comparison, ComparisonRow};
use crate::stats::percent;

/// Returns the four numbers of the page, each with what it is.
pub(super) fn numbers(comparison: &Comparison) -> Vec<(String, String)> {
    let Some(best) = comparison.rows.first() else { return Vec::new() };
    let share = |row: &ComparisonRow| percent(row.metrics.jobs.compliance());
    let words = best.interval_in_words();
    let is_half = !best.is_counted() && words.starts_with(|first: char| first.is_ascii_digit());
    let sign = if is_half { "± " } else { "" };
    let interval = best.interval().map_or(String::new(), |_| format!("; 95% interval: {sign}{words}"));
    let mut numbers = vec![(share(best), format!("of the jobs in time under {}{interval}", best.shown()))];
    if let Some(other) = other_than(comparison, 0).map(|place| &comparison.rows[place]) {
        numbers.push((share(other), format!("under {}", other.shown())));
    }
    numbers.push(match comparison.of_optimum(best) {
        Some(of) => {
            let is_exact = comparison.possible(comparison.counted()).is_some_and(|(_, is_exact)| is_exact);
            let at_least = if is_exact { "" } else { "≥ " };
            let what = if comparison.counted() == Measure::Met { "jobs" } else { "measure of the goal" };
            (format!("{at_least}{}", percent(of)), format!("of the {what} that anybody could serve, with hindsight"))
        }
        None => {
            let set = &comparison.plan.set;
            (format!("{:.2}", set.utilization() / set.capacity()), "load at the wcet; above 1 somebody waits".into())
        }
    });
    numbers.push(worst_task(comparison, best));
    numbers
}

/// The task that misses most, or how much a run without a miss says.
fn worst_task(comparison: &Comparison, best: &ComparisonRow) -> (String, String) {
    let tasks = comparison.plan.set.tasks().iter().zip(&best.metrics.tasks);
    let counted = tasks.filter(|(_, of)| of.jobs.released > 0);
    let worst = counted.min_by(|(_, a), (_, b)| a.jobs.compliance().total_cmp(&b.jobs.compliance()));
    match worst {
        Some((task, of)) if of.jobs.compliance() < 1.0 => {
            (percent(of.jobs.compliance()), format!("of {} in time, the task that misses most", task.name))
        }
        _ => {
            let jobs = best.metrics.jobs.released;
            let allows = format!("missed of {} jobs", grouped(jobs));
            // No miss in n jobs leaves a probability of up to 3/n, with a confidence of 95%.
            let rule = if jobs >= 3 { format!("; that allows 1 in {}", grouped(jobs / 3)) } else { String::new() };
            ("0".into(), allows + &rule)
        }
    }
}

/// Returns the scheduler to compare one with: EDF, or the best other one.
pub(super) fn other_than(comparison: &Comparison, place: usize) -> Option<usize> {
    let rows = &comparison.rows;
    let edf = rows.iter().position(ComparisonRow::is_baseline).filter(|edf| *edf != place);
    edf.or_else(|| (0..rows.len()).find(|other| *other != place))
}

/// Where two schedules part. The page says it in words, for the two that are seen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parting {
    /// When they first run different jobs.
    pub at: Time,
    /// Deadline of the first job that only the second one misses; `at` if there is none.
    pub shows: Time,
}

/// Shortest time for which two schedules must run different jobs to part. On real threads, jobs begin at slightly
/// different dates in any two runs.
pub(super) fn least_difference(comparison: &Comparison) -> Time {
    if comparison.plan.latency { Time(comparison.plan.set.median_wcet().0 / 20) } else { Time(1) }
}

/// Returns where the schedules of two rows part; none if they are the same as far as they were recorded.
pub(super) fn parting(comparison: &Comparison, first: usize, second: usize) -> Option<Parting> {
    let until = comparison.plan.record_until;
    let (one, other) = (comparison.rows.get(first)?, comparison.rows.get(second)?);
    let at = difference(&one.recording, &other.recording, until, least_difference(comparison))?;
    let is_missed = |job: &&JobRecord| !job.met() && job.deadline <= until;
    let missed_by_one: BTreeSet<Id> = one.recording.jobs.iter().filter(is_missed).map(id).collect();
    let only_other = other.recording.jobs.iter().filter(is_missed).filter(|job| job.deadline > at);
    let only_other = only_other.filter(|job| !missed_by_one.contains(&id(job))).map(|job| job.deadline).min();
    Some(Parting { at, shows: only_other.unwrap_or(at) })
}

/// Task and number of a job.
type Id = (TaskId, u64);

fn id(job: &JobRecord) -> Id {
    (job.task, job.number)
}

/// Returns the first time before `until` from which on two schedules run different jobs for at least `least`.
fn difference(one: &Recorder, other: &Recorder, until: Time, least: Time) -> Option<Time> {
    let mut changes: BTreeMap<Time, [Vec<(bool, Id)>; 2]> = BTreeMap::new();
    for (which, recording) in [one, other].into_iter().enumerate() {
        for slice in &recording.slices {
            let job = (slice.task, slice.number);
            changes.entry(slice.start).or_default()[which].push((true, job));
            changes.entry(slice.end).or_default()[which].push((false, job));
        }
    }
    let mut running: [BTreeSet<Id>; 2] = Default::default();
    let mut begun: Option<Time> = None;
    for (date, both) in changes.into_iter().take_while(|(date, _)| *date < until) {
        if begun.is_some_and(|since| date - since >= least) {
            return begun;
        }
        for (running, mut changes) in running.iter_mut().zip(both) {
            // A slice that ends where the next one of its job begins is no end.
            changes.sort_by_key(|(begins, _)| *begins);
            for (begins, job) in changes {
                if begins {
                    running.insert(job)
                } else {
                    running.remove(&job)
                };
            }
        }
        begun = match running[0] == running[1] {
            true => None,
            false => begun.or(Some(date)),
        };
    }
    begun.filter(|since| until.saturating_sub(*since) >= least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_sim::Slice;
    use temponet_task::{CoreId, Speed};

    fn recording(slices: &[(u32, u64, u64, u64)]) -> Recorder {
        let mut recording = Recorder::until(Time(100));
        recording.slices = slices
            .iter()
            .map(|(core, job, start, end)| Slice {
                core: CoreId(*core),
                task: TaskId(0),
                number: *job,
                start: Time(*start),
                end: Time(*end),
                speed: Speed::FULL,
            })
            .collect();
        recording
    }

    #[test]
    fn schedules_part_where_they_run_different_jobs_not_where_cores_or_slices_differ() {
        let one = recording(&[(0, 1, 0, 10), (1, 2, 0, 10), (0, 3, 10, 20)]);
        let moved = recording(&[(1, 1, 0, 5), (1, 1, 5, 10), (0, 2, 0, 10), (0, 3, 10, 20)]);
        assert_eq!(difference(&one, &moved, Time(100), Time(1)), None);
        let other = recording(&[(0, 1, 0, 10), (1, 2, 0, 10), (0, 4, 10, 20)]);
        assert_eq!(difference(&one, &other, Time(100), Time(1)), Some(Time(10)));
        assert_eq!(difference(&one, &other, Time(10), Time(1)), None, "what was not recorded does not count");
        let late = recording(&[(0, 1, 1, 10), (1, 2, 0, 10), (0, 4, 10, 20)]);
        assert_eq!(difference(&one, &late, Time(100), Time(2)), Some(Time(10)), "not where one begins a little later");
    }
}
