//! Adam with decoupled weight decay, and learning-rate schedules.

use serde::{Deserialize, Serialize};

use crate::real::{double, rounded};
use crate::{AdamRates, Device, Tensors};

/// Schedule of the learning rate over a training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Constant.
    #[default]
    Constant,
    /// Linear decay to zero.
    Linear,
    /// Cosine decay to zero.
    Cosine,
}

impl Schedule {
    /// Factor on the learning rate at `step` of `steps`, 0 to 1. During the first `warm_up` steps it rises linearly.
    pub fn factor(self, step: u64, steps: u64, warm_up: u64) -> f64 {
        let rise = if step < warm_up { (step + 1) as f64 / warm_up as f64 } else { 1.0 };
        let done = (step.saturating_sub(warm_up) as f64 / steps.saturating_sub(warm_up).max(1) as f64).min(1.0);
        rise * match self {
            Schedule::Constant => 1.0,
            Schedule::Linear => 1.0 - done,
            Schedule::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * done).cos()),
        }
    }
}

/// Hyperparameters of Adam.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamSettings {
    /// Decay rate of the mean gradient. Default 0.9.
    pub beta1: f64,
    /// Decay rate of the mean squared gradient. Default 0.999.
    pub beta2: f64,
    /// Term added to the denominator, which keeps quotients finite. Default 1e-8.
    pub epsilon: f64,
    /// Decoupled weight decay: the fraction of a parameter that decays in a step, in units of the learning rate.
    /// Default 0.
    pub weight_decay: f64,
}

impl Default for AdamSettings {
    fn default() -> Self {
        AdamSettings { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }
    }
}

/// State of the Adam optimizer.
pub struct Adam<D: Device> {
    /// Hyperparameters.
    pub settings: AdamSettings,
    /// Number of steps done.
    pub steps: u64,
    /// Mean gradients (first moments).
    pub first: Tensors<D>,
    /// Mean squared gradients (second moments).
    pub second: Tensors<D>,
}

impl<D: Device> Adam<D> {
    /// Creates an optimizer for these parameters.
    pub fn new(device: &mut D, settings: AdamSettings, parameters: &Tensors<D>) -> Adam<D> {
        Adam { settings, steps: 0, first: parameters.zeros_like(device), second: parameters.zeros_like(device) }
    }

    /// One step with learning rate `rate` and gradient clipping: gradients with a Euclidean norm above `most` are
    /// scaled down to it. With an infinite `most` nothing is clipped. If the norm is not finite, the parameters stay as
    /// they are. Returns the norm before scaling, which may not have been computed yet.
    pub fn clipped_step(
        &mut self,
        device: &mut D,
        rate: f64,
        most: f64,
        gradients: &mut Tensors<D>,
        parameters: &mut Tensors<D>,
    ) -> D::Number {
        let rates = self.next_rates(rate);
        let (first, second) = (&mut self.first.buffers, &mut self.second.buffers);
        device.clipped_adam_all(most, &rates, &mut gradients.buffers, first, second, &mut parameters.buffers)
    }

    /// Counts one more step and returns its coefficients.
    fn next_rates(&mut self, rate: f64) -> AdamRates {
        self.steps += 1;
        let AdamSettings { beta1, beta2, epsilon, weight_decay } = self.settings;
        // The bias corrections must use the betas as the device rounds them: in single precision, 1 − 0.999 is off by
        // 1e-5.
        let power = |beta: f64| 1.0 - double(rounded(beta)).powf(self.steps as f64);
        AdamRates {
            beta1: rounded(beta1),
            beta2: rounded(beta2),
            step: rounded(rate / power(beta1)),
            correction: rounded(1.0 / power(beta2)),
            epsilon: rounded(epsilon),
            decay: rounded(rate * weight_decay),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, Tensors};

    #[test]
    fn schedules_rise_then_fall() {
        assert_eq!(Schedule::Constant.factor(0, 100, 0), 1.0);
        assert_eq!(Schedule::Constant.factor(0, 100, 4), 0.25);
        assert_eq!(Schedule::Linear.factor(50, 100, 0), 0.5);
        assert_eq!(Schedule::Linear.factor(200, 100, 0), 0.0);
        assert!((Schedule::Cosine.factor(50, 100, 0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn adam_takes_the_steps_it_should() {
        let mut device = Cpu::default();
        let mut parameters = Tensors::default();
        parameters.add(&mut device, "x", 1, 2, &[1.0, -2.0]);
        let mut gradients = parameters.zeros_like(&mut device);
        let id = gradients.ids().next().unwrap();
        gradients.set(&mut device, id, &[0.5, -4.0]);
        let settings = AdamSettings { weight_decay: 0.1, ..AdamSettings::default() };
        let mut adam = Adam::new(&mut device, settings, &parameters);
        adam.clipped_step(&mut device, 0.01, f64::INFINITY, &mut gradients, &mut parameters);
        // The first step decays the weights and then moves by the learning rate against the sign of the gradient.
        let values = parameters.values(&device, id);
        assert!((values[0] - (1.0 - 0.001 - 0.01)).abs() < 1e-9 && (values[1] - (-2.0 + 0.002 + 0.01)).abs() < 1e-9);
    }
}
