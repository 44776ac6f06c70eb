//! All experiments, in the order of reports.

use super::{
    Experiment, bound, counterexample, e01, e02, e03, e04, e05, e06, e07, e08, e09, e10, e11, e12, e13, e14, e15, e16,
    e17, e18, e19, e20, e21, e22,
};

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
    "E5" e05,
    "E6" e06,
    "E7" e07,
    "E8" e08,
    "E9" e09,
    "E10" e10,
    "E11" e11,
    "E12" e12,
    "E13" e13,
    "E14" e14,
    "E15" e15,
    "E16" e16,
    "E17" e17,
    "E18" e18,
    "E19" e19,
    "E20" e20,
    "E21" e21,
    "E22" e22,
    "counterexample" counterexample,
    "bound" bound,
];
