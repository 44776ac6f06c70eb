//! Contract: cores have names and speeds, tasks name them, and machines that make no sense are refused with their line.

use temponet_formats::{Format, write};
use temponet_task::{CoreId, CoreSet};

use crate::read;

const BIG_LITTLE: &str = r#"
    [[core]]
    name = "big"
    speed = 1.5
    count = 2

    [[core]]
    name = "little"
    speed = 0.4
    count = 2

    [[task]]
    name = "vision"
    period = 33
    wcet = 20
    cores = ["big"]

    [[task]]
    name = "driver"
    period = 10
    wcet = 5
    cores = [0, 2]

    [[burst]]
    name = "peak"
    jobs = 2
    every = 10
    wcet = 1
    cores = "little"
"#;

#[test]
fn cores_have_names_and_speeds_and_tasks_name_them() {
    let loaded = read(BIG_LITTLE, Format::Toml).unwrap();
    let speeds: Vec<u32> = loaded.set.machine().cores().iter().map(|core| core.speed.0).collect();
    assert_eq!((loaded.set.cores(), speeds), (4, vec![1_500, 1_500, 400, 400]));
    let own = |task: usize| loaded.set.tasks()[task].cores.iter(4).map(CoreId::index).collect::<Vec<usize>>();
    assert_eq!([own(0), own(1), own(2)], [vec![0, 1], vec![0, 2], vec![2, 3]]);
    assert!(loaded.warnings.is_empty(), "5 ms of work take 3.3 ms on a big core");
    for format in [Format::Toml, Format::Json] {
        let text = write(&loaded.set, format).unwrap();
        assert_eq!(read(&text, format).unwrap().set, loaded.set, "{text}");
        assert!(text.contains("\"little\"") && text.contains("count"), "{text}");
    }
    let csv = write(&loaded.set, Format::Csv).unwrap_err().to_string();
    assert!(csv.contains("[[core]]"), "{csv}");
    // The fastest core that a task may use decides whether it is hopeless.
    let slow = read(&BIG_LITTLE.replace("wcet = 5\n    cores = [0, 2]", "wcet = 5\n    cores = [2]"), Format::Toml);
    let slow = slow.unwrap().warnings;
    assert!(slow[0].contains("wcet 5ms, 12.5ms on its fastest core, > deadline 10ms"), "{slow:?}");
}

