//! Work on many items at once, in order.
//!
//! One function for the whole crate: a chain of parallel iterators is compiled anew for every closure, which once was a
//! third of this crate's code. Here only the slots around the work are. Results do not depend on the number of threads,
//! because each goes to the place of its item. A slot costs some ten nanoseconds; items that take less are worth
//! putting together.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

/// Place of one item, and later of its result.
enum Slot<T, R> {
    Item(T),
    Empty,
    Result(R),
}

/// Calls `work` for every item, with its index, and returns the results in the order of the items. One thread takes
/// `grain` neighboring items at a time, at least 1.
pub(crate) fn par_map<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    grain: usize,
    work: impl Fn(usize, T) -> R + Sync,
) -> Vec<R> {
    let slots: Vec<Mutex<Slot<T, R>>> = items.into_iter().map(|item| Mutex::new(Slot::Item(item))).collect();
    for_each_index(slots.len(), grain, &|index| {
        let item = std::mem::replace(&mut *lock(&slots[index]), Slot::Empty);
        if let Slot::Item(item) = item {
            let result = work(index, item);
            *lock(&slots[index]) = Slot::Result(result);
        }
    });
    let result = |slot: Mutex<Slot<T, R>>| match slot.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Slot::Result(result) => Some(result),
        Slot::Item(_) | Slot::Empty => None,
    };
    slots.into_iter().filter_map(result).collect()
}

/// Calls `work` for 0 to `count` − 1, by tasks of `grain` neighboring numbers.
fn for_each_index(count: usize, grain: usize, work: &(dyn Fn(usize) + Sync)) {
    let grain = grain.max(1);
    let task = |number: usize| (number * grain..count.min((number + 1) * grain)).for_each(work);
    (0..count.div_ceil(grain)).into_par_iter().with_max_len(1).for_each(task);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items_and_none_is_left_out() {
        for (count, grain) in [(0, 1), (1, 4), (7, 3), (1_000, 1), (1_000, 64), (5, 0)] {
            let expected: Vec<usize> = (0..count).map(|number| number * number + 1).collect();
            let found = par_map((0..count).map(|number| vec![number]), grain, |index, item| index * item[0] + 1);
            assert_eq!(found, expected, "{count} {grain}");
        }
    }
}
