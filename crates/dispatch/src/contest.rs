//! Which of several rules leads, by what each would have met of the same requests.
//!
//! Requests are counted in blocks, in the order of arrival, and a block counts if every rule has decided on all of its
//! requests: counting sooner would take what still waits for lost, or for nothing, and flatter rules that let nothing
//! wait or those that work off what is due.
//!
//! The rule that met the most of some blocks is flattered by them, the more so the more rules there are. So blocks are
//! *split*: the leader of the even ones is measured on the odd ones, and the other way round. The lead that remains is
//! that of whoever chooses by half of the blocks, without bias, and needs no allowance for the number of rules.
//!
//! A lead holds for the load that it was seen under, and the first rule is at *home* in every load: it is the learned
//! index where there is one. Another rule is followed for a lead that chance brings about in one case of twenty, over all
//! remembered blocks, and only as long as home is not ahead of it by a standard error over any number of late blocks. A
//! rule that is a point ahead while little is asked can be thirty behind in the overload that comes then.

use std::collections::VecDeque;

use crate::policy::MOST_CANDIDATES;

/// Requests in a block, which is also the distance between two choices.
pub(crate) const BLOCK: u64 = 10;
/// The most blocks that are remembered.
const MOST: usize = 400;
/// Number of parts that the remembered blocks are divided into.
const PARTS: usize = 12;
/// Standard errors by which another rule has to be ahead: Student's t for one case of twenty and so many parts.
const MARGIN: f64 = 1.8;
/// Standard errors by which the first rule has to be ahead of another one.
const BACK: f64 = 1.0;
/// Place of the first rule.
const HOME: usize = 0;

pub(crate) struct Contest {
    rules: usize,
    blocks: VecDeque<Block>,
    /// Number of the first block.
    first: u64,
}

#[derive(Clone, Copy, Default)]
struct Block {
    offered: f64,
    met: [f64; MOST_CANDIDATES],
    /// Number of decisions that rules have yet to make.
    undecided: usize,
}

/// Another rule is ahead of the one that is followed.
pub(crate) struct Lead {
    /// Place of the rule.
    pub place: usize,
    /// Shares of the value that the followed one and the other one met.
    pub met: [f64; 2],
}

impl Contest {
    pub fn new(rules: usize) -> Contest {
        Contest { rules, blocks: VecDeque::new(), first: 0 }
    }

    /// A request of this value comes. Numbers rise by one.
    pub fn offer(&mut self, seq: u64, value: f64) {
        let number = seq / BLOCK;
        while self.first + (self.blocks.len() as u64) <= number {
            self.blocks.push_back(Block::default());
            if self.blocks.len() > MOST {
                self.blocks.pop_front();
                self.first += 1;
            }
        }
        let rules = self.rules;
        if let Some(block) = self.block_of(seq) {
            block.offered += value;
            block.undecided += rules;
        }
    }

    /// A rule has decided on a request: this much of its value is met.
    pub fn decide(&mut self, seq: u64, rule: usize, met: f64) {
        if let Some(block) = self.block_of(seq) {
            block.met[rule] += met;
            block.undecided = block.undecided.saturating_sub(1);
        }
    }

    /// Returns the rule to follow in place of this one, if it is ahead.
    pub fn leader(&mut self, followed: usize) -> Option<Lead> {
        let decided = self.decided();
        let count = decided.len();
        // The last blocks, twice as many each time, and all of them.
        let lengths = (0..).map(|doublings| PARTS << doublings).take_while(|length| *length < count);
        let lengths = lengths.chain((count >= PARTS).then_some(count));
        let scales: Vec<Parts> = lengths.map(|length| Parts::of(&decided[count - length..])).collect();
        let all = scales.last()?;
        let to = |place: usize| {
            let share = |rule: usize| all.met(rule, |_| true) / all.offered();
            Some(Lead { place, met: [share(followed), share(place)] })
        };
        if followed != HOME && scales.iter().any(|parts| parts.is_ahead(|_| HOME, followed, BACK)) {
            return to(HOME);
        }
        let best = all.best(self.rules, |_| true);
        // The leader of the odd parts is measured on the even ones, and the other way round.
        let leaders = [1, 0].map(|half| all.best(self.rules, |place| place % 2 == half));
        let is_ahead = all.is_ahead(|place| leaders[place % 2], followed, MARGIN);
        let is_still = |parts: &Parts| !parts.is_ahead(|_| followed, best, BACK);
        if best != followed && is_ahead && scales.iter().all(is_still) { to(best) } else { None }
    }

    fn block_of(&mut self, seq: u64) -> Option<&mut Block> {
        self.blocks.get_mut(usize::try_from((seq / BLOCK).checked_sub(self.first)?).ok()?)
    }

