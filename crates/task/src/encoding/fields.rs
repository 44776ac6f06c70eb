//! The encoding of each type: what is appended for a number, a list, a field, an alternative.

use crate::{
    Aim, Arrival, Attribute, Chain, Communication, Core, CoreId, CoreSet, Costs, Estimate, ExecutionModel, Gap,
    ListedJob, Measure, Mode, OnMiss, Preemption, Protocol, ResourceId, Section, Server, Speed, System, Task, TaskId,
    Time, TimeUnit,
};
use alloc::{string::String, vec::Vec};

/// Something that can be encoded.
pub(super) trait Encode {
    fn put(&self, out: &mut Vec<u8>);
}

macro_rules! encode_numbers {
    ($($number:ty),*) => {
        $(impl Encode for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

encode_numbers!(u8, u32, u64, i64);

impl Encode for f64 {
    fn put(&self, out: &mut Vec<u8>) {
        self.to_bits().put(out);
    }
}

impl Encode for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }
}

impl Encode for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }
}

impl Encode for Time {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
}

/// Encodes ids as places, with 64 bits.
macro_rules! encode_ids {
    ($($id:ty),*) => {
        $(impl Encode for $id {
            fn put(&self, out: &mut Vec<u8>) {
                self.index().put(out);
            }
        })*
    };
}

encode_ids!(TaskId, CoreId, ResourceId);

impl Encode for Speed {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
}

impl Encode for str {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_bytes().put(out);
    }
}

impl Encode for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_str().put(out);
    }
}

impl<T: Encode> Encode for [T] {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|item| item.put(out));
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_slice().put(out);
    }
}

impl<T: Encode> Encode for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|item| item.put(out));
    }
}

impl Encode for (u32, u32) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
}

/// Encodes fields of a structure in the order in which they are listed. All must be listed.
macro_rules! encode_fields {
    ($($type:ident: $($field:ident),*;)*) => {
        $(impl Encode for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let $type { $($field),* } = self;
                $($field.put(out);)*
            }
        })*
    };
}

encode_fields! {
    ListedJob: release, deadline, execution, wcet, bcet, criticality, value, estimate;
    Section: resource, at, length;
    Costs: context_switch, migration, decision;
    Server: name, budget, period;
    Chain: name, tasks, deadline, communication;
}

impl Encode for Core {
    fn put(&self, out: &mut Vec<u8>) {
        let Core { name, speed, only } = self;
        name.put(out);
        // No speed has the highest bit. So the bytes of other cores are those from before there were such cores.
        (speed.0 | u32::from(*only) << 31).put(out);
    }
}

impl Encode for Mode {
    fn put(&self, out: &mut Vec<u8>) {
        let Mode { name, at, work, rate, slower, stop } = self;
        name.put(out);
        at.put(out);
        work.put(out);
        rate.put(out);
        // A mode that names no task has the bytes that it had before modes could slow or stop single tasks.
        if slower.is_empty() && stop.is_empty() {
            return 0u8.put(out);
        }
        2u8.put(out);
        stop.put(out);
        slower.len().put(out);
        for (task, factor) in slower {
            task.put(out);
            factor.put(out);
        }
    }
}

impl Encode for Task {
    fn put(&self, out: &mut Vec<u8>) {
        macro_rules! put {
            ($($value:expr),*) => { $($value.put(out);)* };
        }
        #[rustfmt::skip]
        let Task {
            name, arrival, wcet, bcet, acet, execution, estimate_error, wcet_high, deadline, offset, jitter,
            criticality, guarantee, value, mk, extra, preemption, after, reads, sections, cores, is_part,
        } = self;
        // No other task has the second bit. So the bytes of other tasks are those from before there were parts.
        let guarantee = u8::from(*guarantee) | u8::from(*is_part) << 1;
        // The numbers of schedulers have the places and sizes that they had as fields of their own.
        let [priority, skip, server] = Attribute::ALL.map(|attribute| extra.get(attribute));
        let skip = skip.map(|skip| skip as u32);
        put!(name, arrival, wcet, bcet, acet, execution, estimate_error, wcet_high, deadline, offset);
        put!(
            jitter,
            criticality,
            guarantee,
            value,
            priority,
            skip,
            mk,
            server,
            preemption,
            after,
            reads,
            sections,
            cores
        );
    }
}

