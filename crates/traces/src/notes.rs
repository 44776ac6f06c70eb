//! Notes on what a trace says and a set does not represent. Nothing is dropped silently.

use temponet_task::Time;
use temponet_wording::{counted, grouped, listed, verb};

use crate::TaskBy;
use crate::collect::Collector;
use crate::event::Names;
use crate::set::{FEW, Found};
use crate::source::Unread;

/// What was read.
pub(crate) struct Reading<'a> {
    pub collector: &'a Collector<'a>,
    pub names: &'a Names,
    pub unread: Unread,
    pub remarks: Vec<String>,
    /// Date of the first event.
    pub origin: u64,
    /// Dates from which and up to which events count.
    pub begin: u64,
    pub last: u64,
    pub task_by: TaskBy,
}

impl Reading<'_> {
    /// Length of what counts, in nanoseconds.
    pub fn length(&self) -> u64 {
        self.last - self.begin
    }

    /// Share of a processor.
    fn share(&self, time: u64) -> String {
        format!("{:.2}% of a core", 100.0 * time as f64 / self.length().max(1) as f64)
    }
}

/// Least share of a processor of a thread without jobs that is worth a note.
const WORTH_A_NOTE: f64 = 0.01;
/// Most names in a note.
const MOST_NAMES: usize = 5;

/// Notes on the trace as a whole.
pub(crate) fn of_reading(reading: &Reading<'_>, found: &[Found]) -> Vec<String> {
    let collector = reading.collector;
    let (counts, threads) = (&collector.counts, &collector.threads);
    let mut notes = Vec::new();
    let mut say = |when: bool, note: &dyn Fn() -> String| {
        if when {
            notes.push(note());
        }
    };
    let has_own_times = counts.slices + counts.stretches > 0 && counts.markers + counts.callbacks == 0;
    say(!threads.saw_switch && !has_own_times, &|| {
        "NO sched_switch in the trace: execution times are WALL TIME, with everything that ran in between; record sched_switch too".into()
    });
    say(
        !threads.saw_switch && counts.slices > 0 && reading.task_by == TaskBy::Marker && reading.remarks.is_empty(),
        &|| {
            "slices have no sched_switch beside them: execution times are the lengths of the slices, wall time if they were interrupted".into()
        },
    );
    say(threads.saw_switch && !threads.saw_wake && reading.task_by == TaskBy::Thread, &|| {
        "no wake-ups in the trace: jobs begin when their threads get a processor, so that jitter and responses are too short; record sched_waking too".into()
    });
    let dropped: u64 = collector.tasks.iter().map(|task| task.log.dropped).sum();
    say(counts.losses > 0, &|| {
        let events =
            if counts.lost_events > 0 { format!(" ({})", counted(counts.lost_events, "event")) } else { String::new() };
        format!("events were lost {}{events}", times(counts.losses))
    });
    say(threads.missing > 0, &|| match threads.missing {
        1 => "one switch does not fit the one before: events are missing".into(),
        count => format!("{} switches do not fit the ones before: events are missing", grouped(count)),
    });
    say(dropped > 0, &|| {
        format!(
            "{} that lost events touch or that began before the trace {} left out",
            counted(dropped, "job"),
            verb(dropped, "is", "are")
        )
    });
    let unread = &reading.unread;
    say(unread.lines > 0, &|| {
        let place =
            if unread.first_line > 0 { format!(", the first in line {}", unread.first_line) } else { String::new() };
        format!("{} of the scheduler cannot be read{place}", counted(unread.lines as usize, "event"))
    });
    say(unread.out_of_order > 0, &|| {
        let (events, are) = (counted(unread.out_of_order, "event"), verb(unread.out_of_order, "is", "are"));
        format!("{events} came after later ones and {are} taken for as late")
    });
    say(unread.other_markers > 0, &|| {
        let markers = counted(unread.other_markers as usize, "marker");
        format!(
            "{markers} of other kinds than pairs (instants, counters, asynchronous ones) {} not represented",
            verb(unread.other_markers, "is", "are")
        )
    });
    say(counts.nested > 0, &|| {
        let kind = if reading.task_by == TaskBy::Callback { "callback" } else { "marker" };
        format!("{} within others {} part of these", counted(counts.nested, kind), verb(counts.nested, "is", "are"))
    });
    say(counts.unopened > 0, &|| {
        let kind = if reading.task_by == TaskBy::Callback { "callback" } else { "marker" };
        let end = verb(counts.unopened, "ends", "end");
        format!("{} {end} without a beginning in the trace", counted(counts.unopened, kind))
    });
    say(counts.without_thread > 0, &|| {
        "callbacks do not say their thread (lttng add-context -u -t vtid): they are told apart by their processors"
            .into()
    });
    let (unfinished, ran) = collector.unfinished(reading.last);
    say(unfinished > 0, &|| {
        let took = if ran > 0 { format!(", {} in all", reading.share(ran)) } else { String::new() };
        let are = verb(unfinished, "is", "are");
        format!("{} had not ended when the trace did and {are} left out{took}", counted(unfinished, "job"))
    });
    say(counts.outside > 0, &|| {
        format!(
            "{} {} outside of the times asked for",
            counted(counts.outside, "job"),
            verb(counts.outside, "is", "are")
        )
    });
    say(reading.collector.ros.outside > 0, &|| {
        let count = reading.collector.ros.outside;
        format!("{} outside of callbacks {} not represented", counted(count, "publication"), verb(count, "is", "are"))
    });
    say(reading.names.overflowed, &|| "there are too many different names: the later ones are <unknown>".into());
    notes.extend(reading.remarks.iter().cloned());
    notes.extend(left_out(reading, found));
    notes.extend(ended(reading));
    notes.extend(busy_threads(reading));
    let few = found.iter().filter(|task| task.jobs < FEW).count();
    if few > 0 {
        notes.push(format!("{} {} on fewer than {FEW} jobs", tasks(few), verb(few, "rests", "rest")));
    }
    notes.push(
        "a trace has no deadlines: each is the period, or the shortest gap of a sporadic task, until you state your own".into(),
    );
    notes.push("the wcet of a task is the longest time that was seen, which is no bound".into());
    notes
}

