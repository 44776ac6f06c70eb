//! `temponet --version`: what this program is made of, and what it uses of this machine.

use temponet::Model;
use temponet_infer::Kernel;

use crate::table;

/// Optional features that the program was built with.
const FEATURES: [(&str, bool); 2] = [("cuda", cfg!(feature = "cuda")), ("parquet", cfg!(feature = "parquet"))];

/// Version, kernels of the network on this machine, features and built-in model, a line each.
pub fn text(program: &str) -> String {
    let best = Kernel::best();
    let others: Vec<&str> =
        Kernel::available().into_iter().filter(|kernel| *kernel != best).map(Kernel::name).collect();
    let features: Vec<&str> = FEATURES.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "none".into() } else { features.join(", ") };
    let rows = [
        ("kernel here", format!("{best}; there are also {}", others.join(", "))),
        ("features", features),
        ("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)),
        ("model", model().unwrap_or_else(|error| format!("cannot be read: {error}"))),
    ];
    let lines: String = rows.iter().map(|(name, value)| format!("{name:<12} {value}\n")).collect();
    format!("{program} {}\n{lines}", env!("CARGO_PKG_VERSION"))
}

fn model() -> anyhow::Result<String> {
    let model = Model::built_in()?;
    let parameters = table::count(model.weights.architecture.parameters() as u64);
    Ok(format!("built-in, {parameters} parameters, checksum {}", model.checksum()?))
}
