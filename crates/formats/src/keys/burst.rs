//! Keys of `[[burst]]`.

use temponet_task::{Arrival, Task, Time};

use super::preemption::EVERY;
use super::task::{DEADLINE, GUARANTEE, OWN_CORES, OWN_CRITICALITY, OWN_NAME, OWN_PREEMPTION, OWN_VALUE, OfTask, WCET};
use super::{Key, Kind, Spec, Table, put, set};
use crate::out::{Out, time};

type Row = Key<OfTask>;

/// Keys of `[[burst]]`.
pub(crate) static BURST: Table<OfTask> = Table {
    what: "burst",
    keys: &[
        OWN_NAME,
        Row::new(
            Spec::new("jobs", Kind::Integer(1, 1_000_000), "number of jobs that arrive at once").required(),
            |draft, given| set(&mut draft.jobs, given.integer().map(|jobs| jobs as u32)),
            |_, task| burst(task).map(|(jobs, ..)| Out::Integer(i64::from(jobs))),
        ),
        Row::new(
            EVERY.doc("time between bursts"),
            |draft, given| put(&mut draft.period, given.at(given.time())),
            |_, task| burst(task).map(|(_, every, _)| time(every)),
        ),
        Row::new(WCET.required(), |draft, given| put(&mut draft.wcet, given.time()), |_, task| Some(time(task.wcet))),
        Row::new(
            DEADLINE.spec.doc("deadline relative to the arrival").default("`every`"),
            |draft, given| put(&mut draft.deadline, given.time()),
            |_, task| Some(time(task.deadline)),
        ),
        Row::new(
            Spec::new("start", Kind::Time, "first arrival").default("`0`"),
            |draft, given| set(&mut draft.task.offset, given.time()),
            |_, task| Some(time(task.offset)),
        ),
        Row::new(
            Spec::new("for", Kind::PositiveTime, "how long the peak lasts").default("for ever"),
            |draft, given| put(&mut draft.lasts, given.time()),
            |_, task| {
                burst(task).filter(|(.., until)| *until != Time::NEVER).map(|(.., until)| time(until - task.offset))
            },
        ),
        OWN_CRITICALITY,
        GUARANTEE,
        OWN_VALUE,
        OWN_PREEMPTION,
        OWN_CORES,
    ],
};

/// Returns the number of jobs, the time between bursts and the end of a load peak.
fn burst(task: &Task) -> Option<(u32, Time, Time)> {
    match task.arrival {
        Arrival::Burst { jobs, every, until } => Some((jobs, every, until)),
        _ => None,
    }
}
