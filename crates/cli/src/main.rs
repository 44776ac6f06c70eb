//! The `temponet` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    temponet_cli::Program::named("temponet").main()
}
