//! Networks of the paper's rivals: a feed-forward network with one slot for each task, a graph network and a recurrent
//! one.
//!
//! Each file has one body: its limits and tensors, its forward pass, and its form on the tape. They are baselines,
//! computed in plain loops.

mod feed_forward;
mod graph;
mod lstm;
mod plain;
mod recurrent;
mod relations;

use temponet_infer::{Body, OtherBody, register_body};
use temponet_train::register_tape_body;

/// Makes the bodies known to inference and training.
pub fn register() {
    register_body(&feed_forward::FeedForwardKind);
    register_tape_body("slots", feed_forward::on_tape);
    register_body(&graph::GraphKind);
    register_tape_body("graph", graph::on_tape);
    register_body(&recurrent::RecurrentKind);
    register_tape_body("memory", recurrent::on_tape);
}

/// Feed-forward network with this many task slots.
pub fn feed_forward(slots: usize) -> Body {
    Body::Other(OtherBody::new(&feed_forward::FeedForwardKind, slots))
}

/// Graph network.
pub fn graph() -> Body {
    Body::Other(OtherBody::new(&graph::GraphKind, 1))
}

/// Recurrent network with a state of this width.
pub fn recurrent(width: usize) -> Body {
    Body::Other(OtherBody::new(&recurrent::RecurrentKind, width))
}
