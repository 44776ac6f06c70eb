//! Learning through a relaxed matching: the loss of a teacher's assignment under Sinkhorn's plan.
//!
//! The network's outputs are the gains of running jobs, less a price for each core that a job would have to migrate to.
//! The plan of the deployed mapping (`temponet::Mapping::Sinkhorn`) is computed from them on the tape. The loss is the
//! negative logarithm of the mass that the plan gives to the cells that the teacher's decision allows: the core of a
//! job that stays, and any core for a job that starts or moves, because cores are alike. Gradients go back through the
//! iterations to the outputs.
//!
//! As in the mapping, the jobs with the highest outputs take part, two for each core. The jobs that the teacher ran are
//! added to them, so that their outputs have a gradient, too.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use temponet_grad::{Device, Loss, MatchingShape, Tape, Var};
use temponet_task::JobId;

use crate::fleet::FleetMember;
use crate::limits::{negative, not_positive};
use crate::tape_network::OutputRows;

/// Number of jobs for each core that take part in a matching, as in the deployed mapping.
const CANDIDATES_PER_CORE: usize = 2;

/// Settings of learning through a matching. A model should be deployed with the same mapping.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MatchingSettings {
    /// Temperature of the relaxation in units of the outputs, positive: the lower, the sharper. Default 0.05.
    pub temperature: f64,
    /// Number of times that rows and columns are rescaled, 1 to 1,000; default 20.
    pub iterations: u32,
    /// Price of a migration in units of the outputs, 0 or more; default 0.02.
    pub migration: f64,
}

impl Default for MatchingSettings {
    fn default() -> Self {
        MatchingSettings { temperature: 0.05, iterations: 20, migration: 0.02 }
    }
}

impl MatchingSettings {
    /// Returns what is wrong with the settings, or `None`.
    pub(crate) fn problem(&self) -> Option<String> {
        let problem = not_positive(&[("matching.temperature", self.temperature)]);
        problem.or_else(|| negative(&[("matching.migration", self.migration)])).or_else(|| {
            let iterations = self.iterations;
            (!(1..=1_000).contains(&iterations))
                .then(|| format!("matching.iterations = {iterations} is not from 1 to 1000"))
        })
    }
}

/// Jobs and cores of a decision, and where the teacher put the jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaughtMatching {
    /// Row of each ready job that may be chosen, and the core that it ran on last.
    jobs: Vec<(u32, Option<u16>)>,
    /// Jobs that the teacher ran, each with the core that it must have, if that matters.
    taught: Vec<(u32, Option<u16>)>,
    cores: u16,
}

impl TaughtMatching {
    /// Reads what the teacher of a member of a fleet would do.
    pub(crate) fn of(member: &FleetMember) -> TaughtMatching {
        let view = member.environment().view();
        let last = |id| view.job(id).last_core.map(|core| core.0 as u16);
        let jobs: Vec<(JobId, u32)> = member.jobs().iter().filter(|(_, row)| *row > 0).copied().collect();
        let place = |id| jobs.iter().position(|(job, _)| *job == id);
        let taught = member.teacher_cores().iter().enumerate().filter_map(|(core, id)| {
            let (id, core) = ((*id)?, core as u16);
            Some((place(id)? as u32, last(id).filter(|last| *last == core)))
        });
        TaughtMatching {
            taught: taught.collect(),
            jobs: jobs.iter().map(|(id, row)| (*row, last(*id))).collect(),
            cores: view.cores() as u16,
        }
    }

    /// Returns the part of the decision that is matched by these outputs: the best jobs and those that were taught.
    fn narrowed(&self, q: &[f32]) -> TaughtMatching {
        let output = |job: usize| q[self.jobs[job].0 as usize];
        let mut best: Vec<usize> = (0..self.jobs.len()).collect();
        best.sort_by(|a, b| output(*b).total_cmp(&output(*a)).then(a.cmp(b)));
        best.truncate(CANDIDATES_PER_CORE * usize::from(self.cores));
        best.extend(self.taught.iter().map(|(job, _)| *job as usize));
        best.sort_unstable();
        best.dedup();
        let place = |job: u32| best.partition_point(|other| *other < job as usize) as u32;
        TaughtMatching {
            jobs: best.iter().map(|job| self.jobs[*job]).collect(),
            taught: self.taught.iter().map(|(job, core)| (place(*job), *core)).collect(),
            cores: self.cores,
        }
    }

