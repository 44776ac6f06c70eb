//! The writer of all pages and pictures: one HTML skeleton, one style sheet, one script, one SVG writer, one set of
//! colors, and the charts drawn with them. This crate knows nothing of tasks or schedulers and depends on no other
//! crate of the workspace.
//!
//! A page is one self-contained file. It loads nothing, and its content security policy forbids loading. Pages and
//! pictures follow the reader's light or dark mode. Text that comes from users passes [`escape`] on its way into HTML
//! or SVG.

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

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
