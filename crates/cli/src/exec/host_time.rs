//! Time that the host of a virtual machine took from its processors: what the kernel calls steal.
//!
//! While another guest runs, a real-time thread stands still, and every latency measured then says something of the
//! host alone.

use std::path::{Path, PathBuf};

use temponet_lab::stats::percent;

/// Share of the processors' time beyond which figures of a machine mean nothing.
const MOST_STOLEN: f64 = 0.03;

/// Says that the figures mean nothing if the host took too much; none otherwise, and where that cannot be told.
pub fn warning(stolen: Option<f64>) -> Option<String> {
    let share = percent(stolen.filter(|share| *share > MOST_STOLEN)?);
    Some(format!(
        "The host of this virtual machine took {share} of the processors' time from the runs: figures of this machine mean nothing."
    ))
}

/// A measurement that has begun.
pub struct HostTime {
    file: PathBuf,
    cpus: Vec<usize>,
    before: Option<Ticks>,
}

/// Ticks since the boot.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Ticks {
    stolen: u64,
    all: u64,
}

impl HostTime {
    /// Begins to measure on some processors.
    pub fn begin(cpus: &[usize]) -> HostTime {
        HostTime::begin_with(Path::new("/proc/stat"), cpus)
    }

    fn begin_with(file: &Path, cpus: &[usize]) -> HostTime {
        let before = read(file, cpus);
        HostTime { file: file.into(), cpus: cpus.into(), before }
    }

    /// Share of the processors' time that the host has taken since the beginning; `None` where that cannot be told.
    pub fn stolen(&self) -> Option<f64> {
        let (before, now) = (self.before?, read(&self.file, &self.cpus)?);
        let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
        Some(now.stolen.checked_sub(before.stolen)? as f64 / all as f64)
    }
}

/// Adds up the lines of these processors, such as `cpu1 user nice system idle iowait irq softirq steal guest
/// guest_nice`, in ticks. The time of guests is within that of users.
fn read(file: &Path, cpus: &[usize]) -> Option<Ticks> {
    let text = std::fs::read_to_string(file).ok()?;
    let mut sum = Ticks::default();
    for cpu in cpus {
        let name = format!("cpu{cpu}");
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
        let ticks: Vec<u64> = line.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
        sum.stolen += ticks.get(7)?;
        sum.all += ticks.iter().sum::<u64>();
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_took_is_a_share_of_the_processors_that_were_used() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str| std::fs::write(file.path(), text).unwrap();
        write(
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 0 10 100 0 0 0 5 7 0\ncpu1 0 0 0 100 0 0 0 0 0 0\ncpu10 1 1 1 1 1 1 1 1\n",
        );
        let (both, second) = (HostTime::begin_with(file.path(), &[0, 1]), HostTime::begin_with(file.path(), &[1]));
        assert_eq!(both.stolen(), None, "no time has passed");
        write("cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 15 0 15 160 0 0 0 35 99 0\ncpu1 0 0 0 200 0 0 0 0 0 0\n");
        assert_eq!(both.stolen(), Some(30.0 / 200.0));
        assert_eq!(second.stolen(), Some(0.0));
        assert_eq!(warning(second.stolen()), None);
        assert!(warning(both.stolen()).unwrap().contains("took 15.00% of the processors' time"));
        assert_eq!(HostTime::begin_with(file.path(), &[0, 2]).stolen(), None, "there is no third processor");
        assert_eq!(HostTime::begin_with(Path::new("/nowhere/stat"), &[0]).stolen(), None);
    }
}
