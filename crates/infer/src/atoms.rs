//! Atoms: the fixed values of a discrete distribution of returns, which a distributional network (C51) has a logit for
//! each of.

use serde::{Deserialize, Serialize};

/// Values of a discrete distribution, evenly spaced. Returns are counted per core, so that one range fits systems with
/// any number of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Atoms {
    /// Number of atoms, 2 to 256.
    pub count: usize,
    /// Value of the first atom.
    pub low: i32,
    /// Value of the last atom, which is greater than that of the first.
    pub high: i32,
}

/// Greatest number of atoms.
pub(crate) const MOST_ATOMS: usize = 256;

impl Atoms {
    /// Returns why these are not valid, or `None` if they are.
    pub(crate) fn problem(self) -> Option<String> {
        let Atoms { count, low, high } = self;
        if !(2..=MOST_ATOMS).contains(&count) {
            return Some(format!("{count} atoms, not from 2 to {MOST_ATOMS}"));
        }
        (low >= high).then(|| format!("atoms from {low} to {high}: the first is not below the last"))
    }

    /// Distance between neighboring atoms.
    pub fn step(self) -> f64 {
        (f64::from(self.high) - f64::from(self.low)) / (self.count.max(2) - 1) as f64
    }

    /// Value of an atom, which is counted from 0.
    pub fn value(self, atom: usize) -> f64 {
        f64::from(self.low) + self.step() * atom as f64
    }

    /// Mean of the distribution with these logits.
    pub fn mean(self, logits: &[f32]) -> f32 {
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let (mut total, mut sum) = (0.0, 0.0);
        for (atom, logit) in logits.iter().enumerate() {
            let power = f64::from(logit - most).exp();
            total += power;
            sum += power * self.value(atom);
        }
        (sum / total) as f32
    }
}
