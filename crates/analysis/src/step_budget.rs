//! A bound on the work of a test, so that awkward sets end as undecided and not in an endless loop.

/// Elementary steps that are left.
#[derive(Debug)]
pub struct StepBudget(u64);

impl StepBudget {
    /// Some tenths of a second.
    pub fn new() -> StepBudget {
        StepBudget(5_000_000)
    }

    /// Some seconds, for a search that asks a test many times.
    pub fn large() -> StepBudget {
        StepBudget(50_000_000)
    }

    /// Takes `steps` off; none when there is nothing left.
    pub fn spend(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps as u64)?;
        Some(())
    }
}
