//! How long requests take, as far as it is said or learned.

use std::collections::HashMap;

use temponet_task::LogNormal;

use crate::regressor::Regressor;
use crate::sketch::Sketch;

/// Where lengths of requests come from. Where it has nothing to say, the length is that of the class: a quantile of the
/// requests of the class that have left, those cut off included. Before the first request has finished nothing is
/// known, and nothing is refused for its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Estimator {
    /// What the request says.
    #[default]
    Given,
    /// The class of the request, whatever it says.
    Class,
    /// A regression on the features of the request, and on what it says, learned from those that have left.
    Regressor {
        /// Number of features that each request has, at most 1 000; none where only what the request says is learned from.
        features: usize,
    },
}

/// The most classes with lengths of their own; the others have one together.
const MOST_CLASSES: usize = 1024;

/// Quantile that tells the spread of lengths, beside the median.
pub(crate) const NINTH_DECILE: f64 = 0.9;

/// One in this many requests of a class that would all be refused for their learned lengths is let through, so that an
/// old belief does not last for ever.
const PROBES: u32 = 32;

/// Quantiles of a class are worked out again when one in this many of its lengths is new. Quantiles of as many lengths
/// are off by chance by more than that.
const FRESH: f64 = 256.0;

/// What lengths depend on.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub class: u32,
    /// Median in nanoseconds and standard deviation of the logarithm.
    pub estimate: Option<(f64, f64)>,
    pub features: Vec<f64>,
}

/// A length in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Length {
    Unknown,
    /// Learned from others, but left out of account, so that lengths like it become known.
    Probe(u64),
    /// Said of the request.
    Given(u64),
    /// Learned from others; may change while the request waits.
    Learned(u64),
}

impl Length {
    /// Returns the length, zero if it is unknown.
    pub fn nanoseconds(self) -> u64 {
        match self {
            Length::Unknown | Length::Probe(_) => 0,
            Length::Given(length) | Length::Learned(length) => length.max(1),
        }
    }
}

pub(crate) struct Lengths {
    kind: Estimator,
    /// Quantiles that are asked for, with their standard deviations of a normal distribution.
    quantiles: Vec<(f64, f64)>,
    classes: HashMap<u32, Class>,
    /// Requests of all classes; stands in for a class of which none has finished.
    all: Class,
    regressor: Option<Regressor>,
}

/// Lengths of one class.
struct Class {
    sketch: Sketch,
    /// Its quantiles when they were last worked out, and how many lengths have come since.
    quantiles: Vec<Option<u64>>,
    unread: f64,
    /// Number of requests that were refused, or let through, because learned lengths say that they would be late.
    refused: u32,
}

impl Class {
    fn new() -> Class {
        Class { sketch: Sketch::new(), quantiles: Vec::new(), unread: 0.0, refused: 0 }
    }

    fn add(&mut self, length: u64, is_complete: bool) {
        self.sketch.add(length, is_complete);
        self.unread += 1.0;
    }

    fn quantile(&mut self, at: usize, quantiles: &[(f64, f64)]) -> Option<u64> {
        if self.quantiles.is_empty() || self.unread * FRESH > self.sketch.total() {
            self.quantiles.clear();
            self.quantiles.extend(quantiles.iter().map(|(share, _)| self.sketch.quantile(*share)));
            self.unread = 0.0;
        }
        self.quantiles[at]
    }
}

impl Lengths {
    pub fn new(kind: Estimator, shares: &[f64]) -> Lengths {
        let regressor = match kind {
            Estimator::Regressor { features } => Some(Regressor::new(features, shares)),
            Estimator::Given | Estimator::Class => None,
        };
        let quantiles = shares.iter().map(|share| (*share, LogNormal::deviations_at(*share))).collect();
        Lengths { kind, quantiles, classes: HashMap::new(), all: Class::new(), regressor }
    }

    /// Returns the length of a request at the quantile with this place.
    pub fn length(&mut self, facts: &Facts, quantile: usize) -> Length {
        let median = facts.estimate.map(|(median, _)| median);
        match (self.kind, facts.estimate, &mut self.regressor) {
            (Estimator::Given, Some((median, spread)), _) => {
                Length::Given((median * (spread * self.quantiles[quantile].1).exp()) as u64)
            }
            (_, _, Some(regressor)) => match regressor.predict(&facts.features, median, quantile) {
                Some(length) => Length::Learned(length),
                None => self.of_class(facts.class, quantile),
            },
            _ => self.of_class(facts.class, quantile),
        }
    }

    /// Returns the length by now of a request that came with this one.
    pub fn length_by_now(&mut self, facts: &Facts, quantile: usize, then: Length) -> Length {
        match then {
            Length::Probe(_) | Length::Given(_) => then,
            Length::Unknown | Length::Learned(_) => self.length(facts, quantile),
        }
    }

    fn of_class(&mut self, class: u32, quantile: usize) -> Length {
        let own = self.classes.get_mut(&class).and_then(|class| class.quantile(quantile, &self.quantiles));
        match own.or_else(|| self.all.quantile(quantile, &self.quantiles)) {
            Some(length) => Length::Learned(length),
            None => Length::Unknown,
        }
    }

