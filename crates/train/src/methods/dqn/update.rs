//! One update of Q-learning: targets, errors and gradients of a batch from the replay buffer.

use rand_pcg::Pcg64;
use temponet_grad::{Device, LearningLosses, NStepReturn, NextStates, QValueBatch, SelectedRows, Tape, Tensors};

use super::Dqn;
use crate::learner::{Learner, NeededRowsOf, PendingUpdate, ShardOutput};
use crate::methods::speeds::{AtBestSpeed, NeededRuns};
use crate::replay_buffer::{ReplayBatch, Transition};
use crate::sample::{Batch, Sample};
use crate::tape_network::{OutputRows, TapeNetwork};
use crate::updates::StepSize;

/// Result of a backward pass.
struct Errors<D: Device> {
    /// Losses that the device may still be computing.
    losses: Vec<D::Number>,
    /// Loss that is known already.
    known: f64,
    /// Error of each transition, which decides its priority; empty if there are no priorities.
    errors: Vec<f32>,
}

impl<D: LearningLosses> Dqn<D> {
    /// Makes one update on a batch from the replay buffer, and moves the target network. It does not wait for the
    /// device, except for the temporal-difference errors that priorities need, and for a network with atoms.
    pub fn update(&mut self, learner: &mut Learner<D>, rng: &mut Pcg64, size: StepSize) -> PendingUpdate<D> {
        let draw = self.replay.draw(self.settings.replay.batch, 1.0, rng);
        if let Some(variant) = &mut self.variant {
            variant.perturb(learner, Some(&mut self.target), rng);
        }
        let Errors { losses, known, errors } = self.gradients(learner, &draw);
        let share = self.settings.replay.target_share as f32;
        if let Some(variant) = &mut self.variant {
            variant.restore(learner, Some((&mut self.target, size, share)));
        }
        let update = learner.step(losses, size).plus(known);
        learner.blend_into(&mut self.target, share);
        for (place, error) in draw.places.into_iter().zip(errors) {
            self.replay.set_td_error(place, f64::from(error));
        }
        update
    }

    /// Computes the gradients of the Q-values' errors, or what a variant computes in their place.
    fn gradients(&self, learner: &mut Learner<D>, draw: &ReplayBatch) -> Errors<D> {
        let settings = &self.settings;
        let transitions: Vec<&Transition> = draw.places.iter().map(|place| self.replay.get(*place)).collect();
        let states: Vec<&Sample> = transitions.iter().map(|transition| &*transition.state).collect();
        let weights: Vec<f32> = draw.weights.iter().map(|weight| weight / settings.replay.batch as f32).collect();
        let variant = self.variant.as_ref();
        let found = variant.and_then(|own| own.gradients(learner, &self.target, settings, &transitions, &weights));
        if let Some((known, errors)) = found {
            return Errors { losses: Vec::new(), known, errors };
        }
        let likelihood = settings.conservative as f32;
        // The penalty needs the outputs of all rows, the temporal-difference error only those of the rows that ran.
        let needs_all_rows = likelihood > 0.0;
        let needed = NeededRuns::of(&transitions);
        let [rows, chosen] =
            [&needed.rows, &needed.chosen].map(|lists| lists.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let chosen = if needs_all_rows { transitions.iter().map(|own| &own.chosen[..]).collect() } else { chosen };
        let speeds: Vec<&[u8]> = needed.speeds.iter().map(Vec::as_slice).collect();
        let has_speeds = learner.network.architecture.speeds() > 0;
        let selected = NeededRowsOf { rows: &rows, speeds: has_speeds.then_some(&speeds[..]) };
        let selected = if needs_all_rows { None } else { Some(selected) };
        let targets = learner.each_shard(&states, |device, network, parameters, range| {
            self.targets(device, network, parameters, &transitions[range])
        });
        let found = learner.backward(&states, selected, |tape, ShardOutput { shard, range, rows, output }| {
            let values = QValueBatch {
                selected: SelectedRows::new(&rows.segments, &rows.counts, chosen[range.clone()].iter().copied()),
                weights: &weights[range],
                is_dueling: settings.dueling,
                bound: settings.huber.map(|bound| bound as f32),
                likelihood,
            };
            let (losses, total, errors) = tape.q_value_loss(output.q, output.value, &targets[shard], &values);
            (losses, (total, errors))
        });
        let (losses, errors): (Vec<D::Number>, Vec<D::Buffer>) = found.into_iter().unzip();
        let is_prioritized = settings.priority > 0.0;
        let errors = errors.iter().filter(|_| is_prioritized).flat_map(|errors| learner.download(errors)).collect();
        Errors { losses, known: 0.0, errors }
    }

    /// Computes the target of each transition on a device: reward plus discounted value of the best next action.
    fn targets(
        &self,
        device: &mut D,
        network: &TapeNetwork,
        parameters: &Tensors<D>,
        transitions: &[&Transition],
    ) -> D::Buffer {
        let next: Vec<&Sample> = transitions.iter().map(|transition| &*transition.next).collect();
        let has_speeds = network.architecture.speeds() > 0;
        let batch = Batch::of(&next);
        let rows = OutputRows::all(&batch);
        let chooser = (self.settings.double && !has_speeds).then(|| {
            let mut tape = Tape::new(device, parameters);
            let output = network.forward(&mut tape, &batch, &rows);
            tape.keep(output.q)
        });
        // With speeds, each row counts at its best speed, which the chooser picks.
        let at_speeds = (self.settings.double && has_speeds).then(|| {
            let mut tape = Tape::new(device, parameters);
            let output = network.forward(&mut tape, &batch, &rows);
            AtBestSpeed::of(&mut tape, &output, &batch, None)
        });
        let way = |transition: &&Transition| NStepReturn {
            places: transition.next.cores,
            reward: transition.reward,
            discount: transition.discount,
        };
        let ahead = NextStates {
            rows: &batch.segments,
            counts: &batch.counts,
            returns: &transitions.iter().map(way).collect::<Vec<_>>(),
            is_dueling: self.settings.dueling,
            may_idle: self.settings.may_idle,
        };
        let mut target_tape = Tape::new(device, &self.target);
        let output = network.forward(&mut target_tape, &batch, &rows);
        let (mut q, mut chooser) = (output.q, chooser);
        if has_speeds {
            let judged = AtBestSpeed::of(&mut target_tape, &output, &batch, at_speeds.as_ref());
            q = target_tape.input(judged.q.len(), 1, &judged.q);
            chooser = at_speeds.map(|chosen| target_tape.device().upload(&chosen.q));
        }
        let targets = target_tape.bootstrap_targets(&ahead, chooser.as_ref(), q, output.value);
        drop(target_tape);
        chooser.into_iter().for_each(|chooser| device.recycle(chooser));
        targets
    }
}
