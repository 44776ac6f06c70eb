//! The classical schedulers, one short file each, with reference and tie-breaks in its header.
//!
//! Users ask for one by name ([`build`]); [`ALL`] is the list.

mod catalog;
mod d_over;
mod dm;
mod edf;
mod edf_skip;
mod edzl;
mod fcfs;
mod fp;
mod llf;
mod mh_edf;
mod p_edf;
mod p_rm;
mod partition;
mod pd2;
mod ranked;
mod rm;
mod rr;
mod selection;
mod srpt;

pub use catalog::{ALL, Entry, SpecError, build};
