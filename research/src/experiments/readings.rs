//! Other readings of E1, under which EDF and RM might both meet 11.67% of the jobs of the standard set.
//!
//! Preemptive RM cannot: its first task has the shortest period and so the highest priority, and is never held up. If
//! its execution time fits its period, all its 15 jobs of a hyperperiod of 31 are in time, whatever the other execution
//! times are; if it does not, the core never leaves it and no job is in time. [`least_of_rm`] counts this over
//! execution times.
//!
//! What is left are schedulers without preemption, and runs in which a miss stops a task or the whole run for good.

use std::collections::BTreeSet;

use temponet_sim::{Recorder, Unobserved, simulate};
use temponet_task::{
    Assignment, CoreId, Event, JobId, NotApplicable, OnMiss, Scheduler, System, SystemView, TaskId, Time,
};

use crate::{Context, Findings, FindingsTable, Line, ReproduceError, Unit};
use temponet_lab::arena::Case;
use temponet_lab::comparison::CompareError;
use temponet_lab::stats::percent;

/// A scheduler that never takes a core from a running job. Free cores go to the jobs that the inner scheduler chooses.
pub(super) struct NonPreemptive<S> {
    inner: S,
    wanted: Assignment,
}

impl<S: Scheduler> NonPreemptive<S> {
    pub fn new(inner: S) -> NonPreemptive<S> {
        NonPreemptive { inner, wanted: Assignment::default() }
    }
}

impl<S: Scheduler> temponet_task::Wrapper for NonPreemptive<S> {
    temponet_task::wraps!(inner: S);

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.wanted.reset(view.cores());
        self.inner.decide(view, &mut self.wanted);
        let running: BTreeSet<JobId> = view.running.iter().flatten().copied().collect();
        let mut waiting = self.wanted.cores().iter().flatten().filter(|id| !running.contains(id));
        for (core, job) in view.running.iter().enumerate() {
            if let Some(job) = job.as_ref().or_else(|| waiting.next()) {
                assignment.run(CoreId::new(core), *job);
            }
        }
    }
}

/// A scheduler under which a task that has missed a deadline never runs again: its later jobs are abandoned at their
/// release. Late jobs must be aborted.
pub(super) struct TaskFailStop<S> {
    inner: S,
    has_failed: Vec<bool>,
    active: Vec<JobId>,
    events: Vec<Event>,
}

impl<S: Scheduler> TaskFailStop<S> {
    pub fn new(inner: S) -> TaskFailStop<S> {
        TaskFailStop { inner, has_failed: Vec::new(), active: Vec::new(), events: Vec::new() }
    }
}

impl<S: Scheduler> temponet_task::Wrapper for TaskFailStop<S> {
    temponet_task::wraps!(inner: S);

    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        if system.on_miss() != OnMiss::Abort {
            return Err(NotApplicable("late jobs that continue belong to a task that has failed".into()));
        }
        self.has_failed = vec![false; system.tasks().len()];
        self.inner.start(system)
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        for event in view.events {
            if let Event::Aborted(id) = event {
                self.has_failed[view.job(*id).task] = true;
            }
        }
        let has_failed = |id: &JobId| self.has_failed[view.job(*id).task];
        self.active.clear();
        self.active.extend(view.active.iter().filter(|id| !has_failed(id)));
        self.events.clear();
        let is_hidden = |event: &Event| matches!(event, Event::Released(id) if has_failed(id));
        self.events.extend(view.events.iter().filter(|event| !is_hidden(event)));
        let left = view.with_active(&self.active).with_events(&self.events);
        self.inner.decide(&left, assignment);
        view.active.iter().filter(|id| has_failed(id)).for_each(|id| assignment.abandon(*id));
    }
}

/// Returns the number of jobs in time up to the first miss.
fn met_before_a_miss(case: &Case, scheduler: &mut dyn Scheduler) -> Result<usize, ReproduceError> {
    let mut recorder = Recorder::until(case.horizon);
    simulate(&case.set, case.seed, case.horizon, scheduler, &mut recorder)?;
    let missed = recorder.jobs.iter().filter(|job| !job.met()).map(|job| job.deadline);
    let end = missed.min().unwrap_or(Time::NEVER);
    Ok(recorder.jobs.iter().filter(|job| job.met() && job.left <= end).count())
}

