//! The learned scheduler, to embed: ready jobs become urgency tokens, a small Transformer reads them all at once, every job gets a Q-value, and the
//! best ones get the cores.

pub mod assignment;
mod binning;
pub mod diagnostics;
mod mapping;
mod model;
mod observation;
mod scheduler;
mod tokenizer;

pub use binning::Binning;
pub use mapping::{Mapper, Mapping};
pub use model::{Model, ModelError};
pub use observation::Observation;
pub use scheduler::{Options, Temponet};
pub use tokenizer::{Feature, Scale, Tokenizer};
