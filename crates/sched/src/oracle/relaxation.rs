//! The linear relaxation of "as much weight in time as possible", and a good set of jobs near its solution.

use super::network::Network;
use super::{OracleJob, WHOLE};

/// What a relaxation says.
pub(super) struct Relaxation {
    /// No set of jobs has more weight.
    pub upper: f64,
    /// The share of each job that is done.
    pub share: Vec<f64>,
    pub network: Network,
}

/// Jobs by descending weight per work.
pub(super) fn by_density(jobs: &[OracleJob]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    let density = |job: &OracleJob| job.weight / job.execution.0 as f64;
    order.sort_by(|a, b| density(&jobs[*b]).total_cmp(&density(&jobs[*a])).then(jobs[*a].deadline.cmp(&jobs[*b].deadline)));
    order
}

/// Solves it with some jobs fixed: those `taken` are done wholly, those `left_out` not at all. None if the taken ones cannot be done
/// together.
pub(super) fn relax(jobs: &[OracleJob], cores: usize, order: &[usize], fixed: &[Fixed]) -> Option<Relaxation> {
    let mut network = Network::new(jobs, cores);
    let mut share = vec![0.0; jobs.len()];
    let mut upper = 0.0;
    for index in order.iter().copied().filter(|index| fixed[*index] == Fixed::Taken) {
        let work = jobs[index].execution.0;
        if network.push(index, work) < work {
            return None;
        }
        share[index] = 1.0;
        upper += jobs[index].weight;
    }
    for index in order.iter().copied().filter(|index| fixed[*index] == Fixed::Free) {
        let work = jobs[index].execution.0;
        let done = network.push(index, work);
        if done < work {
            network.close_seen(jobs[index].weight / work as f64);
        }
        share[index] = done as f64 / work as f64;
        upper += jobs[index].weight * share[index];
    }
    Some(Relaxation { upper, share, network })
}

/// What is known about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fixed {
    Free,
    Taken,
    LeftOut,
}

impl Relaxation {
    /// The jobs that are done wholly, which can be done together.
    pub fn whole(&self) -> Vec<bool> {
        self.share.iter().map(|share| *share >= 1.0).collect()
    }

    /// Those, and whoever else fits once the unfinished ones make room; at most so many steps.
    pub fn rounded(mut self, jobs: &[OracleJob], order: &[usize], fixed: &[Fixed], steps: u64) -> (Vec<bool>, u64) {
        let mut chosen = self.whole();
        let network = &mut self.network;
        for (index, chosen) in chosen.iter().enumerate() {
            if !chosen {
                network.withdraw(index);
            }
        }
        network.reopen();
        let limit = network.steps + steps;
        for index in order {
            if chosen[*index] || fixed[*index] == Fixed::LeftOut || network.steps > limit {
                continue;
            }
            let work = jobs[*index].execution.0;
            if network.push(*index, work) == work {
                chosen[*index] = true;
            } else {
                network.withdraw(*index);
            }
        }
        (chosen, network.steps)
    }
}

/// The greatest whole weight that an upper bound allows.
pub(super) fn tighten(upper: f64, has_whole_weights: bool) -> f64 {
    if has_whole_weights { (upper + WHOLE).floor() } else { upper }
}
