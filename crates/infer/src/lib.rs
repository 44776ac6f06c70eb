//! The network and nothing around it: the weights file, the kernels, the forward pass from tokens to one number per row. It knows
//! no tasks. A [`Network`] allocates when it is built, or when it meets more rows than ever before, and never else.

mod aligned;
mod architecture;
mod feed_forward;
mod kernels;
mod network;
mod pass;
mod prepared;
mod reference;
mod rows;
mod sparse;
mod weights;

pub use architecture::{Architecture, RealInput, SLOT, Vocabulary};
pub use kernels::{Kernel, Precision};
pub use network::{Network, NetworkError, NetworkOptions};
pub use reference::{AttentionMap, Trace, reference};
pub use rows::{Rows, Sparsity};
pub use weights::{Metadata, Weights, WeightsError, check_file, file_checksum, write_tensors};
