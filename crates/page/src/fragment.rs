//! Pieces of HTML that several kinds of page need: scrolling boxes, figures, folded sections, lists of skipped items.
//!
//! Captions, summaries and list items are plain text and are escaped; the `html` parameters are trusted, ready-made
//! HTML.

use super::escape;

/// Wraps wide content, such as a picture, in a box that scrolls sideways instead of shrinking.
pub fn scrolling(html: &str) -> String {
    format!("<div class=\"scroll\">{html}</div>\n")
}

/// A picture with a caption above it.
pub fn figure(caption: &str, html: &str) -> String {
    format!("<figure><figcaption>{}</figcaption>{html}</figure>\n", escape(caption))
}

/// Several [`figure`]s side by side, as far as the window has room.
pub fn figures(html: &str) -> String {
    format!("<div class=\"figures\">{html}</div>\n")
}

/// Content that is folded away until the reader opens its summary.
pub fn folded(summary: &str, html: &str) -> String {
    format!("<details><summary>{}</summary>\n{html}</details>\n", escape(summary))
}

/// A list of what was left out of a result, as names and reasons; empty if nothing was.
pub fn skipped(items: &[(String, String)]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let item = |(name, why): &(String, String)| format!("<li>{}: {}</li>", escape(name), escape(why));
    format!("<ul class=\"skipped\">{}</ul>\n", items.iter().map(item).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_escaped_and_an_empty_list_is_nothing() {
        assert!(figure("a < b", "<svg></svg>").contains("<figcaption>a &lt; b</figcaption><svg>"));
        assert!(folded("a & b", "").contains("<summary>a &amp; b</summary>"));
        assert_eq!(skipped(&[("x".into(), "<y>".into())]), "<ul class=\"skipped\"><li>x: &lt;y&gt;</li></ul>\n");
        assert_eq!(skipped(&[]), "");
    }
}
