//! Contract of `temponet lab`: it opens the page beside the program, with a set in it if one is named, or says how the
//! page is made.
#![cfg(unix)]

use serde_json::Value;

use crate::other_program::{call, fake, installed};

const PAGE: &str = "<html><body><script>1</script><script>2</script></body></html>";

#[test]
fn without_the_page_one_line_says_how_to_make_it() {
    let folder = installed("lab-none");
    let output = call(&folder, &["lab"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("web/build") && said.contains("bin/temponet-lab.html"), "{said}");
}

#[test]
fn a_set_is_written_into_the_page_before_its_scripts() {
    let folder = installed("lab-set");
    std::fs::write(folder.0.join("bin/temponet-lab.html"), PAGE).unwrap();
    let name = "</script><b>";
    let set = format!("[[task]]\nname = \"{name}\"\nperiod = 10\nwcet = 2\n");
    std::fs::write(folder.0.join("mine.toml"), set).unwrap();
    let output = call(&folder, &["lab", "mine.toml", "--output", "out.html"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(folder.0.join("out.html")).unwrap();
    let (given, rest) = page.split_once("type=\"application/json\">").unwrap().1.split_once("</script>").unwrap();
    let given: Value = serde_json::from_str(given).unwrap();
    assert_eq!(given["name"], "mine.toml");
    assert!(given["text"].as_str().unwrap().contains(name), "the name is whole, and does not end the element");
    assert_eq!(rest.trim_start(), &PAGE["<html><body>".len()..]);
    let output = call(&folder, &["lab", "nothing.toml", "--output", "out2.html"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("nothing.toml"), "{said}");
    assert!(!folder.0.join("out2.html").exists());
}

#[test]
fn the_page_is_opened_by_the_systems_program() {
    let folder = installed("lab-open");
    std::fs::write(folder.0.join("bin/temponet-lab.html"), PAGE).unwrap();
    let opener = folder.0.join("path/xdg-open");
    fake(&opener, "opener");
    let output = call(&folder, &["lab"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "the opener failed");
    assert!(said.contains("open ") && said.contains("bin/temponet-lab.html"), "{said}");
    std::fs::write(&opener, "#!/bin/sh\ncp \"$1\" opened.html\n").unwrap();
    let output = call(&folder, &["lab", "robot"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let opened = std::fs::read_to_string(folder.0.join("opened.html")).unwrap();
    assert!(opened.contains("motor_control"), "{opened}");
    let path = String::from_utf8(output.stdout).unwrap();
    std::fs::remove_file(path.trim()).unwrap();
}
