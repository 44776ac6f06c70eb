//! All experiments, in the order of reports.

use super::{Experiment, e01, e06};

macro_rules! experiments {
    ($($id:literal $module:ident),* $(,)?) => {
        &[$(Experiment {
            id: $id,
            protocol: include_str!(concat!("../../experiments/", stringify!($module), ".toml")),
            run: $module::run,
        }),*]
    };
}

/// Name, protocol and code of each.
#[rustfmt::skip]
pub static ALL: &[Experiment] = experiments![
    "E1" e01,
    "E6" e06,
];
