//! The Gantt chart of a schedule, as one SVG picture: which job ran when, where releases and deadlines lie, which
//! deadlines were missed and why.
//!
//! Sets of up to [`MOST_TASK_ROWS`] tasks get a row per task, with marks of releases and deadlines; larger sets get a
//! row per core. With rows per task, an arrow leads from the end of a job to the start of each job that comes after it,
//! and a dashed one from a value to the job that reads it, unless they are many. Critical sections are hatched.

mod arrows;
mod sections;

use temponet_sim::labels;
use temponet_sim::{End, JobRecord, Recorder};
use temponet_task::{CoreId, TaskId, TaskSet, Time};
use temponet_wording::counted;

use temponet_page::svg::{Svg, SvgShape, fill, line, path, rect, text};

/// Greatest number of tasks with a row each; larger sets have a row per core.
pub const MOST_TASK_ROWS: usize = 24;

/// Number of jobs that a picture shows well.
pub const PICTURE_JOBS: f64 = 40.0;

const WIDTH: f64 = 1200.0;
/// Least and greatest width of the labels of rows.
const LEFT: f64 = 150.0;
const MOST_LEFT: f64 = 320.0;
/// Distance of the labels from both edges of their column.
const GAP: f64 = 10.0;
/// Width of a letter of the small labels, on average.
const SMALL_LETTER: f64 = 5.7;
const RIGHT: f64 = 24.0;
const TOP: f64 = 58.0;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 22.0;
const ROW: f64 = 34.0;
const BAR: f64 = 18.0;

/// Draws the part of a recorded schedule before `until`, and returns it as the text of an SVG file.
pub fn svg(set: &TaskSet, scheduler: &str, recording: &Recorder, until: Time) -> String {
    // A task with parts has one row.
    let tasks: Vec<TaskId> = set.whole_tasks().collect();
    let by_task = tasks.len() <= MOST_TASK_ROWS;
    // With a row per core, missed deadlines get an extra row, because a job that never ran has no core.
    let rows = if by_task { tasks.len() } else { set.cores() + 1 };
    let span = until.0.max(1) as f64;
    let limits: Vec<Option<String>> =
        (0..rows).map(|row| if by_task { limits(set, tasks[row]) } else { None }).collect();
    let left = label_width(limits.iter().flatten());
    let x = |time: Time| left + (WIDTH - left - RIGHT) * (time.0 as f64 / span).min(1.0);
    let y = |row: usize| TOP + row as f64 * ROW;
    let task_row = |task: TaskId| tasks.partition_point(|other| *other < task);
    let row_of = |task: TaskId, core: CoreId| if by_task { task_row(task) } else { core.index() };
    let missed = recording.jobs.iter().filter(|job| is_missed(job, until)).count();
    let title = format!("{} under {scheduler}", set.name);
    let cores = counted(set.cores(), "core");
    let protocol = if set.has_sections() { format!(", protocol: {}", set.protocol().name()) } else { String::new() };
    let subtitle = format!("{cores}{protocol}, the first {until}, {} missed", counted(missed, "deadline"));
    let reads = if by_task { arrows::reads(set, recording, until) } else { Vec::new() };
    let legend = legend(set, by_task, !reads.is_empty());
    let (places, lines) = arranged(&legend, left);
    let height = TOP + rows as f64 * ROW + 64.0 + LEGEND_LINE * (lines - 1) as f64;
    let mut out = Svg::new(WIDTH, height, &format!("Schedule of {title}: {subtitle}")).font(13.0);
    out.add(text(left, 22.0, &title).size(16.0).bold());
    out.add(text(left, 41.0, &subtitle).class("soft"));
    axis(&mut out, until, y(rows), x);
    for (row, limit) in limits.iter().enumerate() {
        let label = match row {
            _ if by_task => set.tasks()[tasks[row]].name.clone(),
            core if core < set.cores() => labels::core(set, CoreId::new(core)),
            _ => "missed".into(),
        };
        let middle = y(row) + ROW / 2.0 + if limit.is_some() { -2.0 } else { 4.0 };
        out.add(text(left - GAP, middle, &shortened(&label, MOST_LETTERS)).end());
        if let Some(limit) = limit {
            let most = ((left - 2.0 * GAP) / SMALL_LETTER) as usize;
            let label = text(left - GAP, middle + 13.0, &shortened(limit, most)).size(10.0).end().class("soft");
            out.add(if limit.chars().count() > most { label.title(limit) } else { label });
        }
        out.add(line((left, y(row) + ROW), (WIDTH - RIGHT, y(row) + ROW)).class("line"));
    }
    for slice in recording.slices.iter().filter(|slice| slice.start < until) {
        let (left, right) = (x(slice.start), x(slice.end.min(until)));
        let top = y(row_of(slice.task, slice.core)) + (ROW - BAR) / 2.0;
        let colour = if by_task && set.cores() > 1 { slice.core.index() } else { slice.task.index() };
        let task = &set.tasks()[slice.task];
        let class = if task.criticality > 0 { fill(colour) + " critical" } else { fill(colour) };
        let (number, core, start, end) = (slice.number, slice.core, slice.start, slice.end);
        let words = format!("{} #{number} on {}: {start} to {end}", task.name, labels::core(set, core));
        out.add(rect(left, top, (right - left).max(0.4), BAR).class(&class).title(&words));
    }
    let top = |task: TaskId, core: CoreId| y(row_of(task, core)) + (ROW - BAR) / 2.0;
    sections::draw(&mut out, set, recording, until, &sections::Places { x, top, by_task });
    if by_task {
        arrows::draw(&mut out, set, recording, until, &reads, |task, time| (x(time), y(task_row(task)) + ROW / 2.0));
    }
    for job in recording.jobs.iter().filter(|job| job.release < until) {
        if by_task {
            window_marks(&mut out, job, y(task_row(job.task)), until, x);
        }
        if is_missed(job, until) {
            cross(&mut out, set, job, y(if by_task { task_row(job.task) } else { set.cores() }), x);
        }
    }
    for ((symbol, words), (left, down)) in legend.into_iter().zip(places) {
        out.moved(left, y(rows) + 44.0 + down, |out| {
            out.add(symbol);
            out.add(text(18.0, 4.0, &words).class("soft"));
        });
    }
    out.file()
}

