//! How long a job may run before one with an earlier deadline has to: the least of `d − now − h(d)` over the deadlines `d` before its
//! own, where h(d) is what may be asked for by `d`. Found from the last deadline down, as QPA does: h never falls, so from the
//! demand at one deadline follows which of the earlier ones cannot be worse, and these are skipped.

use temponet_task::Time;

/// Looking at a claim costs a nanosecond or two; a decision looks at so many at most.
const EFFORT: usize = 16_384;

/// What floating-point numbers may be off by, and much more.
const MARGIN: f64 = 1.0 + 1e-6;

/// Work that may be due: `work` by `first`, and again every `period`.
#[derive(Clone, Copy, Debug)]
struct Claim {
    first: u64,
    period: u64,
    work: u64,
}

/// What may be asked for from now on. Keeps its memory between decisions.
#[derive(Debug, Default)]
pub(super) struct Claims(Vec<Claim>);

/// What [`Claims::slack`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slack {
    /// So much time can be spent on something else.
    Spare(Time),
    /// More may be asked for than there is time: some deadline is not safe, whatever runs.
    Overdrawn,
    /// It would have taken too long to tell.
    Unknown,
}

impl Claims {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Makes room for so many claims: the next one of every task, and those of its jobs that are ready.
    pub fn reserve(&mut self, claims: usize) {
        self.clear();
        self.0.reserve(claims);
    }

    /// A job: work that is due once.
    pub fn add_job(&mut self, deadline: Time, work: Time) {
        self.0.push(Claim { first: deadline.0, period: u64::MAX, work: work.0 });
    }

    /// Jobs to come: work that is due at `first` for the first time.
    pub fn add_task(&mut self, first: Time, period: Time, work: u64) {
        self.0.push(Claim { first: first.0, period: period.0.max(1), work });
    }

    /// The least of `d − now − h(d)` over all deadlines d with `from` ≤ d < `to`, or `cap` if that is less. Uses the claims up.
    pub fn slack(&mut self, now: Time, from: Time, to: Time, cap: Time) -> Slack {
        let (mut least, mut before, mut effort) = (cap.0, to.0, EFFORT);
        // The first deadlines are the likeliest to leave little, and the less is known to be left, the more can be skipped.
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
            self.0.retain(|claim| claim.first < before);
            effort = match effort.checked_sub(self.0.len()) {
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
            // Earlier deadlines from `busy + least` on leave `least` or more.
            before = deadline.min(busy.saturating_add(least));
        }
        Slack::Spare(Time(least))
    }

    /// A date from which on every deadline surely leaves `least`. A claim asks for at most its share of the time, and for its work
    /// once more: h(d) ≤ U·(d − now) + K.
    fn all_leave(&self, least: u64, now: Time) -> u64 {
        let (mut load, mut once) = (0.0, least as f64);
        for claim in &self.0 {
            let share = claim.work as f64 / claim.period as f64;
            load += share;
            once += share * claim.period.saturating_sub(claim.first.saturating_sub(now.0)) as f64;
        }
        let date = once / (1.0 - load) * MARGIN + 1.0;
        // Too close to full load, rounding could tell otherwise.
        if load < 1.0 - 1e-6 { now.0.saturating_add(date as u64) } else { u64::MAX }
    }

    /// The last deadline before a date, 0 if there is none, and the demand by then.
    fn last_before(&self, date: u64) -> (u64, u64) {
        let (mut last, mut demand) = (0, 0u64);
        for claim in self.0.iter().filter(|claim| claim.first < date) {
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

    /// The definition: every date is looked at, and those that are nobody's deadline are passed over.
    fn by_definition(claims: &Claims, now: u64, from: u64, to: u64, cap: u64) -> i64 {
        let mut least = cap as i64;
        for date in from..to {
            let due = |claim: &&Claim| date >= claim.first && (date - claim.first).is_multiple_of(claim.period);
            if !claims.0.iter().any(|claim| due(&claim)) {
                continue;
            }
            let mut demand = 0;
            for claim in &claims.0 {
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
                let first = Time(now + rng.random_range(1..40));
                claims.add_task(first, Time(rng.random_range(3..40)), rng.random_range(1..=heaviest));
            }
            let from = claims.0.iter().filter(|claim| claim.period == u64::MAX).map(|claim| claim.first).min().unwrap();
            let to = from + rng.random_range(0..200);
            let cap = if rng.random_bool(0.5) { 1_000_000 } else { rng.random_range(1..30) };
            let expected = by_definition(&claims, now, from, to, cap);
            let shown = format!("{claims:?}");
            match claims.slack(Time(now), Time(from), Time(to), Time(cap)) {
                Slack::Spare(Time(0)) => {
                    // It stops at the first deadline that leaves nothing.
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
            // Full load: every deadline leaves just as much as the next.
            claims.add_task(Time(1_000 + step), Time(100), 1);
        }
        assert_eq!(claims.slack(Time(0), Time(500), Time(1_000_000), Time(1_000)), Slack::Unknown);
        claims.clear();
        claims.add_task(Time(u64::MAX - 5), Time(u64::MAX), u64::MAX);
        claims.add_task(Time(7), Time(1), u64::MAX);
        assert_eq!(claims.slack(Time(5), Time(7), Time::NEVER, Time::NEVER), Slack::Overdrawn);
    }
}
