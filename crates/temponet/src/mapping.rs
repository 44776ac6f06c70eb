//! Mapping of jobs to cores by their Q-values.
//!
//! The mapper keeps the few jobs with the highest Q-values and gives them cores, greedily or by a matching. It drops
//! jobs worth less than idling.
//!
//! Where cores differ in speed, the greedy mapping gives the faster core to the higher Q-value, and a matching counts
//! the gain of a job on a core by the share of the highest speed that the core has. A job is never matched with a core
//! that its task may not use.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use temponet_task::{Assignment, CoreId, JobId, Speed, SystemView, Tie, Time};

use crate::assignment::{Hungarian, Sinkhorn};
use crate::staying::{Kept, Staying};

/// How the jobs with the highest Q-values get cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mapping {
    /// The job with the highest Q-value first, until every core is taken or idling is better. Chosen jobs that are
    /// running stay on their cores.
    #[default]
    Greedy,
    /// Matching of jobs and cores, relaxed by Sinkhorn iterations and rounded to an assignment. Migrations have a
    /// price.
    Sinkhorn {
        /// Temperature of the relaxation, in units of Q: the lower, the sharper.
        temperature: f32,
        /// Number of Sinkhorn iterations, each of which rescales all rows and columns.
        iterations: u32,
        /// What a migration costs, in units of Q.
        migration: f32,
    },
    /// Exact matching of the greatest total gain: the reference for [`Mapping::Sinkhorn`].
    Hungarian {
        /// What a migration costs, in units of Q.
        migration: f32,
    },
}

/// A ready job with its Q-value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScoredJob {
    pub q: f32,
    deadline: Time,
    tie: Tie,
    pub id: JobId,
}

impl ScoredJob {
    fn of((id, q): (JobId, f32), view: &SystemView<'_>) -> ScoredJob {
        let job = view.job(id);
        ScoredJob { q, deadline: job.deadline, tie: job.tie(), id }
    }

    /// Orders by descending Q-value, then by deadline, then by [`temponet_task::Job::tie`].
    pub fn order(&self, other: &ScoredJob) -> Ordering {
        other.q.total_cmp(&self.q).then((self.deadline, self.tie).cmp(&(other.deadline, other.tie)))
    }
}

/// Assigns jobs to cores by their Q-values. Its buffers are reused from decision to decision.
#[derive(Clone, Debug, Default)]
pub struct Mapper {
    /// Switching bonus of running jobs; zero by default. Only [`Mapping::Greedy`] uses it: the matchings have a
    /// migration cost of their own.
    pub staying: Staying,
    candidates: Vec<ScoredJob>,
    chosen: Vec<JobId>,
    /// Running jobs that are not among the candidates; working memory of [`Staying::keep`].
    lost: Vec<ScoredJob>,
    kept: Vec<Kept>,
    gains: Vec<f32>,
    /// Cores that no job holds.
    free: Vec<CoreId>,
    sinkhorn: Sinkhorn,
    hungarian: Hungarian,
}

/// Number of jobs per core that take part in a matching. It is more than one because a matching may prefer a slightly
/// worse job that need not migrate.
const CANDIDATES_PER_CORE: usize = 2;

impl Mapper {
    /// Reserves memory for decisions on this many cores.
    pub fn reserve(&mut self, mapping: Mapping, cores: usize) {
        self.candidates.clear();
        self.candidates.reserve(CANDIDATES_PER_CORE * cores + 1);
        self.chosen.clear();
        self.chosen.reserve(cores);
        self.lost.clear();
        self.lost.reserve(cores);
        self.kept.clear();
        self.kept.reserve(cores);
        self.gains.clear();
        self.free.clear();
        self.free.reserve(cores);
        if mapping != Mapping::Greedy {
            self.gains.resize(CANDIDATES_PER_CORE * cores * cores, 0.0);
        }
        // A matching of the greatest size makes the matcher allocate all the memory that it will ever need.
        match mapping {
            Mapping::Greedy => {}
            Mapping::Sinkhorn { temperature, .. } => _ = self.sinkhorn.matching(&self.gains, cores, temperature, 0),
            Mapping::Hungarian { .. } => _ = self.hungarian.matching(&self.gains, cores),
        }
    }

