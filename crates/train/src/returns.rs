//! Distributions of returns, as a network with atoms gives them: what a choice of jobs returns, and its mean.

use temponet_infer::Atoms;

/// Logits of running the rows `picked`: V + Σ (A_row − A_idle). `q` has one row of logits per row of the sample, the
/// idle row first.
pub fn choice_logits(q: &[f32], value: &[f32], picked: &[u32]) -> Vec<f32> {
    let atoms = value.len();
    let mut logits = value.to_vec();
    for row in picked {
        let own = &q[*row as usize * atoms..][..atoms];
        logits.iter_mut().zip(own.iter().zip(q)).for_each(|(logit, (own, idle))| *logit += *own - *idle);
    }
    logits
}

/// Mean returns of one sample: of idling, and of running each job alone.
pub fn mean_returns(atoms: Atoms, q: &[f32], value: &[f32]) -> Vec<f32> {
    let jobs = 1..(q.len() / atoms.count) as u32;
    let job = |row: u32| atoms.mean(&choice_logits(q, value, &[row]));
    std::iter::once(atoms.mean(value)).chain(jobs.map(job)).collect()
}
