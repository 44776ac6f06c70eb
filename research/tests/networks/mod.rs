//! Contracts of the rivals' networks: against references of their own, and on the tape.

mod feed_forward;
mod graph;
mod learning;
mod recurrent;
mod reference;
