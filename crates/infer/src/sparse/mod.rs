//! Sparse attention that scores only the keys that it keeps.
//!
//! Rows are cut into chunks and blocks ([`blocks`]). One summary of the keys of each block, their mean, decides which
//! blocks the queries of a block look into ([`choice`]); no other key is scored. What is kept is a list of rows for
//! each block of queries, in compressed form ([`KeptKeys`]). For the kernels the lists are cut into units of 32 keys,
//! which are packed once and shared by all queries that look into them ([`plan`]).
//!
//! The rival that keeps the best keys of each query ([`top_keys`]) has to score all of them.

mod blocks;
mod choice;
mod kept_keys;
pub(crate) mod plan;
mod top_keys;

pub use kept_keys::KeptKeys;
pub(crate) use top_keys::keep_top;