impl Encode for System {
    fn put(&self, out: &mut Vec<u8>) {
        self.tasks().put(out);
        self.cores().put(out);
        self.machine().cores().put(out);
        self.on_miss().put(out);
        self.costs().put(out);
        self.speeds().put(out);
        self.servers().put(out);
        self.chains().put(out);
        self.resources().put(out);
        self.protocol().put(out);
        self.aims().put(out);
        self.goal().measures().put(out);
        // What modes change is known to schedulers. Without it the bytes are those from before they knew.
        if [self.stretch(), self.most_work(), self.least_work()] != [1.0; 3] {
            self.stretch().put(out);
            self.most_work().put(out);
        }
        if self.least_work() != 1.0 {
            self.least_work().put(out);
        }
    }
}

impl Encode for Estimate {
    fn put(&self, out: &mut Vec<u8>) {
        self.median().put(out);
        self.high().put(out);
    }
}

impl Encode for CoreSet {
    fn put(&self, out: &mut Vec<u8>) {
        let cores: Option<Vec<CoreId>> = self.last().map(|last| self.iter(last.index() + 1).collect());
        cores.put(out);
    }
}

/// Encodes the alternatives of a type by their names in files.
macro_rules! encode_names {
    ($($type:ty),*) => {
        $(impl Encode for $type {
            fn put(&self, out: &mut Vec<u8>) {
                self.name().put(out);
            }
        })*
    };
}

encode_names!(OnMiss, Protocol, Communication, Aim, TimeUnit);

impl Encode for Measure {
    fn put(&self, out: &mut Vec<u8>) {
        let (tag, level) = match self {
            Measure::Critical(level) => (0, *level),
            Measure::Chains => (1, 0),
            Measure::Mk => (2, 0),
            Measure::Value => (3, 0),
            Measure::Met => (4, 0),
            Measure::WorstTask => (5, 0),
        };
        out.extend([tag, level]);
    }
}

impl Encode for Preemption {
    fn put(&self, out: &mut Vec<u8>) {
        let (tag, every) = match self {
            Preemption::Free => (0u8, Time::ZERO),
            Preemption::None => (1, Time::ZERO),
            Preemption::Every(every) => (2, *every),
            Preemption::Cancel => (3, Time::ZERO),
        };
        tag.put(out);
        every.put(out);
    }
}

impl Encode for Arrival {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Arrival::Periodic { period } => {
                0u8.put(out);
                period.put(out);
            }
            Arrival::Sporadic { minimum, gap } => {
                let (tag, time) = match gap {
                    Gap::Uniform { max } => (1u8, max),
                    Gap::Exponential { mean } => (2, mean),
                };
                tag.put(out);
                minimum.put(out);
                time.put(out);
            }
            Arrival::Burst { jobs, every, until } => {
                3u8.put(out);
                jobs.put(out);
                every.put(out);
                until.put(out);
            }
            Arrival::Listed(jobs) => {
                4u8.put(out);
                jobs.put(out);
            }
        }
    }
}

impl Encode for ExecutionModel {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            ExecutionModel::Wcet => 0u8.put(out),
            ExecutionModel::Uniform => 1u8.put(out),
            ExecutionModel::Normal { deviation } => {
                2u8.put(out);
                deviation.put(out);
            }
            ExecutionModel::Weibull { exceed } => {
                3u8.put(out);
                exceed.put(out);
            }
            ExecutionModel::Pareto { shape } => {
                4u8.put(out);
                shape.put(out);
            }
            ExecutionModel::Lognormal { median, sigma } => {
                5u8.put(out);
                median.put(out);
                sigma.put(out);
            }
            ExecutionModel::Bimodal { levels, probability, spread } => {
                6u8.put(out);
                levels.put(out);
                probability.put(out);
                spread.put(out);
            }
            ExecutionModel::Empirical { samples } => {
                7u8.put(out);
                samples.put(out);
            }
            ExecutionModel::Overrun { probability, below } => {
                8u8.put(out);
                probability.put(out);
                below.put(out);
            }
        }
    }
}
