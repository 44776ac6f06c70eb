//! The schedulers, the catalog that names them, what is proved about them, and the shield.
//!
//! - [`build`] makes a scheduler from its name; [`ALL`] lists the catalog.
//! - [`proofs`] says which schedulers are proved to meet every deadline of a set, [`scalings`] how much execution times may grow.
//! - [`shield`] overrules any scheduler where its choice could cost a deadline that is proved to be safe.
//! - [`advice`] asks several simple schedulers at once, for the learned one.

pub mod advice;
mod catalog;
mod proofs;
mod schedulers;
mod sensitivity;
mod shared;
pub mod shield;

pub use advice::{Panel, advisors, fallback, planners};
pub use catalog::{ALL, Entry, SHIELD, SpecError, build, global_edf, is_classical};
pub use proofs::{Proof, proofs};
pub use schedulers::look_ahead::LookAhead;
pub use sensitivity::{Scaling, scalings};
