//! Contract: what README and documents show of a command is what it prints. Blocks marked `console` are run; `...` stands for lines left out.
//! `TRYCMD=overwrite cargo test -p temponet-cli --test shown` writes them anew.

use temponet_infer::Kernel;

#[test]
fn commands_print_what_the_documents_show() {
    let cases = trycmd::TestCases::new();
    cases
        .case("../../docs/shield.md")
        .case("../../docs/analysis.md")
        .case("../../docs/task-sets.md")
        .case("../../docs/oracle.md");
    // The network's figures are those of its bfloat16 kernels; where a machine has none, a decision in thousands may differ.
    match Kernel::best() {
        Kernel::Amx => _ = cases.case("../../README.md").case("../../docs/learned-scheduler.md"),
        other => eprintln!("figures of the network are not compared on the {} kernel", other.name()),
    }
}
