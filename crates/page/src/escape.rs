//! Escaping of text that comes from users, for HTML and SVG.

/// Replaces characters that XML cannot hold (control characters) and characters that would reorder the text around them
/// (direction overrides) by U+FFFD.
pub fn printable(text: &str) -> String {
    let plain = |letter: char| match letter {
        '\n' | '\t' => letter,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        _ if letter.is_control() => '\u{fffd}',
        _ => letter,
    };
    text.chars().map(plain).collect()
}

/// Makes text [`printable`] and escapes it for the text and the quoted attributes of HTML and XML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in printable(text).chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_a_picture() {
        assert_eq!(escape("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
        assert_eq!(escape("bell\u{7}nul\0esc\u{1b}[31m"), "bell\u{fffd}nul\u{fffd}esc\u{fffd}[31m");
        assert_eq!(escape("\u{202e}txt\u{85}\u{ffff}"), "\u{fffd}txt\u{fffd}\u{fffd}");
        assert_eq!(escape("two\nlines, µs"), "two\nlines, µs");
    }
}
