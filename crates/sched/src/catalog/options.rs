//! Options of a scheduler as a user writes them: `option=value`, separated by colons or commas.

use std::ops::RangeInclusive;

use temponet_analysis::packing::Fit;
use temponet_task::Time;
use temponet_wording::did_you_mean;

use super::Entry;

/// Name, default and meaning of an option.
pub type OptionHelp = (&'static str, &'static str, &'static str);

pub(super) const QUANTUM: OptionHelp =
    ("quantum", "1ms", "time between comparisons of laxities; the default adapts to sets on another time scale");
pub(super) const FIT: OptionHelp =
    ("fit", "first", "core for the next task, by decreasing load: first, best (fullest) or worst (emptiest)");

/// Default of an option that has no value unless a user gives one.
pub(super) const NONE: &str = "none";

/// The options that a user gave, and the defaults of the entry.
#[derive(Clone, Debug)]
pub struct Options {
    known: &'static [OptionHelp],
    given: Vec<(String, String)>,
}

impl Options {
    /// The defaults of an entry.
    pub(super) fn of(entry: &Entry) -> Options {
        Options { known: entry.options, given: Vec::new() }
    }

    /// Reads the options that a user gave for an entry. The error says which one the entry does not have.
    pub(super) fn parse(entry: &Entry, text: &str) -> Result<Options, String> {
        let mut options = Options::of(entry);
        for part in text.split([':', ',']).filter(|_| !text.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is not option=value"))?;
            let known: Vec<&str> = options.known.iter().map(|(known, ..)| *known).collect();
            if !known.contains(&key) {
                let hint = did_you_mean(key, known.iter().copied());
                let has = if known.is_empty() { "none".into() } else { known.join(", ") };
                return Err(format!("there is no option {key:?}; it has {has}{hint}"));
            }
            if options.given(key).is_some() {
                return Err(format!("option {key:?} is given twice"));
            }
            options.given.push((key.into(), value.into()));
        }
        // Who writes out that an option has no value gives it none.
        let is_none = |key: &str| options.known.iter().any(|(known, default, _)| *known == key && *default == NONE);
        options.given.retain(|(key, value)| value != NONE || !is_none(key));
        Ok(options)
    }

    /// Value that the user gave for an option, none if there is none.
    pub fn given(&self, key: &str) -> Option<&str> {
        self.given.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Value of an option, or its default.
    pub fn text(&self, key: &str) -> &str {
        let default = self.known.iter().find(|(name, ..)| *name == key).map_or("", |(_, default, _)| *default);
        self.given(key).unwrap_or(default)
    }

    /// The `quantum` that the user gave; none lets the scheduler choose its default.
    pub fn quantum(&self) -> Result<Option<Time>, String> {
        self.time("quantum")
    }

    /// A time above zero that the user gave for an option.
    pub fn time(&self, key: &str) -> Result<Option<Time>, String> {
        let Some(text) = self.given(key) else { return Ok(None) };
        match Time::with_unit(text) {
            Ok(Time::ZERO) => Err(format!("{key} must be greater than zero")),
            Ok(time) => Ok(Some(time)),
            Err(error) => Err(format!("{key} = {text:?}: {error}")),
        }
    }

    /// A number of at least 1 that the user gave for an option.
    pub fn number(&self, key: &str) -> Result<Option<f64>, String> {
        let Some(text) = self.given(key) else { return Ok(None) };
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 1.0);
        number.map(Some).ok_or_else(|| format!("{key} = {text:?} must be a number, at least 1"))
    }

    /// A number from 0 to 1.
    pub fn share(&self, key: &str) -> Result<f64, String> {
        let text = self.text(key);
        let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        share.ok_or_else(|| format!("{key} = {text:?} must be a number from 0 to 1"))
    }

    /// A whole number of at least 1.
    pub fn count(&self, key: &str) -> Result<usize, String> {
        let text = self.text(key);
        let count = text.parse::<u32>().ok().filter(|count| *count >= 1);
        count
            .map(|count| count as usize)
            .ok_or_else(|| format!("{key} = {text:?} must be a whole number from 1 to {}", u32::MAX))
    }

    /// A whole number in a range.
    pub fn count_within(&self, key: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
        let text = self.text(key);
        let count = text.parse::<usize>().ok().filter(|count| range.contains(count));
        count
            .ok_or_else(|| format!("{key} = {text:?} must be a whole number from {} to {}", range.start(), range.end()))
    }

    /// The rule for packing tasks.
    pub fn fit(&self) -> Result<Fit, String> {
        match self.text("fit") {
            "first" => Ok(Fit::First),
            "best" => Ok(Fit::Best),
            "worst" => Ok(Fit::Worst),
            other => Err(format!("fit = {other:?} is none of first, best, worst")),
        }
    }
}
