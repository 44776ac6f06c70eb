//! Wording of messages: escaping of control characters, plurals, lists, and suggestions for misspelled names.

use std::borrow::Cow;

/// Returns whether a character is not displayed but controls the terminal, the text direction or line breaks.
fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_escaped(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Returns the text on one line, with control characters escaped as Rust writes them: `\n`, `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Like [`visible`], but keeps line ends and tabs.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// Formats a number in groups of three digits: 1234567 becomes `1 234 567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// Formats a number with its noun, in the plural unless the number is 1: `1 task`, `3 tasks`, `9 982 jobs`.
pub fn counted(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// Returns the form of a verb for a number of things: `is` or `are`.
pub fn verb<'a>(number: impl TryInto<u64>, of_one: &'a str, of_several: &'a str) -> &'a str {
    if number.try_into().is_ok_and(|number| number == 1) { of_one } else { of_several }
}

/// Returns the text with its first letter in upper case: the beginning of a sentence.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Joins up to `most` names with commas, and says how many more there are: `a, b and 3 more`.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>, most: usize) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.len().checked_sub(most) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..most].join(", ")),
    }
}

/// Returns names behind their noun, such as "mode rush" or "modes rush, night". Names that begin with the noun, as
/// default names do, say it themselves: "mode 1, mode 2".
pub fn behind_noun<'a>(noun: &str, names: impl IntoIterator<Item = &'a str>, most: usize) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.iter().all(|name| name.split_whitespace().next() == Some(noun)) {
        return listed(names, most);
    }
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{noun}{plural} {}", listed(names, most))
}

/// Returns the known name that a misspelled one most likely means, if one is close.
///
/// Case does not matter, and up to a third of the characters (at least one, but not all) may differ.
pub fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.trim().to_lowercase().replace(['_', ' '], "-");
    let wanted = plain(name);
    let length = wanted.chars().count();
    let most = (length / 3).max(1).min(length.saturating_sub(1));
    // A long text is not a misspelled name, and comparing it would take long.
    if length > 64 {
        return None;
    }
    let distance = |known: &str| strsim::osa_distance(&wanted, &plain(known));
    let close = known.into_iter().map(|known| (distance(known), known)).filter(|(distance, _)| *distance <= most);
    close.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// Returns the suffix `; did you mean "edf"?` for a message about an unknown name, or an empty text if no known name is
/// close.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    closest(name, known).map_or(String::new(), |known| format!("; did you mean {known:?}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_is_said_once() {
        let of = |names: &[&'static str]| behind_noun("mode", names.iter().copied(), 5);
        assert_eq!((of(&["rush"]), of(&["rush", "night"])), ("mode rush".into(), "modes rush, night".into()));
        assert_eq!((of(&["mode 1"]), of(&["mode 1", "mode 2"])), ("mode 1".into(), "mode 1, mode 2".into()));
        assert_eq!((of(&["modest"]), of(&["mode 1", "rush"])), ("mode modest".into(), "modes mode 1, rush".into()));
    }

    #[test]
    fn control_characters_are_escaped_and_text_is_not() {
        assert_eq!(visible("Größe µs – 1"), "Größe µs – 1");
        assert_eq!(visible("a\x1b[31mb\nc\u{9b}\u{202e}"), "a\\u{1b}[31mb\\nc\\u{9b}\\u{202e}");
        assert_eq!(visible_lines("a\tb\n\r\x07"), "a\tb\n\\r\\u{7}");
    }

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!(counted(1u64, "task"), "1 task");
        assert_eq!(counted(0usize, "job"), "0 jobs");
        assert_eq!(counted(1_234_567u64, "job"), "1 234 567 jobs");
    }

    #[test]
    fn the_name_that_was_meant_is_found() {
        let known = ["edf", "edf-skip", "temponet", "period", "wcet"];
        assert_eq!(closest("EDF", known), Some("edf"));
        assert_eq!(closest("temponett", known), Some("temponet"));
        assert_eq!(closest("perod", known), Some("period"));
        assert_eq!(closest("edf_skip", known), Some("edf-skip"));
        assert_eq!(closest("zebra", known), None);
        assert_eq!((closest("y", ["x"]), closest("X", ["x"]), closest("t1", ["t0"])), (None, Some("x"), Some("t0")));
        assert_eq!(closest(&"e".repeat(100_000), known), None);
        assert_eq!(did_you_mean("wect", known), "; did you mean \"wcet\"?");
        assert_eq!(did_you_mean("", known), "");
    }
}