    /// Sets the candidates to the best `limit` jobs, best first, without jobs worth less than idling. For most jobs,
    /// only the Q-value is read.
    fn keep_best(&mut self, limit: usize, jobs: impl Iterator<Item = (JobId, f32)>, idle: f32, view: &SystemView<'_>) {
        self.candidates.clear();
        // Least Q-value that can still get in: that of idling, or of the last candidate once there are `limit` of them.
        // So most jobs need a single comparison, whose outcome is easy to predict because it soon fails almost always.
        let mut least = idle;
        for (id, q) in jobs {
            if !matches!(q.partial_cmp(&least), Some(Ordering::Greater | Ordering::Equal)) {
                continue;
            }
            let candidate = ScoredJob::of((id, q), view);
            let place = self.candidates.partition_point(|other| other.order(&candidate) == Ordering::Less);
            if place == limit {
                continue;
            }
            if self.candidates.len() == limit {
                self.candidates.pop();
            }
            self.candidates.insert(place, candidate);
            if let Some(last) = self.candidates.get(limit - 1) {
                least = last.q;
            }
        }
    }

    /// Returns the running jobs that kept their cores in the last assignment because of the switching bonus.
    pub fn kept(&self) -> &[Kept] {
        &self.kept
    }

    /// Assigns `jobs`, each given with its Q-value, to the cores. A job whose Q-value is below `idle`, the Q-value of
    /// idling, gets no core.
    pub fn assign(
        &mut self,
        mapping: Mapping,
        jobs: impl Iterator<Item = (JobId, f32)> + Clone,
        idle: f32,
        view: &SystemView<'_>,
        assignment: &mut Assignment,
    ) {
        let cores = view.cores();
        // A job that waits is replaced by the one that it waits for, which placement by order does.
        let mapping = if view.locks.is_some() { Mapping::Greedy } else { mapping };
        let limit = match mapping {
            Mapping::Greedy => view.system.most_offered(),
            Mapping::Sinkhorn { .. } | Mapping::Hungarian { .. } => CANDIDATES_PER_CORE * cores,
        };
        self.keep_best(limit, jobs.clone(), idle, view);
        self.kept.clear();
        let migration = match mapping {
            Mapping::Greedy => {
                // Where tasks are bound to cores or share resources, the candidates are not yet those that run.
                if !view.system.machine().is_bound() && view.locks.is_none() {
                    let Mapper { staying, candidates, lost, kept, .. } = self;
                    let jobs = jobs.map(|job| ScoredJob::of(job, view));
                    staying.keep(candidates, lost, jobs, idle, view, |one| kept.push(one));
                }
                self.chosen.clear();
                self.chosen.extend(self.candidates.iter().map(|candidate| candidate.id));
                return assignment.place(view, &self.chosen);
            }
            Mapping::Sinkhorn { migration, .. } | Mapping::Hungarian { migration } => migration,
        };
        // Jobs that hold a core keep it; the others are matched with the rest of the cores.
        assignment.keep_held(view, 0..cores);
        self.candidates.retain(|candidate| !view.job(candidate.id).held);
        self.free.clear();
        self.free.extend(view.system.core_ids().filter(|core| !view.is_held(*core)));
        if self.free.is_empty() {
            return;
        }
        // Where idling is out of the question, its exact Q-value does not matter. A hugely negative one would swamp the
        // differences between jobs in rounding, so it is raised.
        let least = self.candidates.iter().map(|candidate| candidate.q).fold(f32::INFINITY, f32::min);
        let given_idle = idle;
        let idle = idle.max(least - migration - 1.0);
        let machine = view.system.machine();
        let top = self.free.iter().map(|core| machine.speed(*core)).max().unwrap_or(Speed::FULL).as_f64();
        let share = |id: JobId, core: CoreId| match machine.is_plain() {
            true => Some(1.0),
            false => view.may_run(view.job(id), core).then(|| (machine.speed(core).as_f64() / top) as f32),
        };
        self.gains.clear();
        for candidate in &self.candidates {
            let last = view.job(candidate.id).last_core;
            let gain = |core: &CoreId| {
                let moves = last.is_some_and(|last| last != *core);
                let Some(share) = share(candidate.id, *core) else { return f32::NEG_INFINITY };
                (candidate.q - idle) * share - if moves { migration } else { 0.0 }
            };
            self.gains.extend(self.free.iter().map(gain));
        }
        let matched = match mapping {
            Mapping::Sinkhorn { temperature, iterations, .. } => {
                self.sinkhorn.matching(&self.gains, self.free.len(), temperature, iterations)
            }
            _ => self.hungarian.matching(&self.gains, self.free.len()),
        };
        for (candidate, place) in self.candidates.iter().zip(matched) {
            if let Some(place) = place {
                assignment.run(self.free[*place], candidate.id);
            }
        }
        if machine.is_bound() {
            self.fill(jobs, given_idle, view, assignment);
        }
    }

