//! Which waiting requests can all be in time: Moore and Hodgson's rule, kept up to date as requests come and go.
//!
//! The rule (Moore, Management Science 15(1), 1968): take requests by their due times; where one would be late, leave out
//! the longest so far. On several workers the requests before one, spread evenly, are what it waits for at most
//! (Graham's bound for lists), so request j is in time if `busy + sum before j <= workers * (due - length - now)`.
//!
//! The accepted requests are a treap by due time, with the sum of lengths, the least margin and the greatest length of
//! every part. So the first request that would be late, and the longest before it, are found in a logarithm of the
//! number of requests. Those left out are sorted by length; the shortest runs when no accepted one waits, and is tried
//! again at each start. The scheduler of the lab plans anew at every start, which takes as long as there are requests.

use std::collections::BTreeSet;

/// Due time and number of a request.
type Key = (u64, u64);

/// No node.
const NONE: u32 = u32::MAX;

pub(crate) struct Plan {
    workers: i128,
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
    /// Lengths, numbers, due times and slots of those left out.
    left_out: BTreeSet<(u64, u64, u64, u32)>,
    /// State of the numbers that balance the treap.
    draws: u64,
}

struct Node {
    key: Key,
    slot: u32,
    length: u64,
    /// Margin of the request if nothing came before it, at time 0 with all workers free.
    alone: i128,
    priority: u64,
    left: u32,
    right: u32,
    /// Sum of the lengths of this part.
    sum: i128,
    /// Least margin in this part, if nothing came before it.
    margin: i128,
    /// Greatest length in this part.
    longest: u64,
}

impl Plan {
    pub fn new(workers: usize) -> Plan {
        Plan {
            workers: workers as i128,
            nodes: Vec::new(),
            free: Vec::new(),
            root: NONE,
            left_out: BTreeSet::new(),
            draws: 1,
        }
    }

