//! The kernel's own record of who ran: `sched_switch` events from an instance of tracefs that belongs to this run
//! alone.

use std::fs;
use std::path::{Path, PathBuf};

use crate::kernel_trace::Switch;

/// Places where tracefs is mounted.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Folder of the instances.
pub fn folder() -> Result<PathBuf, String> {
    let found = PLACES.iter().map(|place| Path::new(place).join("instances")).find(|folder| folder.is_dir());
    found.ok_or_else(|| "tracefs is not mounted or not readable: mount -t tracefs nodev /sys/kernel/tracing".into())
}

/// Prepares an instance to record: dates on the monotonic clock, room for the beginning of a long run. Nothing is
/// recorded yet.
pub fn prepare(instance: &Path) -> std::io::Result<()> {
    fs::write(instance.join("tracing_on"), "0")?;
    fs::write(instance.join("trace_clock"), "mono")?;
    fs::write(instance.join("options/overwrite"), "0")?;
    fs::write(instance.join("buffer_size_kb"), "8192")?;
    fs::write(instance.join("trace"), "")
}

/// Records the switches of these threads from now on.
pub fn record(instance: &Path, threads: &[i32]) -> std::io::Result<()> {
    // Threads of one run are made one after the other, so a range holds them and few others.
    let (first, last) = (threads.iter().min().copied().unwrap_or(0), threads.iter().max().copied().unwrap_or(0));
    let within = |field: &str| format!("({field} >= {first} && {field} <= {last})");
    let event = instance.join("events/sched/sched_switch");
    fs::write(event.join("filter"), format!("{} || {}", within("prev_pid"), within("next_pid")))?;
    fs::write(event.join("enable"), "1")?;
    fs::write(instance.join("tracing_on"), "1")
}

/// Stops recording and reads what was recorded.
pub fn read(instance: &Path) -> std::io::Result<Vec<Switch>> {
    fs::write(instance.join("tracing_on"), "0")?;
    let text = fs::read_to_string(instance.join("trace"))?;
    Ok(text.lines().filter_map(parse).collect())
}

/// Reads a line such as `name-12 [001] d..2. 345.678901: sched_switch: prev_comm=name prev_pid=12 … ==> next_comm=other
/// next_pid=34 next_prio=79`.
fn parse(line: &str) -> Option<Switch> {
    let (head, event) = line.split_once(": sched_switch: ")?;
    let cpu = head.rsplit_once('[')?.1.split(']').next()?.parse().ok()?;
    let date = head.split_whitespace().next_back()?;
    let (seconds, fraction) = date.split_once('.')?;
    let digits: u64 = fraction.parse().ok()?;
    let scale = 10u64.checked_pow(9u32.checked_sub(fraction.len() as u32)?)?;
    let at = seconds.parse::<u64>().ok()? * 1_000_000_000 + digits * scale;
    // Names of threads may contain anything, so the numbers are looked for from the end.
    let (before, after) = event.rsplit_once(" ==> ")?;
    let number = |text: &str, key: &str| text.rsplit_once(key)?.1.split_whitespace().next()?.parse::<i32>().ok();
    Some(Switch { at, cpu, from: number(before, " prev_pid=")?, to: number(after, " next_pid=")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = "  ctl pid=3-123   [001] d..2. 17.000250: sched_switch: prev_comm=ctl pid=3 prev_pid=123 prev_prio=79 prev_state=S ==> next_comm=vision next_pid=124 next_prio=89";
        assert_eq!(parse(line), Some(Switch { at: 17_000_250_000, cpu: 1, from: 123, to: 124 }));
        assert_eq!(parse("# tracer: nop"), None);
        assert_eq!(parse("a-1 [000] d. 1.5: sched_switch: prev_pid=x"), None);
    }
}
