//! Explicit top-k: every query keeps its best keys of all.

use crate::kernels::NEVER;

/// Masks all but the `keep` greatest logits of the job keys; of equal ones the earlier stay. The idle row's key, the
/// first, always stays. `order` is working memory with room for the logits.
///
/// The least kept logit is found bit by bit: each step counts the logits above a candidate, which vectors do. That is
/// several times faster than to sort or to partition them.
pub(crate) fn keep_top(logits: &mut [f32], keep: usize, order: &mut [i32]) {
    let Some((_, jobs)) = logits.split_first_mut() else { return };
    if keep >= jobs.len() {
        return;
    }
    if keep == 0 {
        jobs.fill(NEVER);
        return;
    }
    let order = &mut order[..jobs.len()];
    order.iter_mut().zip(&*jobs).for_each(|(rank, logit)| *rank = rank_of(*logit));
    let at_least = |least: i32| order.iter().map(|rank| i32::from(*rank >= least)).sum::<i32>() as usize;
    // Greatest number that at least `keep` ranks reach. Flipping the highest bit turns the order of signed numbers into
    // that of unsigned ones.
    let (mut prefix, mut kept) = (0u32, jobs.len());
    for bit in (0..u32::BITS).rev() {
        let candidate = prefix | 1 << bit;
        let count = at_least((candidate ^ SIGN) as i32);
        if count >= keep {
            (prefix, kept) = (candidate, count);
        }
        if kept == keep {
            break;
        }
    }
    let least = (prefix ^ SIGN) as i32;
    for (logit, rank) in jobs.iter_mut().zip(&*order) {
        *logit = if *rank >= least { *logit } else { NEVER };
    }
    // If too many reach it, the last ones of those that equal it are dropped.
    let equal = jobs.iter_mut().zip(&*order).rev().filter(|(_, rank)| **rank == least);
    equal.take(kept - keep).for_each(|(logit, _)| *logit = NEVER);
}

const SIGN: u32 = 1 << 31;

/// A whole number in the same order as the logits.
fn rank_of(logit: f32) -> i32 {
    let bits = logit.to_bits() as i32;
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_and_the_earliest_of_equals_stay() {
        let logits = [9.0, 1.0, 5.0, 3.0, 5.0, 5.0, -2.0];
        let kept = |keep: usize| {
            let (mut masked, mut order) = (logits, [0; 6]);
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