/// Returns the width of the column of labels: that of the longest small label, within bounds.
fn label_width<'a>(limits: impl Iterator<Item = &'a String>) -> f64 {
    let letters = limits.map(|limit| limit.chars().count()).max().unwrap_or(0);
    (letters as f64 * SMALL_LETTER + 2.0 * GAP).ceil().clamp(LEFT, MOST_LEFT)
}

/// Returns what is special about the jobs of a task, in words: limits on preemption, the cores that they or their parts
/// may use, and estimates.
pub(crate) fn limits(set: &TaskSet, task: TaskId) -> Option<String> {
    let of = &set.tasks()[task];
    let places = match set.first_part(task) == task {
        true => [labels::preemption(of.preemption), labels::cores_of(set, task)],
        false => [Some(labels::parts(set, task)), None],
    };
    let limits: Vec<String> = places.into_iter().chain([labels::estimate(of)]).flatten().collect();
    (!limits.is_empty()).then(|| limits.join(", "))
}

fn is_missed(job: &JobRecord, until: Time) -> bool {
    !job.met() && job.deadline <= until
}

/// Path of the arrow at a release, from its lower end, and at a deadline, from its upper end.
const RELEASE: &str = "v-26m-3 5l3 -5l3 5";
const DEADLINE: &str = "v26m-3 -5l3 5l3 -5";
/// Path of a cross around a point.
const CROSS: &str = "m-4 -4l8 8m0 -8l-8 8";

/// Draws the marks of a job's release and deadline.
fn window_marks(out: &mut Svg, job: &JobRecord, top: f64, until: Time, x: impl Fn(Time) -> f64) {
    out.add(path(x(job.release), top + 31.0, RELEASE).class("arrow"));
    if job.deadline <= until {
        let class = if is_missed(job, until) { "late" } else { "arrow" };
        out.add(path(x(job.deadline), top + 5.0, DEADLINE).class(class));
    }
}

/// Draws a cross at the deadline of a missed job, with the reason as a tooltip.
fn cross(out: &mut Svg, set: &TaskSet, job: &JobRecord, top: f64, x: impl Fn(Time) -> f64) {
    let words = format!("{} #{} missed: {}", set.tasks()[job.task].name, job.number, reason(job));
    out.add(path(x(job.deadline), top + ROW / 2.0, CROSS).class("cross").title(&words));
}

/// Returns in words why a job missed its deadline.
pub fn reason(job: &JobRecord) -> String {
    match job.end {
        End::Completed => format!("completed {} late", Time(job.left.0.saturating_sub(job.deadline.0))),
        End::Aborted if job.left > job.deadline => {
            let late = Time(job.left.0 - job.deadline.0);
            format!("aborted {late} after its deadline, when it could be preempted, with {} done", job.executed)
        }
        End::Unreleased => End::Unreleased.name().into(),
        end => format!("{} with {} done", end.name(), job.executed),
    }
}

