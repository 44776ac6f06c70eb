//! Reviews on a *server*, whose requests come as they come and are never preempted.
//!
//! The rules of servers differ by tens of points, and which is best depends on what is known of lengths and on the load
//! of late. So requests are compared one by one: the remembered ones are simulated under every candidate up to the
//! present, and two candidates differ in those that one of them has completed in time and the other has not. Old
//! requests fade, at a pace that grows with the run: the half of it that came last weighs most.
//!
//! A run that is cut off at the present flatters, and it does so in two opposite ways. If every request counts that has
//! come, those that wait count as lost, and rules that serve short ones first look good. If only those count whose
//! deadline has passed, rules that serve the most urgent ones first look good: they work off what is due and push a
//! backlog before them that is not due yet. So the requests count up to the first one that some candidate has yet to
//! decide on.
//!
//! The candidate that met the most is flattered by these requests, the more so the more candidates there are. So they are
//! *split* in parts: the leader of the even ones is measured on the odd ones, and the other way round. The lead that
//! remains is that of whoever chooses by half of the requests, and needs no allowance for the number of rivals. A
//! candidate takes over if that lead is one that chance brings about in one review of twenty, over the whole run, and
//! only while the one that was followed first, which knows servers of all kinds, is not ahead of it by a standard error
//! over any number of late requests: a lead holds for the load that it was seen under. The guard of the dispatcher
//! chooses in the same way, and was judged on many loads (docs/requests.md).

use std::ops::Range;

use temponet_sim::ranking::ROUNDING;
use temponet_sim::statistics::margin;
use temponet_sim::{End, Observer};
use temponet_task::{Arrival, Job, ListedJob, Measure, Time};

use super::candidates::Candidate;
use super::contest::{Contestant, Course};
use super::online::{CHANCE, Review};

/// Number of parts that a run is divided into for the standard error. Requests of one part wait for each other.
const PARTS: usize = 12;
/// Fewest requests in a part.
const FEWEST: usize = 8;
/// Standard errors by which the candidate that was followed first has to be ahead of another one.
const BACK: f64 = 1.0;

/// Whether a review can count requests one by one by this measure.
pub(super) fn counts(measure: Measure) -> bool {
    matches!(measure, Measure::Met | Measure::Value | Measure::Critical(_))
}

/// Returns the place of the candidate to follow from now on. Candidates for which no effort is left are passed over.
pub(super) fn review(course: &Course<'_>, networks: &Course<'_>, input: &Review<'_>) -> usize {
    let requests = Requests::of(course, input.known.goal().first());
    let mut left = input.effort;
    let mut served = |place: usize| -> Option<Served> {
        let candidate = input.candidates.get(place)?;
        let course = if matches!(candidate, Candidate::Network(_)) { networks } else { course };
        let count = requests.all.len();
        let mut seen =
            Seen { requests: &requests, served: Served { met: vec![false; count], left: vec![false; count] } };
        let mut contestant = Contestant::new(candidate, course)?;
        contestant.run_until(course.end(0), course, &mut left, &mut seen).then_some(seen.served)
    };
    let Some(followed) = served(input.followed) else { return input.followed };
    // If the effort does not suffice for all, it goes to home, and to those that were made for servers.
    let mut order: Vec<usize> = (0..input.candidates.len()).filter(|place| *place != input.followed).collect();
    order.sort_by_key(|place| (*place != input.home, !input.candidates[*place].is_of_server()));
    let mut places = vec![input.followed];
    let mut all = vec![followed];
    for place in order {
        if let Some(served) = served(place) {
            places.push(place);
            all.push(served);
        }
    }
    let home = places.iter().position(|place| *place == input.home);
    requests.leader(&all, home).map_or(input.followed, |leader| places[leader])
}

/// The requests of a course, in the order of their releases.
struct Requests {
    all: Vec<Request>,
    /// Place of each request, by its task and its number there.
    places: Vec<Vec<usize>>,
}

struct Request {
    /// What it is worth by the goal.
    worth: f64,
    /// Whether its deadline has passed.
    is_past: bool,
}

