//! Arrows between the jobs of a schedule: from a predecessor to the job that comes after it, and from a value to its
//! reader.

use std::collections::HashMap;

use temponet_page::svg::{Svg, SvgShape, path};
use temponet_sim::{JobRecord, Recorder, is_read_at_start};
use temponet_task::{TaskId, TaskSet, Time};

/// Greatest number of arrows of reads. More of them would hide the schedule.
const MOST_READS: usize = 40;

/// A read: the task that wrote the value and the date of that, the task that read it and the date of that.
pub(super) type Read = (TaskId, Time, TaskId, Time);

/// Returns the reads of a schedule before `until`; none if they are too many to be drawn. Under LET, values change
/// hands at other dates than jobs start and end, so reads that only LET chains make are left out.
pub(super) fn reads(set: &TaskSet, recording: &Recorder, until: Time) -> Vec<Read> {
    let mut reads = Vec::new();
    for (job, start) in started(recording, until) {
        let task = job.task;
        let read_at_start =
            set.tasks()[set.first_part(task)].reads.iter().filter(|read| is_read_at_start(set, **read, task));
        reads.extend(read_at_start.filter_map(|read| Some((*read, newest_by(recording, *read, start)?, task, start))));
    }
    if reads.len() > MOST_READS { Vec::new() } else { reads }
}

/// Returns the jobs that started before `until`, with the date of that.
fn started(recording: &Recorder, until: Time) -> impl Iterator<Item = (&JobRecord, Time)> {
    recording.jobs.iter().filter_map(move |job| Some((job, job.start.filter(|start| *start < until)?)))
}

/// Draws the arrows of a schedule before `until`. `at` gives the place of a date in the row of a task.
pub(super) fn draw(
    out: &mut Svg,
    set: &TaskSet,
    recording: &Recorder,
    until: Time,
    reads: &[Read],
    at: impl Fn(TaskId, Time) -> (f64, f64),
) {
    if set.has_precedence() {
        let completed = recording.jobs.iter().filter_map(|job| Some(((job.task, job.number), job.completion()?)));
        let done: HashMap<(TaskId, u64), Time> = completed.collect();
        for (job, start) in started(recording, until) {
            let task = job.task;
            for before in &set.tasks()[set.first_part(task)].after {
                if let Some(end) = done.get(&(*before, job.number)) {
                    out.add(arrow(at(*before, *end), at(task, start)).class("bound"));
                }
            }
        }
    }
    for (read, end, task, start) in reads {
        out.add(arrow(at(*read, *end), at(*task, *start)).class("axis").dashed("3 3"));
    }
}

/// Returns when the newest value of a task at a date was written.
fn newest_by(recording: &Recorder, task: TaskId, date: Time) -> Option<Time> {
    let written = |job: &JobRecord| Some((job.number, job.completion()?));
    let own = recording.jobs.iter().filter(|job| job.task == task).filter_map(written);
    own.filter(|(_, end)| *end <= date).max().map(|(_, end)| end)
}

/// Returns an arrow from one point to another.
fn arrow(from: (f64, f64), to: (f64, f64)) -> SvgShape {
    let (wide, high) = (to.0 - from.0, to.1 - from.1);
    let long = wide.hypot(high).max(1e-9);
    let (dx, dy) = (5.0 * wide / long, 5.0 * high / long);
    let wing = |side: f64| {
        format!("M{:.2} {:.2}L{:.2} {:.2}", to.0, to.1, to.0 - dx + side * dy / 2.0, to.1 - dy - side * dx / 2.0)
    };
    path(from.0, from.1, &format!("L{:.2} {:.2}{}{}", to.0, to.1, wing(1.0), wing(-1.0))).set("fill", "none")
}
