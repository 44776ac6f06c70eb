//! `temponet record`: switches and wake-ups of threads, by the kernel's tracer, as text that `temponet import` reads.
//!
//! The recording has an instance of tracefs of its own, so that it disturbs no other tracer. However this program ends,
//! the instance is removed: see `exec/undo.rs`.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use temponet_task::Time;

use crate::setup::positive_time;

/// Record which threads run when, with the kernel's tracer: a trace to import
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    temponet record -o trace.txt                           # every thread of the machine, 10 seconds\n  \
    temponet record -p 4711 --for 1m -o trace.txt          # a process and what it starts\n  \
    temponet record -o trace.txt -- ./robot --fast         # a command, until it ends\n  \
    temponet import trace.txt -o mytasks.toml\n\n\
    Needs root or CAP_DAC_OVERRIDE, because the tracer belongs to root. Ctrl-C ends a recording. Where this program may\n\
    not record, perf and trace-cmd may:\n  \
    sudo perf record -e sched:sched_switch,sched:sched_waking -a -- sleep 10 && sudo perf script --ns > trace.txt\n  \
    sudo trace-cmd record -e sched_switch -e sched_waking sleep 10 && trace-cmd report > trace.txt")]
pub struct Args {
    /// File to write; its name must end in .txt
    #[arg(short, long, value_name = "OUT.txt")]
    output: PathBuf,
    /// Record only this process and what it starts; several may be given
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "command")]
    pid: Vec<i32>,
    /// Length of the recording, such as 30s [default: until the command ends; 10s without one]
    #[arg(long = "for", value_name = "TIME", value_parser = positive_time)]
    length: Option<Time>,
    /// Replace an existing file of any kind
    #[arg(long)]
    force: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
    /// Command to run and to record with what it starts; it keeps the terminal
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[cfg(not(target_os = "linux"))]
pub fn run(_: Args) -> Result<()> {
    anyhow::bail!("recording needs Linux")
}

