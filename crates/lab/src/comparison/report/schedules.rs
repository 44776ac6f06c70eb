//! The schedules of a comparison as JSON for the page's script. Arrays of whole numbers keep it small, and jobs are
//! listed once for all schedulers.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use temponet_sim::{End, JobRecord, Miss, Recorder, Stretch};
use temponet_task::{CoreId, Task, TaskId, TaskSet, Time};

use crate::clairvoyant::Clairvoyant;
use crate::comparison::Comparison;

/// Reasons for missed deadlines; `{}` stands for a time.
const REASONS: [&str; 6] = [
    "completed {} late",
    "aborted at its deadline with {} done",
    "given up by the scheduler with {} done",
    "unfinished at the horizon with {} done",
    "never released: a predecessor did not complete",
    "left out, so that others meet theirs",
];
const LEFT_OUT: u64 = 5;

/// All schedules. All times are multiples of `unit_ns` nanoseconds.
#[derive(Serialize)]
pub(super) struct SchedulesJson {
    unit_ns: u64,
    reasons: [&'static str; 6],
    /// What held jobs up, as in the jobs' CSV.
    whys: Vec<&'static str>,
    /// Task, number, release and deadline of each job, in one flat list.
    jobs: Vec<u64>,
    pub(super) schedules: Vec<ScheduleJson>,
}

/// One schedule.
#[derive(Serialize)]
pub(super) struct ScheduleJson {
    pub(super) name: String,
    /// Index of an earlier schedule with the same course, which is then not repeated here.
    #[serde(skip_serializing_if = "Option::is_none")]
    same: Option<usize>,
    #[serde(flatten)]
    course: Course,
}

/// What happens in a schedule.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Course {
    /// Core, job, start minus the previous start, and length of each slice, in one flat list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slices: Vec<u64>,
    /// Job, reason, time, and what held the job up, plus one, of each missed deadline, in one flat list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missed: Vec<u64>,
    /// Job, task, and time for which jobs of the task ran in its place, in one flat list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    instead: Vec<u64>,
    /// Resource, job, start and length of each time in which a job holds a resource, in one flat list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    holds: Vec<u64>,
    /// The same of the times in which jobs wait for resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<u64>,
    /// Jobs whose end is not drawn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open: Vec<u64>,
    /// Time after which nothing is drawn, if it is earlier than in the other schedules.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
}

/// Greatest number of slices per schedule. Some schedulers slice time so finely that they would make up most of the
/// page.
const MOST_SLICES: usize = 4000;

/// Task index and number of a job.
type Id = (TaskId, u64);

