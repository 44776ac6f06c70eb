//! Limits of settings: each function takes named numbers and returns what is wrong with the first one that is out of
//! range, or `None`. The text begins with the name, so that the line of the setting can be found.

/// Numbers from 1 to 100,000,000.
pub fn not_whole(list: &[(&str, usize)]) -> Option<String> {
    let wrong = list.iter().find(|(_, value)| !(1..=100_000_000).contains(value));
    wrong.map(|(name, value)| format!("{name} = {value} is not from 1 to 100000000"))
}

/// Positive, finite numbers.
pub fn not_positive(list: &[(&str, f64)]) -> Option<String> {
    let wrong = list.iter().find(|(_, value)| !(value.is_finite() && *value > 0.0));
    wrong.map(|(name, value)| format!("{name} = {value} is not positive"))
}

/// Finite numbers of 0 or more.
pub fn negative(list: &[(&str, f64)]) -> Option<String> {
    let wrong = list.iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0));
    wrong.map(|(name, value)| format!("{name} = {value} is negative or no number"))
}

/// Numbers from 0 to 1.
pub fn not_a_share(list: &[(&str, f64)]) -> Option<String> {
    let wrong = list.iter().find(|(_, value)| !(0.0..=1.0).contains(value));
    wrong.map(|(name, value)| format!("{name} = {value} is not from 0 to 1"))
}

/// Number of environments, 1 to 100,000.
pub fn not_environments(count: usize) -> Option<String> {
    (!(1..=100_000).contains(&count)).then(|| format!("environments = {count} is not from 1 to 100000"))
}