    /// Gives the cores that the candidates left idle, because these may not use them, to the best of the other jobs.
    #[cold]
    fn fill(
        &mut self,
        jobs: impl Iterator<Item = (JobId, f32)>,
        idle: f32,
        view: &SystemView<'_>,
        assignment: &mut Assignment,
    ) {
        self.keep_best(usize::MAX, jobs, idle, view);
        for candidate in &self.candidates {
            let job = view.job(candidate.id);
            let is_open = |core: &&CoreId| assignment.cores()[**core].is_none() && view.may_run(job, **core);
            let open = self.free.iter().filter(is_open);
            let fastest = open.max_by_key(|core| (view.system.machine().speed(**core), std::cmp::Reverse(**core)));
            if let Some(core) = fastest.copied().filter(|_| !job.held && !assignment.runs(candidate.id)) {
                assignment.run(core, candidate.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;
    use temponet_task::{Core, CoreSet, Job, Preemption, Task, TaskSet};

    /// Calls `check` with a view of ready jobs with the given deadlines, on four cores.
    fn with_view(deadlines: &[u64], check: impl FnOnce(&SystemView<'_>)) {
        let task = |(index, deadline): (usize, &u64)| {
            Task::periodic(format!("t{index}"), Time(100), Time(1)).with_deadline(Time(*deadline))
        };
        let system = TaskSet::new("test", deadlines.iter().enumerate().map(task).collect(), 4).system;
        let jobs: Vec<Job> = system.task_ids().zip(system.tasks()).map(|(id, task)| Job::first(id, task)).collect();
        let active: Vec<JobId> = (0..deadlines.len() as u32).map(JobId).collect();
        let now = Time::ZERO;
        check(&SystemView::new(now, &system, &active, &jobs, &[None; 4]));
    }

    #[test]
    fn matchings_end_where_idling_is_out_of_the_question() {
        let (sinkhorn, exact) = (
            Mapping::Sinkhorn { temperature: 0.05, iterations: 20, migration: 0.02 },
            Mapping::Hungarian { migration: 0.02 },
        );
        with_view(&[100; 6], |view| {
            for (mapping, idle) in [(sinkhorn, f32::NEG_INFINITY), (exact, f32::NEG_INFINITY), (exact, -1e30)] {
                let mut assignment = Assignment::default();
                assignment.reset(4);
                let given = view.active.iter().map(|id| (*id, id.0 as f32 / 10.0));
                Mapper::default().assign(mapping, given, idle, view, &mut assignment);
                let mut chosen: Vec<u32> = assignment.cores().iter().flatten().map(|id| id.0).collect();
                chosen.sort_unstable();
                assert_eq!(chosen, [2, 3, 4, 5], "{mapping:?}: the four best");
            }
        });
    }

    #[test]
    fn a_job_that_holds_its_core_keeps_it_and_the_best_others_get_the_rest() {
        let mappings = [
            Mapping::Greedy,
            Mapping::Sinkhorn { temperature: 0.05, iterations: 20, migration: 0.02 },
            Mapping::Hungarian { migration: 0.02 },
        ];
        with_view(&[100; 6], |view| {
            // The job with the least Q-value holds core 2.
            let mut jobs = view.jobs.to_vec();
            (jobs[0].running, jobs[0].held, jobs[0].last_core) = (true, true, Some(CoreId(2)));
            let running = [None, None, Some(JobId(0)), None];
            let mut system = view.system.clone();
            system.tasks_mut()[0].preemption = Preemption::None;
            let view = SystemView::new(view.now, &system, view.active, &jobs, &running);
            for mapping in mappings {
                let mut assignment = Assignment::default();
                assignment.reset(4);
                let given = view.active.iter().map(|id| (*id, id.0 as f32 / 10.0));
                Mapper::default().assign(mapping, given, f32::NEG_INFINITY, &view, &mut assignment);
                assert_eq!(assignment.cores()[2], Some(JobId(0)), "{mapping:?}");
                let mut chosen: Vec<u32> = assignment.cores().iter().flatten().map(|id| id.0).collect();
                chosen.sort_unstable();
                assert_eq!(chosen, [0, 3, 4, 5], "{mapping:?}");
            }
        });
    }

    const MAPPINGS: [Mapping; 3] = [
        Mapping::Greedy,
        Mapping::Sinkhorn { temperature: 0.05, iterations: 50, migration: 0.0 },
        Mapping::Hungarian { migration: 0.0 },
    ];

    /// Jobs that each core gets, where the job with the id `i` has the Q-value `i / 10`.
    fn mapped(mapping: Mapping, view: &SystemView<'_>) -> Vec<Option<u32>> {
        let mut assignment = Assignment::default();
        assignment.reset(view.cores());
        let given = view.active.iter().map(|id| (*id, id.0 as f32 / 10.0));
        Mapper::default().assign(mapping, given, f32::NEG_INFINITY, view, &mut assignment);
        assignment.cores().iter().map(|job| job.map(|id| id.0)).collect()
    }

    #[test]
    fn the_faster_core_goes_to_the_higher_q_value() {
        with_view(&[100; 6], |view| {
            let speeds = [500, 2000, 1000, 1500];
            let machine: Vec<Core> = speeds.map(|speed| Core::new("c", Speed(speed))).to_vec();
            let mut system = view.system.clone();
            system.set_machine(machine);
            let view = view.with_system(&system);
            for mapping in MAPPINGS {
                assert_eq!(mapped(mapping, &view), [2, 5, 3, 4].map(Some), "{mapping:?}");
            }
        });
    }

    #[test]
    fn jobs_get_only_cores_that_they_may_use_and_no_core_idles_that_a_job_may_use() {
        with_view(&[100; 30], |view| {
            let mut system = view.system.clone();
            // The best jobs, more than a matching looks at, compete for core 1; only the worst job may use core 3.
            system.tasks_mut().iter_mut().for_each(|task| task.cores = CoreSet::of([CoreId(1)]));
            system.tasks_mut()[0].cores = CoreSet::of([CoreId(3)]);
            system.tasks_mut()[1].cores = CoreSet::of([0, 1].map(CoreId));
            let view = view.with_system(&system);
            for mapping in MAPPINGS {
                assert_eq!(mapped(mapping, &view), [Some(1), Some(29), None, Some(0)], "{mapping:?}");
            }
        });
    }

    #[test]
    fn the_best_are_those_that_sorting_finds() {
        let mut rng = Pcg64::seed_from_u64(3);
        for (n, idle) in
            [0, 1, 7, 8, 9, 200].into_iter().flat_map(|n| [f32::NEG_INFINITY, 3.0, 5.5].map(|idle| (n, idle)))
        {
            let deadlines: Vec<u64> = (0..n).map(|_| rng.random_range(1..5)).collect();
            // Few distinct Q-values, so that many are equal.
            let q: Vec<f32> = (0..n).map(|_| f32::from(rng.random_range(0u8..6))).collect();
            with_view(&deadlines, |view| {
                let mut mapper = Mapper::default();
                mapper.keep_best(8, view.active.iter().map(|id| (*id, q[id.index()])), idle, view);
                let mut expected = view.active.to_vec();
                expected.retain(|id| q[id.index()] >= idle);
                expected.sort_by(|a, b| {
                    let of = |id: &JobId| (view.job(*id).deadline, view.job(*id).tie());
                    q[b.index()].total_cmp(&q[a.index()]).then(of(a).cmp(&of(b)))
                });
                expected.truncate(8);
                assert_eq!(mapper.candidates.iter().map(|candidate| candidate.id).collect::<Vec<_>>(), expected);
            });
        }
    }
}
