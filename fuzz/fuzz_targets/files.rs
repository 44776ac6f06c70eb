//! No text makes a parser panic; what is read can be written and reads back as the same set. JSON covers workloads of
//! rt-app too, which are told by their content.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use temponet_formats::{Format, parse, to_rt_app, write};

fuzz_target!(|data: (u8, &str)| {
    let formats = [Format::Toml, Format::Json, Format::Csv, Format::SimSo];
    let format = formats[data.0 as usize % formats.len()];
    let Ok(loaded) = parse(data.1, format, Path::new("fuzz")) else { return };
    if let Ok(text) = write(&loaded.set, format) {
        let again = parse(&text, format, Path::new("fuzz")).expect("what we wrote reads back").set;
        assert_eq!(again.tasks(), loaded.set.tasks());
        assert_eq!(again.chains(), loaded.set.chains());
    }
    if let Ok(exported) = to_rt_app(&loaded.set) {
        parse(&exported.text, Format::Json, Path::new("fuzz.json")).expect("what we wrote for rt-app reads back");
    }
});
