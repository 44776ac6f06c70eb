//! The linear relaxation of "maximize the weight of the jobs in time", and a good set of jobs near its solution.

use super::flow_network::FlowNetwork;
use super::{OracleJob, WHOLE};

/// A solution of the relaxation.
pub(super) struct Relaxation {
    /// Upper bound on the weight of any set of jobs.
    pub upper: f64,
    /// Share of each job that is done, from 0 to 1.
    pub share: Vec<f64>,
    pub network: FlowNetwork,
}

/// Returns the jobs by descending weight per work.
pub(super) fn by_density(jobs: &[OracleJob]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    let density = |job: &OracleJob| job.weight / job.execution.0 as f64;
    order.sort_by(|a, b| {
        density(&jobs[*b]).total_cmp(&density(&jobs[*a])).then(jobs[*a].deadline.cmp(&jobs[*b].deadline))
    });
    order
}

/// Solves the relaxation with some jobs fixed. Returns none if the taken jobs cannot be done together. It takes about
/// `steps` steps; if they do not suffice, the prices found so far still give a bound.
pub(super) fn relax(
    jobs: &[OracleJob],
    cores: usize,
    order: &[usize],
    fixed: &[Fixed],
    steps: u64,
) -> Option<Relaxation> {
    relax_with(jobs, (cores as u64, 1), order, fixed, steps)
}

/// Like [`relax`], with a number of cores that need not be whole, as a fraction.
pub(super) fn relax_with(
    jobs: &[OracleJob],
    capacity: (u64, u64),
    order: &[usize],
    fixed: &[Fixed],
    steps: u64,
) -> Option<Relaxation> {
    let mut network = FlowNetwork::with_capacity(jobs, capacity);
    let cores = (capacity.0 / capacity.1) as usize;
    network.reach = (steps / (jobs.len() * (cores + 2)) as u64).clamp(64, 1 << 40) as usize;
    let mut share = vec![0.0; jobs.len()];
    let mut upper = 0.0;
    for index in order.iter().copied().filter(|index| fixed[*index] == Fixed::Taken) {
        let work = jobs[index].execution.0;
        if network.push(index, work) < work {
            // If the search was cut short, the jobs might fit after all: the caller's bound stands.
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

/// What a branch has decided about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fixed {
    Free,
    Taken,
    LeftOut,
}

impl Relaxation {
    /// Returns the jobs that are done completely, which can be done together. Returns no job if the network is too
    /// coarse to tell.
    pub fn whole(&self) -> Vec<bool> {
        self.share.iter().map(|share| *share >= 1.0 && !self.network.is_coarse).collect()
    }

    /// Returns the jobs of [`Relaxation::whole`] and others that fit once the unfinished jobs are removed, within about
    /// `steps` steps; and the steps since the network was built. Returns no job if the network is too coarse to tell.
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

/// Greatest whole weight that an upper bound allows, with a tolerance for the rounding of sums.
pub(super) fn tighten(upper: f64, has_whole_weights: bool) -> f64 {
    let room = WHOLE + 1e-13 * upper.abs();
    if has_whole_weights { (upper + room).floor() } else { upper }
}

/// Whether a bound leaves room for a weight greater than the known one.
pub(super) fn beats(bound: f64, known: f64, has_whole_weights: bool) -> bool {
    match has_whole_weights {
        true => tighten(bound, true) > known,
        false => bound > known * (1.0 + 1e-12),
    }
}
