//! Search for a core for every task, where packing by one rule finds none: all divisions of the tasks among the cores
//! are tried, up to a bound that counts tests and not time. Small sets are searched to the end.

use temponet_task::CoreId;

use super::worst_case::WorstCase;

/// Largest number of tests of one search.
const MOST_TESTS: usize = 2_000;

/// Returns a core for every task, by its place, such that `fits` holds for each core and its tasks; none if there is no
/// such division or it was not found within [`MOST_TESTS`] tests. `fits` must hold for a part of what it holds for, and
/// returns none to end the search.
pub(crate) fn search(worst_case: &WorstCase, fits: impl FnMut(usize, &[usize]) -> Option<bool>) -> Option<Vec<usize>> {
    let load = |place: usize| {
        let (work, time) = worst_case.tasks[place].utilization();
        work as f64 / time as f64
    };
    let cores: Vec<CoreId> = CoreId::all(worst_case.cores).collect();
    let usable = |place: usize| cores.iter().filter(|core| worst_case.may_use(place, **core)).count();
    let mut order: Vec<usize> = (0..worst_case.tasks.len()).collect();
    // Those with the least choice come first, then the heaviest.
    order.sort_by(|a, b| usable(*a).cmp(&usable(*b)).then(load(*b).total_cmp(&load(*a))));
    let total: f64 = order.iter().map(|place| load(*place)).sum();
    let room: f64 = cores.iter().map(|core| worst_case.speed(*core).as_f64()).sum();
    if total > room * (1.0 + 1e-6) {
        return None;
    }
    let is_alike = |a: CoreId, b: CoreId| {
        let same = |place: &usize| worst_case.may_use(*place, a) == worst_case.may_use(*place, b);
        worst_case.speed(a) == worst_case.speed(b) && order.iter().all(same)
    };
    let alike = cores.iter().map(|core| cores.iter().position(|first| is_alike(*first, *core)).unwrap_or_default());
    let mut search = Search {
        worst_case,
        alike: alike.collect(),
        members: vec![Vec::new(); cores.len()],
        tests_left: MOST_TESTS,
        fits,
    };
    search.place(&order)?.then(|| {
        let mut core_of = vec![0; order.len()];
        for (core, members) in search.members.iter().enumerate() {
            members.iter().for_each(|place| core_of[*place] = core);
        }
        core_of
    })
}

struct Search<'a, F> {
    worst_case: &'a WorstCase,
    /// For each core, the first one that is like it.
    alike: Vec<usize>,
    /// The tasks of each core so far.
    members: Vec<Vec<usize>>,
    tests_left: usize,
    fits: F,
}

impl<F: FnMut(usize, &[usize]) -> Option<bool>> Search<'_, F> {
    /// Returns whether the tasks at these places have cores beside those that are placed; none if the search ends.
    fn place(&mut self, places: &[usize]) -> Option<bool> {
        let Some((place, rest)) = places.split_first() else { return Some(true) };
        for core in 0..self.members.len() {
            // Of empty cores that are alike, one is enough.
            let is_repeated = || {
                let mut before = (0..core).filter(|other| self.alike[*other] == self.alike[core]);
                self.members[core].is_empty() && before.any(|other| self.members[other].is_empty())
            };
            if !self.worst_case.may_use(*place, CoreId::new(core)) || is_repeated() {
                continue;
            }
            self.tests_left = self.tests_left.checked_sub(1)?;
            self.members[core].push(*place);
            if (self.fits)(core, &self.members[core])? && self.place(rest)? {
                return Some(true);
            }
            self.members[core].pop();
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use temponet_task::{CoreSet, Task, TaskSet, Time};

    use super::*;
    use crate::partitioned::edf_partition;

    /// Cores of tasks with these loads in percent; each may use the first cores only, as many as it says.
    fn cores_of(tasks: &[(u64, u32)], cores: usize) -> Option<Vec<usize>> {
        let task = |(load, usable): &(u64, u32)| {
            Task::periodic("t", Time::from_ms(100), Time::from_ms(*load))
                .with_cores(CoreSet::of((0..*usable).map(CoreId)))
        };
        edf_partition(&WorstCase::of(&TaskSet::new("set", tasks.iter().map(task).collect(), cores)).unwrap())
    }

    #[test]
    fn a_division_is_found_where_no_packing_by_load_finds_one() {
        // By decreasing load the first would go to the only core of the second.
        assert_eq!(cores_of(&[(67, 2), (60, 1)], 2), Some(vec![1, 0]));
        // 50 + 30 + 20 and 40 + 35 + 25 fill the cores; 50 + 40 leaves what nothing fills.
        let full = [50, 40, 35, 30, 25, 20].map(|load| (load, 2));
        let found = cores_of(&full, 2).unwrap();
        for core in 0..2 {
            let own = full.iter().zip(&found).filter(|(_, on)| **on == core);
            assert_eq!(own.map(|((load, _), _)| load).sum::<u64>(), 100);
        }
        assert_eq!(cores_of(&[(60, 2), (60, 2), (60, 2)], 2), None);
        assert_eq!(cores_of(&[(60, 2), (60, 1), (50, 1)], 2), None);
    }

    #[test]
    fn a_search_without_a_result_ends() {
        // 41 tasks of 24.9% on ten cores: four on each core, and one is left over.
        assert_eq!(cores_of(&[(24, 10); 41], 10), None);
    }
}