impl Requests {
    fn of(course: &Course<'_>, measure: Measure) -> Requests {
        let now = course.end(0);
        let lists: Vec<&[ListedJob]> = course.set.tasks().iter().map(|task| listed(&task.arrival)).collect();
        let numbers = |(task, list): (usize, &&[_])| (0..list.len()).map(move |number| (task, number));
        let mut order: Vec<(usize, usize)> = lists.iter().enumerate().flat_map(numbers).collect();
        order.sort_by_key(|(task, number)| lists[*task][*number].release);
        let mut places: Vec<Vec<usize>> = lists.iter().map(|list| vec![0; list.len()]).collect();
        let mut all = Vec::with_capacity(order.len());
        for (place, (task, number)) in order.iter().enumerate() {
            let job = &lists[*task][*number];
            let worth = match measure {
                Measure::Value => job.value,
                Measure::Critical(level) => f64::from(u8::from(job.criticality == level)),
                _ => 1.0,
            };
            all.push(Request { worth, is_past: job.deadline <= now });
            places[*task][*number] = place;
        }
        Requests { all, places }
    }

    /// Returns the place of the candidate to follow in place of the first one, if there is one. `home` is the place of the
    /// one that was followed at the start.
    fn leader(&self, all: &[Served], home: Option<usize>) -> Option<usize> {
        let count = self.decided(all);
        // The last requests, twice as many each time, and all of them.
        let lengths = (0..).map(|doublings| PARTS * FEWEST << doublings).take_while(|length| *length < count);
        let lengths = lengths.chain((count >= PARTS * FEWEST).then_some(count));
        let scales: Vec<Parts> = lengths.map(|length| self.parts(all, count - length..count)).collect();
        let whole = scales.last()?;
        let is_back = |home: &usize| scales.iter().any(|parts| parts.is_ahead(|_| *home, 0, BACK));
        if let Some(home) = home.filter(|home| *home > 0 && is_back(home)) {
            return Some(home);
        }
        let best = whole.best(|_| true);
        let leaders = [1, 0].map(|half| whole.best(|part| part % 2 == half));
        let is_ahead = whole.is_ahead(|part| leaders[part % 2], 0, margin(PARTS, CHANCE));
        let stays = !scales.iter().any(|parts| parts.is_ahead(|_| 0, best, BACK));
        (best > 0 && is_ahead && stays).then_some(best)
    }

    /// Number of the first requests on which all candidates have decided: they have left, or their deadline has passed.
    /// What is not decided on until as many more have come counts as not met.
    fn decided(&self, all: &[Served]) -> usize {
        let is_open = |place: &usize| !self.all[*place].is_past && all.iter().any(|served| !served.left[*place]);
        (self.all.len() / 2..self.all.len()).find(is_open).unwrap_or(self.all.len())
    }

    /// These requests in parts: their worth, and what each candidate met of it.
    fn parts(&self, all: &[Served], range: Range<usize>) -> Parts {
        let mut parts = Parts { worth: [0.0; PARTS], met: vec![[0.0; PARTS]; all.len()] };
        let count = range.len();
        for (number, place) in range.enumerate() {
            let (part, worth) = (number * PARTS / count, self.all[place].worth);
            parts.worth[part] += worth;
            for (met, served) in parts.met.iter_mut().zip(all) {
                met[part] += if served.met[place] { worth } else { 0.0 };
            }
        }
        parts
    }
}

/// Requests in parts.
struct Parts {
    worth: [f64; PARTS],
    /// What each candidate met.
    met: Vec<[f64; PARTS]>,
}

impl Parts {
    /// The candidate that met the most in the parts that count; the first of several.
    fn best(&self, counts: impl Fn(usize) -> bool) -> usize {
        let met = |place: usize| (0..PARTS).filter(|part| counts(*part)).map(|part| self.met[place][part]).sum::<f64>();
        let better = |best, other| if met(other) > met(best) + ROUNDING { other } else { best };
        (0..self.met.len()).reduce(better).unwrap_or(0)
    }

