//! Which keys sparse attention leaves out.

use std::ops::Range;

use crate::Sparsity;
use crate::kernels::NEVER;

/// Takes away the keys that a query does not attend to, as the reference does. `keep_best` does it in a block: it gets the block, those of it
/// that are in the query's own chunk and always kept, and how many of the others are.
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

/// On any processor; `order` has room for the block.
pub(crate) fn keep_best(keys: &mut [f32], own: Range<usize>, keep: usize, order: &mut [u32]) {
    // The best so far, the best first; an equal one that comes later stands behind.
    let mut kept = 0;
    for key in (0..own.start).chain(own.end..keys.len()) {
        let value = keys[key];
        let mut place = kept;
        while place > 0 && value > keys[order[place - 1] as usize] {
            place -= 1;
        }
        // Whoever falls out of the best is taken away, and so is who does not get in.
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
