//! What every page and picture is made of: one skeleton, one stylesheet, one script, one SVG writer, one set of colours, and the chart kinds
//! that are drawn with them. Knows nothing of tasks or schedulers.
//!
//! A page is one file: nothing is loaded from anywhere, and its content policy forbids it. Everything follows the reader's light or dark
//! setting. Text of users passes [`escape`] on its way into HTML or SVG.

pub mod charts;
pub mod colours;
mod escape;
pub mod fragment;
pub mod plot;
mod skeleton;
pub mod svg;
mod table;

pub use escape::{escape, printable};
pub use skeleton::Page;
pub use table::{HtmlCell, HtmlTable};