/// Share of jobs in time of a scheduler, without preemption, under a miss rule.
fn without_preemption(case: &Case, scheduler: Box<dyn Scheduler>, on_miss: OnMiss) -> Result<f64, ReproduceError> {
    let mut set = case.set.clone();
    set.system.set_on_miss(on_miss);
    let metrics = simulate(&set, case.seed, case.horizon, &mut NonPreemptive::new(scheduler), &mut Unobserved)?;
    Ok(metrics.jobs.compliance())
}

/// What a scheduler meets under the readings.
struct Outcome {
    /// Shares of jobs in time, by reading.
    shares: [(&'static str, f64); 4],
    /// Number of jobs in time up to the first miss.
    before_a_miss: usize,
}

impl Outcome {
    fn of(context: &Context<'_>, case: &Case, name: &str) -> Result<Outcome, ReproduceError> {
        let build = || context.roster.build(name).map_err(CompareError::from);
        let mut stopped = TaskFailStop::new(build()?);
        let metrics = simulate(&case.set, case.seed, case.horizon, &mut stopped, &mut Unobserved)?;
        let before_a_miss = met_before_a_miss(case, &mut *build()?)?;
        let shares = [
            ("no preemption, late jobs abort", without_preemption(case, build()?, OnMiss::Abort)?),
            ("no preemption, late jobs continue", without_preemption(case, build()?, OnMiss::Continue)?),
            ("a task that misses once never runs again", metrics.jobs.compliance()),
            // What comes after the end counts as missed.
            ("the run ends at the first miss", before_a_miss as f64 / metrics.jobs.released.max(1) as f64),
        ];
        Ok(Outcome { shares, before_a_miss })
    }
}

/// Least number of jobs of the first task in time, and least share of all jobs in time, of preemptive RM over one
/// hyperperiod and both miss rules. Execution times go in steps of 5 ms up to the periods.
fn least_of_rm(context: &Context<'_>, case: &Case) -> Result<(usize, f64), ReproduceError> {
    const STEP: u64 = 5_000_000;
    const HYPERPERIOD: Time = Time(600_000_000);
    let (mut least_first, mut least_share) = (usize::MAX, 1.0f64);
    let mut set = case.set.clone();
    let limits: Vec<u64> = set.tasks().iter().map(|task| task.deadline.0 / STEP).collect();
    let [first, second, third] = limits[..] else { return Ok((0, 0.0)) };
    for times in (0..first * second * third).map(|at| [at % first, at / first % second, at / first / second]) {
        for (task, steps) in set.system.tasks_mut().iter_mut().zip(times) {
            (task.wcet, task.bcet) = (Time((steps + 1) * STEP), Time((steps + 1) * STEP));
        }
        for on_miss in [OnMiss::Abort, OnMiss::Continue] {
            set.system.set_on_miss(on_miss);
            let mut scheduler = context.roster.build("rm").map_err(CompareError::from)?;
            let mut recorder = Recorder::until(HYPERPERIOD);
            let metrics = simulate(&set, case.seed, HYPERPERIOD, &mut *scheduler, &mut recorder)?;
            let met = recorder.jobs.iter().filter(|job| job.task == TaskId(0) && job.met()).count();
            least_first = least_first.min(met);
            least_share = least_share.min(metrics.jobs.compliance());
        }
    }
    Ok((least_first, least_share))
}

/// Adds the readings and the least share of RM. `claimed` is the paper's share of both schedulers. Returns a sentence
/// about them.
pub(super) fn add(
    context: &Context<'_>,
    findings: &mut Findings,
    cases: &[Case],
    variants: &[&str],
    claimed: f64,
) -> Result<String, ReproduceError> {
    let Some(first) = cases.first() else { return Ok(String::new()) };
    let mut rows: Vec<Vec<String>> = Vec::new();
    // Largest distance of EDF and RM from the claimed share, at the nearest reading and variant.
    let (mut nearest, mut nearest_name) = (f64::INFINITY, String::new());
    let mut equal = Vec::new();
    for (case, variant) in cases.iter().zip(variants) {
        let [edf, rm] = [Outcome::of(context, case, "edf")?, Outcome::of(context, case, "rm")?];
        for (reading, ((name, edf), (_, rm))) in edf.shares.iter().zip(&rm.shares).enumerate() {
            for (place, scheduler, share) in [(2 * reading, "edf", edf), (2 * reading + 1, "rm", rm)] {
                if rows.len() <= place {
                    rows.push(vec![format!("{scheduler}: {name}")]);
                }
                rows[place].push(percent(*share));
            }
            let far = (edf - claimed).abs().max((rm - claimed).abs());
            if far < nearest {
                nearest_name = format!("\"{name}\" on {variant} (EDF {}, RM {})", percent(*edf), percent(*rm));
                nearest = far;
            }
        }
        let [edf, rm] = [edf.before_a_miss, rm.before_a_miss];
        findings.add(Line::neither(format!("edf_before_first_miss_{variant}"), Unit::Number, edf as f64));
        findings.add(Line::neither(format!("rm_before_first_miss_{variant}"), Unit::Number, rm as f64));
        if edf == rm {
            equal.push(format!(
                "{edf} jobs on {variant}, which is {} of {:.0}",
                percent(claimed),
                edf as f64 / claimed
            ));
        }
    }
    let header: Vec<&str> = ["reading"].into_iter().chain(variants.iter().copied()).collect();
    findings.tables.push(FindingsTable::new("Other readings", &header, rows));
    let (met, share) = least_of_rm(context, first)?;
    findings.add(Line::neither("rm_least_share", Unit::Share, share));
    findings.add(Line::neither("rm_first_task_least_met", Unit::Number, met as f64));
    findings.add(Line::neither("nearest_reading", Unit::Share, nearest));
    let equal = if equal.is_empty() { "for no variant".to_string() } else { equal.join(" and ") };
    Ok(format!(
        "for no execution times can preemptive RM meet {}: its first task is never held up, so at least {met} of 31 jobs of a hyperperiod are in time ({} at least), or \
         none if that task alone fills the core; of four other readings the nearest is {nearest_name}; EDF and RM meet the same only up to the first miss ({equal}), so a run that ends there has any share, \
         by its length, which the paper does not give",
        percent(claimed),
        percent(share)
    ))
}

#[cfg(test)]
mod tests {
    use temponet_sched::build;
    use temponet_task::{Task, TaskSet};

    use super::*;

    /// A periodic task; times in milliseconds.
    fn task(period: u64, offset: u64, deadline: u64, wcet: u64) -> Task {
        let ms = |ms: u64| Time(ms * 1_000_000);
        Task::periodic("task", ms(period), ms(wcet)).with_offset(ms(offset)).with_deadline(ms(deadline))
    }

    fn met(set: &TaskSet, horizon_ms: u64, scheduler: &mut dyn Scheduler) -> u64 {
        simulate(set, 1, Time(horizon_ms * 1_000_000), scheduler, &mut Unobserved).unwrap().jobs.met
    }

    #[test]
    fn a_running_job_is_not_preempted() {
        // The second job comes while the first runs, and cannot wait for its end.
        let set = TaskSet::new("two", vec![task(100, 0, 100, 30), task(100, 1, 10, 5)], 1);
        assert_eq!(met(&set, 100, &mut *build("edf").unwrap()), 2);
        assert_eq!(met(&set, 100, &mut NonPreemptive::new(build("edf").unwrap())), 1);
    }

    #[test]
    fn a_task_that_missed_never_runs_again() {
        // Both tasks want the core at 0, and the second loses; at 30 it would be alone.
        let set = TaskSet::new("two", vec![task(20, 0, 10, 6), task(30, 0, 10, 6)], 1);
        assert_eq!(met(&set, 60, &mut *build("edf").unwrap()), 4);
        assert_eq!(met(&set, 60, &mut TaskFailStop::new(build("edf").unwrap())), 3);
        let case = Case { set, seed: 1, horizon: Time(60_000_000) };
        // Only the very first job is in time before the first miss.
        assert_eq!(met_before_a_miss(&case, &mut *build("edf").unwrap()).unwrap(), 1);
    }
}
