//! The named utilization distributions of the real-time group at the University of North Carolina (Brandenburg, PhD
//! thesis 2011). The matching periods are uniform from 3 to 33, 10 to 100 or 50 to 250 ms; see [`super::text::rule`].

use rand::RngExt;
use rand_pcg::Pcg64;

use super::GenerateError;

/// Largest number of tasks in a set.
const MOST_TASKS: usize = 100_000;

/// A named distribution of task utilizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unc {
    family: Family,
    weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Uniform,
    Exponential,
    Bimodal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Light,
    Medium,
    Heavy,
}

impl Unc {
    /// Names of all distributions.
    pub const NAMES: [&'static str; 9] = [
        "uni-light",
        "uni-medium",
        "uni-heavy",
        "exp-light",
        "exp-medium",
        "exp-heavy",
        "bimo-light",
        "bimo-medium",
        "bimo-heavy",
    ];

    /// Returns the name of the distribution, one of [`Unc::NAMES`].
    pub fn name(&self) -> &'static str {
        let known = Unc::NAMES.into_iter().find(|name| Unc::from_name(name).as_ref() == Some(self));
        known.unwrap_or_default()
    }

    /// Returns the distribution with this name.
    pub fn from_name(name: &str) -> Option<Unc> {
        let index = Unc::NAMES.iter().position(|known| *known == name)?;
        let family = [Family::Uniform, Family::Exponential, Family::Bimodal][index / 3];
        let weight = [Weight::Light, Weight::Medium, Weight::Heavy][index % 3];
        Some(Unc { family, weight })
    }

    /// Draws the utilization of one task, 0 to 1.
    pub(super) fn draw(self, rng: &mut Pcg64) -> f64 {
        let pick = |table: [f64; 3]| table[self.weight as usize];
        match self.family {
            Family::Uniform => {
                let (low, high) = (pick([0.001, 0.1, 0.5]), pick([0.1, 0.4, 0.9]));
                rng.random_range(low..high)
            }
            // Truncated at 1, by inverting the truncated distribution.
            Family::Exponential => {
                let mean = pick([0.1, 0.25, 0.5]);
                let mass = 1.0 - (-1.0 / mean).exp();
                -mean * (1.0 - mass * rng.random::<f64>()).ln()
            }
            Family::Bimodal => {
                let is_heavy = rng.random::<f64>() < pick([1.0, 3.0, 5.0]) / 9.0;
                if is_heavy { rng.random_range(0.5..0.9) } else { rng.random_range(0.001..0.5) }
            }
        }
    }

    /// Draws utilizations until the total is reached, and cuts the last one to fit. A given number of tasks is an
    /// error.
    pub(super) fn until(self, total: f64, tasks: Option<usize>, rng: &mut Pcg64) -> Result<Vec<f64>, GenerateError> {
        if tasks.is_some() {
            let message =
                "a named distribution draws tasks until the utilization is reached: leave the number of tasks out";
            return Err(GenerateError::Invalid(message.into()));
        }
        let mut shares = Vec::new();
        let mut left = total;
        while left > 0.0 {
            if shares.len() == MOST_TASKS {
                return Err(GenerateError::Invalid(format!(
                    "a total utilization of {total:e} takes more than {MOST_TASKS} tasks"
                )));
            }
            let share = self.draw(rng).min(left);
            shares.push(share);
            left -= share;
        }
        Ok(shares)
    }
}
