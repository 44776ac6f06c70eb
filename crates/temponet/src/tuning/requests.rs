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
//! backlog before them that is not due yet. A candidate takes over if it is ahead *in both views*, by more than chance
//! brings about in one review of twenty, over all rivals: the rule that is followed first was learned on servers, and of
//! ten that are level with it, one is ahead by a standard error in most reviews.

use temponet_sim::ranking::ROUNDING;
use temponet_sim::statistics::margin;
use temponet_sim::{End, Observer};
use temponet_task::{Arrival, Job, ListedJob, Measure, Time};

use super::candidates::Candidate;
use super::contest::{Contestant, Course};
use super::online::{CHANCE, Review};

/// Number of parts that a run is divided into for the standard error. Requests of one part wait for each other.
const PARTS: usize = 12;
/// Share of the run after which a request weighs 1/e.
const MEMORY: f64 = 0.5;

/// Whether a review can count requests one by one by this measure.
pub(super) fn counts(measure: Measure) -> bool {
    matches!(measure, Measure::Met | Measure::Value | Measure::Critical(_))
}

/// Returns the place of the candidate to follow from now on. Candidates for which no effort is left are passed over.
pub(super) fn review(course: &Course<'_>, networks: &Course<'_>, input: &Review<'_>) -> usize {
    let requests = Requests::of(course, input.known.goal().first());
    let mut left = input.effort;
    let mut met = |place: usize| -> Option<Vec<bool>> {
        let candidate = input.candidates.get(place)?;
        let course = if matches!(candidate, Candidate::Network(_)) { networks } else { course };
        let mut seen = Seen { requests: &requests, met: vec![false; requests.all.len()] };
        let mut contestant = Contestant::new(candidate, course)?;
        contestant.run_until(course.end(0), course, &mut left, &mut seen).then_some(seen.met)
    };
    let Some(followed) = met(input.followed) else { return input.followed };
    // If the effort does not suffice for all, it goes to those that were made for servers.
    let (mut first, others): (Vec<usize>, Vec<usize>) = (0..input.candidates.len())
        .filter(|place| *place != input.followed)
        .partition(|place| input.candidates[*place].is_of_server());
    first.extend(others);
    let margin = margin(PARTS, CHANCE / first.len().max(1) as f64);
    let leads = first.into_iter().filter_map(|place| Some((place, requests.lead(&met(place)?, &followed, margin)?)));
    let best = leads.reduce(|best, other| if other.1 > best.1 { other } else { best });
    best.map_or(input.followed, |(place, _)| place)
}

/// The requests of a course, in the order of their releases.
struct Requests {
    all: Vec<Request>,
    /// Place of each request, by its task and its number there.
    places: Vec<Vec<usize>>,
}

struct Request {
    /// What it is worth by the goal; older ones are worth less.
    weight: f64,
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
        let memory = MEMORY * order.len() as f64;
        let mut all = Vec::with_capacity(order.len());
        for (place, (task, number)) in order.iter().enumerate() {
            let job = &lists[*task][*number];
            let worth = match measure {
                Measure::Value => job.value,
                Measure::Critical(level) => f64::from(u8::from(job.criticality == level)),
                _ => 1.0,
            };
            let age = (order.len() - place) as f64;
            all.push(Request { weight: worth * (-age / memory).exp(), is_past: job.deadline <= now });
            places[*task][*number] = place;
        }
        Requests { all, places }
    }

    /// By how much a candidate is ahead of another one, as a share of the requests, in the view in which it is less
    /// ahead; `None` unless it is ahead in both by more than this many standard errors.
    fn lead(&self, own: &[bool], other: &[bool], margin: f64) -> Option<f64> {
        let all = self.lead_among(|_| true, own, other, margin)?;
        let past = self.lead_among(|request| request.is_past, own, other, margin)?;
        Some(all.min(past))
    }

    fn lead_among(&self, counts: impl Fn(&Request) -> bool, own: &[bool], other: &[bool], margin: f64) -> Option<f64> {
        // Weight, and what one candidate met beyond the other, for each part of the run.
        let mut parts = [(0.0, 0.0); PARTS];
        let length = self.all.len().div_ceil(PARTS).max(1);
        for (place, request) in self.all.iter().enumerate().filter(|(_, request)| counts(request)) {
            let (weight, lead) = &mut parts[place / length];
            *weight += request.weight;
            *lead += request.weight * (f64::from(u8::from(own[place])) - f64::from(u8::from(other[place])));
        }
        let weight: f64 = parts.iter().map(|part| part.0).sum();
        let mean = parts.iter().map(|part| part.1).sum::<f64>() / weight;
        let squares: f64 = parts.iter().map(|(weight, lead)| (lead - mean * weight).powi(2)).sum();
        let error = (squares * PARTS as f64 / (PARTS - 1) as f64).sqrt() / weight;
        // Without any weight nothing is a number, and nobody is ahead.
        (mean > margin * error + ROUNDING).then_some(mean)
    }
}

