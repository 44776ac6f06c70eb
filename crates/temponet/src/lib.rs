//! The learned scheduler, to embed: ready jobs become urgency tokens, a small Transformer reads them all at once, every job gets a Q-value, and the
//! best ones get the cores. A shield around it keeps it from missing what is proved to be safe.
//!
//! ```no_run
//! # use temponet_task::{Assignment, Scheduler, System, SystemView};
//! # fn run(system: &System, view: &SystemView<'_>) -> Result<(), Box<dyn std::error::Error>> {
//! let mut scheduler = temponet::Temponet::load("mine.safetensors")?;
//! scheduler.start(system)?;
//! let mut assignment = Assignment::default();
//! assignment.reset(system.cores);
//! scheduler.decide(view, &mut assignment);
//! # Ok(())
//! # }
//! ```

mod advice;
pub mod assignment;
mod binning;
mod bins;
mod continuous;
mod learned;
mod mapping;
mod model;
mod observation;
mod scheduler;
mod staying;
mod tokenizer;
mod tokenizer_error;

pub use advice::JobAdvice;
pub use binning::Binning;
pub use continuous::Continuous;
pub use learned::{Learned, Options};
pub use mapping::{Mapper, Mapping};
pub use model::{Model, ModelError, provenance};
pub use observation::Observation;
pub use scheduler::Temponet;
pub use staying::{Kept, Staying};
pub use temponet_infer::NetworkError;
pub use tokenizer::{Feature, Scale, Tokenizer};
pub use tokenizer_error::TokenizerError;
