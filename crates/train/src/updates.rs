//! Bookkeeping around the updates of a phase: the learning rate of the next one, the report of a finished one, and the
//! check for divergence.
//!
//! An update may still be under way on the device when the next one is prepared. [`Updates::queue`] therefore reports
//! an update only when its successor is queued, and [`Updates::flush`] reports the last one.

use temponet_grad::{Device, Schedule};

use crate::error::TrainError;
use crate::learner::{Learner, PendingUpdate, UpdateFigures};
use crate::observer::TrainingObserver;

/// Size of one optimizer step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepSize {
    /// Learning rate.
    pub rate: f64,
    /// Greatest norm of the gradient; a longer gradient is scaled down to it.
    pub clip: f64,
}

/// Updates that a phase may make: their learning rates, and where the phase stands in its stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdatePlan {
    /// Number of the stage, counted from 1.
    pub stage: usize,
    /// Number of the phase in its stage, counted from 1.
    pub phase: u64,
    /// Updates planned for the earlier phases of the stage.
    pub first: u64,
    /// Updates planned for the whole stage.
    pub total: u64,
    /// Learning rate before the schedule, and the clipping norm.
    pub size: StepSize,
    /// Schedule of the learning rate over the stage.
    pub schedule: Schedule,
    /// Updates at the start of the stage during which the learning rate rises linearly.
    pub warm_up: u64,
}

impl UpdatePlan {
    /// Plan with a constant learning rate, for updates outside a training run.
    pub fn constant(size: StepSize) -> UpdatePlan {
        UpdatePlan { stage: 1, phase: 1, first: 0, total: 1, size, schedule: Schedule::Constant, warm_up: 0 }
    }
}

/// Updates that are not finite, one after the other, after which a training has diverged. A gradient that overflows
/// leaves the weights as they are, and the next batch is another one; weights that went astray stay so.
const HOPELESS: u64 = 10;

/// What the updates of a phase were in the mean.
#[derive(Clone, Copy, Debug, Default)]
pub struct PhaseMeans {
    /// Means over the updates that were made.
    pub updates: UpdateFigures,
    /// Number of updates that were left out.
    pub skipped: u64,
}

/// Updates of one phase.
pub struct Updates<'a, D: Device> {
    plan: UpdatePlan,
    observer: &'a mut dyn TrainingObserver,
    /// Learning rates handed out in this phase.
    requested: u64,
    /// Updates reported in this phase, those left out not counted.
    reported: u64,
    /// Updates left out in this phase, because they were not finite.
    skipped: u64,
    /// How many of these came last, one after the other, and what was wrong with the last one.
    astray: (u64, Option<TrainError>),
    loss_sum: f64,
    norm_sum: f64,
    pending: Option<PendingUpdate<D>>,
}

