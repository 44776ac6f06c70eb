//! Lists of individual jobs, such as recorded traces: CSV files whose header has a column `release`, or another column
//! that only such traces have. Rows with the same name are jobs of one task, numbered in the order of their releases.

mod wcets;

use temponet_task::{Arrival, CoreSet, Estimate, ListedJob, Preemption, Task, TaskSet, Time, TimeUnit};

use crate::Problem;
use crate::csv::{Rows, delimiter};
use crate::keys::{AMBIGUOUS, Context, JOB, JobDraft, RELEASE, SYNONYMS};
use crate::node::Node;
use crate::notes::{Imported, Notes};
use crate::read::limit;

/// Returns whether the header, the first line that is not a comment, has a column that only lists of jobs have.
pub(super) fn is_job_list(text: &str) -> bool {
    let names = SYNONYMS.iter().chain(&AMBIGUOUS).map(|(name, _)| *name).chain([RELEASE.name, "slo"]);
    let names: Vec<&str> = names.collect();
    let header = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    header.is_some_and(|header| {
        let cells = header.split(char::from(delimiter(text))).map(|cell| cell.trim().trim_matches('"'));
        let is_meant = |cell: &str, name: &str| {
            cell.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        cells.into_iter().any(|cell| names.iter().any(|name| is_meant(cell, name)))
    })
}

/// Parses a list of jobs into a task set.
pub(super) fn parse(text: &str, name: String) -> Result<Imported, Problem> {
    let rows = Rows::of(text)?.with_synonyms(&SYNONYMS)?;
    for (column, why) in AMBIGUOUS {
        if let Some(line) = rows.line_of_column(column) {
            return Err(Problem::at(line, format!("column {column:?} {why}")));
        }
    }
    let mut rows = rows.only(&JOB)?;
    let mut tasks: Vec<(String, Vec<ListedJob>)> = Vec::new();
    // Limit on preemption of each task and the line that states it.
    let mut limits: Vec<Option<(Preemption, usize)>> = Vec::new();
    // Cores of each task and the line that states them.
    let mut cores: Vec<Option<(CoreSet, usize)>> = Vec::new();
    let mut index_of = std::collections::HashMap::new();
    let mut warnings = Warnings::default();
    let mut states_wcets = false;
    // The first line with an estimate and no wcet.
    let mut only_estimated = None;
    while let Some(row) = rows.next_row()? {
        let (JobDraft { name, wcet, preemption, cores: bound, .. }, job) = job(&row)?;
        states_wcets |= wcet.is_some();
        only_estimated = only_estimated.or(Some(row.line).filter(|_| wcet.is_none() && job.estimate.is_some()));
        let index = *index_of.entry(name.clone()).or_insert_with(|| {
            tasks.push((name, Vec::new()));
            limits.push(None);
            cores.push(None);
            tasks.len() - 1
        });
        warnings.look_at(row.line, &tasks[index].0, &job);
        tasks[index].1.push(job);
        if let Some(stated) = preemption {
            let (first, line) = *limits[index].get_or_insert((stated, row.line));
            if first != stated {
                let message = format!("the jobs of {:?} have another preemption in line {line}", tasks[index].0);
                return Err(Problem::at(row.line, message));
            }
        }
        if let Some(stated) = bound {
            let (first, line) = cores[index].get_or_insert_with(|| (stated.clone(), row.line));
            if *first != stated {
                let message = format!("the jobs of {:?} have other cores in line {line}", tasks[index].0);
                return Err(Problem::at(row.line, message));
            }
        }
    }
    if tasks.is_empty() {
        return Err(Problem::whole_file("has no jobs: write at least one row below the header"));
    }
    let mut notes = Notes::default();
    match only_estimated {
        Some(line) if states_wcets => {
            return Err(Problem::at(line, "an estimate needs a wcet where other jobs have one"));
        }
        Some(_) => notes.whole_file(wcets::from_estimates(&mut tasks)),
        None if states_wcets => wcets::origin(&tasks).into_iter().for_each(|note| notes.whole_file(note)),
        None => {}
    }
    if !states_wcets && only_estimated.is_none() {
        tasks.iter_mut().flat_map(|(_, jobs)| jobs).for_each(|job| job.bcet = job.wcet);
    }
    let mut tasks: Vec<Task> = tasks.into_iter().map(|(name, jobs)| listed_task(name, jobs)).collect();
    for (task, stated) in tasks.iter_mut().zip(limits) {
        if let Some((preemption, line)) = stated {
            limit(task, preemption, line)?;
        }
    }
    for (task, stated) in tasks.iter_mut().zip(cores) {
        task.cores = stated.map_or(CoreSet::ALL, |(cores, _)| cores);
    }
    let highest = tasks.iter().filter_map(|task| task.cores.last()).max();
    let set = TaskSet::new(name, tasks, highest.map_or(1, |core| core.index() + 1));
    Ok(Imported { set, warnings: warnings.into_lines(), notes, files: Vec::new() })
}

/// Jobs that cannot meet their deadline in the worst case. The first one is named; of the others, only the number is
/// told.
#[derive(Default)]
struct Warnings {
    first: Option<Problem>,
    others: usize,
}

impl Warnings {
    fn look_at(&mut self, line: usize, name: &str, job: &ListedJob) {
        let (wcet, window) = (job.wcet, job.deadline - job.release);
        if wcet <= window {
            return;
        }
        match self.first {
            Some(_) => self.others += 1,
            None => {
                let what = format!("warning: job of {name:?} has wcet {wcet} > its window {window}");
                self.first = Some(Problem::at(line, what));
            }
        }
    }

    fn into_lines(self) -> Vec<Problem> {
        let others = match self.others {
            0 => None,
            1 => Some("warning: one more job has a wcet > its window".to_string()),
            others => Some(format!("warning: {others} more jobs have a wcet > their window")),
        };
        self.first.into_iter().chain(others.map(Problem::whole_file)).collect()
    }
}

/// Reads a row: the draft, and the job that it states.
fn job(row: &Node) -> Result<(JobDraft, ListedJob), Problem> {
    let mut draft = JobDraft::default();
    JOB.read(row, &mut draft, &Context::plain(TimeUnit::Ms))?;
    let JobDraft { release, execution, criticality, .. } = draft;
    let deadline = match (draft.deadline, draft.slo) {
        (Some(_), Some(_)) => return Err(Problem::at(row.line, "deadline beside slo: one of them is enough")),
        (Some(deadline), None) => deadline,
        (None, Some(slo)) => release + slo,
        (None, None) => return Err(Problem::at(row.line, "job has no deadline")),
    };
    let (wcet, value) = (draft.wcet.unwrap_or(execution), draft.value.unwrap_or(1.0));
    let estimate = estimate(&draft)?;
    if deadline <= release {
        return Err(Problem::at(row.line, format!("deadline {deadline} is not after the release {release}")));
    }
    if wcet < execution {
        return Err(Problem::at(row.line, format!("wcet {wcet} is less than the execution {execution}")));
    }
    // The caller raises the bcet to the wcet if the list as a whole states no wcets.
    let bcet = Time(1);
    let job = ListedJob::new(release, deadline, execution)
        .with_wcet(wcet)
        .with_bcet(bcet)
        .with_criticality(criticality)
        .with_value(value)
        .with_estimate(estimate);
    Ok((draft, job))
}

/// Returns the estimate of a job, which must be consistent with its wcet.
fn estimate(draft: &JobDraft) -> Result<Option<Estimate>, Problem> {
    let (median, line, high) = match (draft.estimate, draft.estimate_p90) {
        (None, None) => return Ok(None),
        (None, Some((_, line))) => return Err(Problem::at(line, "estimate_p90 needs an estimate")),
        (Some((median, line)), high) => (median, line, high.map_or(median, |(high, _)| high)),
    };
    let wrong = |message: String| Err(Problem::at(line, message));
    match (draft.wcet, Estimate::new(median, high)) {
        (_, None) => wrong(format!("estimate_p90 {high} is less than the estimate {median}")),
        (Some(wcet), _) if high > wcet => {
            let column = if median > wcet { "estimate" } else { "estimate_p90" };
            wrong(format!("{column} {} is more than the wcet {wcet}", if median > wcet { median } else { high }))
        }
        (_, estimate) => Ok(estimate),
    }
}

/// Creates the task for the jobs of one name. Its wcet, deadline, criticality and value are the largest of its jobs,
/// and its bcet is the smallest.
pub(super) fn listed_task(name: String, mut jobs: Vec<ListedJob>) -> Task {
    jobs.sort_by_key(|job| job.release);
    let window = |job: &ListedJob| job.deadline - job.release;
    let longest_window = jobs.iter().map(window).max().unwrap_or_default();
    let most = |time: fn(&ListedJob) -> Time| jobs.iter().map(time).max().unwrap_or_default();
    Task::periodic(name, longest_window, Time(1))
        .with_deadline(longest_window)
        .with_bcet(jobs.iter().map(|job| job.bcet).min().unwrap_or_default())
        .with_criticality(jobs.iter().map(|job| job.criticality).max().unwrap_or(0))
        .with_value(jobs.iter().map(|job| job.value).fold(0.0, f64::max))
        .with_wcet(most(|job| job.wcet))
        .with_arrival(Arrival::Listed(jobs.into()))
}
