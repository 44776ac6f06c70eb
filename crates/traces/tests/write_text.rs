//! The run of a known set as the text of the kernel's tools.

use crate::truth::{FIRST_TID, Kernel, Truth, priority};

/// Layouts of the text.
#[derive(Clone, Copy, PartialEq)]
pub enum Layout {
    Perf,
    PerfShort,
    Ftrace,
    TraceCmd,
}

/// Returns the text of a run.
pub fn text(truth: &Truth, layout: Layout) -> String {
    let name = |task: Option<usize>, core: usize| match task {
        Some(task) => truth.set.tasks()[task].name.clone(),
        None => format!("swapper/{core}"),
    };
    let tid = |task: Option<usize>| task.map_or(0, |task| FIRST_TID + task);
    let prio = |task: Option<usize>| task.map_or(120, priority);
    let mut out = String::new();
    if layout == Layout::Ftrace {
        out += "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n";
    }
    if layout == Layout::TraceCmd {
        out += "cpus=2\n";
    }
    for (time, kernel) in &truth.events {
        let date = match layout {
            Layout::Perf => format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000),
            _ => format!("{}.{:06}", time / 1_000_000_000, time / 1000 % 1_000_000),
        };
        let (core, running, event, fields) = match kernel {
            Kernel::Wake(task) => {
                let (who, tid, prio) = (name(Some(*task), 0), tid(Some(*task)), prio(Some(*task)));
                let fields = match layout {
                    Layout::Perf | Layout::Ftrace => format!("comm={who} pid={tid} prio={prio} target_cpu=001"),
                    Layout::PerfShort | Layout::TraceCmd => format!("{who}:{tid} [{prio}] CPU:001"),
                };
                (0, None, "sched_waking", fields)
            }
            Kernel::Switch { core, from, is_done, to } => {
                let (state, a, b) = (if *is_done { "S" } else { "R" }, name(*from, *core), name(*to, *core));
                let (a_tid, b_tid, a_prio, b_prio) = (tid(*from), tid(*to), prio(*from), prio(*to));
                let fields = match layout {
                    Layout::Perf | Layout::Ftrace => format!(
                        "prev_comm={a} prev_pid={a_tid} prev_prio={a_prio} prev_state={state} ==> next_comm={b} next_pid={b_tid} next_prio={b_prio}"
                    ),
                    Layout::PerfShort | Layout::TraceCmd => {
                        format!("{a}:{a_tid} [{a_prio}] {state} ==> {b}:{b_tid} [{b_prio}]")
                    }
                };
                (*core, *from, "sched_switch", fields)
            }
        };
        let (comm, pid) = (name(running, core), tid(running));
        out += &match layout {
            Layout::Perf => {
                format!("{comm:>16} {pid:>5} [{core:03}] {date}: {:>22} {fields}\n", format!("sched:{event}:"))
            }
            Layout::PerfShort => format!("{comm:>16} {pid:>5} [{core:03}] {date}: sched:{event}: {fields}\n"),
            Layout::Ftrace => format!("{comm:>16}-{pid:<7} [{core:03}] d..2. {date}: {event}: {fields}\n"),
            Layout::TraceCmd => format!("{comm:>16}-{pid:<5} [{core:03}] {date}: {event}:  {fields}\n"),
        };
    }
    out
}
