//! The page around everything: head, style, header, sections, footer, scripts.

use std::fmt::Write;

use super::{colours, escape, svg};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Nothing may be loaded from anywhere; what is in the page may run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// A page under way.
pub struct Page {
    title: String,
    style: String,
    header: String,
    body: String,
    scripts: String,
}

impl Page {
    /// A page with a heading, which is also in its title.
    pub fn new(heading: &str) -> Page {
        let header = format!("<h1>{}</h1>\n", escape(heading));
        Page { title: heading.into(), style: String::new(), header, body: String::new(), scripts: String::new() }
    }

    /// Adds to the title what kind of page it is.
    pub fn kind(mut self, kind: &str) -> Page {
        let _ = write!(self.title, " · {kind}");
        self
    }

    /// Rules beside the common ones, for what only this kind of page has.
    pub fn style(mut self, style: &str) -> Page {
        self.style += style;
        self
    }

    /// A sentence below the heading; nothing if it is empty.
    pub fn lead(mut self, words: &str) -> Page {
        if !words.is_empty() {
            let _ = writeln!(self.header, "<p>{}</p>", escape(words));
        }
        self
    }

    /// How the figures came about, in small print.
    pub fn facts(mut self, words: &str) -> Page {
        let _ = writeln!(self.header, "<p class=\"facts\">{}</p>", escape(words));
        self
    }

    /// What to conclude.
    pub fn verdict(mut self, words: &str) -> Page {
        let _ = writeln!(self.header, "<p class=\"verdict\">{}</p>", escape(words));
        self
    }

    /// A section of ready-made HTML, with a heading and a hint in words; either may be empty.
    pub fn section(mut self, heading: &str, hint: &str, html: &str) -> Page {
        self.body += "<section>\n";
        if !heading.is_empty() {
            let _ = writeln!(self.body, "<h2>{}</h2>", escape(heading));
        }
        if !hint.is_empty() {
            let _ = writeln!(self.body, "<p class=\"hint\">{}</p>", escape(hint));
        }
        self.body += html;
        self.body += "</section>\n";
        self
    }

    /// Ready-made HTML.
    pub fn html(mut self, html: &str) -> Page {
        self.body += html;
        self
    }

    /// Figures for a script, as JSON, in the element `data`.
    pub fn data(mut self, json: &str) -> Page {
        // A `<` inside a string could end the script element or open a comment in it.
        let json = json.replace('<', "\\u003c");
        let _ = writeln!(self.scripts, "<script id=\"data\" type=\"application/json\">{json}</script>");
        self
    }

    /// A script beside the common one, which runs first.
    pub fn script(mut self, script: &str) -> Page {
        let _ = writeln!(self.scripts, "<script>{script}</script>");
        self
    }

    /// The page as one file.
    pub fn finish(self) -> String {
        let Page { title, style, header, body, scripts } = self;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<title>{} · TempoNet</title>\n\
             <style>\n{}{}\n{STYLE}{style}</style>\n</head>\n<body>\n<header>\n{header}</header>\n<main>\n{body}</main>\n\
             <footer>TempoNet {}</footer>\n<script>{SCRIPT}</script>\n{scripts}</body>\n</html>\n",
            escape(&title),
            colours::variables(),
            svg::style(),
            env!("CARGO_PKG_VERSION"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_self_contained_and_follows_the_dark_setting() {
        let page = Page::new("<x>").kind("a kind").data("{\"name\":\"</script>\"}").script("run();").finish();
        assert!(page.contains("<title>&lt;x&gt; · a kind · TempoNet</title>"), "{page}");
        assert!(page.contains("prefers-color-scheme:dark") && page.contains("color-scheme:light dark"));
        assert_eq!(page.matches("</script>").count(), 3, "the common script, the data and the page's own");
        for outside in ["http://", "https://", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
