//! Contract of the examples in README and documents: they show what the commands print. Blocks marked `console` are run; `...` stands for omitted
//! lines. `TRYCMD=overwrite cargo test -p temponet-cli --test suite shown` updates them.

use temponet_infer::Kernel;

#[test]
fn commands_print_what_the_documents_show() {
    let cases = trycmd::TestCases::new();
    cases.case("../../docs/analysis.md").case("../../docs/oracle.md");
    // The figures of the network are those of its bfloat16 kernels. On a machine without them, one decision in thousands may differ.
    match Kernel::best() {
        Kernel::Amx => _ = cases.case("../../README.md").case("../../docs/learned-scheduler.md"),
        other => eprintln!("figures of the network are not compared on the {} kernel", other.name()),
    }
}
