//! Slack of a core: how long it may run another job than its guaranteed one with the earliest deadline. The slack is
//! the least `d − now − h(d)` over the deadlines `d` up to that of the other job, where h(d) is an upper bound on the
//! demand by `d`. It is computed from the last deadline down, as in QPA: h never decreases with d, so the demand at one
//! deadline tells which earlier deadlines cannot leave less, and these are skipped.

use temponet_task::Time;

/// Maximum number of claims that a decision looks at. One claim takes a nanosecond or two.
pub(super) const EFFORT: usize = 16_384;

/// Factor for floating-point rounding, far greater than the possible error.
const MARGIN: f64 = 1.0 + 1e-6;

/// Upper bound on the demand of a job or task: `work` is due at `first`, and again every `period`.
#[derive(Clone, Copy, Debug)]
struct Claim {
    first: u64,
    period: u64,
    work: u64,
}

/// Upper bounds on all demand from now on. The buffers are reused between decisions.
#[derive(Debug, Default)]
pub(super) struct Claims {
    all: Vec<Claim>,
    /// Claims that the descent has not passed yet.
    left: Vec<Claim>,
}

/// Result of [`Claims::slack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slack {
    /// Time that can be spent on another job.
    Spare(Time),
    /// The demand may exceed the time available: some deadline is not safe, whichever job runs.
    Overdrawn,
    /// The computation would have taken too long.
    Unknown,
}

impl Claims {
    pub fn clear(&mut self) {
        self.all.clear();
    }

    /// Reserves memory for this many claims: the next arrival of every task, and its ready jobs.
    pub fn reserve(&mut self, claims: usize) {
        self.clear();
        self.all.reserve(claims);
        self.left.clear();
        self.left.reserve(claims);
    }

    /// Adds a ready job, whose work is due once.
    pub fn add_job(&mut self, deadline: Time, work: Time) {
        self.all.push(Claim { first: deadline.0, period: u64::MAX, work: work.0 });
    }

    /// Adds the future jobs of a task, whose work is due at `first` for the first time.
    pub fn add_task(&mut self, first: Time, period: Time, work: u64) {
        self.all.push(Claim { first: first.0, period: period.0.max(1), work });
    }

    /// Returns the least `d − now − h(d)` over all deadlines d with `from` ≤ d < `to`, at most `cap`.
    pub fn slack(&mut self, now: Time, from: Time, to: Time, cap: Time) -> Slack {
        self.left.clear();
        self.left.extend(self.all.iter().filter(|claim| claim.first < to.0));
        let (mut least, mut before, mut effort) = (cap.0, to.0, EFFORT);
        // The first deadlines are the likeliest to leave little time, and the smaller `least` is, the more deadlines
        // can be skipped.
        for date in [from.0.saturating_add(1), from.0.saturating_add(to.0.saturating_sub(from.0) / 8)] {
            let (deadline, demand) = self.last_before(date);
            if date > from.0 && date < to.0 && deadline >= from.0 {
                match deadline.checked_sub(now.0.saturating_add(demand)) {
                    Some(spare) => least = least.min(spare),
                    None => return Slack::Overdrawn,
                }
            }
        }
        before = before.min(self.all_leave(least, now));
        while before > from.0 && least > 0 {
            self.left.retain(|claim| claim.first < before);
            effort = match effort.checked_sub(self.left.len()) {
                Some(left) => left,
                None => return Slack::Unknown,
            };
            let (deadline, demand) = self.last_before(before);
            if deadline < from.0 {
                break;
            }
            let busy = now.0.saturating_add(demand);
            let Some(spare) = deadline.checked_sub(busy) else { return Slack::Overdrawn };
            least = least.min(spare);
            // Earlier deadlines at or after `busy + least` leave at least `least`.
            before = deadline.min(busy.saturating_add(least));
        }
        Slack::Spare(Time(least))
    }

    /// Returns whether no deadline d with d ≥ `from` is overdrawn: `h(d) ≤ d − now`. Returns none if it would take too
    /// long to tell.
    pub fn all_fit(&mut self, now: Time, from: Time) -> Option<bool> {
        // The slack at an earlier date is greater by the difference. The descent may stop at a slack of zero.
        let (earlier, one) = (now.saturating_sub(Time(1)), Time(1));
        match self.slack(earlier, from, Time::NEVER, one) {
            Slack::Spare(time) => Some(time == one),
            Slack::Overdrawn => Some(false),
            Slack::Unknown => None,
        }
    }