    /// Returns the standard deviation of the logarithm of a length; `ninth_decile` is the place of that quantile, and
    /// the first one is the median.
    pub fn spread(&mut self, facts: &Facts, ninth_decile: usize) -> f64 {
        if let (Estimator::Given, Some((_, spread))) = (self.kind, facts.estimate) {
            return spread;
        }
        let [median, high] = [0, ninth_decile].map(|at| self.length(facts, at).nanoseconds());
        match median {
            0 => 0.0,
            median => (high as f64 / median as f64).ln().max(0.0) / self.quantiles[ninth_decile].1,
        }
    }

    /// Whether a request is let through although this length of it says that it will be late. Some are if the length
    /// is learned, as if nothing were known of them.
    pub fn lets_through(&mut self, facts: &Facts, length: Length) -> bool {
        if !matches!(length, Length::Learned(_)) {
            return false;
        }
        // A class of which none has left counts with all others.
        let class = self.classes.get_mut(&facts.class).unwrap_or(&mut self.all);
        class.refused = class.refused.wrapping_add(1);
        class.refused.is_multiple_of(PROBES)
    }

    /// Learns from a request that has left.
    pub fn observe(&mut self, facts: &Facts, length: u64, is_complete: bool) {
        self.all.add(length, is_complete);
        if self.classes.len() < MOST_CLASSES || self.classes.contains_key(&facts.class) {
            self.classes.entry(facts.class).or_insert_with(Class::new).add(length, is_complete);
        }
        if let Some(regressor) = &mut self.regressor {
            let median = facts.estimate.map(|(median, _)| median);
            regressor.observe(&facts.features, median, length, is_complete);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Estimate;

    fn facts(class: u32, estimate: Option<Estimate>) -> Facts {
        Facts { class, estimate: estimate.and_then(Estimate::parameters), features: vec![1.0] }
    }

    fn is_about(length: Length, expected: f64) -> bool {
        (length.nanoseconds() as f64 / expected).ln().abs() < 0.03
    }

    #[test]
    fn estimates_that_are_no_lengths_give_the_quantile_of_the_class() {
        let mut lengths = Lengths::new(Estimator::Given, &[0.5, 0.9]);
        let good = Some(Estimate::seconds(2.0).ninth_decile(4.0));
        assert_eq!(lengths.length(&facts(0, None), 0), Length::Unknown);
        (0..9).for_each(|_| lengths.observe(&facts(0, good), 5_000_000_000, true));
        assert!(is_about(lengths.length(&facts(0, good), 0), 2e9));
        assert!(is_about(lengths.length(&facts(0, good), 1), 4e9));
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, -1.0] {
            assert!(is_about(lengths.length(&facts(0, Some(Estimate::seconds(odd))), 0), 5e9), "{odd}");
            let spread = facts(0, Some(Estimate::seconds(2.0).ninth_decile(odd)));
            assert!(is_about(lengths.length(&spread, 1), 2e9), "{odd}");
        }
    }

    #[test]
    fn classes_have_their_own_lengths_and_new_ones_those_of_all() {
        let mut lengths = Lengths::new(Estimator::Class, &[0.5]);
        for class in 0..2_000 {
            lengths.observe(&facts(class, None), if class == 1 { 1_000_000 } else { 1_000 }, true);
        }
        assert!(lengths.classes.len() == MOST_CLASSES);
        let ignored = Some(Estimate::seconds(2.0));
        assert!(is_about(lengths.length(&facts(1, ignored), 0), 1e6));
        assert!(is_about(lengths.length(&facts(5_000, None), 0), 1e3));
    }

    #[test]
    fn quantiles_of_a_class_follow_its_lengths_before_many_are_new() {
        let mut lengths = Lengths::new(Estimator::Class, &[0.5]);
        (0..1_000).for_each(|_| lengths.observe(&facts(0, None), 1_000, true));
        assert!(is_about(lengths.length(&facts(0, None), 0), 1e3));
        // Half of them would be an even chance, and one in 256 may be unread.
        let needed = 1
            + (0..2_000)
                .position(|_| {
                    lengths.observe(&facts(0, None), 1_000_000, true);
                    is_about(lengths.length(&facts(0, None), 0), 1e6)
                })
                .expect("they are the most by then");
        assert!((1_000..1_010).contains(&needed), "{needed}");
    }

    #[test]
    fn a_class_that_would_always_be_refused_is_probed() {
        let mut lengths = Lengths::new(Estimator::Class, &[0.5]);
        lengths.observe(&facts(0, None), 1_000_000, true);
        let learned = lengths.length(&facts(0, None), 0);
        assert_eq!((0..320).filter(|_| lengths.lets_through(&facts(0, None), learned)).count(), 10);
        assert!((0..320).all(|_| !lengths.lets_through(&facts(0, None), Length::Given(1_000_000))));
    }
}
