//! Tests for two levels of criticality on one core, without release jitter.
//! Every deadline is met as long as no critical job overruns its wcet. If critical jobs overrun, up to their
//! `wcet_high`, all critical deadlines are still met.
//!
//! Reference: Baruah et al., ECRTS 2012 (EDF-VD); Baruah, Burns and Davis, RTSS 2011 (AMC-rtb).

use temponet_task::{Task, TaskSet, Time};

use super::Outcome;
use super::fractions::MARGIN;
use super::response_time::PriorityRule;
use super::step_budget::StepBudget;
use super::uniprocessor_edf::{Demand, quick_test};
use super::worst_case::{Sporadic, WorstCase, may_overrun};

/// Whether the set has critical tasks with a higher wcet, so that these tests apply.
pub fn is_mixed(set: &TaskSet) -> bool {
    set.tasks().iter().any(|task| task.criticality > 0 && task.wcet_high.is_some())
}

fn not_applicable(why: &str) -> Outcome {
    Outcome::NotApplicable(why.into())
}

/// Checks the assumptions of both tests.
fn check_model(set: &TaskSet, worst_case: &WorstCase) -> Result<(), Outcome> {
    if set.cores() != 1 {
        return Err(not_applicable("for one core only"));
    }
    if !set.machine().is_full_speed() {
        return Err(not_applicable("the core has a speed of its own"));
    }
    if let Some(outcome) = worst_case.if_limited() {
        return Err(outcome);
    }
    if worst_case.has_costs || worst_case.tasks.iter().any(|task| task.jitter > Time::ZERO || task.jobs > 1) {
        return Err(not_applicable("there are switching costs, jitter or bursts"));
    }
    if set.tasks().iter().any(|task| task.criticality == 0 && may_overrun(task)) {
        return Err(not_applicable("a task of low criticality overruns its wcet"));
    }
    Ok(())
}

fn high(task: &Task) -> Time {
    task.wcet_high.unwrap_or(task.wcet)
}

/// Factor x, from 0 to 1, by which `edf-vd` multiplies the relative deadlines of critical tasks.
pub fn shrink_factor(tasks: &[Task], cores: usize) -> f64 {
    let load = |critical: bool, high: bool| -> f64 {
        let chosen = tasks.iter().filter(|task| (task.criticality > 0) == critical);
        chosen
            .map(|task| {
                let ratio = task.wcet_high.map_or(1.0, |wcet| wcet.0 as f64 / task.wcet.0 as f64);
                task.utilization() * if high { ratio } else { 1.0 }
            })
            .sum()
    };
    let low = load(false, false);
    let room = cores as f64 - low;
    if low + load(true, true) <= cores as f64 || room <= 0.0 { 1.0 } else { (load(true, false) / room).min(1.0) }
}

/// Relative deadline that `edf-vd` gives a task as long as no job has overrun.
fn virtual_deadline(task: &Task, shrink: f64) -> Time {
    if task.criticality > 0 { Time((task.deadline.0 as f64 * shrink) as u64) } else { task.deadline }
}

/// EDF-VD: x·U_LO + U_HI(HI) ≤ 1. The mode without overruns is checked by the exact test, with the virtual deadlines
/// that the scheduler uses.
pub fn edf_vd(set: &TaskSet, worst_case: &WorstCase) -> Outcome {
    if let Err(outcome) = check_model(set, worst_case) {
        return outcome;
    }
    if set.tasks().iter().any(|task| task.period() != Some(task.deadline)) {
        return not_applicable("a deadline is not the period");
    }
    let load = |critical: bool, wcet: fn(&Task) -> Time| -> f64 {
        let chosen = set.tasks().iter().filter(|task| (task.criticality > 0) == critical);
        chosen.map(|task| wcet(task).0 as f64 / task.deadline.0 as f64).sum()
    };
    let low = load(false, |task| task.wcet);
    let shrink = shrink_factor(set.tasks(), 1);
    let fits_high = shrink * low + load(true, high) < 1.0 - MARGIN;
    Outcome::if_proved(fits_high && meets_virtual_deadlines(set))
}

/// Whether `edf-vd` on one core meets every deadline as long as no job overruns.
pub fn meets_virtual_deadlines(set: &TaskSet) -> bool {
    let shrink = shrink_factor(set.tasks(), 1);
    let demand = |task: &Task| {
        let period = task.period().unwrap_or(task.deadline);
        Demand { wcet: task.wcet, deadline: virtual_deadline(task, shrink), period }
    };
    // The scheduler multiplies in floating point, where larger times are not exact.
    let is_exact = set.tasks().iter().all(|task| task.deadline.0 < 1 << 53);
    let demands: Vec<Demand> = set.tasks().iter().map(demand).collect();
    is_exact && quick_test(&demands, &mut StepBudget::standard()) == Some(true)
}

/// AMC-rtb: response-time bounds for the low mode and for the change to the high mode.
pub fn amc_rtb(set: &TaskSet, worst_case: &WorstCase) -> Outcome {
    if let Err(outcome) = check_model(set, worst_case) {
        return outcome;
    }
    if !worst_case.is_constrained() {
        return not_applicable("a deadline is longer than its period");
    }
    let keys = PriorityRule::GivenOrDeadline.keys(&worst_case.tasks);
    let mut budget = StepBudget::standard();
    for (place, task) in set.tasks().iter().enumerate() {
        let others = (0..set.tasks().len()).filter(|other| *other != place && keys[*other] <= keys[place]);
        let higher: Vec<(&Task, &Sporadic)> =
            others.map(|other| (&set.tasks()[other], &worst_case.tasks[other])).collect();
        let mut fixed_point = |first: u64, work: &dyn Fn(u64) -> u64| {
            let mut response = first;
            loop {
                budget.spend(higher.len() + 1)?;
                let next = first.saturating_add(work(response));
                if next == response || next > task.deadline.0 {
                    return Some(next);
                }
                response = next;
            }
        };
        let interference = |critical: Option<bool>, length: u64, wcet: fn(&Task) -> Time| {
            let chosen =
                higher.iter().filter(|(task, _)| critical.is_none_or(|critical| (task.criticality > 0) == critical));
            let work = chosen.map(|(task, sporadic)| length.div_ceil(sporadic.period.0).saturating_mul(wcet(task).0));
            work.fold(0, u64::saturating_add)
        };
        let Some(low) = fixed_point(task.wcet.0, &|length| interference(None, length, |task| task.wcet)) else {
            return Outcome::Undecided;
        };
        if low > task.deadline.0 {
            return Outcome::NotProved;
        }
        if task.criticality == 0 {
            continue;
        }
        let before_change = interference(Some(false), low, |task| task.wcet);
        let after = |length: u64| before_change.saturating_add(interference(Some(true), length, high));
        match fixed_point(high(task).0, &after) {
            None => return Outcome::Undecided,
            Some(response) if response > task.deadline.0 => return Outcome::NotProved,
            Some(_) => {}
        }
    }
    Outcome::Schedulable
}
