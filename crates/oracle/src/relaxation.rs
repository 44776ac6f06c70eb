//! The linear relaxation of "as much weight in time as possible", and a good set of jobs near its solution.

use super::flow_network::FlowNetwork;
use super::{OracleJob, WHOLE};

/// What a relaxation says.
pub(super) struct Relaxation {
    /// No set of jobs has more weight.
    pub upper: f64,
    /// The share of each job that is done.
    pub share: Vec<f64>,
    pub network: FlowNetwork,
}

/// Jobs by descending weight per work.
pub(super) fn by_density(jobs: &[OracleJob]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    let density = |job: &OracleJob| job.weight / job.execution.0 as f64;
    order.sort_by(|a, b| {
        density(&jobs[*b]).total_cmp(&density(&jobs[*a])).then(jobs[*a].deadline.cmp(&jobs[*b].deadline))
    });
    order
}

/// Solves it with some jobs fixed. None if the taken ones cannot be done together. It takes about `steps`; where they do not suffice for
/// the relaxation itself, its prices still give a bound.
pub(super) fn relax(
    jobs: &[OracleJob],
    cores: usize,
    order: &[usize],
    fixed: &[Fixed],
    steps: u64,
) -> Option<Relaxation> {
    let mut network = FlowNetwork::new(jobs, cores);
    network.reach = (steps / (jobs.len() * (cores + 2)) as u64).clamp(64, 1 << 40) as usize;
    let mut share = vec![0.0; jobs.len()];
    let mut upper = 0.0;
    for index in order.iter().copied().filter(|index| fixed[*index] == Fixed::Taken) {
        let work = jobs[index].execution.0;
        if network.push(index, work) < work {
            // If the search was cut short, they might fit after all: the caller's bound stands.
            return network.was_cut.then(|| Relaxation { upper: f64::INFINITY, share: vec![0.0; jobs.len()], network });
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
    if network.was_cut {
        let is_free = fixed.iter().all(|fixed| *fixed == Fixed::Free);
        upper = if is_free { network.dual_bound(jobs) } else { f64::INFINITY };
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
    /// The jobs that are done wholly, which can be done together; none if the network is too coarse to tell.
    pub fn whole(&self) -> Vec<bool> {
        self.share.iter().map(|share| *share >= 1.0 && !self.network.is_coarse).collect()
    }

    /// Those, and whoever else fits once the unfinished ones make room; at most so many steps. Nothing if the network is too coarse to
    /// tell. Also the steps since the network was built.
    pub fn rounded(mut self, jobs: &[OracleJob], order: &[usize], fixed: &[Fixed], steps: u64) -> (Vec<bool>, u64) {
        if self.network.is_coarse {
            return (vec![false; jobs.len()], self.network.steps);
        }
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

/// The greatest whole weight that an upper bound allows, with room for the rounding of sums.
pub(super) fn tighten(upper: f64, has_whole_weights: bool) -> f64 {
    let room = WHOLE + 1e-13 * upper.abs();
    if has_whole_weights { (upper + room).floor() } else { upper }
}

/// Whether a bound leaves room for anything better than a known weight.
pub(super) fn beats(bound: f64, known: f64, has_whole_weights: bool) -> bool {
    match has_whole_weights {
        true => tighten(bound, true) > known,
        false => bound > known * (1.0 + 1e-12),
    }
}
