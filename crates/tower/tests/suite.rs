//! Contracts of the layer.

mod answers;
mod axum_router;
mod bodies;
mod load;
mod readiness;
mod scene;
mod tonic_server;
