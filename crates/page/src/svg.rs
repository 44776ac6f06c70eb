//! The SVG writer: shapes with classes whose colors come from the style sheet, so every picture follows the reader's
//! light or dark mode.

use std::fmt::Write;

use super::colours::{DASHES, PALETTE, dash, resolved};
use super::escape;

const STYLE: &str = include_str!("svg.css");

/// Returns the CSS rules of pictures; their colors are the variables of the page.
pub(super) fn style() -> String {
    let series = (0..PALETTE.len())
        .map(|index| format!("svg .f{index}{{fill:var(--c{index})}}svg .s{index}{{stroke:var(--c{index});fill:none}}"));
    STYLE.to_string() + &series.collect::<String>()
}

/// Returns the script for pages that draw SVG in the browser. It defines the function `makeSvg`, the dash patterns of
/// series (`DASHES`) and the number of their colors (`COLOURS`), so curves drawn in the browser look like those drawn
/// here. Add it before the scripts that use it.
pub fn script() -> String {
    format!("\"use strict\";\nconst DASHES = {DASHES:?}, COLOURS = {};\n{}", PALETTE.len(), include_str!("svg.js"))
}

/// Returns the class that fills a shape with the color of a series.
pub fn fill(series: usize) -> String {
    format!("f{}", series % PALETTE.len())
}

/// Returns the class that draws a line in the color of a series.
pub fn stroke(series: usize) -> String {
    format!("s{}", series % PALETTE.len())
}

/// Formats a number with at most two decimals; a number that is not finite becomes zero.
fn short(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    // Adding zero turns minus zero into zero.
    if rounded.is_finite() { (rounded + 0.0).to_string() } else { "0".into() }
}

/// An SVG element. Its methods set attributes and return the element.
pub struct SvgShape {
    name: &'static str,
    attributes: String,
    inside: String,
}

fn shape(name: &'static str, numbers: &[(&str, f64)]) -> SvgShape {
    let shape = SvgShape { name, attributes: String::new(), inside: String::new() };
    numbers.iter().fold(shape, |shape, (name, value)| shape.set(name, &short(*value)))
}

/// A rectangle, given by its upper left corner and its size; negative sizes become zero.
pub fn rect(x: f64, y: f64, width: f64, height: f64) -> SvgShape {
    shape("rect", &[("x", x), ("y", y), ("width", width.max(0.0)), ("height", height.max(0.0))])
}

