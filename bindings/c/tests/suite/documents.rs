//! The program in docs/c.md is the one that is built, and every function is named there.

use std::path::Path;

#[test]
fn the_guide_shows_the_example_and_names_every_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (guide, program, header) =
        (read("../../docs/c.md"), read("examples/control-loop/main.c"), read("include/temponet.h"));
    let code = &program[program.find("#include").unwrap()..];
    assert!(guide.contains(&format!("```c\n{code}```")), "docs/c.md shows examples/control-loop/main.c");
    let functions = header.lines().filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next());
    let functions: Vec<&str> = functions.filter(|name| name.starts_with("tn_") && !name.ends_with("_free")).collect();
    assert!(functions.len() > 30, "{functions:?}");
    for name in functions {
        // A group names its functions by what follows `tn_set` or `tn_ready`.
        let short = name.strip_prefix("tn_set").or_else(|| name.strip_prefix("tn_ready")).unwrap_or(name);
        assert!(guide.contains(&format!("`{name}`")) || guide.contains(&format!("`{short}`")), "{name}");
    }
}
