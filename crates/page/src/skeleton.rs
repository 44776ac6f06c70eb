//! The skeleton of every page: head, style sheet, header, sections, footer, and scripts.

use std::fmt::Write;

use super::{colours, escape, svg};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Content security policy: the page loads nothing, and only its own styles and scripts apply.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
/// What a page is allowed besides that runs a module of its own in a worker of its own.
const MODULE_POLICY: &str = " 'wasm-unsafe-eval' blob:; worker-src blob:; img-src data: blob:";

/// Builder of a page. Arguments called `html` are trusted; all other text is escaped.
pub struct Page {
    title: String,
    style: String,
    header: String,
    body: String,
    scripts: String,
    has_module: bool,
}

impl Page {
    /// Starts a page with a heading, which is also the first part of its title.
    pub fn new(heading: &str) -> Page {
        let header = format!("<h1>{}</h1>\n", escape(heading));
        Page {
            title: heading.into(),
            style: String::new(),
            header,
            body: String::new(),
            scripts: String::new(),
            has_module: false,
        }
    }

    /// Adds the kind of page to the title.
    pub fn kind(mut self, kind: &str) -> Page {
        let _ = write!(self.title, " · {kind}");
        self
    }

    /// Adds CSS rules that only this kind of page needs.
    pub fn style(mut self, style: &str) -> Page {
        self.style += style;
        self
    }

    /// Adds a sentence below the heading; nothing if it is empty.
    pub fn lead(mut self, words: &str) -> Page {
        if !words.is_empty() {
            let _ = writeln!(self.header, "<p>{}</p>", escape(words));
        }
        self
    }

    /// Adds, in small print, how the figures were obtained.
    pub fn facts(mut self, words: &str) -> Page {
        let _ = writeln!(self.header, "<p class=\"facts\">{}</p>", escape(words));
        self
    }

    /// Adds the conclusion, in a highlighted box.
    pub fn verdict(mut self, words: &str) -> Page {
        let _ = writeln!(self.header, "<p class=\"verdict\">{}</p>", escape(words));
        self
    }

    /// Adds the few numbers that matter, each with what it is.
    pub fn numbers(mut self, numbers: &[(String, String)]) -> Page {
        if !numbers.is_empty() {
            let item =
                |(number, what): &(String, String)| format!("<li><b>{}</b>{}</li>", escape(number), escape(what));
            let _ =
                writeln!(self.header, "<ul class=\"numbers\">{}</ul>", numbers.iter().map(item).collect::<String>());
        }
        self
    }

    /// Adds a section of HTML with a heading and a hint above it; either text may be empty.
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

    /// Adds HTML.
    pub fn html(mut self, html: &str) -> Page {
        self.body += html;
        self
    }

    /// Adds JSON for the scripts of the page, in the element with the id `data`.
    pub fn data(mut self, json: &str) -> Page {
        // A `<` inside a JSON string could end the script element or open a comment in it.
        let json = json.replace('<', "\\u003c");
        let _ = writeln!(self.scripts, "<script id=\"data\" type=\"application/json\">{json}</script>");
        self
    }

    /// Allows the page to run WebAssembly that it holds itself, in workers. It still loads nothing.
    pub fn with_module(mut self) -> Page {
        self.has_module = true;
        self
    }

    /// Adds data that is no JSON, in an element with this id. Only text that cannot end the element is for it, such as
    /// Base64.
    pub fn text(mut self, id: &str, text: &str) -> Page {
        let _ = writeln!(self.scripts, "<script id=\"{id}\" type=\"text/plain\">{text}</script>");
        self
    }

    /// Adds a script; it runs after the common one.
    pub fn script(mut self, script: &str) -> Page {
        let _ = writeln!(self.scripts, "<script>{script}</script>");
        self
    }

    /// Returns the page as the text of one file.
    pub fn finish(self) -> String {
        let Page { title, style, header, body, scripts, has_module } = self;
        let module = if has_module { MODULE_POLICY } else { "" };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}{module}\">\n<title>{} · TempoNet</title>\n\
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
