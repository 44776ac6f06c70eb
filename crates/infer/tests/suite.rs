//! All integration tests of the crate in one program: it is linked once, and the slow ones run beside each other.

mod agreement;
mod feed_forward;
mod graph;
mod kernels;
mod network;
mod recurrent;
