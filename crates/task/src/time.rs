//! Integer time: nanoseconds since the start of a run, or a duration in nanoseconds.
//!
//! Schedules are full of exact coincidences, such as a completion at a deadline or three releases at once.
//! Floating-point time would break them. Time is therefore a `u64` of nanoseconds everywhere, and text such as `2.5ms`
//! is parsed with decimal arithmetic, never through a float.

use alloc::{
    format,
    string::{String, ToString},
};

#[cfg(not(feature = "std"))]
use crate::float::Float as _;
use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub};

/// A point in time or a duration, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// Unit of a number that is written without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds, the default in task-set files.
    Ms,
    /// Seconds.
    S,
}

impl TimeUnit {
    /// Every unit with its names.
    const NAMES: [(&'static str, TimeUnit); 5] =
        [("ns", TimeUnit::Ns), ("us", TimeUnit::Us), ("µs", TimeUnit::Us), ("ms", TimeUnit::Ms), ("s", TimeUnit::S)];

    /// Returns the unit with this name: `ns`, `us` (or `µs`), `ms` or `s`.
    pub fn from_name(name: &str) -> Option<TimeUnit> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit)
    }

    /// Name of the unit in a file.
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::Ns => "ns",
            TimeUnit::Us => "us",
            TimeUnit::Ms => "ms",
            TimeUnit::S => "s",
        }
    }

    /// Power of ten that converts this unit to nanoseconds.
    fn exponent(self) -> i32 {
        match self {
            TimeUnit::Ns => 0,
            TimeUnit::Us => 3,
            TimeUnit::Ms => 6,
            TimeUnit::S => 9,
        }
    }
}

/// Reason why a text is not a time. The caller, who knows file and line, adds the text itself to the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Neither a number nor a number with a unit.
    #[error("is not a time: write a number, or a number with ns, us, ms or s, such as \"2.5ms\"")]
    NotATime,
    /// A unit other than `ns`, `us`, `ms` and `s`.
    #[error("has an unknown unit: use ns, us, ms or s")]
    UnknownUnit,
    /// A comma between digits.
    #[error("has a comma: the decimal mark is a point, as in \"2.5ms\"")]
    Comma,
    /// A negative number.
    #[error("is negative")]
    Negative,
    /// A number above zero that rounds to zero nanoseconds.
    #[error("is less than a nanosecond")]
    TooFine,
    /// A time above [`Time::MAX_INPUT`].
    #[error("is too large: the longest time is 30 years")]
    TooLarge,
}

impl Time {
    /// Start of a run, or a duration of zero.
    pub const ZERO: Time = Time(0);
    /// Time of an event that never happens; later than every other time.
    pub const NEVER: Time = Time(u64::MAX);
    /// Longest time that user input may contain (30 years). A sum of a dozen such times still fits, which lets the
    /// engine add times without overflow checks.
    pub const MAX_INPUT: Time = Time(30 * 365 * 86_400 * 1_000_000_000);

    /// `n` microseconds.
    pub const fn from_us(n: u64) -> Time {
        Time(n * 1_000)
    }

    /// `n` milliseconds.
    pub const fn from_ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Time {
        Time(n * 1_000_000_000)
    }

