//! Distributional Q-learning (C51): the network has a distribution of returns for each choice, over fixed atoms.
//!
//! The logits of running a set of jobs are V + Σ (A_job − A_idle), atom by atom, as the Q-values of plain Q-learning
//! are. The target is the distribution of the best next choice, moved by the reward, shrunk by the discount, and
//! projected onto the atoms; the loss is the Kullback–Leibler divergence from it, which is also the priority of the
//! transition. Everything here runs on the processor, whatever the device of the network.
//!
//! Paper: Bellemare et al., "A Distributional Perspective on Reinforcement Learning" (2017), with dueling logits as in
//! Hessel et al., "Rainbow: Combining Improvements in Deep Reinforcement Learning" (2018). Deviations:
//! - A return is counted per core, so that one support fits systems with any number of cores.
//! - On several cores, jobs are ranked by the mean return of running each alone. Means of softmaxes do not add up, so
//!   the set of the best jobs need not be the set with the best mean; on one core it is.
//! - The advantages count relative to idling, not to their mean.

use temponet_grad::{Device, Tape, Tensors, best_rows};
use temponet_infer::Atoms;
use temponet_train::returns::{choice_logits, mean_returns};
use temponet_train::{
    Batch, Learner, NeededRowsOf, NeededRuns, OutputRows, Sample, ShardOutput, TapeNetwork, Transition,
};

