//! Contracts of the dispatcher.

mod gate;
mod guard;
mod life;
mod rules;
