//! Sorting by deadline, and keeping that order where only a few entries change.

use temponet_task::{Tie, Time};

/// Sorts by deadline. The tie-break is computed only for equal deadlines, which are rare.
pub(super) fn sort(keys: &mut [(Time, u32)], tie: impl Fn(u32) -> Tie) {
    keys.sort_unstable_by_key(|(deadline, _)| *deadline);
    for same in keys.chunk_by_mut(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        same.sort_unstable_by_key(|(_, place)| tie(*place));
    }
}

/// Merges `fresh` into `keys`. Both are in order. Keys before the first fresh one are not touched.
pub(super) fn merge(keys: &mut Vec<(Time, u32)>, fresh: &[(Time, u32)], tie: impl Fn(u32) -> Tie) {
    let is_after = |a: (Time, u32), b: (Time, u32)| a.0 > b.0 || a.0 == b.0 && tie(a.1) > tie(b.1);
    let (mut from, mut left) = (keys.len(), fresh.len());
    keys.extend_from_slice(fresh);
    let mut to = keys.len();
    while left > 0 {
        to -= 1;
        if from > 0 && is_after(keys[from - 1], fresh[left - 1]) {
            from -= 1;
            keys[to] = keys[from];
        } else {
            left -= 1;
            keys[to] = fresh[left];
        }
    }
}
