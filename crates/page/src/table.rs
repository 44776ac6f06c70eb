//! HTML tables, which the common script of the page can sort.

use std::fmt::Write;

use super::escape;

/// A cell of a table.
pub struct HtmlCell {
    html: String,
    value: Option<f64>,
    class: String,
}

impl HtmlCell {
    /// A cell with text, which is escaped.
    pub fn text(words: impl AsRef<str>) -> HtmlCell {
        HtmlCell { html: escape(words.as_ref()), value: None, class: String::new() }
    }

    /// A cell with a figure: its text, and the value by which the column is sorted. Cells without a value come last.
    pub fn figure(words: impl AsRef<str>, value: Option<f64>) -> HtmlCell {
        let value = value.filter(|value| value.is_finite());
        HtmlCell { html: escape(words.as_ref()), value, class: String::new() }
    }

    /// A cell with trusted HTML, such as a bar. The column is sorted by `value`, or by the text of the cell if there is
    /// none.
    pub fn html(html: String, value: Option<f64>) -> HtmlCell {
        HtmlCell { html, value, class: String::new() }
    }

    /// Sets the class of the cell.
    pub fn class(mut self, class: impl Into<String>) -> HtmlCell {
        self.class = class.into();
        self
    }

    fn markup(&self) -> String {
        let class = if self.class.is_empty() { String::new() } else { format!(" class=\"{}\"", self.class) };
        let value = self.value.map(|value| format!(" data-v=\"{value}\"")).unwrap_or_default();
        format!("<td{class}{value}>{}</td>", self.html)
    }
}

/// Builder of a table.
#[derive(Default)]
pub struct HtmlTable {
    id: &'static str,
    caption: String,
    is_sortable: bool,
    head: String,
    pinned: String,
    rows: String,
}

impl HtmlTable {
    /// Starts an empty table.
    pub fn new() -> HtmlTable {
        HtmlTable::default()
    }

    /// Starts a table whose headers sort it, by mouse and keyboard.
    pub fn sortable() -> HtmlTable {
        HtmlTable { is_sortable: true, ..HtmlTable::default() }
    }

    /// Sets the id of the table.
    pub fn id(mut self, id: &'static str) -> HtmlTable {
        self.id = id;
        self
    }

    /// Sets the caption.
    pub fn caption(mut self, words: &str) -> HtmlTable {
        self.caption = escape(words);
        self
    }

    /// Adds a column: its header, a tooltip that explains it, and the class of the header. Tooltip and class may be
    /// empty.
    pub fn column(&mut self, name: &str, meaning: &str, class: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let meaning = if meaning.is_empty() { String::new() } else { format!(" title=\"{}\"", escape(meaning)) };
        let name = escape(name);
        let _ = match self.is_sortable {
            true => write!(
                self.head,
                "<th scope=\"col\"{class}{meaning} aria-sort=\"none\"><button type=\"button\">{name}</button></th>"
            ),
            false => write!(self.head, "<th scope=\"col\"{class}{meaning}>{name}</th>"),
        };
    }

    /// Adds columns whose headers need no tooltip.
    pub fn columns(mut self, names: &[&str]) -> HtmlTable {
        names.iter().for_each(|name| self.column(name, "", ""));
        self
    }

    /// Adds a row that stays on top however the table is sorted.
    pub fn pinned(&mut self, class: &str, cells: &[HtmlCell]) {
        self.pinned += &row(class, cells);
    }

    /// Adds a row with a class, which may be empty.
    pub fn row(&mut self, class: &str, cells: &[HtmlCell]) {
        self.rows += &row(class, cells);
    }

    /// Returns the table in a box that scrolls sideways in narrow windows.
    pub fn finish(self) -> String {
        let HtmlTable { id, caption, is_sortable, head, pinned, rows } = self;
        let id = if id.is_empty() { String::new() } else { format!(" id=\"{id}\"") };
        let class = if is_sortable { " class=\"sortable\"" } else { "" };
        let caption = if caption.is_empty() { String::new() } else { format!("<caption>{caption}</caption>\n") };
        let head = if head.is_empty() { String::new() } else { format!("<thead><tr>{head}</tr></thead>\n") };
        let pinned = if pinned.is_empty() { String::new() } else { format!("<tbody>\n{pinned}</tbody>\n") };
        format!(
            "<div class=\"scroll\"><table{id}{class}>\n{caption}{head}{pinned}<tbody class=\"rows\">\n{rows}</tbody></table></div>\n"
        )
    }
}

fn row(class: &str, cells: &[HtmlCell]) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<tr{class}>{}</tr>\n", cells.iter().map(HtmlCell::markup).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_a_sortable_table_are_buttons_that_say_their_order() {
        let mut table = HtmlTable::sortable().columns(&["name", "figure <1"]);
        table.pinned("optimum", &[HtmlCell::text("best"), HtmlCell::figure("1.0", Some(1.0))]);
        table.row("", &[HtmlCell::text("a & b"), HtmlCell::figure("–", Some(f64::NAN))]);
        let html = table.finish();
        assert_eq!(html.matches("aria-sort=\"none\"><button type=\"button\">").count(), 2);
        assert!(html.contains("figure &lt;1") && html.contains("a &amp; b") && html.contains("data-v=\"1\""));
        assert_eq!((html.matches("data-v").count(), html.matches("<tbody").count()), (1, 2), "{html}");
    }
}
