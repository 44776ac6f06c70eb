//! All experiments, in the order of reports.

use super::{Experiment, e01, e05, e06, e14, e19};

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
    "E5" e05,
    "E6" e06,
    "E14" e14,
    "E19" e19,
];
