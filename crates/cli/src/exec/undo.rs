//! Changes to the machine that outlast a process, each undone when this program ends, however it ends.
//!
//! Three things see to that, because each of them can be killed:
//!
//! - A small process of its own waits at a pipe that this program holds open. When the pipe closes, because the change
//!   is over or because this program is gone, that process undoes the change. It belongs to a process group of its own,
//!   so that Ctrl-C does not reach it.
//! - This program looks whether the change is undone once it is over, and undoes it itself if not.
//! - What has to be put back is in a file until it is put back, or in the name of what has to be removed, with the
//!   process that changed it. The next start finds what dead processes left, and undoes it ([`Machine::repair`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use temponet_runtime::kernel_trace;

use crate::output;

/// Value of the throttle that stands for none.
const OFF: &str = "-1";
/// Beginning of the names of trace instances.
const PREFIX: &str = "temponet-";
/// Number of times that something is removed, and the time between.
const TRIES: (u32, Duration) = (10, Duration::from_millis(100));

/// Where the machine is changed; another root in tests.
pub struct Machine {
    throttle: PathBuf,
    /// File that holds the throttle's original value while it is off. Like the throttle, it does not outlast a boot.
    record: PathBuf,
    processes: PathBuf,
    /// Folder of the trace instances, or why there is none.
    instances: Result<PathBuf, String>,
}

impl Machine {
    /// The machine that this program runs on.
    pub fn this() -> Machine {
        Machine { instances: kernel_trace::folder(), ..Machine::at(Path::new("/")) }
    }

    fn at(root: &Path) -> Machine {
        Machine {
            throttle: root.join("proc/sys/kernel/sched_rt_runtime_us"),
            record: root.join("run/temponet-throttle"),
            processes: root.join("proc"),
            instances: Ok(root.join("sys/kernel/tracing/instances")),
        }
    }

    /// Undoes what dead runs left behind. Returns a sentence about each thing that was, or could not be.
    pub fn repair(&self) -> Vec<String> {
        let throttle = self.repair_throttle();
        throttle.into_iter().chain(self.repair_instances()).collect()
    }

    fn repair_throttle(&self) -> Option<String> {
        let text = fs::read_to_string(&self.record).ok()?;
        let record = Record::parse(&text);
        if record.as_ref().is_some_and(|record| self.is_alive(&record.owner)) {
            return None;
        }
        // A file that is no record was cut short before the change it is about.
        let Some(record) = record.filter(|_| self.is_off()) else {
            let _ = fs::remove_file(&self.record);
            return None;
        };
        let (file, of) = (self.throttle.display(), self.record.display());
        match self.put_back(&record.original) {
            Ok(()) => Some(format!("a run that was killed had left {file} at {OFF}: it is {} again", record.original)),
            Err(why) => Some(format!("a run that was killed left {file} at {OFF}, and {why}; {of} says what it was")),
        }
    }

