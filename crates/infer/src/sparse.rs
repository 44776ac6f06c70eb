//! Masking of the keys that sparse attention leaves out, as [`crate::reference()`] does it, without allocating.

use std::ops::Range;

use crate::Sparsity;
use crate::kernels::NEVER;

/// Masks the logits of keys that a query does not attend to. `keep_best` is called for each block with its logits, the range of keys in the query's own
/// chunk, which are always kept, and the number of other keys to keep.
pub(crate) fn mask(
    logits: &mut [f32],
    query: usize,
    sparsity: Sparsity,
    mut keep_best: impl FnMut(&mut [f32], Range<usize>, usize),
) {
    if query == 0 || query >= logits.len() {
        return;
    }
    let (chunk, block) = (sparsity.chunk.max(1), sparsity.block.max(1));
    let own = (query - 1) / chunk * chunk..((query - 1) / chunk).saturating_add(1).saturating_mul(chunk);
    for (place, keys) in logits[1..].chunks_mut(block).enumerate() {
        let within = |job: usize| job.saturating_sub(place * block).min(keys.len());
        let own = within(own.start)..within(own.end);
        if keys.len() - own.len() > sparsity.keep {
            keep_best(keys, own, sparsity.keep);
        }
    }
}

/// Masks all but the `keep` greatest logits of a block, besides those of the range `own`. `order` is working memory with room for the block.
pub(crate) fn keep_best(keys: &mut [f32], own: Range<usize>, keep: usize, order: &mut [u32]) {
    // `order` holds the best keys so far, best first. Of equal keys the earlier comes first.
    let mut kept = 0;
    for key in (0..own.start).chain(own.end..keys.len()) {
        let value = keys[key];
        let mut place = kept;
        while place > 0 && value > keys[order[place - 1] as usize] {
            place -= 1;
        }
        // A key that drops out of the best, or does not get among them, is masked.
        let out = match place < keep {
            false => key,
            true if kept < keep => {
                order.copy_within(place..kept, place + 1);
                order[place] = key as u32;
                kept += 1;
                continue;
            }
            true => {
                let last = order[keep - 1] as usize;
                order.copy_within(place..keep - 1, place + 1);
                order[place] = key as u32;
                last
            }
        };
        keys[out] = NEVER;
    }
}
