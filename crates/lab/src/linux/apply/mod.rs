//! Settings in the form in which they are applied: shell lines, unit files, a workload of rt-app, the YAML of Autoware's
//! callback-isolated executor, or a task set.
//!
//! Names of tasks come from files of users, so every form quotes them by its own rules.

mod chrt;
mod cie;
mod rt_app;
mod systemd;

use temponet_formats::{Format, NotRepresentable};
use temponet_task::{CoreId, TaskId, TaskSet};

use super::settings::Settings;

/// A form of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A shell script of `chrt` and `taskset`.
    Chrt,
    /// Drop-in files of systemd, one for each task.
    Systemd,
    /// A workload of rt-app.
    RtApp,
    /// The thread configuration of the callback-isolated executor of ROS 2.
    Cie,
    /// A task set with priorities and cores.
    Toml,
}

/// Settings as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Content of the file.
    pub text: String,
    /// What the form does not represent.
    pub notes: Vec<String>,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 5] = [Form::Chrt, Form::Systemd, Form::RtApp, Form::Cie, Form::Toml];

    /// Name of the form.
    pub fn name(self) -> &'static str {
        match self {
            Form::Chrt => "chrt",
            Form::Systemd => "systemd",
            Form::RtApp => "rt-app",
            Form::Cie => "cie",
            Form::Toml => "toml",
        }
    }

    /// Returns the form with a name.
    pub fn from_name(name: &str) -> Option<Form> {
        Form::ALL.into_iter().find(|form| form.name() == name)
    }

    /// Writes settings in this form.
    pub fn write(self, set: &TaskSet, settings: &Settings) -> Result<Applied, NotRepresentable> {
        match self {
            Form::Chrt => Ok(chrt::write(set, settings)),
            Form::Systemd => Ok(systemd::write(set, settings)),
            Form::RtApp => rt_app::write(set, settings),
            Form::Cie => Ok(cie::write(set, settings)),
            Form::Toml => toml(set, settings),
        }
    }
}

/// The set with priorities and cores. Reservations have no key there.
fn toml(set: &TaskSet, settings: &Settings) -> Result<Applied, NotRepresentable> {
    let reserved = settings.threads.iter().filter(|thread| thread.policy.is_deadline()).count();
    let note = (reserved > 0)
        .then(|| "reservations of SCHED_DEADLINE are not represented: a task set has no key for them".into());
    let text = temponet_formats::write(&settings.applied(set), Format::Toml)?;
    Ok(Applied { text, notes: note.into_iter().collect() })
}

/// Where a thread may run.
enum Affinity {
    /// On these processors, by the numbers that Linux has for them.
    Processors(Vec<usize>),
    /// Wherever its reservation is served: on all processors of the machine.
    All,
    /// In a cpuset of its own that is a partition root, with these processors: the kernel refuses a reservation for a
    /// thread that may not use all processors of its root domain.
    Partition(Vec<usize>),
}

/// Returns where the thread of a task may run.
fn affinity(set: &TaskSet, settings: &Settings, task: TaskId) -> Affinity {
    let setting = &settings.threads[task.index()];
    let numbers = setting.cores.iter(set.cores()).map(|core| number(set, core)).collect();
    match (setting.policy.is_deadline(), settings.has_partitions) {
        (false, _) => Affinity::Processors(numbers),
        (true, false) => Affinity::All,
        (true, true) => Affinity::Partition(numbers),
    }
}

/// What a form that cannot make cpusets says of settings that need them.
fn note_on_partitions(settings: &Settings) -> Option<String> {
    settings.has_partitions.then(|| {
        "reservations on single processors need cpusets that are partition roots, one for each processor, which are to be made beforehand".into()
    })
}

/// The number that Linux has for a core: that of its name, as an imported trace gives it ("cpu3"), else its place.
fn number(set: &TaskSet, core: CoreId) -> usize {
    let named = set.machine().cores().get(core.index()).and_then(|core| core.name.strip_prefix("cpu")?.parse().ok());
    named.unwrap_or(core.index())
}

/// The numbers joined.
fn joined(cores: &[usize], separator: &str) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(separator)
}

/// A name without line breaks, for comments.
fn in_comment(name: &str) -> String {
    temponet_wording::visible(name).into_owned()
}