fn axis(out: &mut Svg, until: Time, bottom: f64, x: impl Fn(Time) -> f64) {
    let step = tick_step(until);
    for time in (0..).map(|tick| step * tick).take_while(|time| *time <= until) {
        let at = x(time);
        out.add(line((at, TOP), (at, bottom)).class("line"));
        out.add(text(at, bottom + 18.0, &time.to_string()).middle().class("soft"));
    }
}

/// Returns a round step between ticks that gives about ten of them.
fn tick_step(until: Time) -> Time {
    let rough = (until.0 / 10).max(1);
    let power = 10u64.pow(rough.ilog10());
    let step = [1, 2, 5, 10].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    Time(step.unwrap_or(rough))
}

/// Entries of the legend: symbols and words. Reads have one if their arrows are drawn.
fn legend(set: &TaskSet, by_task: bool, has_reads: bool) -> Vec<(SvgShape, String)> {
    let mut entries: Vec<(SvgShape, String)> = Vec::new();
    let mut entry = |symbol: SvgShape, words: &str| entries.push((symbol, words.into()));
    let square = |class: &str| rect(0.0, -6.0, 12.0, 12.0).class(class);
    if by_task {
        entry(path(6.0, 6.0, "V-6m-3 5l3 -5l3 5").class("arrow"), "release");
        entry(path(6.0, -6.0, "V6m-3 -5l3 5l3 -5").class("arrow"), "deadline");
    }
    if by_task && set.whole_tasks().any(|task| !set.tasks()[set.first_part(task)].after.is_empty()) {
        entry(path(0.0, 0.0, "h12m-5 -3l5 3l-5 3").class("bound").set("fill", "none"), "comes after");
    }
    if has_reads {
        entry(path(0.0, 0.0, "h12").class("axis").dashed("3 3"), "is read");
    }
    entry(path(6.0, 0.0, CROSS).class("cross"), "missed deadline");
    if set.tasks().iter().any(|task| task.criticality > 0) {
        entry(square("frame critical"), "critical task");
    }
    if !by_task {
        entry(square(&fill(0)), "one colour per task; point at a bar for its job");
    } else if set.cores() > 1 {
        set.core_ids().take(8).for_each(|core| entry(square(&fill(core.index())), &labels::core(set, core)));
    }
    entries.extend(sections::legend(set, by_task));
    entries
}

/// Positions of the entries of a legend, which goes on in the next line where one is full, and its number of lines.
fn arranged(entries: &[(SvgShape, String)], left: f64) -> (Vec<(f64, f64)>, usize) {
    let (mut x, mut lines) = (left, 1);
    let place = |(_, words): &(SvgShape, String)| {
        let width = 34.0 + 7.2 * words.chars().count() as f64;
        if x > left && x + width > WIDTH {
            (x, lines) = (left, lines + 1);
        }
        let at = (x, LEGEND_LINE * (lines - 1) as f64);
        x += width;
        at
    };
    let places = entries.iter().map(place).collect();
    (places, lines)
}

/// Greatest number of letters of a row's name.
const MOST_LETTERS: usize = 18;

