//! All experiments, in the order of reports.

use super::{Experiment, bound, counterexample, e01, e02, e03, e04, e07, e08, e09, e10, e12, e17, e18, e20, e21, e22};

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
    "E2" e02,
    "E3" e03,
    "E4" e04,
    "E7" e07,
    "E8" e08,
    "E9" e09,
    "E10" e10,
    "E12" e12,
    "E17" e17,
    "E18" e18,
    "E20" e20,
    "E21" e21,
    "E22" e22,
    "counterexample" counterexample,
    "bound" bound,
];
