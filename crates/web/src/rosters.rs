//! The schedulers, with the built-in model. They are made once for each kernel, and what was chosen for a set is kept
//! with them.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use temponet::{Model, Options};
use temponet_infer::NetworkOptions;
use temponet_lab::roster::Roster;

use crate::{Failure, failure};

/// How the network computes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// The fastest kernel that there is.
    #[default]
    Best,
    /// Plain arithmetic, one number at a time.
    Scalar,
    /// Vectors of four numbers.
    Simd128,
}

static ROSTERS: [OnceLock<Result<Roster, String>>; 3] = [const { OnceLock::new() }; 3];

/// Returns the schedulers whose network computes with a kernel.
pub fn of(kernel: Kernel) -> Result<Roster, Failure> {
    let made = ROSTERS[kernel as usize].get_or_init(|| {
        let network = match kernel {
            Kernel::Best => NetworkOptions::default(),
            Kernel::Scalar => NetworkOptions::of(temponet_infer::Kernel::Scalar),
            Kernel::Simd128 => NetworkOptions::of(temponet_infer::Kernel::Simd128),
        };
        let model = Model::built_in().map_err(|error| format!("the built-in model is broken: {error}"))?;
        let options = Options { network, ..Options::default() };
        Ok(Roster { model: Some(Arc::new(model)), options, ..Roster::default() })
    });
    made.clone().map_err(failure)
}
