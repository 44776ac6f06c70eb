//! Contracts of the dispatcher.

mod gate;
mod guard;
mod lab;
mod life;
mod rules;