#[test]
fn machines_that_make_no_sense_are_errors_with_their_line() {
    let plain = "cores = 2\n[[task]]\nname = \"a\"\nperiod = 10\nwcet = 1\n";
    let cases = [
        ("speed = 1.5", "speed = 0", ":4: speed = 0 must be a number from 0.001 to 1000"),
        ("speed = 1.5", "speed = nan", ":4: speed = nan"),
        ("speed = 1.5", "speed = 1001", ":4: speed = 1001 must be"),
        ("speed = 1.5", "speed = 0.3333", ":4: speed = 0.3333 has more than three decimals; 0.333 is near"),
        ("count = 2", "count = 0", ":5: count = 0 must be a whole number from 1"),
        ("count = 2", "count = 4096", ":7: core \"little\" is one of 4098 cores"),
        ("name = \"big\"", "name = \"7\"", ":3: name = \"7\" of a core must not be a number"),
        ("name = \"big\"", "", ":2: core has no name"),
        ("cores = [\"big\"]", "cores = [\"bgi\"]", ":16: there is no core \"bgi\"; did you mean \"big\"?"),
        ("cores = [\"big\"]", "cores = []", ":16: cores = [] names no core"),
        ("cores = [0, 2]", "cores = [2, 0, 2]", ":22: cores names core 2 twice"),
        ("cores = [0, 2]", "cores = [0, \"big\"]", ":22: cores names core 0 twice"),
        ("cores = [0, 2]", "cores = [0, 4]", ":22: cores = 4: there is no core 4, cores 0 to 3"),
        ("cores = [0, 2]", "cores = [-1]", ":22: cores = -1 must be"),
        ("\n    [[core]]", "speeds = [0.5, 1.0]\n    [[core]]", ":1: speeds to choose from beside core \"big\""),
        ("\n    [[core]]", "cores = 3\n    [[core]]", ":1: cores = 3 where the [[core]] tables state 4"),
    ];
    for (from, to, expected) in cases {
        let error = read(&BIG_LITTLE.replacen(from, to, 1), Format::Toml).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
    let named = read(&format!("{plain}cores = [\"big\"]\n"), Format::Toml).unwrap_err().to_string();
    assert!(named.contains(":6: there is no core \"big\"; cores have names only in [[core]] tables"), "{named}");
    let one = read(&format!("{plain}cores = [2]\n"), Format::Toml).unwrap_err().to_string();
    assert!(one.contains("there is no core 2, cores 0 to 1"), "{one}");
    // The largest speeds and the longest times do not overflow.
    let extreme =
        "[[core]]\nname = \"c\"\nspeed = 0.001\n[[task]]\nname = \"a\"\nperiod = \"1s\"\nwcet = \"900000000s\"\n";
    assert_eq!(read(extreme, Format::Toml).unwrap().warnings.len(), 1);
}

#[test]
fn a_core_runs_only_the_tasks_that_name_it_if_it_says_so() {
    let text = BIG_LITTLE.replace("speed = 0.4", "speed = 0.4\n    only = true");
    let free = "[[task]]\nname = \"control\"\nperiod = 10\nwcet = 1\n";
    let loaded = read(&format!("{text}{free}"), Format::Toml).unwrap();
    let own = |task: usize| loaded.set.tasks()[task].cores.iter(4).map(CoreId::index).collect::<Vec<usize>>();
    assert_eq!([own(0), own(1), own(2), own(3)], [vec![0, 1], vec![0, 2], vec![0, 1], vec![2, 3]]);
    assert_eq!(loaded.notes, [""; 0]);
    for format in [Format::Toml, Format::Json] {
        let text = write(&loaded.set, format).unwrap();
        assert_eq!(read(&text, format).unwrap().set, loaded.set, "{text}");
        let control = &text[text.find("control").unwrap()..];
        assert!(!control[..control.find("wcet").unwrap() + 10].contains("cores"), "{text}");
    }
    // The slow core is not counted for a task that may not use it.
    let slow = read(&format!("{text}{}", free.replace("wcet = 1", "wcet = 16")), Format::Toml).unwrap();
    assert!(slow.warnings[0].contains("10.666667ms on its fastest core"), "{:?}", slow.warnings);
    let idle = text.replace("cores = \"little\"", "").replace("[0, 2]", "[0]");
    assert_eq!(
        read(&idle, Format::Toml).unwrap().notes,
        ["set.toml: core \"little\" is only for tasks that name it, and none does: it stays idle"]
    );
    let alone = "[[core]]\nname = \"gpu\"\nonly = true\n[[task]]\nname = \"a\"\nperiod = 10\nwcet = 1\n";
    let error = read(alone, Format::Toml).unwrap_err().to_string();
    assert_eq!(error, "set.toml:4: task \"a\" names no core, and every core is only for tasks that name it");
    let error = read(&alone.replace("true", "1"), Format::Toml).unwrap_err().to_string();
    assert_eq!(error, "set.toml:3: only = 1 must be true or false");
}

#[test]
fn a_csv_column_binds_tasks_to_cores_and_implies_their_number() {
    let text = "name,period,wcet,cores\na,10,1,0 2\nb,10,1,\n";
    let set = read(text, Format::Csv).unwrap().set;
    assert_eq!((set.cores(), set.tasks()[0].cores.clone()), (3, CoreSet::of([0, 2].map(CoreId))));
    assert!(set.tasks()[1].cores.is_all());
    let again = write(&set, Format::Csv).unwrap();
    assert_eq!(read(&again, Format::Csv).unwrap().set.tasks(), set.tasks(), "{again}");
    let more = set.clone().with_cores(4);
    assert!(write(&more, Format::Csv).unwrap_err().to_string().contains("\"cores\" of the whole set"));
    let jobs = "name,release,execution,deadline,cores\na,0,1,5,1\na,5,1,9,1\nb,0,1,9,\n";
    let listed = read(jobs, Format::Csv).unwrap().set;
    assert_eq!((listed.cores(), listed.tasks()[0].cores.clone()), (2, CoreSet::of([CoreId(1)])));
    let again = write(&listed, Format::Csv).unwrap();
    assert_eq!(read(&again, Format::Csv).unwrap().set.tasks(), listed.tasks(), "{again}");
    let other = read(&jobs.replace("9,1", "9,0"), Format::Csv).unwrap_err().to_string();
    assert!(other.contains(":3: the jobs of \"a\" have other cores in line 2"), "{other}");
}
