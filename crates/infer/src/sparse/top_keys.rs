//! Explicit top-k: every query keeps its best keys of all.

use crate::kernels::NEVER;

/// Masks all but the `keep` greatest logits of the job keys; of equal ones the earlier stay. The idle row's key, the first, always stays. `order` is working
/// memory with room for the logits.
pub(crate) fn keep_top(logits: &mut [f32], keep: usize, order: &mut [f32]) {
    let Some((_, jobs)) = logits.split_first_mut() else { return };
    if keep >= jobs.len() {
        return;
    }
    if keep == 0 {
        jobs.fill(NEVER);
        return;
    }
    let order = &mut order[..jobs.len()];
    order.copy_from_slice(jobs);
    let (greater, least, _) = order.select_nth_unstable_by(keep - 1, |a, b| b.total_cmp(a));
    let least = *least;
    // Of the keys that equal the least kept one, this many are kept.
    let mut equal = keep - greater.iter().filter(|logit| logit.total_cmp(&least).is_gt()).count();
    for logit in jobs {
        match (*logit).total_cmp(&least) {
            std::cmp::Ordering::Greater => {}
            std::cmp::Ordering::Equal if equal > 0 => equal -= 1,
            _ => *logit = NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_and_the_earliest_of_equals_stay() {
        let logits = [9.0, 1.0, 5.0, 3.0, 5.0, 5.0, -2.0];
        let kept = |keep: usize| {
            let (mut masked, mut order) = (logits, [0.0; 6]);
            keep_top(&mut masked, keep, &mut order);
            (0..7).filter(|key| masked[*key] == logits[*key]).collect::<Vec<_>>()
        };
        assert_eq!(kept(0), [0]);
        assert_eq!(kept(2), [0, 2, 4]);
        assert_eq!(kept(4), [0, 2, 3, 4, 5]);
        assert_eq!(kept(6), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(kept(60), [0, 1, 2, 3, 4, 5, 6]);
    }
}
