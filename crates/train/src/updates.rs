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

/// Updates of one phase.
pub struct Updates<'a, D: Device> {
    plan: UpdatePlan,
    observer: &'a mut dyn TrainingObserver,
    /// Learning rates handed out in this phase.
    requested: u64,
    /// Updates reported in this phase.
    reported: u64,
    loss_sum: f64,
    norm_sum: f64,
    pending: Option<PendingUpdate<D>>,
}

impl<'a, D: Device> Updates<'a, D> {
    /// No updates so far.
    pub fn new(plan: UpdatePlan, observer: &'a mut dyn TrainingObserver) -> Updates<'a, D> {
        Updates { plan, observer, requested: 0, reported: 0, loss_sum: 0.0, norm_sum: 0.0, pending: None }
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

    /// Reports a finished update. Fails if the device failed or if a figure is not finite.
    pub fn report(&mut self, learner: &Learner<D>, figures: UpdateFigures) -> Result<(), TrainError> {
        if let Some(failure) = learner.failure() {
            return Err(TrainError::Device(failure));
        }
        let UpdatePlan { stage, phase, first, total, .. } = self.plan;
        for (what, value) in [("loss", figures.loss), ("gradient's norm", figures.norm)] {
            if !value.is_finite() {
                return Err(TrainError::Diverged { stage, phase, what, value });
            }
        }
        self.reported += 1;
        self.loss_sum += figures.loss;
        self.norm_sum += figures.norm;
        self.observer.updated(stage, first + self.reported, total, figures);
        Ok(())
    }

    /// Returns the mean loss and the mean gradient norm of the updates reported so far; zeros if there was none.
    pub fn means(&self) -> UpdateFigures {
        let count = self.reported.max(1) as f64;
        UpdateFigures { loss: self.loss_sum / count, norm: self.norm_sum / count }
    }
}
