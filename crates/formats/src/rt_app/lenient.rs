//! Conversion of rt-app's lenient JSON to plain JSON.
//!
//! rt-app and its workgen accept comments, commas before closing brackets, and keys without a value (`"suspend",`).
//! Comments and such commas are replaced by spaces, and a key without a value gets an empty text. Everything stays on
//! its line.

/// Returns the text as plain JSON.
pub(super) fn plain(text: &str) -> String {
    with_values(&without_comments(text))
}

/// Gives the value `""` to every key that is followed by a comma or a brace.
fn with_values(plain: &str) -> String {
    let bytes = plain.as_bytes();
    let mut out = String::with_capacity(plain.len());
    // For each open bracket: whether it is a brace.
    let mut open = Vec::new();
    let (mut at, mut kept, mut is_key) = (0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => {
                open.push(bytes[at] == b'{');
                is_key = bytes[at] == b'{';
            }
            b'}' | b']' => {
                open.pop();
            }
            b',' => is_key = open.last() == Some(&true),
            b':' => is_key = false,
            b'"' => {
                at = end_of_string(bytes, at);
                let next = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace());
                if is_key && matches!(next, Some(b',' | b'}')) {
                    out.push_str(&plain[kept..at]);
                    out.push_str(":\"\"");
                    kept = at;
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    out + &plain[kept..]
}

/// Replaces comments and commas before closing brackets by spaces.
fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    // Position of a comma that only spaces and comments have followed so far.
    let mut comma = None;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at = end_of_string(&bytes, at);
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = find(&bytes, at + 2, b"*/").map_or(bytes.len(), |end| end + 2);
                at = blank(&mut bytes, at, end);
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let end = find(&bytes, at, b"\n").unwrap_or(bytes.len());
                at = blank(&mut bytes, at, end);
            }
            byte => {
                match byte {
                    b',' => comma = Some(at),
                    b'}' | b']' => {
                        if let Some(comma) = comma.take() {
                            bytes[comma] = b' ';
                        }
                    }
                    byte if byte.is_ascii_whitespace() => {}
                    _ => comma = None,
                }
                at += 1;
            }
        }
    }
    // Only whole comments and single ASCII bytes were replaced, by ASCII, so the text is still UTF-8.
    String::from_utf8(bytes).unwrap_or_default()
}

/// Returns whether plain JSON has a top-level object `tasks`, which distinguishes an rt-app workload from a task set in
/// this crate's own format. The text may contain errors: the reader of the recognized format reports them.
pub(super) fn is_workload(plain: &str) -> bool {
    let bytes = plain.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let end = end_of_string(bytes, at);
                let mut after = bytes[end..].iter().filter(|byte| !byte.is_ascii_whitespace());
                let opens = after.next() == Some(&b':') && after.next() == Some(&b'{');
                if depth == 1 && opens && &bytes[at..end] == b"\"tasks\"" {
                    return true;
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    false
}

/// Returns the position after the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the position of the first occurrence of `wanted` at or after `from`.
fn find(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let place = bytes.get(from..)?.windows(wanted.len()).position(|window| window == wanted)?;
    Some(from + place)
}

/// Replaces everything but line breaks by spaces. Returns `end`.
fn blank(bytes: &mut [u8], start: usize, end: usize) -> usize {
    for byte in &mut bytes[start..end] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_become_blanks_of_the_same_length() {
        let text = "{ /* é\n*/ \"a//b\": [1, 2, // two\n ], \"c\\\"/*\": {}, /* end */ }";
        let plain = without_comments(text);
        assert_eq!((plain.len(), plain.lines().count()), (text.len(), text.lines().count()));
        let value: serde_json::Value = serde_json::from_str(&plain).unwrap();
        assert_eq!(value, serde_json::json!({ "a//b": [1, 2], "c\"/*": {} }));
        for open in ["/*", "{ \"a", "//", "\"\\", ",", "/", "{,}"] {
            assert_eq!(without_comments(open).len(), open.len());
            assert!(super::plain(open).len() >= open.len());
        }
    }

    #[test]
    fn keys_without_a_value_get_an_empty_one() {
        let value: serde_json::Value =
            serde_json::from_str(&plain(r#"{ "suspend", "run": 5, "b": ["x", "y", ], "c": "d", "yield" }"#)).unwrap();
        let expected = serde_json::json!({ "suspend": "", "run": 5, "b": ["x", "y"], "c": "d", "yield": "" });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_workload_has_an_object_of_tasks_at_the_top() {
        for (text, expected) in [
            (r#"{ "tasks" : { "a": {} } }"#, true),
            (r#"{ "global": { "x": [1] }, "tasks": { broken"#, true),
            (r#"{ "task": [ { "name": "tasks" } ] }"#, false),
            (r#"{ "mode": [ { "tasks": { } } ] }"#, false),
            (r#"{ "tasks": [] }"#, false),
            (r#"{ "x": "tasks" }"#, false),
            ("", false),
        ] {
            assert_eq!(is_workload(text), expected, "{text}");
        }
    }
}
