//! When waiting requests expire, the next one first.
//!
//! Most requests are served before they expire, so a request that leaves stays in the heap until it comes to the top, or
//! until more have left than wait. That makes leaving cheap, and costs at most twice the room. A sorted set, from which
//! each one is removed, takes several times as long with thousands waiting.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::queue::NEVER;

/// Time from which on a request may not begin any more, its number, its slot, and which insertion this is. Without the
/// last, those who come back unchanged would be in the heap twice.
type Entry = (u64, u64, u32, u32);

/// Entries of those who have left that are kept beside those who wait.
const MOST_LEFT: usize = 32;

#[derive(Default)]
pub(crate) struct Expiry {
    /// Time of who waits in each slot, `NEVER` if nobody does, or for ever; its number and its insertion.
    slots: Vec<(u64, u64, u32)>,
    /// Number of insertions. Those who have left are forgotten long before it begins anew.
    insertions: u32,
    /// Number of those who expire.
    count: usize,
    next: BinaryHeap<Reverse<Entry>>,
    /// The last one first; from when it is asked for on, which shadows of the guard never do.
    last: Option<BinaryHeap<Entry>>,
}

impl Expiry {
    /// Number of those who expire.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a request whose slot is empty.
    pub fn insert(&mut self, expires: u64, seq: u64, slot: u32) {
        let place = slot as usize;
        if self.slots.len() <= place {
            self.slots.resize(place + 1, (NEVER, 0, 0));
        }
        self.insertions = self.insertions.wrapping_add(1);
        let entry = (expires, seq, slot, self.insertions);
        self.slots[place] = (expires, seq, self.insertions);
        self.count += 1;
        self.next.push(Reverse(entry));
        self.last.iter_mut().for_each(|last| last.push(entry));
    }

    /// Removes whoever waits in a slot, if it expires.
    pub fn remove(&mut self, slot: u32) {
        match self.slots.get_mut(slot as usize) {
            Some(found) if found.0 != NEVER => found.0 = NEVER,
            _ => return,
        }
        self.count -= 1;
        let Expiry { slots, count, next, last, .. } = self;
        let waits = |(expires, seq, slot, insertion): &Entry| slots[*slot as usize] == (*expires, *seq, *insertion);
        let most = 2 * *count + MOST_LEFT;
        if next.len() > most {
            next.retain(|Reverse(entry)| waits(entry));
        }
        while next.peek().is_some_and(|Reverse(top)| !waits(top)) {
            next.pop();
        }
        if let Some(last) = last {
            if last.len() > most {
                last.retain(&waits);
            }
            while last.peek().is_some_and(|top| !waits(top)) {
                last.pop();
            }
        }
    }

    /// Time and slot of whoever expires next.
    pub fn next(&self) -> Option<(u64, u32)> {
        self.next.peek().map(|Reverse((expires, _, slot, _))| (*expires, *slot))
    }

    /// Time of whoever expires last.
    pub fn last(&mut self) -> Option<u64> {
        let waiting = self.slots.iter().zip(0..).filter(|((expires, ..), _)| *expires != NEVER);
        let entries = waiting.map(|((expires, seq, insertion), slot)| (*expires, *seq, slot, *insertion));
        let last = self.last.get_or_insert_with(|| entries.collect());
        last.peek().map(|(expires, ..)| *expires)
    }

    pub fn clear(&mut self) {
        *self = Expiry::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Requests come, come back to their slots with another time, and leave in any order; half of the time few wait.
    #[test]
    fn whoever_is_next_or_last_is_so_in_a_sorted_set() {
        let mut state = 1u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut expiry, mut set) = (Expiry::default(), BTreeSet::<(u64, u64, u32)>::new());
        let mut most_kept = 0;
        for seq in 0..20_000 {
            let slot = draw(if seq / 1_000 % 2 == 0 { 300 } else { 3 }) as u32;
            let found = set.iter().find(|entry| entry.2 == slot).copied();
            expiry.remove(slot);
            if let Some((_, seq, _)) = found {
                set.retain(|entry| entry.2 != slot);
                if draw(4) == 0 {
                    let expires = draw(50);
                    expiry.insert(expires, seq, slot);
                    set.insert((expires, seq, slot));
                }
            } else {
                let expires = draw(50);
                expiry.insert(expires, seq, slot);
                set.insert((expires, seq, slot));
            }
            assert_eq!(expiry.len(), set.len());
            assert_eq!(expiry.next(), set.first().map(|(expires, _, slot)| (*expires, *slot)));
            // Asked for now and then, and not at all in the beginning.
            if seq > 500 && seq % 3 == 0 {
                assert_eq!(expiry.last(), set.last().map(|(expires, ..)| *expires));
            }
            most_kept = most_kept.max(expiry.next.len() - set.len());
        }
        assert!((MOST_LEFT / 2..400).contains(&most_kept), "{most_kept}");
    }

    #[test]
    fn whoever_comes_back_unchanged_takes_no_more_room() {
        let mut expiry = Expiry::default();
        expiry.insert(5, 0, 0);
        for _ in 0..1_000 {
            expiry.insert(9, 1, 1);
            assert_eq!((expiry.next(), expiry.last()), (Some((5, 0)), Some(9)));
            expiry.remove(1);
        }
        assert!(expiry.next.len() <= 3 + MOST_LEFT && expiry.last.as_ref().is_some_and(|last| last.len() <= 3));
    }
}