    /// Cells that a taught job may be in.
    fn allowed(&self, (job, core): (u32, Option<u16>)) -> Range<usize> {
        let first = job as usize * usize::from(self.cores);
        core.map_or(first..first + usize::from(self.cores), |core| {
            first + usize::from(core)..first + usize::from(core) + 1
        })
    }

    /// What is added to a job's output in each cell: the price of a migration, and the output of idling, which is below
    /// that of every job by more than a migration, as in the deployed mapping of a model that never idles.
    fn offsets(&self, q: &[f32], migration: f64) -> impl Iterator<Item = f32> {
        let least = self.jobs.iter().map(|(row, _)| q[*row as usize]).fold(f32::INFINITY, f32::min);
        let idle = f64::from(least) - migration - 1.0;
        self.jobs.iter().flat_map(move |(_, last)| {
            (0..self.cores).map(move |core| {
                let moves = last.is_some_and(|last| last != core);
                (-idle - if moves { migration } else { 0.0 }) as f32
            })
        })
    }

    /// Loss of one decision, times `share`, from the logarithms of the plan. Writes the gradient to `slopes`.
    fn loss(&self, logs: &[f32], share: f64, slopes: &mut [f32]) -> f64 {
        let share = share / self.taught.len().max(1) as f64;
        let mut loss = 0.0;
        for taught in &self.taught {
            let cells = self.allowed(*taught);
            let most = logs[cells.clone()].iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let powers: Vec<f64> = logs[cells.clone()].iter().map(|log| f64::from(log - most).exp()).collect();
            let sum: f64 = powers.iter().sum();
            loss -= share * (f64::from(most) + sum.ln());
            slopes[cells].iter_mut().zip(powers).for_each(|(slope, power)| *slope -= (share * power / sum) as f32);
        }
        loss
    }
}

/// Loss of some decisions, each times `share`, with its gradient with respect to the plans.
pub(crate) fn matching_loss<D: Device>(
    settings: &MatchingSettings,
    tape: &mut Tape<'_, D>,
    q: Var,
    rows: &OutputRows,
    taught: &[&TaughtMatching],
    share: f64,
) -> (Loss<D>, f64) {
    let values = tape.values(q);
    let narrowed = taught.iter().zip(rows.segments.ranges()).map(|(taught, range)| taught.narrowed(&values[range]));
    let taught: Vec<TaughtMatching> = narrowed.collect();
    let plan = log_plans(settings, tape, q, rows, &taught);
    let logs = tape.values(plan);
    let mut slopes = vec![0.0; logs.len()];
    let (mut loss, mut first) = (0.0, 0);
    for own in &taught {
        let cells = first..first + own.jobs.len() * usize::from(own.cores);
        loss += own.loss(&logs[cells.clone()], share, &mut slopes[cells.clone()]);
        first = cells.end;
    }
    (tape.loss(plan, loss, &slopes), loss)
}