    /// Blocks, all of whose requests have been decided on. The last one may not be full.
    fn decided(&self) -> Vec<&Block> {
        let full = self.blocks.len().saturating_sub(1);
        self.blocks.range(..full).filter(|block| block.undecided == 0).collect()
    }
}

/// Some blocks in parts of about the same length.
struct Parts([Block; PARTS]);

impl Parts {
    fn of(blocks: &[&Block]) -> Parts {
        let mut parts = [Block::default(); PARTS];
        for (place, block) in blocks.iter().enumerate() {
            let part = &mut parts[place * PARTS / blocks.len()];
            part.offered += block.offered;
            part.met.iter_mut().zip(block.met).for_each(|(sum, met)| *sum += met);
        }
        Parts(parts)
    }

    fn offered(&self) -> f64 {
        self.0.iter().map(|part| part.offered).sum()
    }

    /// What a rule met in these parts.
    fn met(&self, rule: usize, counts: impl Fn(usize) -> bool) -> f64 {
        self.0.iter().enumerate().filter(|(place, _)| counts(*place)).map(|(_, part)| part.met[rule]).sum()
    }

    /// The rule that met the most in these parts; the first of several.
    fn best(&self, rules: usize, counts: impl Fn(usize) -> bool) -> usize {
        let met = |rule| self.met(rule, &counts);
        (0..rules).reduce(|best, rule| if met(rule) > met(best) { rule } else { best }).unwrap_or(0)
    }

    /// Whether a rule, which may be another one in each part, is ahead of one by this many standard errors.
    fn is_ahead(&self, own: impl Fn(usize) -> usize, other: usize, margin: f64) -> bool {
        let ahead = |place: usize| self.0[place].met[own(place)] - self.0[place].met[other];
        let offered = self.offered();
        let mean = (0..PARTS).map(ahead).sum::<f64>() / offered;
        let squares: f64 = (0..PARTS).map(|place| (ahead(place) - mean * self.0[place].offered).powi(2)).sum();
        let error = (squares * PARTS as f64 / (PARTS - 1) as f64).sqrt() / offered;
        mean > margin * error && mean > 0.0
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    /// Offers requests of value 1 in order; a rule meets one with this probability, by draws of its own.
    fn served(contest: &mut Contest, requests: Range<u64>, chances: &[f64]) {
        for seq in requests {
            contest.offer(seq, 1.0);
            for (rule, chance) in chances.iter().enumerate() {
                let draw =
                    ((seq * 8 + rule as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / (1u64 << 24) as f64;
                contest.decide(seq, rule, if draw < *chance { 1.0 } else { 0.0 });
            }
        }
    }

    #[test]
    fn a_rule_that_leads_is_followed_and_left_when_it_does_not_any_more() {
        let mut contest = Contest::new(3);
        served(&mut contest, 0..400, &[0.5, 0.5, 0.7]);
        let lead = contest.leader(0).expect("the third is far ahead");
        assert_eq!(lead.place, 2);
        assert!((lead.met[0] - 0.5).abs() < 0.06 && (lead.met[1] - 0.7).abs() < 0.06, "{:?}", lead.met);
        assert!(contest.leader(2).is_none(), "it still leads");
        served(&mut contest, 400..560, &[0.5, 0.5, 0.1]);
        assert_eq!(contest.leader(2).map(|lead| lead.place), Some(HOME), "over all it leads, of late it does not");
    }

    /// Seven rivals that are level with the first rule: the best of them has a lead, which is chance.
    #[test]
    fn the_best_of_many_that_are_level_is_seldom_followed() {
        let mut followed = 0;
        for run in 0..100 {
            let mut contest = Contest::new(8);
            served(&mut contest, 10_000 * run..10_000 * run + 300, &[0.5; 8]);
            followed += u64::from(contest.leader(HOME).is_some());
        }
        assert!(followed < 10, "{followed} of 100");
    }

    #[test]
    fn blocks_count_when_all_rules_have_decided() {
        let mut contest = Contest::new(2);
        for seq in 0..400 {
            contest.offer(seq, 1.0);
            contest.decide(seq, 1, 1.0);
            if seq >= 200 {
                contest.decide(seq - 200, 0, 0.0);
            }
            let count = (seq + 1).saturating_sub(200) / BLOCK;
            assert!(contest.decided().len().abs_diff(count as usize) <= 1, "{seq}");
        }
        assert_eq!(contest.leader(0).map(|lead| lead.place), Some(1));
        // What waits for ever is left out, and what is remembered has a bound.
        contest.offer(400, 1.0);
        served(&mut contest, 401..1_000, &[1.0, 0.0]);
        assert_eq!(contest.decided().len(), 99 - 21);
        served(&mut contest, 1_000..20_000, &[1.0, 0.0]);
        assert_eq!(contest.leader(1).map(|lead| lead.place), Some(0));
        assert_eq!(contest.blocks.len(), MOST);
    }
}