/// A schedule before it is encoded; times are in nanoseconds.
struct Full {
    name: String,
    /// Core, job, start and end of each slice.
    slices: Vec<(CoreId, Id, u64, u64)>,
    /// Job, index into [`REASONS`], time, and what held it up of each missed deadline.
    missed: Vec<(Id, u64, u64, &'static str)>,
    /// Job, row of a task, and time for which jobs of the task ran in its place.
    instead: Vec<(Id, u32, u64)>,
    open: Vec<Id>,
    /// Times in which jobs hold resources, and in which they wait for them.
    holds: Vec<Stretch>,
    waits: Vec<Stretch>,
}

/// Returns the row of each task; the parts of a task have one row.
pub(super) fn task_rows(set: &TaskSet) -> Vec<u32> {
    let mut rows = 0;
    let row = |task: &Task| {
        let row = rows;
        rows += u32::from(!task.is_part);
        row
    };
    set.tasks().iter().map(row).collect()
}

/// Returns the schedules of all schedulers, in the order of the comparison, and then the optimum's.
pub(super) fn schedules(comparison: &Comparison) -> SchedulesJson {
    let (until, rows) = (comparison.plan.record_until, task_rows(&comparison.plan.set));
    let mut windows: BTreeMap<Id, (u64, u64)> = BTreeMap::new();
    let mut all: Vec<Full> = Vec::new();
    for row in &comparison.rows {
        for job in &row.recording.jobs {
            // Schedules release a job that follows others at different dates; its arrival is the same in all.
            let task = &comparison.plan.set.tasks()[job.task];
            let arrival = job.deadline.saturating_sub(task.deadline);
            let first = comparison.plan.set.first_part(job.task);
            let from = if comparison.plan.set.tasks()[first].after.is_empty() {
                job.release
            } else {
                arrival.min(job.release)
            };
            windows.insert((job.task, job.number), (from.0, job.deadline.0));
        }
        let mut full = of_recording(&row.shown(), &row.recording, until);
        full.instead.iter_mut().for_each(|(_, row, _)| *row = rows[*row as usize]);
        all.push(full);
    }
    // A bound has no schedule.
    if let Some(optimum) = comparison.clairvoyant.as_ref().filter(|optimum| !optimum.is_bound) {
        for (release, _) in optimum.first_run.iter().filter(|(release, _)| release.time < until) {
            windows.insert((release.task, release.number), (release.time.0, release.deadline.0));
        }
        all.push(of_optimum(optimum, comparison.plan.set.cores(), until));
    }
    let windows_ends = windows.values().flat_map(|(release, deadline)| [*release, *deadline]);
    let slice_ends = all.iter().flat_map(|of| of.slices.iter().flat_map(|(.., start, end)| [*start, *end]));
    let late = all.iter().flat_map(|of| of.missed.iter().map(|(_, _, time, _)| *time));
    let instead = all.iter().flat_map(|of| of.instead.iter().map(|(.., time)| *time));
    let stretches = all.iter().flat_map(|of| of.holds.iter().chain(&of.waits));
    let stretch_ends = stretches.flat_map(|stretch| [stretch.start.0, stretch.end.0]);
    let unit_ns = windows_ends
        .chain(slice_ends)
        .chain(stretch_ends)
        .chain(late)
        .chain(instead)
        .chain([until.0])
        .fold(0, common_divisor)
        .max(1);
    let mut ids: Vec<Id> = windows.keys().copied().collect();
    ids.sort_by_key(|id| (windows[id].0, *id));
    let places: BTreeMap<Id, u64> = ids.iter().enumerate().map(|(place, id)| (*id, place as u64)).collect();
    let job = |id: &Id| {
        let (release, deadline) = windows[id];
        [u64::from(rows[id.0]), id.1, release / unit_ns, deadline / unit_ns]
    };
    let jobs = ids.iter().flat_map(job).collect();
    let whys: BTreeSet<&str> = all.iter().flat_map(|of| of.missed.iter().map(|(.., why)| *why)).collect();
    let whys: Vec<&str> = whys.into_iter().filter(|why| !why.is_empty()).collect();
    let courses = all.into_iter().map(|full| (full.name.clone(), full.shortened(unit_ns, &places, &whys, MOST_SLICES)));
    let schedules = without_doubles(courses.collect());
    SchedulesJson { unit_ns, reasons: REASONS, whys, jobs, schedules }
}

/// Replaces repeated courses by a reference to the first, because many schedulers decide alike.
fn without_doubles(courses: Vec<(String, Course)>) -> Vec<ScheduleJson> {
    let mut known: BTreeMap<Course, usize> = BTreeMap::new();
    let mut schedules = Vec::new();
    for (place, (name, course)) in courses.into_iter().enumerate() {
        let same = known.get(&course).copied();
        schedules.push(match same {
            Some(_) => ScheduleJson { name, same, course: Course::default() },
            None => ScheduleJson { name, same, course: course.clone() },
        });
        known.entry(course).or_insert(place);
    }
    schedules
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

impl Full {
    fn shortened(mut self, unit_ns: u64, places: &BTreeMap<Id, u64>, whys: &[&str], most: usize) -> Course {
        self.slices.sort_by_key(|(core, _, start, _)| (*start, *core));
        let cut = self.slices.split_off(self.slices.len().min(most));
        let until = cut.first().map(|(_, _, start, _)| start / unit_ns);
        let place = |id: &Id| places.get(id).copied();
        let (mut slices, mut before) = (Vec::new(), 0);
        for (core, id, start, end) in &self.slices {
            let Some(job) = place(id) else { continue };
            slices.extend([u64::from(core.0), job, (start - before) / unit_ns, (end - start) / unit_ns]);
            before = *start;
        }
        let mut open: BTreeSet<u64> =
            self.open.iter().chain(cut.iter().map(|(_, id, ..)| id)).filter_map(place).collect();
        self.missed.iter().filter_map(|(id, ..)| place(id)).for_each(|missed| {
            open.remove(&missed);
        });
        let held_up = |why: &str| whys.iter().position(|known| *known == why).map_or(0, |at| at as u64 + 1);
        let missed = self
            .missed
            .iter()
            .filter_map(|(id, reason, time, why)| Some([place(id)?, *reason, time / unit_ns, held_up(why)]));
        let instead =
            self.instead.iter().filter_map(|(id, task, time)| Some([place(id)?, u64::from(*task), time / unit_ns]));
        let instead = instead.flatten().collect();
        let encoded = |stretch: &Stretch| {
            let job = place(&(stretch.task, stretch.number))?;
            let (start, length) = (stretch.start.0 / unit_ns, (stretch.end - stretch.start).0 / unit_ns);
            Some([u64::from(stretch.resource.0), job, start, length])
        };
        let is_drawn = |stretch: &&Stretch| until.is_none_or(|until| stretch.start.0 / unit_ns < until);
        let all = |list: &[Stretch]| list.iter().filter(is_drawn).filter_map(encoded).flatten().collect();
        let (holds, waits) = (all(&self.holds), all(&self.waits));
        let (missed, open) = (missed.flatten().collect(), open.into_iter().collect());
        Course { slices, missed, instead, holds, waits, open, until }
    }
}

fn of_recording(name: &str, recording: &Recorder, until: Time) -> Full {
    let slice = |slice: &temponet_sim::Slice| (slice.core, (slice.task, slice.number), slice.start.0, slice.end.0);
    let misses: BTreeMap<Id, &Miss> = recording.misses.iter().map(|miss| ((miss.task, miss.number), miss)).collect();
    let (mut missed, mut instead, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for job in recording.jobs.iter().filter(|job| !job.met() || job.left > until) {
        let id = (job.task, job.number);
        if !job.met() && job.deadline <= until {
            let (reason, time) = reason(job);
            let miss = misses.get(&id);
            missed.push((id, reason, time.0, miss.map_or("", |miss| miss.why)));
            instead.extend(miss.iter().flat_map(|miss| &miss.ran_instead).map(|(task, time)| (id, task.0, time.0)));
        } else {
            open.push(id);
        }
    }
    let slices = recording.slices.iter().map(slice).collect();
    let (holds, waits) = (recording.holds.clone(), recording.waits.clone());
    Full { name: name.into(), slices, missed, instead, open, holds, waits }
}

/// Returns the index into [`REASONS`] for a missed job, and the time that belongs to it.
fn reason(job: &JobRecord) -> (u64, Time) {
    match job.end {
        End::Completed => (0, Time(job.left.0.saturating_sub(job.deadline.0))),
        End::Aborted => (1, job.executed),
        End::Abandoned => (2, job.executed),
        End::Unfinished => (3, job.executed),
        End::Unreleased => (4, Time::ZERO),
    }
}

fn of_optimum(optimum: &Clairvoyant, cores: usize, until: Time) -> Full {
    let id = |job: usize| (optimum.first_run[job].0.task, optimum.first_run[job].0.number);
    let pieces = optimum.schedule(cores, until);
    let slices = pieces.iter().map(|piece| (piece.core, id(piece.job), piece.start.0, piece.end.0)).collect();
    let (mut missed, mut open) = (Vec::new(), Vec::new());
    for (index, (release, is_chosen)) in optimum.first_run.iter().enumerate() {
        match (is_chosen, release.time < until, release.deadline <= until) {
            (false, true, true) => missed.push((id(index), LEFT_OUT, 0, "")),
            (_, true, false) => open.push(id(index)),
            _ => {}
        }
    }
    let name = if optimum.met.is_exact() { "clairvoyant optimum" } else { "clairvoyant, best schedule found" };
    Full { name: name.into(), slices, missed, instead: Vec::new(), open, holds: Vec::new(), waits: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::ResourceId;

    #[test]
    fn reasons_are_those_of_the_simulator() {
        for (end, words) in [End::Aborted, End::Abandoned, End::Unfinished].iter().zip(&REASONS[1..]) {
            assert_eq!(format!("{} with {{}} done", end.name()), *words);
        }
    }

    fn full() -> Full {
        let (a, b) = ((TaskId(0), 0), (TaskId(1), 0));
        let slices = vec![(CoreId(0), b, 30, 50), (CoreId(0), a, 10, 30), (CoreId(1), b, 10, 20)];
        let stretch =
            |task, start, end| Stretch { resource: ResourceId(2), task, number: 0, start: Time(start), end: Time(end) };
        let (holds, waits) = (vec![stretch(TaskId(0), 20, 30)], vec![stretch(TaskId(1), 20, 40)]);
        Full {
            name: "x".into(),
            slices,
            missed: vec![(b, 1, 20, "never started")],
            instead: vec![(b, 0, 10)],
            open: vec![a],
            holds,
            waits,
        }
    }

    #[test]
    fn short_arrays_hold_the_whole_schedule() {
        let short =
            full().shortened(10, &[((TaskId(0), 0), 0), ((TaskId(1), 0), 1)].into(), &["never started"], MOST_SLICES);
        assert_eq!(short.slices, [0, 0, 1, 2, 1, 1, 0, 1, 0, 1, 2, 2]);
        assert_eq!((short.missed, short.open, short.until), (vec![1, 1, 2, 1], vec![0], None));
        assert_eq!(short.instead, [1, 0, 1]);
        assert_eq!((short.holds, short.waits), (vec![2, 0, 2, 1], vec![2, 1, 2, 2]));
    }

    #[test]
    fn a_scheduler_that_cuts_time_fine_does_not_make_the_page_huge() {
        let whole = Full { missed: Vec::new(), open: Vec::new(), ..full() };
        let short = whole.shortened(10, &[((TaskId(0), 0), 0), ((TaskId(1), 0), 1)].into(), &[], 2);
        assert_eq!((short.slices.len(), short.until), (2 * 4, Some(3)));
        assert_eq!(short.open, [1], "where a job ends is not told if its end is not drawn");
    }

    #[test]
    fn equal_schedules_are_kept_once() {
        let course = |job: u64| Course { slices: vec![0, job, 1, 2], ..Course::default() };
        let courses = [("a", 1), ("b", 2), ("c", 1)].map(|(name, job)| (name.to_string(), course(job)));
        let same: Vec<Option<usize>> = without_doubles(courses.to_vec()).iter().map(|of| of.same).collect();
        assert_eq!(same, [None, None, Some(0)]);
    }
}
