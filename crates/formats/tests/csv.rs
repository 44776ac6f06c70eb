//! Contract: tables as spreadsheets write them, of tasks or of single jobs, are read strictly, and what CSV cannot hold
//! is named.

use temponet_formats::{Format, write};
use temponet_task::{Arrival, ListedJob, Task, TaskSet, Time};

use crate::read;

#[test]
fn csv_reads_tasks_with_units_in_cells_or_headers() {
    let text = "# comment\nname,period,wcet_us,mk,criticality,kind\na,10,2500,2/3,high,\nb,20ms,1ms,,,sporadic\n";
    let set = read(text, Format::Csv).unwrap().set;
    assert_eq!((set.tasks()[0].period(), set.tasks()[0].wcet), (Some(Time::from_ms(10)), Time::from_us(2_500)));
    assert_eq!((set.tasks()[0].mk, set.tasks()[0].criticality), (Some((2, 3)), 1));
    assert_eq!(set.tasks()[1].wcet, Time::from_ms(1));
    let error = |text| read(text, Format::Csv).unwrap_err();
    assert_eq!(error("name,period,wcet\na,10,1\nb,0,1\n"), "set.csv:3: period = 0 must be greater than zero");
    assert!(error("name,period,wcet\na,10\n").contains("set.csv:2: 2 cells where the header has 3"));
    assert!(error("name,period,wcet,colour\na,10,1,red\n").starts_with("set.csv:1: unknown column \"colour\""));
    assert!(error("").contains("set.csv: is empty"));
    // A quote that is never closed swallows lines. The message is still one short line.
    let open = format!("name,period,wcet\na,\"1\n{}", "b,2,1\n".repeat(100));
    assert!(!error(&open).contains('\n') && error(&open).len() < 200, "{}", error(&open));
    // Blank lines, comments and DOS line ends do not shift line numbers.
    let shifted = "\n# one\nname,period,wcet\r\n\r\n# two\r\na,10,1\r\n\n# three\nb,0,1\r\n";
    assert_eq!(error(shifted), "set.csv:9: period = 0 must be greater than zero");
}

/// Jobs of the first task of a list.
fn listed(text: &str) -> Vec<ListedJob> {
    let set = read(text, Format::Csv).unwrap().set;
    let Arrival::Listed(jobs) = &set.tasks()[0].arrival else { panic!("{text}") };
    jobs.to_vec()
}

#[test]
fn traces_of_other_programs_are_understood_or_told_which_column_is_wanted() {
    let ours = "name,release_us,execution,deadline\na,1000,2,11\na,5000,1,20\n";
    let theirs = "name,arrival_us,duration,slo\na,1000,2,10\na,5000,1,15\n";
    assert_eq!(listed(theirs), listed(ours));
    let error = |text: &str| read(text, Format::Csv).unwrap_err();
    for (text, message) in [
        (
            "name,start,duration,slo\na,1,2,10\n",
            "column \"start\" can be when a job arrives or when it begins to run: call it \"release\" if it is the arrival, else leave it out",
        ),
        (
            "name,arrival,size,slo\na,1,2,10\n",
            "column \"size\" is not said to be a time: call it \"execution\" if it is what a job takes, or \"estimate\" if it is what is known before",
        ),
        ("name,arrival,release,duration,slo\na,1,1,2,10\n", "columns \"arrival\" and \"release\" mean the same"),
        ("name,arrival,duration\na,1,2\n", "the header has no column \"deadline\""),
        ("name,duration,slo\na,2,10\n", "the header has no column \"release\""),
        ("arrival,duration,slo\n1,2,10\n", "the header has no column \"name\""),
    ] {
        assert_eq!(error(text), format!("set.csv:1: {message}"));
    }
    let both = "name,release,execution,deadline,slo\na,1,2,10,\na,1,2,,9\na,1,2,,\n";
    assert_eq!(error(both), "set.csv:4: job has no deadline");
    assert_eq!(error(&both.replace("10,\n", "10,9\n")), "set.csv:2: deadline beside slo: one of them is enough");
}