#[cfg(target_os = "linux")]
pub fn run(args: Args) -> Result<()> {
    linux::run(&args)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::Write;
    use std::process::{Child, Command};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::{Duration, Instant};

    use anyhow::{Context, Result, anyhow, bail};
    use temponet_runtime::recording::{Recorded, Recording, this_thread, threads_of};
    use temponet_wording::counted;

    use super::Args;
    use crate::exec::undo::Machine;
    use crate::interrupt;
    use crate::output;
    use crate::paths::{Kind, Output, Replace};

    /// Length of a recording without a command.
    const DEFAULT: Duration = Duration::from_secs(10);
    /// Time between two reads.
    const EVERY: Duration = Duration::from_millis(20);
    /// Time that a command has to end once the recording is over.
    const PATIENCE: Duration = Duration::from_secs(2);

    pub fn run(args: &Args) -> Result<()> {
        let threads = args
            .pid
            .iter()
            .map(|process| threads_of(*process).with_context(|| format!("-p {process}: there is no such process")));
        let threads: Vec<i32> = threads.collect::<Result<Vec<_>>>()?.concat();
        let file = Output::claim(&args.output, Kind::Recording, Replace::nothing_or(args.force))?;
        Machine::this().repair().iter().for_each(|note| output::say(note));
        let instance = Machine::this().trace_instance("record").map_err(explained)?;
        let mut file = file.open()?;
        interrupt::ask_for_the_first();
        let mut begun = Instant::now();
        let (recorded, command) = match args.command.is_empty() {
            false => {
                let (recorded, child) = with_command(args, instance.path(), &mut file.out)?;
                (recorded, Some(child))
            }
            true => {
                let wanted = (!args.pid.is_empty()).then_some(&threads[..]);
                let mut recording = Recording::prepare(instance.path(), wanted).map_err(|why| explained(why.into()))?;
                recording.begin(&mut file.out)?;
                // Making its buffers takes a while on a busy machine.
                begun = Instant::now();
                let length = args.length.map_or(DEFAULT, |time| Duration::from_nanos(time.0));
                let is_gone = || !args.pid.is_empty() && args.pid.iter().all(|process| threads_of(*process).is_err());
                while begun.elapsed() < length && !interrupt::has_come() && !is_gone() {
                    std::thread::sleep(EVERY.min(length.saturating_sub(begun.elapsed())));
                    recording.drain(&mut file.out)?;
                }
                (recording.end(&mut file.out)?, None)
            }
        };
        let length = begun.elapsed();
        drop(instance);
        if recorded.events == 0 {
            bail!("nothing was recorded: none of these threads ran");
        }
        file.finish()?;
        report(args, recorded, length)?;
        command.map_or(Ok(()), until_it_ends)
    }

    /// Waits for a command that Ctrl-C has asked to end as well, and says how it ended, or that it outlives the recording.
    fn until_it_ends(mut command: Child) -> Result<()> {
        let waiting = Instant::now();
        let mut status = command.try_wait()?;
        while status.is_none() && interrupt::has_come() && waiting.elapsed() < PATIENCE {
            std::thread::sleep(EVERY);
            status = command.try_wait()?;
        }
        match status {
            None => output::say("note: the recording is over, and the command goes on"),
            Some(status) if !status.success() => output::say(&format!("note: the command ended with {status}")),
            Some(_) => {}
        }
        Ok(())
    }

    /// Runs the command and records it until it ends or the time is over. The thread that starts it is recorded, too, so
    /// that the kernel records what it starts from the first instruction on.
    fn with_command(args: &Args, instance: &std::path::Path, out: &mut dyn Write) -> Result<(Recorded, Child)> {
        let (program, arguments) = args.command.split_first().context("there is no command")?;
        let mut command = Command::new(program);
        command.args(arguments);
        let (told, starter) = channel::<i32>();
        let (go, gone) = channel::<()>();
        let starting =
            std::thread::Builder::new().name("starter".into()).spawn(move || -> std::io::Result<Option<Child>> {
                let _ = told.send(this_thread());
                match gone.recv() {
                    Ok(()) => command.spawn().map(Some),
                    Err(_) => Ok(None),
                }
            })?;
        let recording = prepared(instance, &starter).and_then(|mut recording| {
            recording.begin(out)?;
            Ok(recording)
        });
        let mut recording = match recording {
            Ok(recording) => recording,
            Err(why) => {
                drop(go);
                let _ = starting.join();
                return Err(explained(why));
            }
        };
        let _ = go.send(());
        let child = starting.join().map_err(|_| anyhow!("cannot start the command"))?;
        let named = || format!("cannot start {}", program.display());
        let mut child = child.with_context(named)?.with_context(named)?;
        let begun = Instant::now();
        let is_over = || args.length.is_some_and(|length| begun.elapsed() >= Duration::from_nanos(length.0));
        while child.try_wait()?.is_none() && !is_over() && !interrupt::has_come() {
            std::thread::sleep(EVERY);
            recording.drain(out)?;
        }
        Ok((recording.end(out)?, child))
    }

    fn prepared(instance: &std::path::Path, starter: &Receiver<i32>) -> Result<Recording> {
        let thread = starter.recv().context("cannot start a thread")?;
        Ok(Recording::prepare(instance, Some(&[thread]))?)
    }

    fn report(args: &Args, recorded: Recorded, length: Duration) -> Result<()> {
        let seconds = length.as_secs_f64();
        if args.json {
            return output::print_json(&serde_json::json!({
                "written": args.output.display().to_string(), "events": recorded.events, "bytes": recorded.bytes,
                "length_ns": length.as_nanos() as u64,
            }));
        }
        let file = args.output.display();
        output::print(&format!(
            "{file}: {} in {seconds:.1} s; `temponet import {file} -o mytasks.toml` finds the tasks\n",
            counted(recorded.events, "event"),
        ))
    }

    /// Says what would allow a recording.
    fn explained(why: anyhow::Error) -> anyhow::Error {
        let text = format!("{why:#}");
        let io = why.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        match io == Some(std::io::ErrorKind::PermissionDenied)
            || text.contains("not readable")
            || text.contains("denied")
        {
            true => anyhow!(
                "{text}; recording needs root or CAP_DAC_OVERRIDE (sudo setcap cap_dac_override+ep $(command -v temponet)), or let perf record: \
                 sudo perf record -e sched:sched_switch,sched:sched_waking -a -- sleep 10 && sudo perf script --ns > trace.txt"
            ),
            false => why,
        }
    }
}
