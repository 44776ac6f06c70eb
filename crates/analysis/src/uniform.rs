//! Global EDF on cores of different speeds (a uniform machine) that every task may use.
//!
//! Reference: Funk, Goossens and Baruah, On-line Scheduling on Uniform Multiprocessors, RTSS 2001 (FGB). EDF, which
//! gives the faster core to the earlier deadline, meets every deadline if S ≥ Σδ + λ·δmax. S is the total speed, δ are
//! the densities, and λ is the greatest ratio, over all cores but the slowest, of the total speed of the slower cores
//! to the speed of the core. On identical cores λ is m − 1 and this is GFB.
//!
//! Jobs complete at whole nanoseconds. The rest of the nanosecond is lost, which counts as work of the job here.

use temponet_task::{CoreId, Speed, Time};

use super::Outcome;
use super::fractions::MARGIN;
use super::worst_case::{Sporadic, WorstCase};

/// Funk, Goossens and Baruah's bound for global EDF.
pub fn fgb(worst_case: &WorstCase) -> Outcome {
    if worst_case.is_bound() {
        return Outcome::NotApplicable("a task is bound to some of the cores".into());
    }
    if let Some(outcome) = worst_case.if_limited() {
        return outcome;
    }
    if worst_case.has_costs {
        return Outcome::NotApplicable("switching or migration costs time".into());
    }
    let tasks = match worst_case.single_jobs() {
        Ok(tasks) => tasks,
        Err(why) => return Outcome::NotApplicable(why),
    };
    let mut speeds: Vec<Speed> = CoreId::all(worst_case.cores).map(|core| worst_case.speed(core)).collect();
    speeds.sort_unstable_by(|a, b| b.cmp(a));
    let lost = speeds.first().map_or(0, |fastest| u64::from(fastest.0.div_ceil(1000)));
    let density = |task: &Sporadic| {
        let (work, time) = Sporadic { wcet: task.wcet + Time(lost), ..*task }.density();
        work as f64 / time as f64
    };
    let (sum, most) = tasks.iter().map(density).fold((0.0, 0.0f64), |(sum, most), one| (sum + one, most.max(one)));
    let total: f64 = speeds.iter().map(|speed| speed.as_f64()).sum();
    Outcome::if_proved((sum + lambda(&speeds) * most) * (1.0 + MARGIN) <= total)
}

/// Greatest ratio of the total speed of the slower cores to the speed of a core. Speeds are in descending order.
fn lambda(speeds: &[Speed]) -> f64 {
    let mut slower = 0.0;
    let mut greatest = 0.0f64;
    for speed in speeds.iter().rev() {
        greatest = greatest.max(slower / speed.as_f64());
        slower += speed.as_f64();
    }
    greatest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambda_is_that_of_the_paper() {
        assert_eq!(lambda(&[1000; 4].map(Speed)), 3.0);
        assert_eq!(lambda(&[Speed(4000), Speed(2000), Speed(1000)]), 0.75);
        assert_eq!(lambda(&[Speed(2000)]), 0.0);
    }
}
