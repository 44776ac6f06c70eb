//! Bounds on the reaction time and the data age of chains.
//!
//! A chain is cut into *segments*: steps that follow each other directly. The last job of a segment completes at most
//! its response time after the segment's arrival. Where the next segment reads, its first job takes the newest value
//! that it can see. All bounds are counted from the arrival of a source job, as the simulation measures them; an event
//! that has just missed a source job waits for up to one more period.
//!
//! - *Davare*: the next segment arrives at most a period after the value was written, and the value that it reads is at
//!   most a period older than it could be: Σ (T + R) (Davare, Zhu, Di Natale, Pinello, Kanajan and
//!   Sangiovanni-Vincentelli, DAC 2007).
//! - *Fixed priorities* on one core, implicit communication: a reader of lower priority than the writer cannot start
//!   while the writer is pending. So the response time of the writer drops out of that hop (Dürr, von der Brüggen, Chen
//!   and Chen, ACM TECS 18(5s), 2019). The writer must be released at its arrival.
//! - *LET*: dates of reading and writing are known beforehand, so both times follow exactly from the periods, offsets
//!   and deadlines (Becker, Dasari, Mubeen, Behnam and Nolte, Journal of Systems Architecture 80, 2017). Every job must
//!   meet its deadline, and readers must be released at their arrivals.

use temponet_task::{Arrival, Chain, Communication, Gap, Task, TaskId, TaskSet, Time};

use super::fractions::gcd;
use super::response_time::PriorityRule;
use super::worst_case::WorstCase;

/// Bounds on the reaction time and the data age of one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainBound {
    /// Name of the bound.
    pub by: &'static str,
    /// Longest reaction time; `None` if none is known.
    pub reaction: Option<Time>,
    /// Greatest data age; `None` if none is known.
    pub age: Option<Time>,
}

/// Steps of a chain that follow each other directly.
#[derive(Clone, Copy)]
struct Segment {
    /// First and last task.
    first: TaskId,
    last: TaskId,
    /// Longest time between two arrivals; `None` without a bound.
    gap: Option<u64>,
    /// First arrival of the first task.
    offset: u64,
    /// Bound on the time from an arrival of the first task to the completion of the last one's job.
    response: Option<u64>,
    /// Time from an arrival of the first task to the deadline of the last one's job.
    deadline: u64,
}

/// Largest number of jobs that are followed to find the exact times under LET.
const MOST_JOBS: u64 = 100_000;

fn segments(set: &TaskSet, chain: &Chain, responses: &[Option<Time>]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let follows = std::iter::once(false).chain(chain.steps(set.tasks()));
    for (task, follows) in chain.tasks.iter().copied().zip(follows) {
        let first = segments.last().filter(|_| follows).map_or(set.first_part(task), |segment| segment.first);
        // The last task of a segment may have further sources, which arrive later.
        let later = set.tasks()[task].offset.saturating_sub(set.tasks()[first].offset).0;
        let segment = Segment {
            first,
            last: task,
            gap: longest_gap(&set.tasks()[first]),
            offset: set.tasks()[first].offset.0,
            response: responses[task].map(|response| response.0.saturating_add(later)),
            deadline: set.tasks()[task].deadline.0.saturating_add(later),
        };
        if follows {
            segments.pop();
        }
        segments.push(segment);
    }
    segments
}

/// Longest time between two arrivals of a task; `None` without a bound.
fn longest_gap(task: &Task) -> Option<u64> {
    match task.arrival {
        Arrival::Periodic { period } => Some(period.0),
        Arrival::Sporadic { gap: Gap::Uniform { max }, .. } => Some(max.0),
        _ => None,
    }
}

/// Returns bounds for a chain of `set` in which every job completes within `responses` of its arrival and by its
/// deadline.
///
/// `rule` is the rule of fixed priorities behind the response times, on one core and with preemption at any time;
/// `None` for other schedulers.
pub fn chain_bounds(
    set: &TaskSet,
    chain: &Chain,
    responses: &[Option<Time>],
    rule: Option<PriorityRule>,
) -> Vec<ChainBound> {
    let segments = segments(set, chain, responses);
    if !set.modes().is_empty() || segments.is_empty() {
        return Vec::new();
    }
    if let [only] = segments.as_slice() {
        let response = only.response.map(Time);
        return vec![ChainBound { by: "response time", reaction: response, age: response }];
    }
    if chain.communication == Communication::Let {
        return vec![exact(set, &segments).unwrap_or_else(|| {
            let written = |segment: &Segment| Segment { response: Some(segment.deadline), ..*segment };
            let segments: Vec<Segment> = segments.iter().map(written).collect();
            summed("LET, Σ (T + D)", &segments, |_, _| false)
        })];
    }
    let mut bounds = vec![summed("Davare", &segments, |_, _| false)];
    let keys = rule.zip(WorstCase::ignoring_precedence(set).ok());
    if let Some((rule, worst_case)) = keys.filter(|(_, worst_case)| worst_case.cores == 1 && !worst_case.is_limited()) {
        let keys = rule.keys(&worst_case.tasks);
        let is_released_at_arrival = |task: &Task| task.after.is_empty() && task.jitter == Time::ZERO;
        let waits = |writer: TaskId, reader: TaskId| {
            keys[writer] < keys[reader] && is_released_at_arrival(&set.tasks()[writer])
        };
        bounds.push(summed("Dürr", &segments, waits));
    }
    bounds
}

