//! Contracts of the layer.

mod answers;
mod bodies;
mod load;
mod readiness;
mod scene;
