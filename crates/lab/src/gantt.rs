//! A schedule as one SVG picture: who ran when, where the releases and deadlines lie, what was missed and why.
//!
//! Up to [`MOST_TASK_ROWS`] tasks get a row each, with release and deadline marks; larger sets get a row per core.

use std::fmt::Write;

use temponet_sim::{End, JobRecord, Recorder};
use temponet_task::{TaskSet, Time};

/// More tasks than this are drawn by core.
pub const MOST_TASK_ROWS: usize = 24;

/// Colours that stay apart for most kinds of sight (after Okabe and Ito, and Tol).
pub const PALETTE: [&str; 10] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7f00", "#882255", "#44aa99", "#666666"];
const MISSED: &str = "#c8102e";

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 58.0;
const ROW: f64 = 34.0;
const BAR: f64 = 18.0;

/// Draws what `recording` kept before `until`.
pub fn svg(set: &TaskSet, scheduler: &str, recording: &Recorder, until: Time) -> String {
    let by_task = set.tasks.len() <= MOST_TASK_ROWS;
    // By core, missed deadlines get a row of their own below: a job that never ran has no core.
    let rows = if by_task { set.tasks.len() } else { set.cores + 1 };
    let height = TOP + rows as f64 * ROW + 64.0;
    let span = until.0.max(1) as f64;
    let x = |time: Time| LEFT + (WIDTH - LEFT - RIGHT) * (time.0 as f64 / span).min(1.0);
    let y = |row: usize| TOP + row as f64 * ROW;
    let row_of = |task: u32, core: u32| if by_task { task as usize } else { core as usize };
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let missed = recording.jobs.iter().filter(|job| is_missed(job, until)).count();
    let title = format!("{} under {scheduler}", set.name);
    let subtitle = format!("{} cores, the first {until}, {missed} deadlines missed", set.cores);
    let subtitle = if set.cores == 1 { subtitle.replacen("cores", "core", 1) } else { subtitle };
    let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"22\" font-size=\"16\" font-weight=\"600\">{}</text>", escape(&title));
    let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"41\" fill=\"#555\">{}</text>", escape(&subtitle));
    axis(&mut out, until, y(rows), x);
    for row in 0..rows {
        let label = match row {
            _ if by_task => set.tasks[row].name.clone(),
            core if core < set.cores => format!("core {core}"),
            _ => "missed".into(),
        };
        let middle = y(row) + ROW / 2.0;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><line x1=\"{LEFT}\" x2=\"{}\" y1=\"{}\" y2=\"{}\" stroke=\"#ddd\"/>",
            LEFT - 10.0,
            middle + 4.0,
            escape(&shortened(&label)),
            WIDTH - RIGHT,
            y(row) + ROW,
            y(row) + ROW
        );
    }
    for slice in &recording.slices {
        if slice.start >= until {
            continue;
        }
        let (left, right) = (x(slice.start), x(slice.end.min(until)));
        let top = y(row_of(slice.task, slice.core)) + (ROW - BAR) / 2.0;
        let colour = if by_task && set.cores > 1 { slice.core } else { slice.task };
        let name = &set.tasks[slice.task as usize].name;
        let _ = writeln!(
            out,
            "<rect x=\"{left:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{BAR}\" fill=\"{}\"><title>{} #{} on core {}: {} to {}</title></rect>",
            (right - left).max(0.4),
            PALETTE[colour as usize % PALETTE.len()],
            escape(name),
            slice.number,
            slice.core,
            slice.start,
            slice.end
        );
    }
    for job in recording.jobs.iter().filter(|job| job.release < until) {
        if by_task {
            window_marks(&mut out, job, y(job.task as usize), until, x);
        }
        if is_missed(job, until) {
            cross(&mut out, set, job, y(if by_task { job.task as usize } else { set.cores }), x);
        }
    }
    legend(&mut out, set, by_task, y(rows) + 44.0);
    out.push_str("</svg>\n");
    out
}

fn is_missed(job: &JobRecord, until: Time) -> bool {
    !job.met() && job.deadline <= until
}

