//! The learned scheduler's decisions laid open: the figures ([`diagnostics`]), and the pages of one decision ([`decision`]) and of a whole run ([`run`]).

pub mod decision;
pub mod diagnostics;
pub mod run;
