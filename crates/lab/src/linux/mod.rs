//! What the policies of Linux can do for a set, and with which settings: today's kernel, no scheduler of ours.
//!
//! - `settings.rs` says what a thread can be given: a policy with its numbers, and processors;
//! - `plans.rs` finds settings that may serve a set: priorities by Audsley's search, partitions, budgets;
//! - `proof.rs` proves what settings guarantee, whoever made them;
//! - `policies.rs` decides as the kernel does with these settings, for simulations;
//! - `advice.rs` puts proofs and simulations side by side, ours and today's settings too, and ranks them;
//! - `apply/` writes settings in the form in which they are applied, `page.rs` and `json.rs` the result.
//!
//! Every job of a task is run by the same thread, one after the other. The fair class of the kernel is approximated, and
//! nothing is ever proved of it.

pub mod advice;
pub mod apply;
mod json;
mod page;
mod plans;
mod policies;
mod proof;
mod settings;

pub use json::report as json_report;
pub use page::html;
pub use plans::{Plan, plans};
pub use policies::LinuxPolicies;
pub use proof::{Bound, proved};
pub use settings::{ADMITTED, Policy, Setting, Settings};
