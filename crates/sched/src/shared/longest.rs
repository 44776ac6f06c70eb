//! A priority queue for planning: the job with the greatest key first, of equal keys the job with the greatest place.
//!
//! A plan in deadline order drops many jobs, and in a binary heap every drop takes a chain of comparisons that no
//! processor predicts. All keys are known before the first drop, so they are spread over buckets by their logarithm, and
//! the greatest bucket is found by two bit operations. Most buckets hold one job or jobs with equal keys. Jobs that would
//! make a bucket long go to a heap, so clustered keys cost no more than a heap does.

use std::collections::BinaryHeap;

/// Number of buckets: a word of words.
const BUCKETS: usize = 64 * 64;
/// Number of jobs that a new job is compared with before it goes to the heap.
const MOST_STEPS: usize = 8;
/// No further job in a bucket.
const END: u32 = u32::MAX;

/// Jobs by key. The buffers are reused between plans.
#[derive(Clone, Debug, Default)]
pub(crate) struct Longest {
    /// Key and next job in the same bucket, by place.
    jobs: Vec<(u64, u32)>,
    /// First job of each bucket that is not empty.
    first: Vec<u32>,
    /// One bit for each bucket that is not empty, and one for each such word.
    filled: Vec<u64>,
    filled_words: u64,
    /// Scale at which the first bucket begins, and binary logarithm of the width of a bucket.
    least: u64,
    shift: u32,
    /// Keys and places of jobs whose buckets are long.
    others: BinaryHeap<(u64, u32)>,
}

/// Returns a number that never decreases with the key and is about linear in its logarithm.
fn scale(key: u64) -> u64 {
    (key as f64).to_bits()
}

impl Longest {
    /// Reserves memory for this many jobs.
    pub fn reserve(&mut self, jobs: usize) {
        self.jobs.clear();
        self.jobs.reserve(jobs);
        self.others.clear();
        self.others.reserve(jobs);
        self.first.resize(BUCKETS, END);
        self.filled.resize(BUCKETS / 64, 0);
    }

    /// Empties the queue and takes the keys of all jobs that may enter it, by place.
    pub fn begin(&mut self, keys: impl Iterator<Item = u64>) {
        self.jobs.clear();
        let (mut least, mut most) = (u64::MAX, 0);
        self.jobs.extend(keys.map(|key| {
            (least, most) = (least.min(key), most.max(key));
            (key, END)
        }));
        self.least = scale(least);
        let range = scale(most).saturating_sub(self.least);
        self.shift = (u64::BITS - range.leading_zeros()).saturating_sub(BUCKETS.ilog2());
        self.first.resize(BUCKETS, END);
        self.filled.clear();
        self.filled.resize(BUCKETS / 64, 0);
        self.filled_words = 0;
        self.others.clear();
    }

    /// Adds the job at a place.
    pub fn push(&mut self, place: usize) {
        let entry = (self.jobs[place].0, place as u32);
        let bucket = ((scale(entry.0) - self.least) >> self.shift) as usize;
        let (word, bit) = (bucket / 64, 1 << (bucket % 64));
        if self.filled[word] & bit == 0 {
            self.filled[word] |= bit;
            self.filled_words |= 1 << word;
            self.jobs[place].1 = END;
            self.first[bucket] = entry.1;
            return;
        }
        // A bucket is in descending order.
        let (mut before, mut after) = (END, self.first[bucket]);
        for _ in 0..MOST_STEPS {
            if after == END || (self.jobs[after as usize].0, after) < entry {
                self.jobs[place].1 = after;
                match before {
                    END => self.first[bucket] = entry.1,
                    _ => self.jobs[before as usize].1 = entry.1,
                }
                return;
            }
            (before, after) = (after, self.jobs[after as usize].1);
        }
        self.others.push(entry);
    }

    /// Removes the job with the greatest key and returns its place.
    pub fn pop(&mut self) -> Option<usize> {
        let other = self.others.peek().copied();
        if self.filled_words == 0 {
            return self.others.pop().map(|(_, place)| place as usize);
        }
        let word = self.filled_words.ilog2() as usize;
        let bucket = 64 * word + self.filled[word].ilog2() as usize;
        let place = self.first[bucket];
        let (key, next) = self.jobs[place as usize];
        if other > Some((key, place)) {
            return self.others.pop().map(|(_, place)| place as usize);
        }
        self.first[bucket] = next;
        if next == END {
            self.filled[word] &= !(1 << (bucket % 64));
            if self.filled[word] == 0 {
                self.filled_words &= !(1 << word);
            }
        }
        Some(place as usize)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    #[test]
    fn jobs_leave_in_the_order_of_a_heap() {
        let mut rng = Pcg64::seed_from_u64(4);
        let mut queue = Longest::default();
        for case in 0..600 {
            let count = rng.random_range(1..400);
            let keys: Vec<u64> = (0..count)
                .map(|_| match case % 5 {
                    0 => rng.random_range(500_000..1_500_000),
                    1 => rng.random_range(1..4),
                    // One job that is far longer than the others, which are nearly equal.
                    2 => {
                        if rng.random_range(0..50) == 0 {
                            u64::MAX
                        } else {
                            rng.random_range(1_000_000..1_000_100)
                        }
                    }
                    3 => rng.random_range(1e-3..1e6f64).to_bits(),
                    _ => rng.random(),
                })
                .collect();
            queue.begin(keys.iter().copied());
            let mut heap = BinaryHeap::new();
            for place in 0..keys.len() {
                queue.push(place);
                heap.push((keys[place], place));
                for _ in 0..rng.random_range(0..3) {
                    assert_eq!(queue.pop(), heap.pop().map(|(_, place)| place), "case {case}");
                }
            }
            while let Some((_, place)) = heap.pop() {
                assert_eq!(queue.pop(), Some(place), "case {case}");
            }
            assert_eq!(queue.pop(), None);
        }
    }
}
