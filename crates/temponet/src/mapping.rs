//! From Q-values to cores.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use temponet_task::{Assignment, JobId, SystemView, Tie, Time};

use crate::assignment::{Hungarian, Sinkhorn};

/// How the jobs with the best Q-values get cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mapping {
    /// The best unmasked job, again and again, until the cores are taken or idling is better. Running jobs keep their cores.
    #[default]
    Greedy,
    /// Sinkhorn-relaxed matching of jobs and cores, where staying is cheaper than migrating, rounded to an assignment.
    Sinkhorn {
        /// The lower, the sharper.
        temperature: f32,
        /// Rescalings of rows and columns.
        iterations: u32,
        /// What a migration costs, in units of Q.
        migration: f32,
    },
    /// The exact best matching: the reference of the one above.
    Hungarian {
        /// What a migration costs, in units of Q.
        migration: f32,
    },
}

/// A job that may get a core.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    q: f32,
    deadline: Time,
    tie: Tie,
    id: JobId,
}

impl Candidate {
    /// The best first; equal Q-values by deadline.
    fn order(&self, other: &Candidate) -> Ordering {
        other.q.total_cmp(&self.q).then((self.deadline, self.tie).cmp(&(other.deadline, other.tie)))
    }
}

/// Maps Q-values to cores; keeps its buffers.
#[derive(Clone, Debug, Default)]
pub struct Mapper {
    candidates: Vec<Candidate>,
    chosen: Vec<JobId>,
    gains: Vec<f32>,
    sinkhorn: Sinkhorn,
    hungarian: Hungarian,
}

/// So many jobs per core take part in a matching: it may prefer a job a little worse that need not move.
const MATCHED: usize = 2;

impl Mapper {
    /// Makes room for so many cores.
    pub fn reserve(&mut self, mapping: Mapping, cores: usize) {
        self.chosen.clear();
        self.chosen.reserve(cores);
        self.gains.clear();
        if mapping != Mapping::Greedy {
            self.gains.resize(MATCHED * cores * cores, 0.0);
        }
        // A matching of the greatest size takes all the room that there is to take.
        match mapping {
            Mapping::Greedy => {}
            Mapping::Sinkhorn { temperature, .. } => _ = self.sinkhorn.matching(&self.gains, cores, temperature, 0),
            Mapping::Hungarian { .. } => _ = self.hungarian.matching(&self.gains, cores),
        }
    }

    /// Assigns jobs, each given with its Q-value, to the cores. Jobs that are worth less than idling get none.
    pub fn assign(
        &mut self,
        mapping: Mapping,
        jobs: impl Iterator<Item = (JobId, f32)>,
        idle: f32,
        view: &SystemView<'_>,
        assignment: &mut Assignment,
    ) {
        let candidate = |(id, q): (JobId, f32)| {
            let job = view.job(id);
            Candidate { q, deadline: job.deadline, tie: job.tie(), id }
        };
        self.candidates.clear();
        self.candidates.reserve(jobs.size_hint().1.unwrap_or(0));
        self.candidates.extend(jobs.filter(|(_, q)| *q >= idle).map(candidate));
        let cores = view.cores();
        let kept = match mapping {
            Mapping::Greedy => cores,
            Mapping::Sinkhorn { .. } | Mapping::Hungarian { .. } => MATCHED * cores,
        };
        if self.candidates.len() > kept {
            self.candidates.select_nth_unstable_by(kept, Candidate::order);
            self.candidates.truncate(kept);
        }
        self.candidates.sort_unstable_by(Candidate::order);
        let migration = match mapping {
            Mapping::Greedy => {
                self.chosen.clear();
                self.chosen.extend(self.candidates.iter().map(|candidate| candidate.id));
                return assignment.place(view, &self.chosen);
            }
            Mapping::Sinkhorn { migration, .. } | Mapping::Hungarian { migration } => migration,
        };
        self.gains.clear();
        for candidate in &self.candidates {
            let last = view.job(candidate.id).last_core;
            let gain = |core: usize| {
                let moves = last.is_some_and(|last| last as usize != core);
                candidate.q - idle - if moves { migration } else { 0.0 }
            };
            self.gains.extend((0..cores).map(gain));
        }
        let matched = match mapping {
            Mapping::Sinkhorn { temperature, iterations, .. } => {
                self.sinkhorn.matching(&self.gains, cores, temperature, iterations)
            }
            _ => self.hungarian.matching(&self.gains, cores),
        };
        for (candidate, core) in self.candidates.iter().zip(matched) {
            if let Some(core) = core {
                assignment.run(*core, candidate.id);
            }
        }
    }
}
