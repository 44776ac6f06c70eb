//! The experiments, one module each.

mod actor_critic;
mod bound;
mod counterexample;
mod e01;
mod e02;
mod e03;
mod e04;
mod e05;
mod e06;
mod e07;
mod e08;
mod e09;
mod e10;
mod e11;
mod e12;
mod e13;
mod e14;
mod e15;
mod e16;
mod e17;
mod e18;
mod e19;
mod e20;
mod e21;
mod e22;
mod multicore;
mod offline;
mod readings;
mod rivals;
mod sweep;
mod theory;

use super::Experiment;

macro_rules! experiments {
    ($($id:literal $module:ident),* $(,)?) => {
        &[$(Experiment {
            id: $id,
            module: stringify!($module),
            protocol: include_str!(concat!("../../experiments/", stringify!($module), ".toml")),
            run: $module::run,
        }),*]
    };
}

/// All experiments in the order of reports: identifier, protocol file and module.
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
    "actor-critic" actor_critic,
    "multicore" multicore,
    "offline" offline,
    "sweep" sweep,
    "counterexample" counterexample,
    "bound" bound,
    "theory" theory,
    "rivals" rivals,
];