/// A line from one point to another.
pub fn line(from: (f64, f64), to: (f64, f64)) -> SvgShape {
    shape("line", &[("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)])
}

/// A circle around a point.
pub fn circle(x: f64, y: f64, radius: f64) -> SvgShape {
    shape("circle", &[("cx", x), ("cy", y), ("r", radius)])
}

/// A line through points.
pub fn polyline(points: impl Iterator<Item = (f64, f64)>) -> SvgShape {
    let points: Vec<String> = points.map(|(x, y)| format!("{},{}", short(x), short(y))).collect();
    shape("polyline", &[]).set("points", &points.join(" "))
}

/// A path that starts at a point; `steps` are further path commands, usually relative.
pub fn path(x: f64, y: f64, steps: &str) -> SvgShape {
    shape("path", &[]).set("d", &format!("M{} {}{steps}", short(x), short(y)))
}

/// Text that begins at a point; it is escaped.
pub fn text(x: f64, y: f64, words: &str) -> SvgShape {
    SvgShape { inside: escape(words), ..shape("text", &[("x", x), ("y", y)]) }
}

impl SvgShape {
    /// Sets any attribute; the value is escaped.
    pub fn set(mut self, name: &str, value: &str) -> SvgShape {
        let _ = write!(self.attributes, " {name}=\"{}\"", escape(value));
        self
    }

    /// Sets the class, or several classes separated by spaces.
    pub fn class(self, class: &str) -> SvgShape {
        self.set("class", class)
    }

    /// Sets a fill that is the same in light and dark mode, such as [`shade`](super::colours::shade).
    pub fn shade(self, colour: &str) -> SvgShape {
        self.set("fill", colour)
    }

    /// Makes text end at its point.
    pub fn end(self) -> SvgShape {
        self.set("text-anchor", "end")
    }

    /// Centers text on its point.
    pub fn middle(self) -> SvgShape {
        self.set("text-anchor", "middle")
    }

    /// Sets the font size.
    pub fn size(self, pixels: f64) -> SvgShape {
        self.set("font-size", &short(pixels))
    }

    /// Makes text semi-bold.
    pub fn bold(self) -> SvgShape {
        self.set("font-weight", "600")
    }

    /// Sets the width of the line.
    pub fn width(self, pixels: f64) -> SvgShape {
        self.set("stroke-width", &short(pixels))
    }

    /// Sets the dash pattern; nothing if it is empty.
    pub fn dashed(self, dashes: &str) -> SvgShape {
        if dashes.is_empty() { self } else { self.set("stroke-dasharray", dashes) }
    }

    /// Makes a line one of a series: two pixels wide, with the series' color and dash pattern.
    pub fn series(self, series: usize) -> SvgShape {
        self.class(&stroke(series)).width(2.0).dashed(dash(series))
    }

    /// Turns the element about a point, in degrees clockwise.
    pub fn turned(self, degrees: f64, x: f64, y: f64) -> SvgShape {
        self.set("transform", &format!("rotate({} {} {})", short(degrees), short(x), short(y)))
    }

    /// Adds a tooltip.
    pub fn title(mut self, words: &str) -> SvgShape {
        let _ = write!(self.inside, "<title>{}</title>", escape(words));
        self
    }

    fn markup(&self) -> String {
        let SvgShape { name, attributes, inside } = self;
        if inside.is_empty() {
            format!("<{name}{attributes}/>")
        } else {
            format!("<{name}{attributes}>{inside}</{name}>")
        }
    }
}

/// Builder of a picture.
pub struct Svg {
    width: f64,
    height: f64,
    label: String,
    font: f64,
    body: String,
}

impl Svg {
    /// Starts an empty picture; `label` says in words what it shows, for screen readers.
    pub fn new(width: f64, height: f64, label: &str) -> Svg {
        Svg { width, height, label: label.into(), font: 12.0, body: String::new() }
    }

    /// Sets the default font size, which is 12 otherwise.
    pub fn font(mut self, pixels: f64) -> Svg {
        self.font = pixels;
        self
    }

    /// Draws a shape on top of the picture.
    pub fn add(&mut self, shape: SvgShape) {
        self.body += &shape.markup();
        self.body.push('\n');
    }

    /// Draws a shape that links to the element with the id `to` of the same page.
    pub fn link(&mut self, to: &str, shape: SvgShape) {
        let _ = writeln!(self.body, "<a href=\"#{}\">{}</a>", escape(to), shape.markup());
    }

    /// Runs `draw` and moves everything it draws by `x` and `y`.
    pub fn moved(&mut self, x: f64, y: f64, draw: impl FnOnce(&mut Svg)) {
        let _ = writeln!(self.body, "<g transform=\"translate({} {})\">", short(x), short(y));
        draw(self);
        self.body += "</g>\n";
    }

    fn with(&self, namespace: &str, style: &str) -> String {
        let (width, height) = (short(self.width), short(self.height));
        format!(
            "<svg{namespace} role=\"img\" aria-label=\"{}\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-size=\"{}\">\n{style}{}</svg>\n",
            escape(&self.label),
            short(self.font),
            self.body
        )
    }

    /// Returns the picture for use inside a page, whose style sheet it needs.
    pub fn inline(&self) -> String {
        self.with("", "")
    }

    /// Returns the picture as a file of its own, with its style sheet and a background.
    pub fn file(&self) -> String {
        let ground = rect(0.0, 0.0, self.width, self.height).class("ground").markup();
        let style = format!("<style>{}</style>\n{ground}\n", resolved(&style()).replace('\n', ""));
        self.with(" xmlns=\"http://www.w3.org/2000/svg\"", &style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_text_is_escaped_in_words_titles_attributes_and_labels() {
        let mut picture = Svg::new(10.0, 10.0, "a \"set\"");
        picture.add(text(1.0, 2.0, "<b>\u{1}"));
        picture.add(rect(0.0, 0.0, 1.0, f64::NAN).title("x & y").set("data-name", "\"onload=\""));
        picture.link("\"><script>", circle(0.0, 0.0, 1.0));
        let out = picture.inline();
        assert!(
            out.contains("&lt;b&gt;\u{fffd}") && out.contains("x &amp; y") && out.contains("a &quot;set&quot;"),
            "{out}"
        );
        assert!(!out.contains("<script") && !out.contains("NaN") && !out.contains("\"onload"), "{out}");
    }

    #[test]
    fn a_file_has_its_own_ground_and_dark_colours_and_an_inline_picture_has_none() {
        let picture = Svg::new(10.0, 10.0, "");
        assert!(picture.file().contains("prefers-color-scheme:dark") && picture.file().contains("class=\"ground\""));
        assert!(!picture.file().contains("var(--") && !picture.inline().contains("<style>"));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([short(1.0), short(0.1 + 0.2), short(-0.001), short(12.345)], ["1", "0.3", "0", "12.35"]);
    }
}
