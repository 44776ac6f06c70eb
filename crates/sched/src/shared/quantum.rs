//! The quantum of schedulers that compare jobs at regular intervals. A quantum given by the user is taken as it is. The
//! default is 1 ms, which suits sets in milliseconds and seconds; sets on another scale get a quantum of that scale.

use temponet_task::{System, Time};

const USUAL: Time = Time::from_ms(1);

/// Returns the quantum for a system: the given one, or else 1 ms. If the shortest period or deadline is below 1 ms, it
/// is a power of ten of at most a tenth of it; if it is above 10 s, a power of ten of at most a thousandth of it.
pub(crate) fn quantum(given: Option<Time>, system: &System) -> Time {
    let shortest = system.tasks().iter().map(|task| task.period().unwrap_or(task.deadline).min(task.deadline)).min();
    let power_of_ten = |time: u64| Time(10u64.pow(time.max(1).ilog10()));
    match (given, shortest) {
        (Some(given), _) => given,
        (None, Some(shortest)) if shortest < USUAL => power_of_ten(shortest.0 / 10),
        (None, Some(shortest)) if shortest > Time::from_secs(10) => power_of_ten(shortest.0 / 1_000),
        _ => USUAL,
    }
}

#[cfg(test)]
mod tests {
    use temponet_task::{Task, TaskSet};

    use super::*;

    #[test]
    fn follows_the_scale_of_the_set() {
        let of = |period: Time| quantum(None, &TaskSet::new("s", vec![Task::periodic("a", period, Time(1))], 1).system);
        assert_eq!(of(Time::from_ms(1)), USUAL);
        assert_eq!(of(Time::from_secs(10)), USUAL);
        assert_eq!(of(Time::from_us(150)), Time::from_us(10));
        assert_eq!(of(Time::from_secs(3_600)), Time::from_secs(1));
        assert_eq!(of(Time(3)), Time(1));
    }
}
