//! Which ready jobs have rows, where there are more than the network reads in time.
//!
//! Half of the rows are for the jobs that are due first, the other half for those with the most worth for their
//! remaining time; jobs that run are always among them. The sums in a row's numbers are over all jobs nevertheless.

use temponet_task::{JobId, SystemView};

/// Greatest numbers of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowLimits {
    pub ready: usize,
    pub coming: usize,
}

impl RowLimits {
    /// Divides the rows of a decision: two thirds for ready jobs, in any case twice as many as there are cores, so that
    /// there is a choice.
    pub fn of(most_rows: Option<usize>, cores: usize) -> RowLimits {
        let all = most_rows.unwrap_or(usize::MAX);
        let coming = all / 3;
        RowLimits { ready: (all - coming).max(cores.saturating_mul(2)), coming }
    }
}

/// The ready jobs that have rows in one decision. Its buffers are reused from decision to decision.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Whether the job at each place of the deadline order has a row.
    is_shown: Vec<bool>,
    /// Density and place of the jobs that are not due first; working memory.
    others: Vec<(f64, usize)>,
}

impl Shown {
    /// Chooses among the ready jobs, which are in deadline order, by their `densities`: what each is worth for its
    /// remaining time, `None` for one that has no row in any case.
    pub fn choose(
        &mut self,
        view: &SystemView<'_>,
        jobs: &[(JobId, u32)],
        densities: impl Iterator<Item = Option<f64>> + Clone,
        limits: RowLimits,
    ) {
        let Shown { is_shown, others } = self;
        is_shown.clear();
        is_shown.extend(densities.clone().map(|density| density.is_some()));
        others.clear();
        others.reserve(jobs.len());
        let possible = is_shown.iter().filter(|is_shown| **is_shown).count();
        if possible <= limits.ready {
            return;
        }
        let mut left = limits.ready;
        let mut first = limits.ready / 2;
        for (place, density) in densities.enumerate() {
            let Some(density) = density else { continue };
            is_shown[place] = first > 0 || view.job(jobs[place].0).running;
            match is_shown[place] {
                true => left = left.saturating_sub(1),
                false => others.push((density, place)),
            }
            first = first.saturating_sub(1);
        }
        if left > 0 && left < others.len() {
            others.select_nth_unstable_by(left - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        others.iter().take(left).for_each(|(_, place)| is_shown[*place] = true);
    }

    /// Whether the job at this place of the deadline order has a row.
    pub fn is_shown(&self, place: usize) -> bool {
        self.is_shown[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{Job, Task, TaskSet, Time};

    #[test]
    fn the_first_and_the_densest_and_those_that_run_have_rows() {
        let tasks = (0..9).map(|index| Task::periodic(format!("t{index}"), Time(1_000), Time(10)));
        let system = TaskSet::new("test", tasks.collect(), 1).system;
        let mut ready: Vec<Job> =
            system.task_ids().zip(system.tasks()).map(|(id, task)| Job::first(id, task)).collect();
        ready[6].running = true;
        let active: Vec<JobId> = (0..9).map(JobId).collect();
        let view = SystemView::new(Time(0), &system, &active, &ready, &[Some(JobId(6))]);
        let jobs: Vec<(JobId, u32)> = active.iter().map(|id| (*id, 0)).collect();
        let densities = [1.0, 1.0, 1.0, 7.0, 2.0, 9.0, 1.0, 7.0, 9.0].map(Some);
        let mut shown = Shown::default();
        let mut choose = |most: Option<usize>, densities: &[Option<f64>]| -> Vec<usize> {
            shown.choose(&view, &jobs, densities.iter().copied(), RowLimits::of(most, 1));
            (0..9).filter(|place| shown.is_shown(*place)).collect()
        };
        assert_eq!(choose(Some(9), &densities), [0, 1, 2, 5, 6, 8], "six of nine rows are for ready jobs");
        assert_eq!(choose(Some(0), &densities), [0, 6], "two for each core in any case");
        assert_eq!(choose(Some(14), &densities).len(), 9);
        assert_eq!(choose(None, &densities).len(), 9);
        let mut some = densities;
        (some[0], some[5]) = (None, None);
        assert_eq!(choose(Some(9), &some), [1, 2, 3, 6, 7, 8]);
    }
}