fn tasks(count: usize) -> String {
    counted(count, "task")
}

fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        count => format!("{count} times"),
    }
}

/// Tasks with too few jobs.
fn left_out(reading: &Reading<'_>, found: &[Found]) -> Option<String> {
    let is_found = |name: &str| found.iter().any(|task| task.name == name);
    let out: Vec<_> = reading.collector.tasks.iter().filter(|task| !is_found(&task.name)).collect();
    if out.is_empty() {
        return None;
    }
    let shown = |task: &&&crate::collect::Collected| format!("{:?} ({})", task.name, task.log.count);
    let names: Vec<String> = out.iter().map(|task| shown(&task)).collect();
    let took = out.iter().map(|task| task.log.total).sum();
    let (are, their) = (verb(out.len(), "is", "are"), verb(out.len(), "Its", "Their"));
    Some(format!(
        "{} with fewer than {} jobs {are} left out: {}. {their} jobs took {}",
        tasks(out.len()),
        crate::arrivals::FEWEST,
        listed(names.iter().map(String::as_str), MOST_NAMES),
        reading.share(took)
    ))
}

/// Jobs that ended with their threads.
fn ended(reading: &Reading<'_>) -> Option<String> {
    if reading.task_by != TaskBy::Thread {
        return None;
    }
    let mut all: Vec<_> =
        reading.collector.threads.ended.iter().map(|(name, (count, ran))| (*ran, *count, *name)).collect();
    all.sort_by_key(|(ran, count, name)| std::cmp::Reverse((*ran, *count, *name)));
    let (ran, count) = all.iter().fold((0, 0), |(ran, count), one| (ran + one.0, count + one.1));
    if count == 0 {
        return None;
    }
    let shown = |(ran, count, name): &(u64, u64, crate::event::Name)| {
        let name = temponet_wording::visible(reading.names.text(*name)).into_owned();
        format!("{name:?} ({count}, {})", Time(*ran))
    };
    let names: Vec<String> = all.iter().map(shown).collect();
    let names = listed(names.iter().map(String::as_str), MOST_NAMES);
    let (jobs, are) =
        (counted(count, "job"), verb(count, "that ended with its thread is", "that ended with their threads are"));
    Some(format!("{jobs} {are} left out: {names}; {} in all", reading.share(ran)))
}

/// Threads that ran and completed no job.
fn busy_threads(reading: &Reading<'_>) -> Option<String> {
    if reading.task_by != TaskBy::Thread {
        return None;
    }
    let span = reading.length().max(1) as f64;
    let all = reading.collector.threads.without_jobs(reading.last);
    let busy: Vec<_> = all.iter().filter(|(.., ran)| *ran as f64 / span >= WORTH_A_NOTE).collect();
    if busy.is_empty() {
        return None;
    }
    let shown = |(tid, name, ran): &&(i32, crate::event::Name, u64)| {
        let name = temponet_wording::visible(reading.names.text(*name)).into_owned();
        format!("{name:?} ({tid}): {} or {:.1}% of a core", Time(*ran), 100.0 * *ran as f64 / span)
    };
    let mut names: Vec<String> = busy.iter().take(MOST_NAMES).map(shown).collect();
    if busy.len() > MOST_NAMES {
        names.push(format!("{} more", busy.len() - MOST_NAMES));
    }
    let threads = counted(busy.len(), "thread");
    Some(format!(
        "{threads} ran without completing a job and {} not represented: {}",
        verb(busy.len(), "is", "are"),
        names.join("; ")
    ))
}
