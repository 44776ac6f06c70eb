//! The file of an imported set: TOML as every other, with what was found in comments.

use temponet_formats::{Format, write};
use temponet_task::{TaskSet, Time};
use temponet_wording::visible;

use crate::set::{Found, Kind};

/// Returns the file.
pub(crate) fn toml(set: &TaskSet, tasks: &[Found], notes: &[String]) -> Result<String, String> {
    let plain = write(set, Format::Toml).map_err(|error| error.to_string())?;
    let mut out = String::new();
    for note in notes {
        out += &format!("# {}\n", visible(note));
    }
    // Texts in the file have no line breaks, so that these lines are what they look like.
    const TASK: &str = "\n[[task]]\n";
    let mut parts = plain.split(TASK);
    out += parts.next().unwrap_or_default();
    for (part, task) in parts.zip(tasks) {
        out.push('\n');
        for line in comments(task, tasks) {
            out += &format!("# {}\n", visible(&line));
        }
        out += &TASK[1..];
        out += part;
    }
    Ok(out)
}

/// What was found of a task, in lines.
fn comments(task: &Found, all: &[Found]) -> Vec<String> {
    let mut lines = Vec::new();
    let ns = |value: f64| Time(value.round().max(0.0) as u64);
    lines.push(match &task.kind {
        Kind::Periodic { residual, confidence, fitted } => {
            format!("periodic: {} ± {} measured, confidence {confidence:.4}", ns(*fitted), ns(*residual))
        }
        Kind::Sporadic { mean, longest, residual, confidence } => format!(
            "sporadic: gaps from {} to {longest}, mean {} ± {}, confidence in a period {confidence:.4}",
            task.period,
            ns(*mean),
            ns(*residual)
        ),
        Kind::Follows { after } => format!("comes after {:?}, once for each of its publications", all[*after].name),
    });
    let dropped = if task.dropped > 0 { format!(", {} left out", task.dropped) } else { String::new() };
    lines.push(format!(
        "times: {} jobs{dropped}; {} to {}, median {}; longest response {}",
        task.jobs, task.least, task.most, task.median, task.longest_response
    ));
    let mut about = Vec::new();
    if let Some(thread) = task.thread {
        about.push(format!("thread {thread}"));
    }
    about.extend(task.policy.clone());
    if !task.processors.is_empty() {
        let cpus: Vec<String> = task.processors.iter().map(u32::to_string).collect();
        about.push(format!("seen on processor {}", cpus.join(", ")));
    }
    if !about.is_empty() {
        lines.push(about.join("; "));
    }
    lines.extend(task.notes.iter().cloned());
    lines
}