    /// Converts to seconds, for display and ratios. Never compute points in time from the result.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Converts to milliseconds, for display.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Returns `self - other`, or zero if that is negative.
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }

    /// Returns `self - other` in nanoseconds, with its sign.
    pub const fn signed_sub(self, other: Time) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }

    /// Returns the first multiple of `step` that is strictly later than `self`. `step` must not be zero.
    pub const fn next_multiple(self, step: Time) -> Time {
        Time((self.0 / step.0 + 1) * step.0)
    }

    /// Parses a time such as `40`, `2.5`, `1e3`, `40ms`, `2.5 ms` or `400us`. A bare number is in `unit`s.
    pub fn parse(text: &str, unit: TimeUnit) -> Result<Time, TimeError> {
        let text = text.trim();
        let is_number_char = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | '_');
        // The `e` of an exponent belongs to the number only if a digit or a sign follows it.
        let mut split = text.len();
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let exponent = matches!(c, 'e' | 'E')
                && at > 0
                && chars.peek().is_some_and(|(_, next)| next.is_ascii_digit() || matches!(next, '+' | '-'));
            if !is_number_char(c) && !exponent {
                split = at;
                break;
            }
        }
        let (number, suffix) = text.split_at(split);
        if !number.bytes().any(|b| b.is_ascii_digit()) {
            return Err(TimeError::NotATime);
        }
        if suffix.strip_prefix(',').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            return Err(TimeError::Comma);
        }
        let suffix = suffix.trim();
        let unit = match suffix {
            "" => unit,
            _ => TimeUnit::from_name(suffix).ok_or(TimeError::UnknownUnit)?,
        };
        Self::from_decimal(number, unit.exponent())
    }

    /// Parses a time with a mandatory unit, such as `40ms`; only zero may go without.
    ///
    /// Meant for command lines, where nothing defines the unit of a bare number.
    pub fn with_unit(text: &str) -> Result<Time, String> {
        let time = Time::parse(text, TimeUnit::Ms).map_err(|error| match error {
            TimeError::NotATime => "is not a time: write a number with ns, us, ms or s, such as 2.5ms".into(),
            error => error.to_string(),
        })?;
        // Only a bare number means a different time under a different default unit.
        if Time::parse(text, TimeUnit::Us) != Ok(time) {
            let number = text.trim();
            return Err(format!("{number} what? Write {number}us, {number}ms or {number}s"));
        }
        Ok(time)
    }

    /// Parses `number` × 10^`shift` nanoseconds, rounded to the nearest nanosecond.
    fn from_decimal(number: &str, shift: i32) -> Result<Time, TimeError> {
        let number = without_separators(number).ok_or(TimeError::NotATime)?;
        let (mantissa, exponent) = match number.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| TimeError::NotATime)?),
            None => (number.as_str(), 0),
        };
        let (negative, digits) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
            return Err(TimeError::NotATime);
        }
        let all = format!("{whole}{fraction}");
        let significant = all.trim_start_matches('0').trim_end_matches('0');
        if significant.is_empty() {
            return Ok(Time::ZERO);
        }
        if negative {
            return Err(TimeError::Negative);
        }
        let trailing_zeros = (all.len() - all.trim_end_matches('0').len()) as i64;
        let power = i64::from(exponent) + i64::from(shift) - fraction.len() as i64 + trailing_zeros;
        let whole_digits = significant.len() as i64 + power;
        if whole_digits > 20 {
            return Err(TimeError::TooLarge);
        }
        if whole_digits < 0 {
            return Err(TimeError::TooFine);
        }
        // Keep the digits before the decimal point, and round up if the first digit after it is at least 5.
        let kept = (whole_digits as usize).min(significant.len());
        let rounds_up = significant.as_bytes().get(kept).is_some_and(|digit| *digit >= b'5');
        let value: u128 = if kept == 0 { 0 } else { significant[..kept].parse().map_err(|_| TimeError::TooLarge)? };
        let value = value * 10u128.pow(power.max(0) as u32) + u128::from(rounds_up);
        if value == 0 {
            return Err(TimeError::TooFine);
        }
        match u64::try_from(value) {
            Ok(ns) if Time(ns) <= Time::MAX_INPUT => Ok(Time(ns)),
            _ => Err(TimeError::TooLarge),
        }
    }
}

/// Returns a number without the underscores that group its digits, as in `1_000`; none if an underscore does not stand
/// between two digits.
pub fn without_separators(number: &str) -> Option<String> {
    let bytes = number.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_between = |at: usize| at > 0 && is_digit(at - 1) && is_digit(at + 1);
    number.match_indices('_').all(|(at, _)| is_between(at)).then(|| number.replace('_', ""))
}