    /// Accepts a request until [`Plan::revise`] finds that it, or another, has to be left out.
    pub fn insert(&mut self, due: u64, seq: u64, length: u64, slot: u32) {
        self.draws = self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // What it takes itself is subtracted once as part of the sum.
        let alone = self.workers * i128::from(due) - (self.workers - 1) * i128::from(length);
        let node = Node {
            key: (due, seq),
            slot,
            length,
            alone,
            priority: self.draws,
            left: NONE,
            right: NONE,
            sum: 0,
            margin: 0,
            longest: 0,
        };
        let new = match self.free.pop() {
            Some(place) => {
                self.nodes[place as usize] = node;
                place
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.update(new);
        let (before, after) = self.split(self.root, (due, seq));
        let before = self.merge(before, new);
        self.root = self.merge(before, after);
    }

    /// Removes a request, accepted or left out.
    pub fn remove(&mut self, due: u64, seq: u64, length: u64, slot: u32) {
        if !self.left_out.remove(&(length, seq, due, slot)) {
            self.cut((due, seq));
        }
    }

    /// Leaves requests out until all others can be in time, with this much work still being served. The shortest of
    /// those left out before is tried again first.
    pub fn revise(&mut self, now: u64, busy: u64) {
        let needed = self.workers * i128::from(now) + i128::from(busy);
        self.leave_out(needed);
        if let Some((length, seq, due, slot)) = self.left_out.pop_first() {
            self.insert(due, seq, length, slot);
            if self.margin_of(self.root) < needed {
                self.cut((due, seq));
                self.left_out.insert((length, seq, due, slot));
            }
        }
    }

    fn leave_out(&mut self, needed: i128) {
        while self.margin_of(self.root) < needed {
            let late = self.first_below(needed);
            let (before, after) = self.split(self.root, (late.0, late.1 + 1));
            let longest = self.last_longest(before);
            self.root = self.merge(before, after);
            let Node { key: (due, seq), length, slot, .. } = self.nodes[longest as usize];
            self.cut((due, seq));
            self.left_out.insert((length, seq, due, slot));
        }
    }

    /// Slot of the request that is next: the accepted one that is due first, or the shortest left out.
    pub fn first(&self) -> Option<u32> {
        let mut node = self.root;
        if node == NONE {
            return self.left_out.first().map(|(.., slot)| *slot);
        }
        while self.nodes[node as usize].left != NONE {
            node = self.nodes[node as usize].left;
        }
        Some(self.nodes[node as usize].slot)
    }

    /// Slot of the request that would be served last: the longest left out, or the accepted one that is due last.
    pub fn last(&self) -> Option<u32> {
        if let Some((.., slot)) = self.left_out.last() {
            return Some(*slot);
        }
        let mut node = self.root;
        while node != NONE && self.nodes[node as usize].right != NONE {
            node = self.nodes[node as usize].right;
        }
        (node != NONE).then(|| self.nodes[node as usize].slot)
    }

    pub fn clear(&mut self) {
        *self = Plan::new(self.workers as usize);
    }

    fn sum_of(&self, node: u32) -> i128 {
        if node == NONE { 0 } else { self.nodes[node as usize].sum }
    }

    fn margin_of(&self, node: u32) -> i128 {
        if node == NONE { i128::MAX } else { self.nodes[node as usize].margin }
    }

    fn longest_of(&self, node: u32) -> u64 {
        if node == NONE { 0 } else { self.nodes[node as usize].longest }
    }

    /// Computes what a node says of its part.
    fn update(&mut self, node: u32) {
        let Node { left, right, length, alone, .. } = self.nodes[node as usize];
        let before = self.sum_of(left) + i128::from(length);
        let margin = self.margin_of(left).min(alone - before).min(self.margin_of(right).saturating_sub(before));
        let (sum, longest) =
            (before + self.sum_of(right), self.longest_of(left).max(length).max(self.longest_of(right)));
        let node = &mut self.nodes[node as usize];
        (node.sum, node.margin, node.longest) = (sum, margin, longest);
    }

    /// Parts with the keys below this one, and with the others.
    fn split(&mut self, node: u32, key: Key) -> (u32, u32) {
        if node == NONE {
            return (NONE, NONE);
        }
        let place = node as usize;
        if self.nodes[place].key < key {
            let (before, after) = self.split(self.nodes[place].right, key);
            self.nodes[place].right = before;
            self.update(node);
            (node, after)
        } else {
            let (before, after) = self.split(self.nodes[place].left, key);
            self.nodes[place].left = after;
            self.update(node);
            (before, node)
        }
    }

    /// Joins two parts, all of whose keys are in order.
    fn merge(&mut self, before: u32, after: u32) -> u32 {
        if before == NONE || after == NONE {
            return if before == NONE { after } else { before };
        }
        if self.nodes[before as usize].priority > self.nodes[after as usize].priority {
            self.nodes[before as usize].right = self.merge(self.nodes[before as usize].right, after);
            self.update(before);
            before
        } else {
            self.nodes[after as usize].left = self.merge(before, self.nodes[after as usize].left);
            self.update(after);
            after
        }
    }

    /// Removes an accepted request.
    fn cut(&mut self, key: Key) {
        let (before, rest) = self.split(self.root, key);
        let (found, after) = self.split(rest, (key.0, key.1 + 1));
        if found != NONE {
            self.free.push(found);
        }
        self.root = self.merge(before, after);
    }

    /// Key of the first request whose margin is below this.
    fn first_below(&self, needed: i128) -> Key {
        let (mut node, mut before) = (self.root, 0);
        loop {
            let Node { key, left, right, length, alone, .. } = self.nodes[node as usize];
            if self.margin_of(left).saturating_sub(before) < needed {
                node = left;
                continue;
            }
            before += self.sum_of(left) + i128::from(length);
            if alone - before < needed || right == NONE {
                return key;
            }
            node = right;
        }
    }

    /// The last of the longest requests of a part.
    fn last_longest(&self, mut node: u32) -> u32 {
        let longest = self.longest_of(node);
        loop {
            let Node { left, right, length, .. } = self.nodes[node as usize];
            if right != NONE && self.longest_of(right) == longest {
                node = right;
            } else if length == longest || left == NONE {
                return node;
            } else {
                node = left;
            }
        }
    }
}