/// Adds up the hops of a chain. `waits` says whether a reader cannot start while a writer is pending.
fn summed(by: &'static str, segments: &[Segment], waits: impl Fn(TaskId, TaskId) -> bool) -> ChainBound {
    let sum = |hop: &dyn Fn(&Segment, &Segment) -> Option<u64>| {
        let hops = segments.windows(2).map(|pair| {
            let written = if waits(pair[0].last, pair[1].first) { Some(0) } else { pair[0].response };
            Some(hop(&pair[0], &pair[1])?.saturating_add(written?))
        });
        let last = segments.last().and_then(|segment| segment.response);
        hops.chain([last]).try_fold(0u64, |sum, part| Some(sum.saturating_add(part?))).map(Time)
    };
    let start = segments[0].offset;
    ChainBound {
        by,
        // Before a reader's first arrival there is nobody to react.
        reaction: sum(&|_, reader| Some(reader.gap?.max(reader.offset.saturating_sub(start)))),
        age: sum(&|writer, _| writer.gap),
    }
}

/// Returns the exact times under LET; `None` where they depend on the schedule or the periods have too long a cycle.
fn exact(set: &TaskSet, segments: &[Segment]) -> Option<ChainBound> {
    let is_known = |segment: &Segment| {
        let task = &set.tasks()[segment.first];
        let is_source = task.after.is_empty() && task.jitter == Time::ZERO;
        is_source && matches!(task.arrival, Arrival::Periodic { .. })
    };
    // The jitter of the source does not matter: its arrivals and deadlines are known.
    let source = &set.tasks()[segments[0].first];
    if !matches!(source.arrival, Arrival::Periodic { .. }) || !segments[1..].iter().all(is_known) {
        return None;
    }
    let gaps: Option<Vec<u64>> = segments.iter().map(|segment| segment.gap).collect();
    let common = |cycle: u64, gap: u64| (cycle / gcd(cycle.into(), gap.into()) as u64).checked_mul(gap);
    let cycle = gaps?.into_iter().try_fold(1u64, common)?;
    let last_offset = segments.iter().map(|segment| segment.offset).max()?;
    let first_on = |segment: &Segment, date: u64| {
        let period = segment.gap.unwrap_or(1);
        segment.offset.saturating_add(date.saturating_sub(segment.offset).div_ceil(period).saturating_mul(period))
    };
    let end = last_offset.checked_add(cycle)?;
    let (first, sink) = (segments.first()?, segments.last()?);
    let latency: u64 = segments
        .iter()
        .map(|segment| segment.deadline.saturating_add(segment.gap.unwrap_or(0)))
        .fold(0, u64::saturating_add);
    let dates = |segment: &Segment, end: u64| {
        let (start, period) = (segment.offset, segment.gap.unwrap_or(1));
        (end.saturating_sub(start) / period < MOST_JOBS)
            .then(|| (0..).map(move |job| start + job * period).take_while(move |date| *date <= end))
    };
    let reaction = dates(first, end)?.map(|arrival| {
        let written = segments[1..]
            .iter()
            .fold(arrival + first.deadline, |date, segment| first_on(segment, date) + segment.deadline);
        written - arrival
    });
    // The newest job of a segment whose value can be read at a date.
    let newest_by = |segment: &Segment, date: u64| {
        let room = date.checked_sub(segment.deadline)?.checked_sub(segment.offset)?;
        Some(segment.offset + room / segment.gap? * segment.gap?)
    };
    let age = dates(sink, end.saturating_add(latency))?.filter_map(|arrival| {
        let writers = segments[..segments.len() - 1].iter().rev();
        let source = writers.copied().try_fold(arrival, |date, segment| newest_by(&segment, date))?;
        Some(arrival + sink.deadline - source)
    });
    Some(ChainBound { by: "LET, exact", reaction: reaction.max().map(Time), age: age.max().map(Time) })
}