#[test]
fn wcets_that_were_made_up_are_said_to_decide() {
    let notes = |text: &str| read(text, Format::Csv).unwrap().notes;
    let depends = "schedulers plan with it, so results depend on that choice";
    // Estimates without wcets: the longest time of each name.
    let estimated = "name,arrival,duration,slo,estimate\na,0,2,10,3\na,5,6,10,4\nb,0,1,9,8\n";
    assert!(notes(estimated)[0].contains("jobs have estimates and no wcets"), "{:?}", notes(estimated));
    assert_eq!(listed(estimated).iter().map(|job| job.wcet).collect::<Vec<_>>(), [Time::from_ms(6); 2]);
    assert!(listed(estimated).iter().all(|job| job.bcet == Time(1) && job.estimate.is_some()));
    let longest = "name,release,execution,deadline,wcet\na,0,2,10,6\na,5,6,15,6\nb,0,1,9,1\n";
    assert_eq!(
        notes(longest),
        [format!("set.csv: the wcet of each job is the longest execution of its name: {depends}")]
    );
    let multiple = "name,release,execution,deadline,wcet,estimate\na,0,2,10,7.5,3\na,5,6,15,10,4\nb,0,9,20,9,2\n";
    assert_eq!(notes(multiple), [format!("set.csv: the wcet of each job is 2.5 times its estimate: {depends}")]);
    for stated in [
        "name,release,execution,deadline\na,0,2,10\na,5,6,15\n",
        "name,release,execution,deadline,wcet\na,0,2,10,7\na,5,6,15,7\n",
        "name,release,execution,deadline,wcet,estimate\na,0,2,10,7,3\na,5,6,15,10,4\n",
    ] {
        assert_eq!(notes(stated), [""; 0], "{stated}");
    }
}

#[test]
fn csv_has_a_column_for_the_guarantee_of_tasks_but_not_of_listed_jobs() {
    let text = "name,period,wcet,guarantee\na,10,1,true\nb,10,1,false\nc,10,1,\nd,10,1,TRUE\ne,10,1,False\n";
    let set = read(text, Format::Csv).unwrap().set;
    let guaranteed: Vec<bool> = set.tasks().iter().map(|task| task.guarantee).collect();
    assert_eq!(guaranteed, [true, false, false, true, false]);
    for cell in ["yes", "1", "t", "true false"] {
        let error =
            read(&format!("name,period,wcet,guarantee\na,10,1,true\nb,10,1,{cell}\n"), Format::Csv).unwrap_err();
        assert_eq!(error, format!("set.csv:3: guarantee = {cell} must be true or false"));
    }
    let error = read("name,release,execution,deadline,guarantee\na,0,1,5,true\n", Format::Csv).unwrap_err();
    assert!(error.starts_with("set.csv:1: unknown column \"guarantee\""), "{error}");
}