fn listed(arrival: &Arrival) -> &[ListedJob] {
    if let Arrival::Listed(jobs) = arrival { jobs } else { &[] }
}

/// Which requests a candidate has completed in time.
struct Seen<'a> {
    requests: &'a Requests,
    met: Vec<bool>,
}

impl Observer for Seen<'_> {
    fn left(&mut self, job: &Job, _first_start: Option<Time>, end: End, now: Time) {
        let numbers = self.requests.places.get(job.task.index());
        let place = usize::try_from(job.number).ok().and_then(|number| numbers?.get(number));
        if let Some(met) = place.and_then(|place| self.met.get_mut(*place)) {
            *met = end == End::Completed && now <= job.deadline;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of one kind, of which the last ones are not due yet.
    fn requests(all: usize, past: usize) -> Requests {
        let request = |place: usize| Request { weight: 1.0, is_past: place < past };
        Requests { all: (0..all).map(request).collect(), places: Vec::new() }
    }

    #[test]
    fn a_candidate_leads_only_if_it_is_ahead_among_all_and_among_those_that_are_past() {
        let requests = requests(240, 120);
        let met = |of: &dyn Fn(usize) -> bool| (0..240).map(of).collect::<Vec<bool>>();
        let half = met(&|place| place % 2 == 0);
        // What is due is served, and a backlog that is not due yet pays for it.
        let urgent = met(&|place| place < 120);
        assert_eq!(requests.lead(&urgent, &half, 1.0), None);
        // The other way round.
        let later = met(&|place| place >= 120);
        assert_eq!(requests.lead(&later, &half, 1.0), None);
        let better = met(&|place| place % 4 != 3);
        assert_eq!(requests.lead(&better, &half, 1.0), Some(0.25));
        assert_eq!(requests.lead(&half, &better, 1.0), None);
    }

    /// Ten rivals that are level with the followed one: the best of them is often ahead by a standard error.
    #[test]
    fn among_many_rivals_a_lead_of_two_standard_errors_is_chance() {
        let requests = requests(240, 240);
        let other = vec![false; 240];
        let rare: Vec<bool> = (0..240).map(|place| [30, 90, 150, 210].contains(&place)).collect();
        assert!(requests.lead(&rare, &other, 1.0).is_some());
        assert_eq!(requests.lead(&rare, &other, margin(PARTS, CHANCE / 10.0)), None);
        let often: Vec<bool> = (0..240).map(|place| place % 20 == 0).collect();
        assert!(requests.lead(&often, &other, margin(PARTS, CHANCE / 10.0)).is_some());
    }

    #[test]
    fn a_lead_within_chance_is_none() {
        let requests = requests(240, 240);
        let other = vec![false; 240];
        let mut once: Vec<bool> = other.clone();
        once[30] = true;
        assert_eq!(requests.lead(&once, &other, 1.0), None, "one request of 240");
        let mut twice = once.clone();
        twice[31] = true;
        let elsewhere: Vec<bool> = (0..240).map(|place| place == 200).collect();
        assert_eq!(requests.lead(&twice, &elsewhere, 1.0), None, "two against one");
        let often: Vec<bool> = (0..240).map(|place| place % 20 == 0).collect();
        assert!(requests.lead(&often, &other, 1.0).is_some());
        assert_eq!(self::requests(240, 0).lead(&often, &other, 1.0), None, "none is past");
    }
}