    /// Returns a date from which on every deadline leaves at least `least`. The demand of a claim is at most its share
    /// of the time plus its work once more: h(d) ≤ U·(d − now) + K.
    fn all_leave(&self, least: u64, now: Time) -> u64 {
        let (mut load, mut once) = (0.0, least as f64);
        for claim in &self.left {
            let share = claim.work as f64 / claim.period as f64;
            load += share;
            once += share * claim.period.saturating_add(now.0).saturating_sub(claim.first) as f64;
        }
        let date = once / (1.0 - load) * MARGIN + 1.0;
        // Close to full load, rounding could decide.
        if load < 1.0 - 1e-6 { now.0.saturating_add(date as u64) } else { u64::MAX }
    }

    /// Returns the last deadline before a date, 0 if there is none, and the demand by then.
    fn last_before(&self, date: u64) -> (u64, u64) {
        let (mut last, mut demand) = (0, 0u64);
        for claim in self.left.iter().filter(|claim| claim.first < date) {
            let repeats = (date - 1 - claim.first) / claim.period;
            last = last.max(claim.first + repeats * claim.period);
            demand = demand.saturating_add((repeats + 1).saturating_mul(claim.work));
        }
        (last, demand)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    /// The definition: every date is visited, and dates that are no deadline are skipped.
    fn by_definition(claims: &Claims, now: u64, from: u64, to: u64, cap: u64) -> i64 {
        let mut least = cap as i64;
        for date in from..to {
            let due = |claim: &&Claim| date >= claim.first && (date - claim.first).is_multiple_of(claim.period);
            if !claims.all.iter().any(|claim| due(&claim)) {
                continue;
            }
            let mut demand = 0;
            for claim in &claims.all {
                let mut deadline = claim.first;
                while deadline <= date {
                    demand += claim.work;
                    deadline = deadline.saturating_add(claim.period);
                }
            }
            least = least.min(date as i64 - now as i64 - demand as i64);
        }
        least
    }

    #[test]
    fn the_descent_finds_what_enumeration_finds() {
        let mut rng = Pcg64::seed_from_u64(1);
        let (mut spare, mut none, mut overdrawn) = (0, 0, 0);
        for _ in 0..20_000 {
            let now = rng.random_range(0..50);
            let mut claims = Claims::default();
            let heaviest = [1, 2, 4, 8][rng.random_range(0..4)];
            for _ in 0..rng.random_range(1..5) {
                claims.add_job(Time(now + rng.random_range(1..80)), Time(rng.random_range(1..=heaviest)));
            }
            for _ in 0..rng.random_range(0..5) {
                let first = Time((now + rng.random_range(1..40)).saturating_sub(10));
                claims.add_task(first, Time(rng.random_range(3..40)), rng.random_range(1..=heaviest));
            }
            let from =
                claims.all.iter().filter(|claim| claim.period == u64::MAX).map(|claim| claim.first).min().unwrap();
            let to = from + rng.random_range(0..200);
            let cap = if rng.random_bool(0.5) { 1_000_000 } else { rng.random_range(1..30) };
            let expected = by_definition(&claims, now, from, to, cap);
            let shown = format!("{claims:?}");
            match claims.slack(Time(now), Time(from), Time(to), Time(cap)) {
                Slack::Spare(Time(0)) => {
                    // The descent stops at the first deadline that leaves no time.
                    assert!(expected <= 0, "{shown}");
                    none += 1;
                }
                Slack::Spare(Time(found)) => {
                    assert_eq!(found as i64, expected, "{shown}");
                    spare += 1;
                }
                Slack::Overdrawn => {
                    assert!(expected < 0, "{shown}");
                    overdrawn += 1;
                }
                Slack::Unknown => panic!("{shown}"),
            }
        }
        assert!(spare > 3_000 && none > 300 && overdrawn > 1_000, "{spare} {none} {overdrawn}");
    }

    #[test]
    fn what_takes_too_long_is_unknown_and_the_largest_times_do_no_harm() {
        let mut claims = Claims::default();
        for step in 0..100 {
            // Full load: every deadline leaves the same time.
            claims.add_task(Time(1_000 + step), Time(100), 1);
        }
        assert_eq!(claims.slack(Time(0), Time(500), Time(1_000_000), Time(1_000)), Slack::Unknown);
        claims.clear();
        claims.add_task(Time(u64::MAX - 5), Time(u64::MAX), u64::MAX);
        claims.add_task(Time(7), Time(1), u64::MAX);
        assert_eq!(claims.slack(Time(5), Time(7), Time::NEVER, Time::NEVER), Slack::Overdrawn);
    }
}
