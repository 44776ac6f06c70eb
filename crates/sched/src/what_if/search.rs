//! Search for the edge between values that suffice and values that do not, among numbers that people write.

use temponet_task::Time;

/// Numbers with at most four digits that are not zero, counted from zero.
const DIGITS: u64 = 10_000;

/// Returns the place of the greatest number with four digits that is at most `value`.
fn place(value: u64) -> u64 {
    let (mut mantissa, mut decades) = (value, 0);
    while mantissa >= DIGITS {
        (mantissa, decades) = (mantissa / 10, decades + 1);
    }
    mantissa + decades * (DIGITS - DIGITS / 10)
}

/// Returns the number with four digits at a place.
fn number(place: u64) -> u64 {
    let decade = DIGITS - DIGITS / 10;
    if place < DIGITS {
        return place;
    }
    let decades = (place - DIGITS) / decade + 1;
    (place - decades * decade).saturating_mul(10u64.saturating_pow(u32::try_from(decades).unwrap_or(u32::MAX)))
}

/// The edge of a search: a value that suffices, and the nearest one that was tried and does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The value that suffices.
    pub to: Time,
    /// The nearest value beyond it that does not; none if all that were tried suffice.
    pub beyond: Option<Time>,
}

/// Searches from `from`, which does not suffice, toward `limit` for the first number of four digits that does. Returns
/// none if the last one does not. Whoever asks takes for granted that what lies beyond a sufficient value suffices; what
/// is returned was tried on both sides of the edge.
pub(super) fn first_that_suffices(from: Time, limit: Time, suffices: impl Fn(Time) -> bool) -> Option<Edge> {
    let (start, end) = places(from, limit);
    let (mut not, mut enough) = (start, end);
    if not == enough || !suffices(Time(number(enough))) {
        return None;
    }
    while not.abs_diff(enough) > 1 {
        let middle = not.min(enough) + not.abs_diff(enough) / 2;
        if suffices(Time(number(middle))) { enough = middle } else { not = middle }
    }
    let beyond = if not == start { from } else { Time(number(not)) };
    Some(Edge { to: Time(number(enough)), beyond: Some(beyond) })
}

/// Places of the numbers between which a search goes. A start between two numbers counts as the one behind it, and a
/// limit as the one before it.
fn places(from: Time, limit: Time) -> (u64, u64) {
    let above = |value: u64| place(value) + u64::from(number(place(value)) < value);
    if limit > from { (place(from.0), place(limit.0)) } else { (above(from.0), above(limit.0)) }
}

/// Searches from `from`, which suffices, toward `limit` for the last number of four digits that does.
pub(super) fn last_that_suffices(from: Time, limit: Time, suffices: impl Fn(Time) -> bool) -> Edge {
    match first_that_suffices(from, limit, |value| !suffices(value)) {
        Some(edge) => Edge { to: edge.beyond.unwrap_or(from), beyond: Some(edge.to) },
        None => {
            let (start, end) = places(from, limit);
            Edge { to: if start == end { from } else { Time(number(end)) }, beyond: None }
        }
    }
}

/// Rates that people choose, in jobs per 1000 seconds and decade: their periods are short numbers.
const RATES: [u64; 7] = [1000, 1250, 2000, 2500, 4000, 5000, 8000];

/// Periods of such rates that are longer than `from` and at most `limit`, ascending.
pub(super) fn natural_periods(from: Time, limit: Time) -> Vec<Time> {
    let mut periods = Vec::new();
    let mut decade: u64 = 1_000_000_000_000;
    while decade > 0 && decade <= u64::MAX / 10 {
        periods.extend(RATES.map(|rate| Time(decade / rate)));
        decade *= 10;
    }
    // Faster ones than one job a second, too.
    for shift in 1..=9 {
        periods.extend(RATES.map(|rate| Time(1_000_000_000_000 / 10u64.pow(shift) / rate)));
    }
    periods.retain(|period| (from.0 + 1..=limit.0).contains(&period.0));
    periods.sort_unstable();
    periods.dedup();
    periods
}

/// Searches a list for the first value that suffices, as [`first_that_suffices`] does.
pub(super) fn first_in(list: &[Time], from: Time, suffices: impl Fn(Time) -> bool) -> Option<Edge> {
    let last = list.len().checked_sub(1)?;
    if !suffices(list[last]) {
        return None;
    }
    let (mut not, mut enough) = (None, last);
    while enough - not.map_or(0, |not: usize| not + 1) > 0 {
        let low = not.map_or(0, |not| not + 1);
        let middle = low + (enough - low) / 2;
        if suffices(list[middle]) { enough = middle } else { not = Some(middle) }
    }
    Some(Edge { to: list[enough], beyond: Some(not.map_or(from, |not| list[not])) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_numbers_of_four_digits_are_inverse() {
        for at in (0..60_000).chain([100_000, 130_000]) {
            assert_eq!(place(number(at)), at);
            assert!(number(at) < number(at + 1));
        }
        assert_eq!(number(place(123_456)), 123_400);
    }

    #[test]
    fn both_sides_of_an_edge_were_tried() {
        let at_most = |edge: u64| move |value: Time| value.0 <= edge;
        let found = first_that_suffices(Time(123_456), Time(1), at_most(99_999)).unwrap();
        assert_eq!((found.to, found.beyond), (Time(99_990), Some(Time(100_000))));
        let near = first_that_suffices(Time(123_456), Time(1), at_most(123_455)).unwrap();
        assert_eq!((near.to, near.beyond), (Time(123_400), Some(Time(123_456))));
        assert_eq!(first_that_suffices(Time(100), Time(50), at_most(49)), None);
        let room = last_that_suffices(Time(10_000), Time(10_000_000), at_most(123_456));
        assert_eq!((room.to, room.beyond), (Time(123_400), Some(Time(123_500))));
        assert_eq!(last_that_suffices(Time(10), Time(1000), |_| true), Edge { to: Time(1000), beyond: None });
    }

    #[test]
    fn natural_rates_are_those_that_people_choose() {
        let ms = Time::from_ms;
        let found = natural_periods(ms(100), ms(1000));
        assert_eq!(found, [125, 200, 250, 400, 500, 800, 1000].map(ms));
        let edge = first_in(&found, ms(100), |period| period >= ms(236)).unwrap();
        assert_eq!((edge.to, edge.beyond), (ms(250), Some(ms(200))));
        assert_eq!(first_in(&found, ms(100), |_| true).unwrap().beyond, Some(ms(100)));
    }
}
