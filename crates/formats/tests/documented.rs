//! Contract: the key tables of `docs/task-sets.md` are those of the program. `TRYCMD=overwrite cargo test -p
//! temponet-formats --test suite documented` renews them.

use std::path::Path;

use temponet_formats::key_tables;

/// Returns the document with the tables of the program between `<!-- keys: NAME -->` and `<!-- end -->`, and their
/// names.
fn with_tables(text: &str) -> (String, Vec<&str>) {
    let (mut out, mut names) = (String::new(), Vec::new());
    let mut parts = text.split("<!-- keys: ");
    out += parts.next().unwrap();
    for part in parts {
        let (name, rest) = part.split_once(" -->").unwrap();
        let (_, after) = rest.split_once("<!-- end -->").unwrap_or_else(|| panic!("the table of {name} has no end"));
        let tables = key_tables();
        let (_, table) = tables.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no table {name:?}"));
        out += &format!("<!-- keys: {name} -->\n\n{table}\n<!-- end -->{after}");
        names.push(name);
    }
    (out, names)
}

#[test]
fn the_key_tables_of_the_document_are_those_of_the_program() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/task-sets.md"));
    let text = std::fs::read_to_string(path).unwrap();
    let (renewed, names) = with_tables(&text);
    for (name, _) in key_tables() {
        assert!(names.contains(&name), "docs/task-sets.md has no table {name:?}");
    }
    if std::env::var("TRYCMD").is_ok_and(|value| value == "overwrite") {
        std::fs::write(path, &renewed).unwrap();
        return;
    }
    let difference = text.lines().zip(renewed.lines()).find(|(old, new)| old != new);
    assert_eq!(difference, None, "TRYCMD=overwrite renews the document");
    assert_eq!(text.len(), renewed.len());
}