/// Puts the logarithms of the plans of some decisions on the tape, one decision after the other, by job and then by
/// core.
fn log_plans<D: Device>(
    settings: &MatchingSettings,
    tape: &mut Tape<'_, D>,
    q: Var,
    rows: &OutputRows,
    taught: &[TaughtMatching],
) -> Var {
    let values = tape.values(q);
    let (mut from, mut offsets, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
    for (own, range) in taught.iter().zip(rows.segments.ranges()) {
        let cores = usize::from(own.cores);
        from.extend(own.jobs.iter().flat_map(|(row, _)| std::iter::repeat_n(range.start as u32 + row, cores)));
        offsets.extend(own.offsets(&values[range], settings.migration));
        shapes.push(MatchingShape {
            rows: own.jobs.len(),
            columns: cores,
            temperature: settings.temperature,
            iterations: settings.iterations,
        });
    }
    let numbers = tape.numbers(&from);
    let outputs = tape.gather(q, &numbers);
    let offsets = tape.input(from.len(), 1, &offsets);
    let gains = tape.add(outputs, offsets);
    tape.log_sinkhorn(gains, &Arc::from(shapes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet::stages::Sinkhorn;
    use temponet_grad::{Cpu, Segments, Tensors};

    /// Three jobs on two cores; the second one last ran on the second core, and stays there.
    fn taught() -> TaughtMatching {
        let jobs = vec![(1, None), (2, Some(1)), (2, Some(0))];
        TaughtMatching { jobs, taught: vec![(0, None), (1, Some(1))], cores: 2 }
    }

    fn with_plans<T>(q: &[f32], check: impl FnOnce(&mut Tape<'_, Cpu>, Var, &OutputRows) -> T) -> T {
        let (mut device, parameters) = (Cpu::default(), Tensors::default());
        let mut tape = Tape::new(&mut device, &parameters);
        let q = tape.input(q.len(), 1, q);
        let segments = Arc::new(Segments::of_lengths([3, 3]));
        let rows = OutputRows { rows: (0..6).collect(), segments, counts: vec![1, 2, 1, 2], speeds: Vec::new() };
        check(&mut tape, q, &rows)
    }

    #[test]
    fn the_plan_is_that_of_the_deployed_mapping() {
        let settings = MatchingSettings { temperature: 0.2, iterations: 20, migration: 0.1 };
        let q = [0.0, 0.3, 0.5, 9.0, -0.2, 0.4];
        let own = taught();
        let logs = with_plans(&q, |tape, q, rows| {
            let plans = log_plans(&settings, tape, q, rows, &[own.clone(), own.clone()]);
            tape.values(plans)
        });
        for (place, logs) in logs.chunks_exact(6).enumerate() {
            let q = &q[3 * place..][..3];
            let row = own.jobs.iter().flat_map(|(row, _)| [q[*row as usize]; 2]);
            let gains: Vec<f32> = row.zip(own.offsets(q, settings.migration)).map(|(q, offset)| q + offset).collect();
            let mut sinkhorn = Sinkhorn::default();
            let plan = sinkhorn.plan(&gains, 2, settings.temperature as f32, settings.iterations);
            for (log, share) in logs.iter().zip(plan) {
                assert!((log.exp() - share).abs() < 1e-4, "{} {share}", log.exp());
            }
        }
    }

    #[test]
    fn the_best_jobs_and_those_that_were_taught_take_part() {
        let jobs: Vec<(u32, Option<u16>)> = (1..=9).map(|row| (row, None)).collect();
        let own = TaughtMatching { jobs, taught: vec![(7, None), (2, Some(1))], cores: 2 };
        // Rows 3, 1, 6 and 4 are best. Jobs are counted from 0, rows from 1.
        let narrow = own.narrowed(&[99.0, 8.0, 0.0, 9.0, 5.0, 1.0, 6.0, 2.0, 0.5, 3.0]);
        assert_eq!(narrow.jobs.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [1, 3, 4, 6, 8]);
        assert_eq!(narrow.taught, [(4, None), (1, Some(1))]);
    }

    #[test]
    fn the_loss_falls_with_the_mass_of_what_was_taught_and_its_slopes_are_right() {
        let own = taught();
        let logs = [-0.5f32, -1.0, -3.0, -0.2, -2.0, -2.5];
        let mut slopes = [0.0; 6];
        let loss = own.loss(&logs, 1.0, &mut slopes);
        let expected = -0.5 * (((-0.5f64).exp() + (-1.0f64).exp()).ln() + -0.2);
        assert!((loss - expected).abs() < 1e-6, "{loss} {expected}");
        for place in 0..6 {
            let at = |step: f32| {
                let mut moved = logs;
                moved[place] += step;
                own.loss(&moved, 1.0, &mut [0.0; 6])
            };
            let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((slope - f64::from(slopes[place])).abs() < 1e-4, "{place}: {slope} {}", slopes[place]);
        }
    }
}
