//! Bound on the running time of a test, so that difficult sets end as undecided and not in an endless loop. It counts
//! steps, not time, so the verdict does not depend on the machine.

/// Number of elementary steps left.
#[derive(Debug)]
pub struct StepBudget(u64);

impl StepBudget {
    /// Budget of a few tenths of a second.
    pub fn standard() -> StepBudget {
        StepBudget(5_000_000)
    }

    /// Budget of a few milliseconds, for a search that itself runs many times.
    pub fn small() -> StepBudget {
        StepBudget(100_000)
    }

    /// Budget of a few seconds, for a search that runs a test many times.
    pub fn large() -> StepBudget {
        StepBudget(50_000_000)
    }

    /// Takes `steps` off the budget. Returns none if the budget does not suffice.
    pub fn spend(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps as u64)?;
        Some(())
    }
}
