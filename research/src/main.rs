//! The `temponet-paper` program: the command line of `temponet` with the rivals of the paper, `reproduce`
//! and `check`.

use std::process::ExitCode;

fn main() -> ExitCode {
    temponet_paper::register();
    temponet_cli::Program::named("temponet-paper")
        .with::<temponet_paper::Reproduce>()
        .with::<temponet_paper::Check>()
        .main()
}