fn shortened(label: &str, most: usize) -> String {
    if label.chars().count() <= most { label.into() } else { label.chars().take(most - 1).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_sim::simulate;
    use temponet_task::{Chain, Communication, Preemption, ResourceId, Task};

    #[test]
    fn missed_jobs_carry_their_reason_and_names_are_escaped() {
        let tasks = vec![Task::periodic("a<b", Time::from_ms(10), Time::from_ms(20))];
        let set = TaskSet::new("s", tasks, 1);
        let mut recorder = Recorder::until(Time::from_ms(30));
        let mut edf = temponet_sched::build("edf").unwrap();
        simulate(&set, 0, Time::from_ms(30), &mut *edf, &mut recorder).unwrap();
        let picture = svg(&set, "edf", &recorder, Time::from_ms(30));
        assert_eq!(picture.matches("missed: aborted at its deadline with 10ms done").count(), 3);
        assert!(picture.contains("a&lt;b") && !picture.contains("a<b"));
        assert!(picture.contains("3 deadlines missed"));
    }

    #[test]
    fn limits_on_preemption_stand_below_the_names() {
        let ms = Time::from_ms;
        let mut tasks = vec![Task::periodic("gpu", ms(30), ms(20)), Task::periodic("free", ms(10), ms(1))];
        (tasks[0].preemption, tasks[0].deadline) = (Preemption::Every(ms(6)), ms(10));
        let set = TaskSet::new("s", tasks, 1);
        let mut recorder = Recorder::until(ms(30));
        simulate(&set, 0, ms(30), &mut *temponet_sched::build("fcfs").unwrap(), &mut recorder).unwrap();
        let picture = svg(&set, "fcfs", &recorder, ms(30));
        assert_eq!(picture.matches("preempted every 6ms").count(), 1);
        assert!(picture.contains("aborted 2ms after its deadline, when it could be preempted, with 12ms done"));
    }

    #[test]
    fn long_labels_have_room_or_are_shortened() {
        let widths =
            |limits: &[&str]| label_width(limits.iter().map(|limit| limit.to_string()).collect::<Vec<_>>().iter());
        let (short, long) = ("not preempted, little", "not preempted, efficiency-cluster");
        assert_eq!((widths(&[]), widths(&[short])), (LEFT, LEFT));
        assert!(widths(&[short, long]) >= long.len() as f64 * SMALL_LETTER + 2.0 * GAP);
        let ms = Time::from_ms;
        let mut task = Task::periodic("gpu", ms(30), ms(20));
        task.preemption = Preemption::None;
        task.cores = temponet_task::CoreSet::of([CoreId(0)]);
        let core = |name: &str| temponet_task::Core::new(name, temponet_task::Speed::FULL);
        let name = "a-very-long-name-of-a-cluster-of-cores-that-no-column-of-labels-has-room-for";
        let set = TaskSet::new("s", vec![task], 2).with_machine(vec![core(name), core("b")]);
        let picture = svg(&set, "edf", &Recorder::until(ms(30)), ms(30));
        assert!(
            picture.contains("…") && picture.contains(&format!("<title>not preempted, {name}</title>")),
            "{picture}"
        );
    }

    #[test]
    fn reads_have_arrows_unless_every_chain_over_them_is_let() {
        let ms = Time::from_ms;
        let mut tasks = vec![Task::periodic("writer", ms(10), ms(1)), Task::periodic("reader", ms(10), ms(1))];
        (tasks[1].reads, tasks[1].offset) = (vec![TaskId(0)], ms(5));
        let chain = |communication: Communication| Chain {
            name: communication.name().into(),
            tasks: vec![TaskId(0), TaskId(1)],
            deadline: None,
            communication,
        };
        let has_arrows = |communications: &[Communication]| {
            let chains = communications.iter().map(|communication| chain(*communication)).collect();
            let set = TaskSet::new("s", tasks.clone(), 1).with_chains(chains);
            let mut recorder = Recorder::until(ms(30));
            simulate(&set, 0, ms(30), &mut *temponet_sched::build("edf").unwrap(), &mut recorder).unwrap();
            let picture = svg(&set, "edf", &recorder, ms(30));
            let (dashed, in_legend) = (picture.matches("stroke-dasharray").count(), picture.contains("is read"));
            assert_eq!(dashed, if in_legend { 3 + 1 } else { 0 }, "the legend has what is drawn");
            in_legend
        };
        let (implicit, by_let) = (Communication::Implicit, Communication::Let);
        assert_eq!([has_arrows(&[]), has_arrows(&[implicit]), has_arrows(&[by_let, implicit])], [true; 3]);
        assert!(!has_arrows(&[by_let]));
    }

    #[test]
    fn sections_are_hatched_and_waits_are_boxes() {
        let ms = Time::from_ms;
        let section =
            |at: u64, length: u64| temponet_task::Section { resource: ResourceId(0), at: ms(at), length: ms(length) };
        let mut tasks = vec![Task::periodic("low", ms(30), ms(20)), Task::periodic("high", ms(30), ms(4))];
        (tasks[0].sections, tasks[1].sections) = (vec![section(1, 9)], vec![section(0, 2)]);
        (tasks[1].offset, tasks[1].deadline) = (ms(5), ms(10));
        let set = TaskSet::new("s", tasks, 1).with_resources(vec!["a<b".into()]);
        let mut recorder = Recorder::until(ms(30));
        simulate(&set, 0, ms(30), &mut *temponet_sched::build("edf").unwrap(), &mut recorder).unwrap();
        let picture = svg(&set, "edf", &recorder, ms(30));
        for words in [
            "low #0 holds a&lt;b: 1ms to 10ms",
            "high #0 holds a&lt;b: 10ms to 12ms",
            "high #0 waits for a&lt;b: 5ms to 10ms",
        ] {
            assert!(picture.contains(words), "{words}");
        }
        assert!(picture.contains("waits for it"));
    }

    #[test]
    fn ticks_are_round_and_about_ten() {
        for until in [1, 9, 17_000, 600_000_000, 123_456_789_012] {
            let step = tick_step(Time(until));
            let ticks = until / step.0;
            assert!((1..=10).contains(&ticks), "{until}: {step}");
        }
    }
}