    fn repair_instances(&self) -> Vec<String> {
        let entries = self.instances.as_ref().ok().and_then(|folder| fs::read_dir(folder).ok());
        let is_left = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let owner = name.strip_prefix(PREFIX).and_then(Owner::parse);
            owner.is_some_and(|owner| !self.is_alive(&owner))
        };
        let mut left: Vec<PathBuf> = entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        left.retain(is_left);
        left.sort();
        left.iter()
            .map(|path| match remove_folder(path) {
                Ok(()) => format!("a run that was killed had left {}: it is removed", path.display()),
                Err(error) => {
                    format!("a run that was killed left {}, which cannot be removed: {error}", path.display())
                }
            })
            .collect()
    }

    /// Puts the throttle back if it is off, and forgets what it was.
    fn put_back(&self, original: &str) -> Result<(), String> {
        if self.is_off() {
            let cannot = |error| format!("it cannot be set to {original} again: {error}");
            fs::write(&self.throttle, original).map_err(cannot)?;
        }
        if self.is_off() {
            return Err(format!("it does not become {original} again"));
        }
        match fs::remove_file(&self.record) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    /// Whether real-time threads are not throttled.
    fn is_off(&self) -> bool {
        fs::read_to_string(&self.throttle).is_ok_and(|value| value.trim() == OFF)
    }

    /// Whether the process is still there.
    fn is_alive(&self, owner: &Owner) -> bool {
        let began = self.began(owner.process);
        began.is_some() && (owner.began.is_none() || owner.began == began)
    }

    /// When a process began, in ticks since the boot; none if there is no such process. Numbers of processes are used
    /// again, and this tells them apart.
    fn began(&self, process: u32) -> Option<u64> {
        let stat = fs::read_to_string(self.processes.join(process.to_string()).join("stat")).ok()?;
        // The name of the program is in brackets and may contain anything; the date is the twentieth word behind it.
        stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
    }

    fn this_process(&self) -> Owner {
        let process = std::process::id();
        Owner { process, began: self.began(process) }
    }

    /// Turns the throttling of real-time threads off. Where it is off already, there is nothing to undo: that is for
    /// whoever turned it off.
    pub fn unthrottled(self) -> Result<Option<Unthrottled>> {
        let cannot = || format!("--unthrottled: cannot change {}", self.throttle.display());
        let original = fs::read_to_string(&self.throttle).with_context(cannot)?.trim().to_string();
        if original == OFF {
            return Ok(None);
        }
        let record = Record { owner: self.this_process(), original: original.clone() };
        let cannot_keep = || format!("--unthrottled: cannot write {}", self.record.display());
        fs::write(&self.record, record.text()).with_context(cannot_keep)?;
        let paths = [self.throttle.to_string_lossy(), self.record.to_string_lossy()];
        let helper = Helper::by(r#"echo "$1" > "$2" && rm -f "$3""#, &[&original, &paths[0], &paths[1]])?;
        let changed = fs::write(&self.throttle, OFF).with_context(cannot);
        let unthrottled = Unthrottled { machine: self, original, helper };
        changed.map(|()| Some(unthrottled))
    }

    /// Makes an instance of the kernel's trace. `what` is what it is for, in messages.
    pub fn trace_instance(&self, what: &str) -> Result<Instance> {
        let folder = self.instances.as_ref().map_err(|why| anyhow!("{what}: {why}"))?;
        let path = folder.join(format!("{PREFIX}{}", self.this_process().text()));
        // A run that was killed with this program may hold files of it open for another moment.
        let helper = Helper::by(r#"rmdir "$1" || { sleep 1; rmdir "$1"; }"#, &[&path.to_string_lossy()])?;
        fs::create_dir(&path).with_context(|| format!("{what}: cannot make {}", path.display()))?;
        Ok(Instance { path, helper })
    }
}

/// A process that changed something.
#[derive(PartialEq, Debug)]
struct Owner {
    process: u32,
    /// When it began; unknown in the names of earlier versions.
    began: Option<u64>,
}

impl Owner {
    fn text(&self) -> String {
        let began = self.began.map_or(String::new(), |began| format!("-{began}"));
        format!("{}{began}", self.process)
    }

    fn parse(text: &str) -> Option<Owner> {
        let (process, began) = match text.split_once('-') {
            Some((process, began)) => (process, Some(began.parse().ok()?)),
            None => (text, None),
        };
        Some(Owner { process: process.parse().ok()?, began })
    }
}

/// What the throttle was, and who turned it off.
struct Record {
    owner: Owner,
    original: String,
}

impl Record {
    fn text(&self) -> String {
        format!("{} {}\n", self.owner.text(), self.original)
    }

    fn parse(text: &str) -> Option<Record> {
        let (owner, original) = text.strip_suffix('\n')?.split_once(' ')?;
        let original = original.parse::<i64>().ok()?.to_string();
        Some(Record { owner: Owner::parse(owner)?, original })
    }
}

/// The process that undoes a change when the pipe to it closes.
struct Helper(Child);

impl Helper {
    /// Has a command of the shell, with its arguments as `$1` and so on, run when the change is over. Call it before
    /// the change.
    fn by(command: &str, arguments: &[&str]) -> Result<Helper> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(format!("cat > /dev/null; {command}")).arg("temponet-undo").args(arguments);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        Ok(Helper(shell.spawn().context("cannot start the process that undoes changes to the machine")?))
    }

    /// Lets the process do its work. Whether it did is for the caller to see: it may have been killed.
    fn finish(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Throttling is off until this is dropped or the program ends.
pub struct Unthrottled {
    machine: Machine,
    original: String,
    helper: Helper,
}

impl Drop for Unthrottled {
    fn drop(&mut self) {
        self.helper.finish();
        if let Err(why) = self.machine.put_back(&self.original) {
            output::say(&format!("warning: {} is {OFF}, and {why}", self.machine.throttle.display()));
        }
    }
}

/// An instance of the kernel's trace that belongs to this program.
pub struct Instance {
    path: PathBuf,
    helper: Helper,
}

impl Instance {
    /// Folder of the instance.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.helper.finish();
        if let Err(error) = remove_folder(&self.path) {
            output::say(&format!("warning: {} cannot be removed: {error}", self.path.display()));
        }
    }
}

/// Removes a folder of tracefs if it is there. Files of it may be open for another moment.
fn remove_folder(path: &Path) -> std::io::Result<()> {
    let mut tries = TRIES.0;
    loop {
        match fs::remove_dir(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tries -= 1;
                if tries == 0 {
                    return Err(error);
                }
                std::thread::sleep(TRIES.1);
            }
            _ => return Ok(()),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A machine in a folder, on which throttling is on.
    fn machine() -> (tempfile::TempDir, Machine) {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        for folder in [machine.throttle.parent().unwrap(), machine.record.parent().unwrap()] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::create_dir_all(machine.instances.as_ref().unwrap()).unwrap();
        fs::write(&machine.throttle, "950000\n").unwrap();
        begin(&machine, std::process::id(), 77);
        (root, machine)
    }

    /// Lets a process begin at a date.
    fn begin(machine: &Machine, process: u32, began: u64) {
        let folder = machine.processes.join(process.to_string());
        fs::create_dir_all(&folder).unwrap();
        let words = "S 1 1 1 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0";
        fs::write(folder.join("stat"), format!("{process} (a b) c) {words} {began} 1 1\n")).unwrap();
    }

    fn throttle(root: &tempfile::TempDir) -> String {
        fs::read_to_string(Machine::at(root.path()).throttle).unwrap().trim().to_string()
    }

    #[test]
    fn the_original_is_in_a_file_until_it_is_put_back() {
        let (root, machine) = machine();
        let record = machine.record.clone();
        let unthrottled = machine.unthrottled().unwrap().unwrap();
        assert_eq!(throttle(&root), OFF);
        assert_eq!(fs::read_to_string(&record).unwrap(), format!("{}-77 950000\n", std::process::id()));
        drop(unthrottled);
        assert_eq!((throttle(&root).as_str(), record.exists()), ("950000", false));
    }

    #[test]
    fn a_killed_helper_is_stood_in_for() {
        let (root, machine) = machine();
        let record = machine.record.clone();
        let instance = machine.trace_instance("--trace").unwrap();
        let path = instance.path().to_path_buf();
        assert!(path.ends_with(format!("temponet-{}-77", std::process::id())) && path.is_dir());
        let mut unthrottled = machine.unthrottled().unwrap().unwrap();
        let mut instance = instance;
        for helper in [&mut unthrottled.helper, &mut instance.helper] {
            helper.0.kill().unwrap();
            helper.0.wait().unwrap();
        }
        drop((unthrottled, instance));
        assert_eq!((throttle(&root).as_str(), record.exists(), path.exists()), ("950000", false, false));
    }

    #[test]
    fn leftovers_of_dead_runs_are_removed_and_those_of_others_are_not() {
        let (root, machine) = machine();
        let instances = machine.instances.clone().unwrap();
        begin(&machine, 5, 10);
        fs::write(&machine.throttle, OFF).unwrap();
        // Process 5 is another one than the one that turned the throttling off.
        fs::write(&machine.record, "5-9 950000\n").unwrap();
        for name in ["temponet-5-9", "temponet-4", "temponet-5-10", "temponet-5", "somebody-4"] {
            fs::create_dir(instances.join(name)).unwrap();
        }
        let notes = machine.repair();
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].ends_with("sched_rt_runtime_us at -1: it is 950000 again"), "{}", notes[0]);
        assert!(notes[1].ends_with("temponet-4: it is removed"), "{}", notes[1]);
        let mut left: Vec<_> = fs::read_dir(&instances).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["somebody-4", "temponet-5", "temponet-5-10"]);
        assert_eq!((throttle(&root).as_str(), machine.record.exists()), ("950000", false));
        assert!(machine.repair().is_empty());
    }

    #[test]
    fn a_run_that_is_still_there_keeps_what_it_changed() {
        let (root, machine) = machine();
        begin(&machine, 5, 10);
        fs::write(&machine.throttle, OFF).unwrap();
        fs::write(&machine.record, "5-10 950000\n").unwrap();
        assert!(machine.repair().is_empty());
        let record = machine.record.clone();
        assert!(machine.unthrottled().unwrap().is_none());
        assert_eq!((throttle(&root).as_str(), record.exists()), (OFF, true));
    }

    #[test]
    fn a_record_that_is_none_is_removed_and_changes_nothing() {
        for text in ["", "5-9", "5-9 95", "x 95\n", "5-9 much\n"] {
            let (root, machine) = machine();
            fs::write(&machine.record, text).unwrap();
            assert!(machine.repair().is_empty(), "{text}");
            assert_eq!((throttle(&root).as_str(), machine.record.exists()), ("950000", false), "{text}");
        }
    }
}
