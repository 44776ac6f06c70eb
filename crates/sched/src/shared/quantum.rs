//! The quantum of schedulers that compare jobs at regular intervals. A quantum given by the user is taken as it is. The
//! default is 1 ms, which suits sets in milliseconds and seconds; sets on another scale get a quantum of that scale.

use temponet_task::{System, Task, Time};

const USUAL: Time = Time::from_ms(1);

/// Returns the quantum for a system: the given one, or else 1 ms. If the shortest period or deadline is below 1 ms, it
/// is a power of ten of at most a tenth of it, unless jobs take far longer than that on average; if it is above 10 s, a
/// power of ten of at most a thousandth of it.
pub(crate) fn quantum(given: Option<Time>, system: &System) -> Time {
    let shortest = system.tasks().iter().map(|task| task.period().unwrap_or(task.deadline).min(task.deadline)).min();
    let power_of_ten = |time: u64| Time(10u64.pow(time.max(1).ilog10()));
    match (given, shortest) {
        (Some(given), _) => given,
        (None, Some(shortest)) if shortest < USUAL => {
            let least = mean_work(system) / MOST_COMPARISONS;
            power_of_ten(shortest.0 / 10).max(power_of_ten(least as u64))
        }
        (None, Some(shortest)) if shortest > Time::from_secs(10) => power_of_ten(shortest.0 / 1_000),
        _ => USUAL,
    }
}

/// Number of comparisons in the execution of a job, on average, that the default quantum does not exceed by much. One
/// deadline of a nanosecond would otherwise let every scheduler decide at each nanosecond of all other jobs.
const MOST_COMPARISONS: f64 = 1_000.0;

/// Mean wcet of the jobs that recur, or of the tasks if none does, in nanoseconds.
fn mean_work(system: &System) -> f64 {
    let mean = |weight: fn(&Task) -> Option<f64>| {
        let weighted = system.tasks().iter().filter_map(|task| Some((task.wcet.0 as f64, weight(task)?)));
        let (work, sum) = weighted.fold((0.0, 0.0), |(work, sum), (wcet, weight)| (work + wcet * weight, sum + weight));
        (sum > 0.0).then_some(work / sum)
    };
    mean(|task| Some(1.0 / task.period()?.0 as f64)).or_else(|| mean(|_| Some(1.0))).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use temponet_task::{Arrival, ListedJob, TaskSet};

    use super::*;

    #[test]
    fn follows_the_scale_of_the_set() {
        let of = |period: Time| quantum(None, &TaskSet::new("s", vec![Task::periodic("a", period, Time(1))], 1).system);
        assert_eq!(of(Time::from_ms(1)), USUAL);
        assert_eq!(of(Time::from_secs(10)), USUAL);
        assert_eq!(of(Time::from_us(150)), Time::from_us(10));
        // A deadline that nothing can meet does not set the pace of long jobs.
        let hopeless = Task::periodic("a", Time::from_ms(40), Time::from_ms(5)).with_deadline(Time(1));
        assert_eq!(quantum(None, &TaskSet::new("s", vec![hopeless.clone()], 1).system), Time(1_000));
        let job = ListedJob::new(Time::ZERO, Time(1), hopeless.wcet);
        let listed = hopeless.with_arrival(Arrival::Listed([job].into()));
        assert_eq!(quantum(None, &TaskSet::new("s", vec![listed], 1).system), Time(1_000), "nor does one of a list");
        assert_eq!(of(Time::from_secs(3_600)), Time::from_secs(1));
        assert_eq!(of(Time(3)), Time(1));
    }
}
