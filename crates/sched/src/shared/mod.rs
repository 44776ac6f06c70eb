//! Building blocks that several schedulers share.
//!
//! - [`ranked`]: ready jobs in the order of a key that does not change while a job is ready.
//! - [`selection`]: the m best ready jobs by a key that changes with time.
//! - [`clusters`]: a scheduler inside each cluster of cores.
//! - [`planned_jobs`], [`admission`], [`moore_hodgson`]: plans in deadline order, for overload.
//! - [`fluid`]: the fluid schedule of the optimal multicore schedulers.
//! - [`criticality_mode`]: the mode of a mixed-criticality system.
//! - [`quantum`]: the default quantum of schedulers that decide at regular intervals.

pub(crate) mod admission;
pub(crate) mod clusters;
pub(crate) mod criticality_mode;
pub(crate) mod fluid;
pub(crate) mod lengths;
pub(crate) mod machine_plan;
pub(crate) mod moore_hodgson;
pub(crate) mod planned_jobs;
pub(crate) mod quantum;
pub(crate) mod ranked;
pub(crate) mod selection;
