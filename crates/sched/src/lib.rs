//! The classical schedulers, one short file each, with reference and tie-breaks in its header.
//!
//! Users ask for one by name ([`build`]); [`ALL`] is the list. What can be proved about them is in [`analysis`];
//! [`shield`] makes any of them safe where that is proved.

pub mod analysis;

mod amc;
mod catalog;
mod cbs;
mod cd_split;
mod criticality;
mod d_over;
mod dasa;
mod deadline_order;
mod dios;
mod dm;
mod dp_wrap;
mod dvfs;
mod edcl;
mod edf;
mod edf_skip;
mod edf_us;
mod edf_vd;
mod edzl;
mod fcfs;
mod fluid;
mod fp;
mod fpedf;
mod g_fl;
mod lbesa;
mod llf;
mod llref;
mod look_ahead;
mod mh_edf;
mod mk_dbp;
mod mllf;
mod muf;
mod overload;
mod p_edf;
mod p_rm;
mod panel;
mod partition;
mod pd2;
mod plan;
mod quantum;
mod ranked;
mod red;
mod rm;
mod rr;
mod run;
mod selection;
mod skip_over;
mod srpt;

pub mod oracle;
pub mod shield;

pub use catalog::{ALL, Entry, SHIELD, SpecError, advisors, build, fallback, global_edf, is_classical, planners};
pub use look_ahead::LookAhead;
pub use panel::Panel;
