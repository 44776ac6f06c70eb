//! Lists of individual jobs, such as recorded traces: CSV files whose header has a column `release`. Rows with the same name
//! are jobs of one task, numbered in the order of their releases.

use temponet_task::{Arrival, CoreSet, ListedJob, Preemption, System, Task, TaskSet, Time, TimeUnit};

use crate::Problem;
use crate::csv::{Rows, delimiter};
use crate::node::{Fields, Node};
use crate::read::{MOST_VALUE, ReadResult, affinity, criticality, estimate_of_job, limit, name, preemption};

/// Returns whether the header, the first line that is not a comment, has a release column.
pub(super) fn is_job_list(text: &str) -> bool {
    let header = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    header.is_some_and(|header| {
        let cells = header.split(char::from(delimiter(text))).map(|cell| cell.trim().trim_matches('"'));
        cells.into_iter().any(|cell| cell == "release" || cell.starts_with("release_"))
    })
}

/// Parses a list of jobs into a task set.
pub(super) fn parse(text: &str, name: String) -> ReadResult {
    let mut rows = Rows::of(text)?;
    let mut tasks: Vec<(String, Vec<ListedJob>)> = Vec::new();
    // Limit on preemption of each task and the line that states it.
    let mut limits: Vec<Option<(Preemption, usize)>> = Vec::new();
    // Cores of each task and the line that states them.
    let mut cores: Vec<Option<(CoreSet, usize)>> = Vec::new();
    let mut index_of = std::collections::HashMap::new();
    let mut warnings = Warnings::default();
    let mut states_wcets = false;
    while let Some(row) = rows.next_row()? {
        let Row { task: task_name, job, states_wcet, preemption, cores: bound } = job(&row)?;
        states_wcets |= states_wcet;
        let index = *index_of.entry(task_name.clone()).or_insert_with(|| {
            tasks.push((task_name, Vec::new()));
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
        return Err(Problem::whole_file("has no jobs"));
    }
    if !states_wcets {
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
    Ok((TaskSet::new(name, tasks, highest.map_or(1, |core| core + 1)), warnings.into_lines()))
}

/// Jobs that cannot meet their deadline in the worst case. The first one is named; of the others, only the number is told.
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

/// Keys of a row.
const JOB_KEYS: &[&str] = &[
    "name",
    "release",
    "execution",
    "deadline",
    "wcet",
    "estimate",
    "estimate_p90",
    "criticality",
    "value",
    "preemption",
    "cores",
];

/// A row of a list of jobs.
struct Row {
    /// Name of the task.
    task: String,
    job: ListedJob,
    /// Whether the row states a wcet.
    states_wcet: bool,
    /// Limit on preemption, which is the same for all jobs of a task.
    preemption: Option<Preemption>,
    /// Cores that jobs may use, which are the same for all jobs of a task.
    cores: Option<CoreSet>,
}

fn job(row: &Node) -> Result<Row, Problem> {
    let line = row.line;
    let mut fields = Fields::of(row, "job")?.only(JOB_KEYS)?;
    let (name, _) = name(&mut fields)?;
    let release = fields.need("release")?.time("release", TimeUnit::Ms)?;
    let execution = fields.need("execution")?.positive_time("execution", TimeUnit::Ms)?;
    let deadline = fields.need("deadline")?.time("deadline", TimeUnit::Ms)?;
    let stated = fields.positive_time("wcet", TimeUnit::Ms)?;
    let estimate = estimate_of_job(&mut fields, stated)?;
    let wcet = stated.unwrap_or(execution);
    let criticality = fields.take("criticality").map(criticality).transpose()?.unwrap_or(0);
    let value = fields.take("value").map(|node| node.number("value", 0.0, MOST_VALUE)).transpose()?.unwrap_or(1.0);
    let preemption = fields.take("preemption").map(|node| preemption(node, TimeUnit::Ms)).transpose()?;
    let cores = fields.take("cores").map(|node| affinity(node, &[], System::MOST_CORES)).transpose()?;
    fields.finish()?;
    if deadline <= release {
        return Err(Problem::at(line, format!("deadline {deadline} is not after the release {release}")));
    }
    if wcet < execution {
        return Err(Problem::at(line, format!("wcet {wcet} is less than the execution {execution}")));
    }
    // The caller raises the bcet to the wcet if the list as a whole states no wcets.
    let bcet = Time(1);
    let job = ListedJob::new(release, deadline, execution)
        .with_wcet(wcet)
        .with_bcet(bcet)
        .with_criticality(criticality)
        .with_value(value)
        .with_estimate(estimate);
    Ok(Row { task: name, job, states_wcet: stated.is_some(), preemption, cores })
}

/// Creates the task for the jobs of one name. Its wcet, deadline, criticality and value are the largest of its jobs, and
/// its bcet is the smallest.
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
