//! Contract: the header that is checked in is what cbindgen makes of the sources.

use std::path::Path;

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::generate_with_config(root, config).unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = root.join("include/temponet.h");
    if std::env::var("TEMPONET_HEADER").is_ok_and(|value| value == "overwrite") {
        std::fs::write(&path, &made).unwrap();
    }
    let held = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(held == made, "TEMPONET_HEADER=overwrite cargo test --test suite header renews include/temponet.h");
}

/// Every function of the library is in the header, and every function of the header is declared in the library.
#[test]
fn the_header_has_every_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(root.join("include/temponet.h")).unwrap();
    let mut count = 0;
    for file in std::fs::read_dir(root.join("src")).unwrap() {
        let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for function in source.split("extern \"C\" fn ").skip(1) {
            let name = function.split('(').next().unwrap();
            assert!(header.contains(&format!("{name}(")), "{name}");
            count += 1;
        }
    }
    assert!(count > 30, "{count} functions");
}