#[test]
fn a_header_with_release_makes_a_job_list() {
    let text = "name,release,execution,deadline,value,wcet\ncam,0,2,10,3,4\ncam,5,1,8,1,\nlog,0.5,1,3,1,\n";
    let loaded = read(text, Format::Csv).unwrap();
    assert!(loaded.warnings.is_empty());
    let [cam, log] = loaded.set.tasks() else { panic!() };
    let Arrival::Listed(jobs) = &cam.arrival else { panic!() };
    let ms = Time::from_ms;
    let first = ListedJob::new(ms(0), ms(10), ms(2)).with_wcet(ms(4)).with_bcet(Time(1)).with_value(3.0);
    assert_eq!((jobs.len(), jobs[0], jobs[1].wcet), (2, first, ms(1)));
    assert_eq!(log.name, "log");
    assert_eq!(loaded.set.utilization(), 6.0 / 10.0, "4 + 1 + 1 ms at the wcet in 10 ms");
    let error = |text| read(text, Format::Csv).unwrap_err();
    assert!(error("name,release,execution,deadline\na,5,1,5\n").contains("set.csv:2: deadline 5ms is not after"));
    assert!(error("name,release,execution,deadline,wcet\na,0,3,5,2\n").contains("wcet 2ms is less than the execution"));
    assert!(error("name,release,execution,deadline\n").contains("has no jobs"));
    let hopeless = read("name,release,execution,deadline\na,0,9,5\n", Format::Csv).unwrap();
    assert!(hopeless.warnings[0].contains("set.csv:2: warning: job of \"a\" has wcet 9ms > its window 5ms"));
    assert_eq!(hopeless.warnings.len(), 1);
    let three = read("name,release,execution,deadline\na,0,9,5\na,10,9,15\nb,0,9,5\nb,0,1,5\n", Format::Csv).unwrap();
    assert!(three.warnings[1].contains("set.csv: warning: 2 more jobs have a wcet > their window"), "{three:?}");
    assert_eq!(three.warnings.len(), 2);
}

#[test]
fn a_trace_does_not_tell_which_jobs_take_their_whole_wcet() {
    let told = |text: &str| {
        let set = read(text, Format::Csv).unwrap().set;
        let again = read(&write(&set, Format::Csv).unwrap(), Format::Csv).unwrap().set;
        assert_eq!(again.tasks(), set.tasks(), "written and read again");
        let Arrival::Listed(jobs) = &set.tasks()[0].arrival else { panic!() };
        let told: Vec<(Time, Time)> = jobs.iter().map(|job| (job.bcet, job.wcet)).collect();
        (told, set.system.mean_utilizations())
    };
    let header = "name,release,execution,deadline,wcet\n";
    let (one, other) = ("a,0,4,10,4\na,5,1,15,4\n", "a,0,1,10,4\na,5,4,15,4\n");
    assert_eq!(told(&(header.to_string() + one)), told(&(header.to_string() + other)), "whatever they really take");
    assert!(told(&(header.to_string() + one)).0.iter().all(|(bcet, _)| *bcet == Time(1)));
    // In a list without wcets, execution times are known.
    let (known, load) = told("name,release,execution,deadline\na,0,4,10\nb,5,1,15\n");
    assert!(known.iter().all(|(bcet, wcet)| bcet == wcet));
    assert_eq!(load, [4.0 / 15.0, 1.0 / 15.0], "over the time of all jobs together");
}

#[test]
fn csv_says_what_it_cannot_hold() {
    let tasks = vec![Task::periodic("a", Time::from_ms(10), Time::from_ms(2))];
    let mut set = TaskSet::new("set", tasks, 2);
    assert!(write(&set, Format::Csv).unwrap_err().to_string().contains("\"cores\""));
    set.system.set_cores(1);
    assert!(write(&set, Format::Csv).unwrap().starts_with("name,period,wcet\na,10ms,2ms\n"));
}

