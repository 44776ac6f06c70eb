//! The `temponet-bench` program: the command line of `temponet`, and `bench`.

use std::process::ExitCode;

fn main() -> ExitCode {
    temponet_cli::Program::named("temponet-bench").with::<temponet_bench::Bench>().main()
}
