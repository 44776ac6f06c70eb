//! Contract: files are read from the disk with the files that they refer to; what is no file, or none of text, is an
//! error.

use std::path::Path;

use temponet_formats::{Format, load, parse};
use temponet_task::{ExecutionModel, Time};

use crate::{toml_error, with_line};

#[test]
fn empirical_times_come_from_a_column_of_a_csv_beside_the_file() {
    let folder = std::env::temp_dir().join(format!("temponet-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("times.csv"), "n,time_us\n1,100\n2,250.5\n3,300\n").unwrap();
    let file = folder.join("set.toml");
    let task = |column: &str| {
        with_line(&format!("execution = {{ model = \"empirical\", file = \"times.csv\", column = \"{column}\" }}"))
    };
    std::fs::write(&file, task("time_us")).unwrap();
    let set = load(&file).unwrap().set;
    let samples = [Time::from_us(100), Time(250_500), Time::from_us(300)].into();
    assert_eq!(set.tasks()[0].execution, ExecutionModel::Empirical { samples });
    assert_eq!((set.tasks()[0].bcet, set.tasks()[0].wcet), (Time::from_us(100), Time::from_us(300)));
    std::fs::write(&file, task("nowhere")).unwrap();
    assert!(load(&file).unwrap_err().to_string().contains("has no column \"nowhere\""));
    std::fs::write(folder.join("times.csv"), "n,time_us\n1,100\n2,-1\n").unwrap();
    std::fs::write(&file, task("time_us")).unwrap();
    assert!(load(&file).unwrap_err().to_string().contains("times.csv:3: time_us = -1us is negative"));
    // The file may be no list of times at all: what it holds is none of the reader's business.
    for other in ["root:x:0:0", "4 secrets", "xyz"] {
        std::fs::write(folder.join("times.csv"), format!("n,time_us\n1,{other}\n")).unwrap();
        let error = load(&file).unwrap_err().to_string();
        assert!(error.contains("times.csv:2: time_us is not a time") && !error.contains(other), "{error}");
    }
    std::fs::write(&file, b"cores = 1\n\xff\xfe").unwrap();
    assert!(load(&file).unwrap_err().to_string().ends_with("set.toml:2: is not UTF-8 text"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_endless_device_and_a_folder_are_errors() {
    let folder = std::env::temp_dir().join(format!("temponet-input-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("set.toml")).unwrap();
    assert!(load(&folder.join("set.toml")).unwrap_err().to_string().ends_with("is a folder, not a file"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/zero", folder.join("zero.csv")).unwrap();
        assert!(load(&folder.join("zero.csv")).unwrap_err().to_string().ends_with("is too large: more than 64 MiB"));
    }
    let large = folder.join("large.toml");
    std::fs::File::create(&large).unwrap().set_len((1 << 30) + 1).unwrap();
    assert!(load(&large).unwrap_err().to_string().ends_with("is too large: more than 1024 MiB"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_name_with_control_characters_gives_a_printable_set() {
    let text = with_line("wcet = 3");
    let set = parse(&text, Format::Toml, Path::new("a\x1b[31m\nb.toml")).unwrap().set;
    assert_eq!(set.name, "a\\u{1b}[31m\\nb");
    let error = toml_error(&(text + "[[mode]]\nat = 1\nname = \"\\u001b[2J\"\n"));
    assert!(error.contains("must be a printable text") && !error.contains('\x1b'), "{error}");
}

#[test]
fn the_files_that_a_set_refers_to_are_known() {
    let folder = std::env::temp_dir().join(format!("temponet-refers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("times.csv"), "t_ms;u\n1;2\n").unwrap();
    let text = with_line("execution = { model = \"empirical\", file = \"times.csv\", column = \"u\" }");
    std::fs::write(folder.join("set.toml"), text).unwrap();
    assert_eq!(load(&folder.join("set.toml")).unwrap().files, [folder.join("times.csv")]);
    std::fs::remove_dir_all(folder).unwrap();
}

/// The schema takes numbers without a fraction for whole ones, as JSON does.
#[test]
fn whole_numbers_may_have_a_decimal_point() {
    let of =
        |cores: &str| format!("{{\"cores\": {cores}, \"task\": [{{\"name\": \"a\", \"period\": 9, \"wcet\": 1}}]}}");
    for cores in ["2", "2.0", "2e0", "0.2e1"] {
        assert_eq!(parse(&of(cores), Format::Json, Path::new("s.json")).unwrap().set.cores(), 2, "{cores}");
    }
    for cores in ["2.5", "1e300", "-2.0", "0.0"] {
        let error = parse(&of(cores), Format::Json, Path::new("s.json")).unwrap_err().to_string();
        assert!(error.contains("must be a whole number from 1 to 4096"), "{error}");
    }
}
