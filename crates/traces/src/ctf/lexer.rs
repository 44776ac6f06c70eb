//! Tokens of TSDL, the language of the metadata of CTF 1.8.

/// A token, with the offset at which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or a keyword.
    Word(String),
    Number(i64),
    Text(String),
    /// `:=`, `...`, `->` or a single character.
    Sign(&'static str),
}

/// A token and its offset in the text.
pub(super) type Placed = (Token, usize);

const SIGNS: [&str; 19] =
    [":=", "...", "->", "{", "}", "[", "]", "<", ">", "(", ")", ";", ",", ":", "=", ".", "+", "-", "*"];

/// Splits a text into tokens; the error has its offset.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, (usize, String)> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        if bytes[at].is_ascii_whitespace() || bytes[at] == 0 {
            at += 1;
        } else if rest.starts_with("/*") {
            at += rest.find("*/").ok_or_else(|| (at, "a comment that does not end".to_string()))? + 2;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if bytes[at] == b'"' {
            let (value, length) = quoted(rest).ok_or_else(|| (at, "a text that does not end".to_string()))?;
            tokens.push((Token::Text(value), at));
            at += length;
        } else if bytes[at].is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let number = number(&rest[..end]).ok_or_else(|| (at, format!("{:?} is no number", &rest[..end])))?;
            tokens.push((Token::Number(number), at));
            at += end;
        } else if bytes[at].is_ascii_alphabetic() || bytes[at] == b'_' {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            tokens.push((Token::Word(rest[..end].into()), at));
            at += end;
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push((Token::Sign(sign), at));
            at += sign.len();
        } else {
            let c = rest.chars().next().unwrap_or(' ');
            return Err((at, format!("{c:?} is not expected here")));
        }
    }
    Ok(tokens)
}

/// Reads a number in decimal, hexadecimal or octal, with the suffixes of C.
fn number(text: &str) -> Option<i64> {
    let text = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let value = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => u64::from_str_radix(&text[2..], 16),
        [b'0', b'b' | b'B', ..] => u64::from_str_radix(&text[2..], 2),
        [b'0', _, ..] => u64::from_str_radix(text, 8),
        _ => text.parse(),
    };
    value.ok().map(|value| value as i64)
}

/// Reads a text in quotes. Returns it, and its length with the quotes.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, at + 1)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                other => value.push(other),
            },
            c => value.push(c),
        }
    }
    None
}