impl From<core::time::Duration> for Time {
    /// Durations beyond 584 years become the longest time.
    fn from(duration: core::time::Duration) -> Time {
        Time(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl Mul<u64> for Time {
    type Output = Time;
    fn mul(self, count: u64) -> Time {
        Time(self.0 * count)
    }
}

/// Writes the exact time in the largest unit that leaves a non-zero digit before the decimal point: `40ms`, `2.5ms`,
/// `7.805847289s`. [`Time::parse`] reads the text back as the same time.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, unit) = match self.0 {
            0 => (1_000_000, "ms"),
            ns if ns >= 1_000_000_000 => (1_000_000_000, "s"),
            ns if ns >= 1_000_000 => (1_000_000, "ms"),
            ns if ns >= 1_000 => (1_000, "us"),
            _ => (1, "ns"),
        };
        let digits = (size as f64).log10() as usize;
        let fraction = format!("{:0digits$}", self.0 % size);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        f.pad(&format!("{}{point}{fraction}{unit}", self.0 / size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units_and_decimals_exactly() {
        let ms = |text| Time::parse(text, TimeUnit::Ms);
        assert_eq!(ms("40"), Ok(Time::from_ms(40)));
        assert_eq!(ms("40ms"), Ok(Time::from_ms(40)));
        assert_eq!(ms("2.5ms"), Ok(Time::from_us(2_500)));
        assert_eq!(ms("400 us"), Ok(Time::from_us(400)));
        assert_eq!(ms("400µs"), Ok(Time::from_us(400)));
        assert_eq!(ms("1_000"), Ok(Time::from_secs(1)));
        assert_eq!(ms("1_0.2_5"), Ok(Time::from_us(10_250)));
        assert_eq!(ms("1e3"), Ok(Time::from_secs(1)));
        assert_eq!(ms("1.5e-3"), Ok(Time(1_500)));
        assert_eq!(ms("0.1"), Ok(Time::from_us(100)));
        assert_eq!(ms("0"), Ok(Time::ZERO));
        assert_eq!(ms("1e-400"), Err(TimeError::TooFine));
        assert_eq!(ms("0.30000000000000004"), Ok(Time::from_us(300)));
        assert_eq!(ms("8232.8005us"), Ok(Time(8_232_801)));
        assert_eq!(ms("0.5ns"), Ok(Time(1)));
        assert_eq!(Time::parse("7", TimeUnit::Us), Ok(Time::from_us(7)));
    }

    #[test]
    fn says_what_is_wrong() {
        let ms = |text| Time::parse(text, TimeUnit::Ms);
        for text in ["", "ms", "nan", "inf", "1.2.3", "--4", "1-2", "_1ms", "1_ms", "1__0", "1_.5", "1._5", "-_4"] {
            assert_eq!(ms(text), Err(TimeError::NotATime), "{text}");
        }
        assert_eq!(ms("4 sec"), Err(TimeError::UnknownUnit));
        assert_eq!(ms("4e"), Err(TimeError::UnknownUnit));
        assert_eq!(
            (ms("1,5ms"), ms("1,5"), ms("1,ms")),
            (Err(TimeError::Comma), Err(TimeError::Comma), Err(TimeError::UnknownUnit))
        );
        assert_eq!(ms("-4"), Err(TimeError::Negative));
        assert_eq!(ms("0.4ns"), Err(TimeError::TooFine));
        assert_eq!(ms("1e30"), Err(TimeError::TooLarge));
        assert_eq!(ms("99999999999999999999999999"), Err(TimeError::TooLarge));
        assert_eq!(ms("1e999999999999"), Err(TimeError::NotATime));
    }

    #[test]
    fn a_bare_number_does_not_pass_for_a_time_with_a_unit() {
        assert_eq!(Time::with_unit("2.5ms"), Ok(Time::from_us(2_500)));
        assert_eq!(Time::with_unit("1 s"), Ok(Time::from_secs(1)));
        assert_eq!(Time::with_unit("0"), Ok(Time::ZERO));
        assert_eq!(Time::with_unit("10").unwrap_err(), "10 what? Write 10us, 10ms or 10s");
        assert!(Time::with_unit("0.0000004").unwrap_err().contains("less than a nanosecond"));
        assert!(Time::with_unit("1e-6").unwrap_err().contains("what?"));
    }

    #[test]
    fn display_reads_back() {
        for ns in [0, 1, 999, 1_000, 1_001, 2_500_000, 40_000_000, 1_500_000_000, 7_805_847_289, 3_000_000_000] {
            assert_eq!(Time::parse(&Time(ns).to_string(), TimeUnit::S), Ok(Time(ns)));
        }
        assert_eq!(Time(2_500_000).to_string(), "2.5ms");
        assert_eq!(Time(7_805_847_289).to_string(), "7.805847289s");
        assert_eq!(Time(1_000_000_001).to_string(), "1.000000001s");
        assert_eq!(Time(999).to_string(), "999ns");
    }
}