    /// Whether a candidate, which may be another one in each part, is ahead of one by this many standard errors.
    fn is_ahead(&self, own: impl Fn(usize) -> usize, other: usize, margin: f64) -> bool {
        let ahead = |part: usize| self.met[own(part)][part] - self.met[other][part];
        let worth: f64 = self.worth.iter().sum();
        let mean = (0..PARTS).map(ahead).sum::<f64>() / worth;
        let squares: f64 = (0..PARTS).map(|part| (ahead(part) - mean * self.worth[part]).powi(2)).sum();
        let error = (squares * PARTS as f64 / (PARTS - 1) as f64).sqrt() / worth;
        // Without any worth nothing is a number, and nobody is ahead.
        mean > margin * error + ROUNDING
    }
}

fn listed(arrival: &Arrival) -> &[ListedJob] {
    if let Arrival::Listed(jobs) = arrival { jobs } else { &[] }
}

/// Which requests a candidate has completed in time, and which have left.
struct Served {
    met: Vec<bool>,
    left: Vec<bool>,
}

struct Seen<'a> {
    requests: &'a Requests,
    served: Served,
}

impl Observer for Seen<'_> {
    fn left(&mut self, job: &Job, _first_start: Option<Time>, end: End, now: Time) {
        let numbers = self.requests.places.get(job.task.index());
        let place = usize::try_from(job.number).ok().and_then(|number| numbers?.get(number)).copied();
        if let Some(place) = place.filter(|place| *place < self.served.met.len()) {
            self.served.met[place] = end == End::Completed && now <= job.deadline;
            self.served.left[place] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of one kind, of which the last ones are not due yet.
    fn requests(all: usize, past: usize) -> Requests {
        let request = |place: usize| Request { worth: 1.0, is_past: place < past };
        Requests { all: (0..all).map(request).collect(), places: Vec::new() }
    }

    fn served(all: usize, met: impl Fn(usize) -> bool) -> Served {
        Served { met: (0..all).map(met).collect(), left: vec![true; all] }
    }

    #[test]
    fn a_lead_beyond_chance_is_followed_and_no_other() {
        let requests = requests(480, 480);
        let half = || served(480, |place| place % 2 == 0);
        assert_eq!(requests.leader(&[half(), served(480, |place| place % 4 != 3)], Some(0)), Some(1));
        assert_eq!(requests.leader(&[served(480, |place| place % 4 != 3), half()], Some(0)), None);
        assert_eq!(requests.leader(&[half(), served(480, |place| place % 2 == 0 || place == 99)], Some(0)), None);
        // All of its lead is in one part.
        assert_eq!(requests.leader(&[half(), served(480, |place| place % 2 == 0 || place < 39)], Some(0)), None);
    }

    #[test]
    fn home_is_returned_to_once_it_is_ahead_of_late() {
        let requests = requests(480, 480);
        // Far ahead over all, and behind in the last requests.
        let other = || served(480, |place| if place < 400 { place % 4 != 3 } else { place % 9 == 0 });
        let home = || served(480, |place| place % 2 == 0);
        assert_eq!(requests.leader(&[other(), home()], Some(1)), Some(1));
        assert_eq!(requests.leader(&[home(), other()], Some(0)), None, "it would be left at once");
        assert_eq!(requests.leader(&[other(), home()], None), None);
    }

    #[test]
    fn requests_count_up_to_the_first_that_some_candidate_has_yet_to_decide_on() {
        let requests = requests(480, 300);
        let mut waiting = served(480, |_| false);
        assert_eq!(requests.decided(&[served(480, |_| true), served(480, |_| true)]), 480);
        waiting.left = (0..480).map(|place| place < 200 || place == 350).collect();
        assert_eq!(requests.decided(&[served(480, |_| true), waiting]), 300);
    }

    /// Ten rivals that are level with the followed one: the best of them is often ahead by a standard error.
    #[test]
    fn the_best_of_many_that_are_level_is_seldom_followed() {
        let requests = requests(240, 240);
        let draw = |run: u64, rule: u64, place: usize| {
            ((run * 11 + rule) * 240 + place as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 0
        };
        let moves = (0..100).filter(|run| {
            let all: Vec<Served> = (0..11).map(|rule| served(240, |place| draw(*run, rule, place))).collect();
            requests.leader(&all, Some(0)).is_some()
        });
        assert!(moves.count() < 10);
    }
}