impl<'a, D: Device> Updates<'a, D> {
    /// No updates so far.
    pub fn new(plan: UpdatePlan, observer: &'a mut dyn TrainingObserver) -> Updates<'a, D> {
        let (requested, reported, skipped, astray) = (0, 0, 0, (0, None));
        let (loss_sum, norm_sum, pending) = (0.0, 0.0, None);
        Updates { plan, observer, requested, reported, skipped, astray, loss_sum, norm_sum, pending }
    }

    /// Returns the step size of the next update.
    pub fn next_size(&mut self) -> StepSize {
        let UpdatePlan { first, total, size, schedule, warm_up, .. } = self.plan;
        let rate = size.rate * schedule.factor(first + self.requested, total, warm_up);
        self.requested += 1;
        StepSize { rate, ..size }
    }

    /// Takes an update that the device may still be computing, and reports the one before it.
    pub fn queue(&mut self, learner: &Learner<D>, update: PendingUpdate<D>) -> Result<(), TrainError> {
        match self.pending.replace(update) {
            Some(earlier) => self.report(learner, learner.figures(&earlier)),
            None => Ok(()),
        }
    }

    /// Waits for the update queued last and reports it.
    pub fn flush(&mut self, learner: &Learner<D>) -> Result<(), TrainError> {
        match self.pending.take() {
            Some(last) => self.report(learner, learner.figures(&last)),
            None => Ok(()),
        }
    }

    /// Reports a finished update. One whose loss or gradient is not finite is only counted; optimizers change nothing by
    /// such a gradient. Fails if the device failed, or if ten updates in a row were not finite.
    pub fn report(&mut self, learner: &Learner<D>, figures: UpdateFigures) -> Result<(), TrainError> {
        if let Some(failure) = learner.failure() {
            return Err(TrainError::Device(failure));
        }
        let UpdatePlan { stage, phase, first, total, .. } = self.plan;
        let parts = [("loss", figures.loss), ("gradient's norm", figures.norm)];
        if let Some((what, value)) = parts.into_iter().find(|(_, value)| !value.is_finite()) {
            self.skipped += 1;
            self.astray = (self.astray.0 + 1, Some(TrainError::Diverged { stage, phase, what, value }));
            return if self.astray.0 < HOPELESS { Ok(()) } else { self.astray.1.take().map_or(Ok(()), Err) };
        }
        self.astray = (0, None);
        self.reported += 1;
        self.loss_sum += figures.loss;
        self.norm_sum += figures.norm;
        self.observer.updated(stage, first + self.reported + self.skipped, total, figures);
        Ok(())
    }

    /// Ends the phase. Returns the mean loss and the mean gradient norm of its updates, zeros if there was none, and how
    /// many were left out. Fails if its last update was not finite: nobody knows whether the weights that it leaves are
    /// good, and a phase can have few updates.
    pub fn finish(self) -> Result<PhaseMeans, TrainError> {
        if let Some(error) = self.astray.1 {
            return Err(error);
        }
        let count = self.reported.max(1) as f64;
        let updates = UpdateFigures { loss: self.loss_sum / count, norm: self.norm_sum / count };
        Ok(PhaseMeans { updates, skipped: self.skipped })
    }
}

#[cfg(test)]
mod tests {
    use temponet::stages::Tokenizer;
    use temponet_grad::{AdamSettings, Cpu};
    use temponet_infer::Weights;

    use super::*;
    use crate::network_shape::NetworkShape;
    use crate::observer::NoObserver;

    #[test]
    fn an_update_that_is_not_finite_is_left_out_and_ten_in_a_row_are_a_divergence() {
        let architecture = NetworkShape::default().architecture(&Tokenizer::paper());
        let weights = Weights::random(architecture, 1);
        let learner = Learner::new(Cpu::default(), &weights, AdamSettings::default());
        let mut observer = NoObserver;
        let mut updates = Updates::new(UpdatePlan::constant(StepSize { rate: 1e-3, clip: 1.0 }), &mut observer);
        let (good, bad) = (UpdateFigures { loss: 2.0, norm: 4.0 }, UpdateFigures { loss: f64::NAN, norm: 1.0 });
        for _ in 0..3 {
            (1..HOPELESS).for_each(|_| updates.report(&learner, bad).unwrap());
            updates.report(&learner, good).unwrap();
        }
        let PhaseMeans { updates: means, skipped } = updates.finish().unwrap();
        assert_eq!((means.loss, means.norm, skipped), (2.0, 4.0, 3 * (HOPELESS - 1)));
        let plan = UpdatePlan::constant(StepSize { rate: 1e-3, clip: 1.0 });
        let mut updates = Updates::new(plan, &mut observer);
        let infinite = UpdateFigures { loss: 1.0, norm: f64::INFINITY };
        (1..HOPELESS).for_each(|_| updates.report(&learner, infinite).unwrap());
        let error = updates.report(&learner, infinite).unwrap_err();
        assert!(matches!(error, TrainError::Diverged { what: "gradient's norm", .. }), "{error}");
        // A phase of few updates does not end with one that is not finite.
        let mut updates = Updates::new(plan, &mut observer);
        updates.report(&learner, good).unwrap();
        updates.report(&learner, bad).unwrap();
        assert!(matches!(updates.finish(), Err(TrainError::Diverged { what: "loss", .. })));
    }
}