#[test]
fn a_mistake_in_the_header_has_its_line_and_speaks_of_columns() {
    let error = |text: &str| read(text, Format::Csv).expect_err("must be refused");
    assert_eq!(error("name,period,period_us,wcet\na,1,1,1\n"), "set.csv:1: column \"period\" stands twice");
    assert_eq!(error("name,wcet\na,1\n"), "set.csv:1: the header has no column \"period\"");
    assert_eq!(error("# one\n\nperiod,wcet\n9,1\n"), "set.csv:3: the header has no column \"name\"");
    assert_eq!(error("name,release,deadline\na,0,1\n"), "set.csv:1: the header has no column \"execution\"");
    let unknown = error("# one\n\nname,period,wcet,zzz\na,10,1,2\n");
    assert!(unknown.starts_with("set.csv:3: unknown column \"zzz\"; known are name, period, wcet, "), "{unknown}");
    let known: Vec<&str> = unknown.split("known are ").nth(1).unwrap().split(", ").collect();
    assert!(known.contains(&"execution") && known.contains(&"estimate_error"), "{unknown}");
    for other in ["gap", "section", "estimate"] {
        assert!(!known.contains(&other), "{unknown}");
        let refused = error(&format!("name,period,wcet,{other}\na,10,1,\n"));
        assert!(refused.starts_with(&format!("set.csv:1: unknown column {other:?}")), "{refused}");
    }
    assert_eq!(error("name,period,wcet\n"), "set.csv: has no tasks: write at least one row below the header");
    // An empty column without a name is what a spreadsheet leaves behind.
    assert!(read("name,period,wcet,\na,10,1,\n", Format::Csv).is_ok());
    let unnamed = "set.csv:3: the column of \"x\" has no name in the header";
    assert_eq!(error("name,period,wcet,\na,10,1,\nb,10,1,x\n"), unnamed);
    assert_eq!(error("name,period,wcet,skip\na,10,1,_4\n").split(" must").next(), Some("set.csv:2: skip = _4"));
}

#[test]
fn models_with_their_default_parameters_survive_csv_and_others_are_named() {
    let header = "name,period,wcet,bcet,acet,kind,execution\n";
    for model in ["weibull", "pareto", "uniform"] {
        let set = read(&format!("{header}a,10,4,1,2,sporadic,{model}\n"), Format::Csv).unwrap().set;
        for format in [Format::Csv, Format::Toml, Format::Json] {
            let text = write(&set, format).unwrap();
            assert_eq!(read(&text, format).unwrap().set.tasks(), set.tasks(), "{text}");
        }
    }
    let refused = |more: &str| {
        let text = format!("[[task]]\nname = \"a\"\nperiod = 10\nwcet = 4\nbcet = 1\nacet = 2\n{more}\n");
        write(&read(&text, Format::Toml).unwrap().set, Format::Csv).unwrap_err().to_string()
    };
    for model in ["\"weibull\", exceed = 0.01", "\"pareto\", shape = 2.5", "\"normal\", deviation = 1"] {
        let expected = "execution of \"a\" with parameters cannot be written as CSV: use TOML or JSON";
        assert_eq!(refused(&format!("execution = {{ model = {model} }}")), expected);
    }
    let gap = refused("kind = \"sporadic\"\ngap = { model = \"uniform\", max = 21 }");
    assert_eq!(gap, "gap of \"a\" with parameters cannot be written as CSV: use TOML or JSON");
}

#[test]
fn semicolons_and_tabs_separate_cells_as_spreadsheets_write_them() {
    let text = "name,period,wcet,value\n\"a,b\",10,2.5,3\nc,20us,5us,\n";
    let expected = read(text, Format::Csv).unwrap().set;
    for separator in [";", "\t"] {
        let other = text.replace("\"a,b\"", "A").replace(',', separator).replace('A', "a,b");
        assert_eq!(read(&other, Format::Csv).unwrap().set, expected, "{other}");
    }
    let jobs = read("name;release_ms;execution_ms;deadline_ms\na;1;2;4\n", Format::Csv).unwrap().set;
    assert!(matches!(&jobs.tasks()[0].arrival, Arrival::Listed(jobs) if jobs.len() == 1));
}

#[test]
fn a_decimal_comma_is_named_and_not_read_as_something_else() {
    let error = |text: &str| read(text, Format::Csv).expect_err("must be refused");
    let comma = "set.csv:3: wcet_ms = 2,5 has a decimal comma: write a point, 2.5";
    assert_eq!(error("name;period_ms;wcet_ms\na;10;2\nb;10;2,5\n"), comma);
    assert!(error("name\tperiod\twcet\na\t10ms\t1,25ms\n").contains("write a point, 1.25ms"));
}