/// Release and deadline of a job.
fn window_marks(out: &mut String, job: &JobRecord, top: f64, until: Time, x: impl Fn(Time) -> f64) {
    let (top, bottom) = (top + 5.0, top + ROW - 3.0);
    let release = x(job.release);
    let _ = writeln!(out, "<path d=\"M{release:.2} {bottom}V{top}m-3 5l3 -5l3 5\" fill=\"none\" stroke=\"#777\"/>");
    if job.deadline <= until {
        let deadline = x(job.deadline);
        let colour = if is_missed(job, until) { MISSED } else { "#777" };
        let _ = writeln!(
            out,
            "<path d=\"M{deadline:.2} {top}V{bottom}m-3 -5l3 5l3 -5\" fill=\"none\" stroke=\"{colour}\"/>"
        );
    }
}

/// A cross before the deadline of a missed job, with the reason.
fn cross(out: &mut String, set: &TaskSet, job: &JobRecord, top: f64, x: impl Fn(Time) -> f64) {
    let (left, top) = (x(job.deadline) - 9.0, top + ROW / 2.0 - 4.0);
    let name = escape(&set.tasks[job.task as usize].name);
    let _ = writeln!(
        out,
        "<path d=\"M{left:.2} {top}l8 8m0 -8l-8 8\" stroke=\"{MISSED}\" stroke-width=\"2.5\"><title>{name} #{} missed: {}</title></path>",
        job.number,
        reason(job)
    );
}

/// Why a job is missed, in words.
pub fn reason(job: &JobRecord) -> String {
    match job.end {
        End::Completed => format!("completed {} late", Time(job.left.0.saturating_sub(job.deadline.0))),
        end => format!("{} with {} done", end.name(), job.executed),
    }
}

fn axis(out: &mut String, until: Time, bottom: f64, x: impl Fn(Time) -> f64) {
    let step = tick_step(until);
    for tick in 0.. {
        let time = step * tick;
        if time > until {
            break;
        }
        let at = x(time);
        let _ = writeln!(
            out,
            "<line x1=\"{at:.2}\" x2=\"{at:.2}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#eee\"/>\
             <text x=\"{at:.2}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{time}</text>",
            bottom + 18.0
        );
    }
}

/// A round step that gives about ten ticks.
fn tick_step(until: Time) -> Time {
    let rough = (until.0 / 10).max(1);
    let power = 10u64.pow(rough.ilog10());
    let step = [1, 2, 5, 10].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    Time(step.unwrap_or(rough))
}

fn legend(out: &mut String, set: &TaskSet, by_task: bool, y: f64) {
    let mut x = LEFT;
    let mut entry = |symbol: String, text: &str| {
        let _ = writeln!(
            out,
            "<g transform=\"translate({x:.1} {y:.1})\">{symbol}<text x=\"18\" y=\"4\" fill=\"#555\">{}</text></g>",
            escape(text)
        );
        x += 34.0 + 7.2 * text.chars().count() as f64;
    };
    if by_task {
        entry("<path d=\"M6 6V-6m-3 5l3 -5l3 5\" fill=\"none\" stroke=\"#777\"/>".into(), "release");
        entry("<path d=\"M6 -6V6m-3 -5l3 5l3 -5\" fill=\"none\" stroke=\"#777\"/>".into(), "deadline");
        entry(format!("<path d=\"M2 -4l8 8m0 -8l-8 8\" stroke=\"{MISSED}\" stroke-width=\"2.5\"/>"), "missed");
        if set.cores > 1 {
            for core in 0..set.cores.min(8) {
                let colour = PALETTE[core % PALETTE.len()];
                entry(
                    format!("<rect y=\"-6\" width=\"12\" height=\"12\" fill=\"{colour}\"/>"),
                    &format!("core {core}"),
                );
            }
        }
    } else {
        entry(String::new(), "one colour per task; point at a bar for its job");
    }
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= 18 { label.into() } else { label.chars().take(17).chain(['…']).collect() }
}

/// Safe inside XML text and attributes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_sim::simulate;
    use temponet_task::Task;

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
    fn ticks_are_round_and_about_ten() {
        for until in [1, 9, 17_000, 600_000_000, 123_456_789_012] {
            let step = tick_step(Time(until));
            let ticks = until / step.0;
            assert!((1..=10).contains(&ticks), "{until}: {step}");
        }
    }
}
