//! What a miss does to an (m,k) constraint: at least m of any k consecutive jobs of a task meet their deadlines.
//!
//! A window of k jobs is lost as soon as k − m + 1 of its jobs are missed, however many are still to come. So each
//! window that is violated in the end is lost by one certain miss, and the windows that a miss loses are what it costs.

use temponet_sched::advice::Outcomes;
use temponet_task::{JobId, System, SystemView, TaskId};

/// Outcomes of the last jobs of a task with an (m,k) constraint. Jobs before the first one count as met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastOutcomes {
    /// Misses that a window may have.
    allowed: u32,
    k: u32,
    /// A bit for each of the last jobs, the most recent first: 1 for a miss.
    misses: u64,
}

/// Longest window that is told apart. A constraint over more jobs is read as one over this many, with the same share.
const LONGEST: u32 = u64::BITS;

impl LastOutcomes {
    /// No outcome so far.
    pub fn new((m, k): (u32, u32)) -> LastOutcomes {
        let m = if k > LONGEST { (u64::from(m) * u64::from(LONGEST)).div_ceil(u64::from(k)) as u32 } else { m };
        let k = k.clamp(1, LONGEST);
        LastOutcomes { allowed: k - m.clamp(1, k), k, misses: 0 }
    }

    /// Adds the outcome of the next job.
    pub fn push(&mut self, is_met: bool) {
        self.misses = self.misses << 1 | u64::from(!is_met);
    }

    /// Number of windows that a miss of the next job would lose: those with as many misses as they may have.
    pub fn windows_at_stake(&self) -> u32 {
        // The window in which the next job is preceded by `known` jobs, the others follow.
        (0..self.k).filter(|known| self.misses_of_last(*known) == self.allowed).count() as u32
    }

    /// Number of misses in a row that lose a window: at least 1.
    pub fn misses_until_loss(&self) -> u32 {
        let loses = |row: &u32| self.misses_of_last(self.k - row) + row > self.allowed;
        (1..=self.k).find(loses).unwrap_or(self.k)
    }

    fn misses_of_last(&self, jobs: u32) -> u32 {
        let kept = 1u64.checked_shl(jobs).map_or(u64::MAX, |end| end - 1);
        (self.misses & kept).count_ones()
    }
}

/// Outcomes of all tasks with an (m,k) constraint, and what follows for their next jobs.
#[derive(Clone, Debug, Default)]
pub struct FirmHistory {
    /// Outcomes of each task; empty if no task has a constraint.
    tasks: Vec<Option<LastOutcomes>>,
    /// [`FirmHistory::about`] of each task.
    about: Vec<(f32, f32)>,
    outcomes: Outcomes,
}

impl FirmHistory {
    /// Forgets everything and prepares for a system.
    pub fn start(&mut self, system: &System) {
        let is_firm = system.tasks().iter().any(|task| task.mk.is_some());
        let tasks = system.tasks().iter().filter(|_| is_firm);
        self.tasks = tasks.map(|task| task.mk.map(LastOutcomes::new)).collect();
        self.about = self.tasks.iter().map(about).collect();
        self.outcomes.clear();
    }

    /// Notes what has happened since the last decision. Each view is noted once.
    pub fn note(&mut self, view: &SystemView<'_>) {
        if self.tasks.is_empty() {
            return;
        }
        for event in view.events {
            if let Some((id, is_met)) = self.outcomes.of(view, *event) {
                self.add(view, id, is_met);
            }
        }
    }

    fn add(&mut self, view: &SystemView<'_>, id: JobId, is_met: bool) {
        let task = view.job(id).task;
        if let Some(outcomes) = &mut self.tasks[task] {
            outcomes.push(is_met);
            self.about[task] = about(&self.tasks[task]);
        }
    }

    /// Windows that a miss of the next job of a task loses, per job of a window, and one over the number of misses in a
    /// row that lose one; 0 for a task without a constraint.
    pub fn about(&self, task: TaskId) -> (f32, f32) {
        self.about.get(task.index()).copied().unwrap_or_default()
    }
}

fn about(outcomes: &Option<LastOutcomes>) -> (f32, f32) {
    outcomes.map_or((0.0, 0.0), |outcomes| {
        (outcomes.windows_at_stake() as f32 / outcomes.k as f32, 1.0 / outcomes.misses_until_loss() as f32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    /// The windows that misses lose are those that are violated in the end.
    #[test]
    fn every_violated_window_is_lost_by_one_miss() {
        let mut rng = rand_pcg::Pcg64::seed_from_u64(7);
        let mut lost_in_all = 0;
        for _ in 0..300 {
            let k: u32 = rng.random_range(1..=12);
            let (m, misses) = (rng.random_range(1..=k), rng.random::<f64>());
            let mut outcomes = LastOutcomes::new((m, k));
            let mut met: Vec<bool> = vec![true; k as usize - 1];
            let mut lost = 0;
            for _ in 0..50 {
                let is_met = rng.random::<f64>() > misses;
                let loses = |row: &u32| {
                    let after: Vec<bool> = met.iter().copied().chain((0..*row).map(|_| false)).collect();
                    is_violated(&after[after.len() - k as usize..], m)
                };
                assert_eq!(Some(outcomes.misses_until_loss()), (1..=k).find(loses), "({m},{k})");
                lost += if is_met { 0 } else { outcomes.windows_at_stake() as usize };
                outcomes.push(is_met);
                met.push(is_met);
            }
            met.extend(vec![true; k as usize]);
            assert_eq!(met.windows(k as usize).filter(|window| is_violated(window, m)).count(), lost, "({m},{k})");
            lost_in_all += lost;
        }
        assert!(lost_in_all > 1_000);
    }

    fn is_violated(window: &[bool], m: u32) -> bool {
        window.iter().filter(|met| **met).count() < m as usize
    }

    #[test]
    fn long_windows_are_read_as_shorter_ones() {
        assert_eq!(LastOutcomes::new((1, u32::MAX)), LastOutcomes::new((1, 64)));
        assert_eq!(LastOutcomes::new((96, 128)), LastOutcomes::new((48, 64)));
        let mut outcomes = LastOutcomes::new((63, 64));
        assert_eq!((outcomes.windows_at_stake(), outcomes.misses_until_loss()), (0, 2));
        outcomes.push(false);
        assert_eq!((outcomes.windows_at_stake(), outcomes.misses_until_loss()), (63, 1));
    }
}
