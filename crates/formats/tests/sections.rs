//! Contract: critical sections are read and written, and impossible ones are refused with their line.

use temponet_formats::{Format, write};
use temponet_task::{Protocol, ResourceId, Section, Time};

use crate::read;

const SHARING: &str = r#"
    protocol = "ceiling"
    [[task]]
    name = "weather"
    period = 100
    wcet = 10
    [[task.section]]
    resource = "bus"
    at = "1ms"
    length = 6
    [[task.section]]
    resource = "disk"
    at = 2
    length = 5

    [[task]]
    name = "control"
    period = 10
    wcet = 2
    section = [{ resource = "bus", length = 1 }]
"#;

#[test]
fn critical_sections_are_read_and_written() {
    let set = read(SHARING, Format::Toml).unwrap().set;
    let section = |resource, at, length| Section { resource, at: Time::from_ms(at), length: Time::from_ms(length) };
    assert_eq!((set.resources().to_vec(), set.protocol()), (vec!["bus".into(), "disk".into()], Protocol::Ceiling));
    assert_eq!(set.tasks()[0].sections, [section(ResourceId(0), 1, 6), section(ResourceId(1), 2, 5)]);
    assert_eq!(set.tasks()[1].sections, [section(ResourceId(0), 0, 1)]);
    for format in [Format::Toml, Format::Json] {
        let text = write(&set, format).unwrap();
        assert_eq!(read(&text, format).unwrap().set, set, "{text}");
    }
    let plain = set.with_protocol(Protocol::default());
    let csv = write(&plain, Format::Csv).unwrap_err().to_string();
    assert_eq!(csv, "the critical sections of \"weather\" cannot be written as CSV: use TOML or JSON");
    assert_eq!(read(&SHARING.replace("protocol = \"ceiling\"", ""), Format::Toml).unwrap().set, plain);
    let column = read("name,period,wcet,section\na,10,4,bus\n", Format::Csv).unwrap_err();
    assert!(column.starts_with("set.csv:1: unknown column \"section\""), "{column}");
}

#[test]
fn impossible_critical_sections_are_errors_with_their_line() {
    let cases = [
        (
            "protocol = \"ceiling\"",
            "protocol = \"pip\"",
            ":2: protocol = \"pip\" is none of none, inheritance, ceiling",
        ),
        (
            "protocol = \"ceiling\"",
            "protocol = \"ceiling\"\ncores = 2",
            ":2: the protocol ceiling is for one core, and there are 2",
        ),
        ("length = 6", "length = 12", ":7: task \"weather\": the section ends at 13ms, after the wcet of 10ms"),
        ("length = 6", "length = 0", ":10: length = 0 must be greater than zero"),
        ("length = 6", "", ":7: section has no length"),
        ("at = 2", "at = 4", ":11: task \"weather\": the section from 4ms to 9ms overlaps the one from 1ms to 7ms"),
        (
            "resource = \"disk\"",
            "resource = \"bus\"",
            ":11: task \"weather\": the section locks \"bus\" within a section that holds it already",
        ),
        ("resource = \"disk\"", "resource = \" \"", ":12: name = \"\" must be a printable text"),
        ("at = 2", "from = 2", ":13: section: unknown key \"from\""),
    ];
    for (from, to, expected) in cases {
        let error = read(&SHARING.replacen(from, to, 1), Format::Toml).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
}