/// Softmax of some logits.
fn probabilities(logits: &[f32]) -> Vec<f64> {
    let most = logits.iter().fold(f64::NEG_INFINITY, |most, logit| most.max(f64::from(*logit)));
    let powers: Vec<f64> = logits.iter().map(|logit| (f64::from(*logit) - most).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.iter().map(|power| power / total).collect()
}

/// Distribution of reward + discount · Z on the atoms, where Z has these probabilities. What lies beyond the last atom
/// counts as the last; what lies between two is divided between them by nearness.
fn project(atoms: Atoms, probabilities: &[f64], reward: f64, discount: f64) -> Vec<f64> {
    let mut projected = vec![0.0; atoms.count];
    let last = (atoms.count - 1) as f64;
    for (atom, probability) in probabilities.iter().enumerate() {
        let moved = reward + discount * atoms.value(atom);
        let place = ((moved - f64::from(atoms.low)) / atoms.step()).clamp(0.0, last);
        let below = place.floor();
        projected[below as usize] += probability * (1.0 - (place - below));
        if place > below {
            projected[below as usize + 1] += probability * (place - below);
        }
    }
    projected
}

/// Loss of one sample: the divergence of its choice's distribution from `target`, times `weight`. Writes the gradients
/// to `by_q` and `by_value`, and returns the divergence without the weight.
fn divergence(
    (q, value): (&[f32], &[f32]),
    picked: &[u32],
    target: &[f64],
    weight: f64,
    (by_q, by_value): (&mut [f32], &mut [f32]),
) -> f64 {
    let own = probabilities(&choice_logits(q, value, picked));
    let slopes: Vec<f32> = own.iter().zip(target).map(|(own, target)| (weight * (own - target)) as f32).collect();
    by_q.fill(0.0);
    by_value.copy_from_slice(&slopes);
    let (idle, jobs) = by_q.split_at_mut(slopes.len());
    for row in picked {
        let job = &mut jobs[(*row as usize - 1) * slopes.len()..][..slopes.len()];
        job.iter_mut().zip(&slopes).for_each(|(by_q, slope)| *by_q += *slope);
        idle.iter_mut().zip(&slopes).for_each(|(by_q, slope)| *by_q -= *slope);
    }
    let terms = own.iter().zip(target).filter(|(_, target)| **target > 0.0);
    terms.map(|(own, target)| target * (target.ln() - own.max(f64::MIN_POSITIVE).ln())).sum()
}

/// How the best next choice is found and valued.
#[derive(Clone, Copy)]
pub(super) struct NextChoice {
    /// Whether the network itself picks the choice and the target network only values it.
    pub double: bool,
    /// Whether cores may stay idle while jobs wait.
    pub may_idle: bool,
}

/// Computes the target distribution of each transition.
fn targets<D: Device>(
    device: &mut D,
    network: &TapeNetwork,
    (atoms, how): (Atoms, NextChoice),
    (own, target): (&Tensors<D>, &Tensors<D>),
    transitions: &[&Transition],
) -> Vec<Vec<f64>> {
    let next: Vec<&Sample> = transitions.iter().map(|transition| &*transition.next).collect();
    let batch = Batch::of(&next);
    let rows = OutputRows::all(&batch);
    let mut outputs = |parameters: &Tensors<D>| {
        let mut tape = Tape::new(device, parameters);
        let output = network.forward(&mut tape, &batch, &rows);
        (tape.values(output.q), tape.values(output.value))
    };
    let judge = outputs(target);
    let chooser = how.double.then(|| outputs(own));
    let chooser = chooser.as_ref().unwrap_or(&judge);
    let one = |(sample, (transition, range)): (usize, (&&Transition, std::ops::Range<usize>))| {
        let part = |(q, value): &(Vec<f32>, Vec<f32>)| {
            let own = |numbers: &[f32], range: std::ops::Range<usize>| {
                numbers[range.start * atoms.count..range.end * atoms.count].to_vec()
            };
            (own(q, range.clone()), own(value, sample..sample + 1))
        };
        let (q, value) = part(chooser);
        let means = mean_returns(atoms, &q, &value);
        let threshold = if how.may_idle { means[0] } else { f32::NEG_INFINITY };
        let best = best_rows(&means, &transition.next.counts, transition.next.cores, threshold);
        let (q, value) = part(&judge);
        let next = probabilities(&choice_logits(&q, &value, &best));
        let reward = f64::from(transition.reward) / f64::from(transition.next.cores.max(1));
        project(atoms, &next, reward, f64::from(transition.discount))
    };
    transitions.iter().zip(batch.segments.ranges()).enumerate().map(one).collect()
}

/// Computes the gradients of a learner on some transitions, whose losses have these weights. Returns the loss and the
/// divergence of each transition.
pub(super) fn learn<D: Device>(
    learner: &mut Learner<D>,
    target: &Tensors<D>,
    (atoms, how): (Atoms, NextChoice),
    transitions: &[&Transition],
    weights: &[f32],
) -> (f64, Vec<f32>) {
    let states: Vec<&Sample> = transitions.iter().map(|transition| &*transition.state).collect();
    let NeededRuns { rows, chosen, .. } = NeededRuns::of(transitions);
    let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    let targets = learner.each_shard(&states, |device, network, own, range| {
        targets(device, network, (atoms, how), (own, target), &transitions[range])
    });
    let needed = Some(NeededRowsOf { rows: &rows, speeds: None });
    let found = learner.backward(&states, needed, |tape, ShardOutput { shard, range, rows, output }| {
        let (q, value) = (tape.values(output.q), tape.values(output.value));
        let (mut by_q, mut by_value) = (vec![0.0; q.len()], vec![0.0; value.len()]);
        let mut errors = Vec::with_capacity(range.len());
        let mut loss = 0.0;
        for (place, sample) in range.enumerate() {
            let all = |rows: std::ops::Range<usize>| rows.start * atoms.count..rows.end * atoms.count;
            let (rows, own) = (all(rows.segments.range(place)), all(place..place + 1));
            let slopes = (&mut by_q[rows.clone()], &mut by_value[own.clone()]);
            let (target, weight) = (&targets[shard][place], f64::from(weights[sample]));
            let error = divergence((&q[rows], &value[own]), &chosen[sample], target, weight, slopes);
            loss += weight * error;
            errors.push(error as f32);
        }
        (vec![tape.loss(output.q, loss, &by_q), tape.loss(output.value, 0.0, &by_value)], (loss, errors))
    });
    let loss = found.iter().map(|(loss, _)| loss).sum();
    (loss, found.into_iter().flat_map(|(_, errors)| errors).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATOMS: Atoms = Atoms { count: 5, low: -2, high: 2 };

    #[test]
    fn a_projection_keeps_the_mean_within_the_atoms() {
        let mean = |p: &[f64]| p.iter().enumerate().map(|(atom, p)| p * ATOMS.value(atom)).sum::<f64>();
        let p = [0.1, 0.2, 0.3, 0.3, 0.1];
        for (reward, discount) in [(0.0, 1.0), (0.3, 0.5), (-0.7, 0.6), (1.0, 0.0)] {
            let moved = project(ATOMS, &p, reward, discount);
            assert!((moved.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!((mean(&moved) - reward - discount * mean(&p)).abs() < 1e-12, "{reward} {discount}");
        }
        let beyond = project(ATOMS, &p, 9.0, 1.0);
        assert!(beyond[..4] == [0.0; 4] && (beyond[4] - 1.0).abs() < 1e-12, "{beyond:?}");
    }

    /// Numbers and steps are multiples of 2⁻¹², so that sums of them are exact in single precision.
    #[test]
    fn the_gradients_of_a_divergence_are_right() {
        const STEP: f32 = 1.0 / 4096.0;
        let (rows, picked, weight) = (4, [2, 3], 0.25);
        let target = [0.05, 0.0, 0.6, 0.3, 0.05];
        let number = |place: usize| ((place as f32 * 0.83).sin() / STEP).round() * STEP;
        let numbers: Vec<f32> = (0..(rows + 1) * ATOMS.count).map(number).collect();
        let loss = |numbers: &[f32], by_q: &mut [f32], by_value: &mut [f32]| {
            weight * divergence(numbers.split_at(rows * ATOMS.count), &picked, &target, weight, (by_q, by_value))
        };
        let (mut by_q, mut by_value) = (vec![0.0; rows * ATOMS.count], vec![0.0; ATOMS.count]);
        loss(&numbers, &mut by_q, &mut by_value);
        let mut unused = (by_q.clone(), by_value.clone());
        for (place, gradient) in by_q.iter().chain(&by_value).enumerate() {
            let mut at = |step: f32| {
                let mut moved = numbers.clone();
                moved[place] += step;
                loss(&moved, &mut unused.0, &mut unused.1)
            };
            let slope = (at(STEP) - at(-STEP)) / (2.0 * f64::from(STEP));
            assert!((slope - f64::from(*gradient)).abs() < 1e-7, "{place}: {gradient} and not {slope}");
        }
    }
}
