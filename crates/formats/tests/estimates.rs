//! Contract: estimates and the execution models that go with them are read from all formats, written back as they were,
//! and refused with line and value where they make no sense.

use proptest::prelude::*;
use temponet_formats::{Format, write};
use temponet_task::{Arrival, Estimate, ExecutionModel, ListedJob, Task, TaskSet, Time};

fn read(text: &str, format: Format) -> Result<TaskSet, String> {
    crate::read(text, format).map(|loaded| loaded.set)
}

/// Reads a task with bcet 1 ms and wcet 10 ms and this line, which is the sixth.
fn task(line: &str) -> Result<Task, String> {
    let text = format!("[[task]]\nname = \"a\"\nperiod = 20\nbcet = 1\nwcet = 10\n{line}\n");
    read(&text, Format::Toml).map(|set| set.tasks()[0].clone())
}

fn jobs(text: &str) -> Result<Vec<ListedJob>, String> {
    let set = read(text, Format::Csv)?;
    let Arrival::Listed(jobs) = &set.tasks()[0].arrival else { panic!("{set:?}") };
    Ok(jobs.to_vec())
}

#[test]
fn a_task_states_the_error_of_its_estimates_in_every_format() {
    assert_eq!(task("").unwrap().estimate_error, None);
    assert_eq!(task("estimate = { error = 0.3 }").unwrap().estimate_error, Some(0.3));
    assert_eq!(task("estimate = { error = 0 }").unwrap().estimate_error, Some(0.0));
    let csv = "name,period,wcet,bcet,execution,estimate_error\na,10,4,1,uniform,0.3\nb,10,4,1,uniform,\n";
    let set = read(csv, Format::Csv).unwrap();
    assert_eq!((set.tasks()[0].estimate_error, set.tasks()[1].estimate_error), (Some(0.3), None));
    for format in [Format::Toml, Format::Json, Format::Csv] {
        let text = write(&set, format).unwrap();
        assert_eq!(read(&text, format).unwrap().tasks(), set.tasks(), "{text}");
        assert_eq!(text.matches("error").count(), 1, "{text}");
    }
}

#[test]
fn wrong_errors_of_estimates_are_refused_with_their_line() {
    for (line, message) in [
        ("estimate = { error = -0.1 }", "error = -0.1 must be a number from 0 to 10"),
        ("estimate = { error = 11 }", "error = 11 must be a number from 0 to 10"),
        ("estimate = { error = nan }", "error = nan"),
        ("estimate = {}", "has no error"),
        ("estimate = { eror = 0.3 }", "unknown key \"eror\""),
        ("estimate = 0.3", "estimate = 0.3 is not { error = NUMBER }"),
        ("estimate = { error = 1 }\nestimate_error = 1", "estimate_error beside estimate"),
    ] {
        let error = task(line).unwrap_err();
        let number = if line.contains('\n') { 7 } else { 6 };
        assert!(error.starts_with(&format!("set.toml:{number}: ")) && error.contains(message), "{line}: {error}");
    }
}

#[test]
fn listed_jobs_have_estimates_of_their_own() {
    let text = "name,release,execution,deadline,wcet,estimate,estimate_p90_us\na,0,2,10,4,1.5,3000\na,5,1,18,4,2,\na,7,1,18,4,,\n";
    let found: Vec<Option<Estimate>> = jobs(text).unwrap().iter().map(|job| job.estimate).collect();
    let us = Time::from_us;
    let expected = [Estimate::new(us(1_500), us(3_000)), Estimate::new(us(2_000), us(2_000)), None];
    assert_eq!(found, expected);
    let set = read(text, Format::Csv).unwrap();
    let again = write(&set, Format::Csv).unwrap();
    assert_eq!(read(&again, Format::Csv).unwrap().tasks(), set.tasks(), "{again}");
    assert!(again.starts_with("name,release_ns,execution_ns,deadline_ns,wcet_ns,estimate_ns,estimate_p90_ns,"));
}

#[test]
fn wrong_estimates_of_jobs_are_refused_with_their_line() {
    let header = "name,release,execution,deadline,wcet,estimate,estimate_p90\na,0,2,10,4,2,3\n";
    for (row, message) in [
        ("a,0,2,10,4,5,", "estimate 5ms is more than the wcet 4ms"),
        ("a,0,2,10,4,3,5", "estimate_p90 5ms is more than the wcet 4ms"),
        ("a,0,2,10,4,3,2", "estimate_p90 2ms is less than the estimate 3ms"),
        ("a,0,2,10,4,0,2", "estimate = 0 must be greater than zero"),
        ("a,0,2,10,4,,2", "estimate_p90 needs an estimate"),
        ("a,0,2,10,,2,2", "an estimate needs a wcet where other jobs have one"),
    ] {
        let error = jobs(&format!("{header}{row}\n")).unwrap_err();
        assert_eq!(error, format!("set.csv:3: {message}"));
    }
}

#[test]
fn log_normal_and_bimodal_times_are_read() {
    let ms = Time::from_ms;
    let model = |line: &str| task(line).map(|task| task.execution);
    let median = model("execution = { model = \"lognormal\", median = 4, sigma = 0.5 }").unwrap();
    assert_eq!(median, ExecutionModel::Lognormal { median: ms(4), sigma: 0.5 });
    // The mean of a log-normal time is its median times exp(σ²/2).
    let mean = model("acet = 4\nexecution = { model = \"lognormal\", sigma = 0.5 }").unwrap();
    assert_eq!(mean, ExecutionModel::Lognormal { median: Time(3_529_988), sigma: 0.5 });
    let two = model("execution = { model = \"bimodal\", levels = [2, 9], probability = 0.1, spread = 0.2 }").unwrap();
    assert_eq!(two, ExecutionModel::Bimodal { levels: [ms(2), ms(9)], probability: 0.1, spread: 0.2 });
    for (line, message) in [
        ("{ model = \"lognormal\", median = 4 }", "execution model \"lognormal\" needs a sigma"),
        ("{ model = \"lognormal\", sigma = 1 }", "needs a median, or an acet"),
        ("{ model = \"lognormal\", median = 40, sigma = 1 }", "median 40ms is not between bcet 1ms and wcet 10ms"),
        ("{ model = \"lognormal\", median = 4, sigma = -1 }", "sigma = -1 must be a number from 0 to 10"),
        ("{ model = \"bimodal\", levels = [2], probability = 0.1 }", "are not two times"),
        ("{ model = \"bimodal\", levels = [2, 11], probability = 0.1 }", "levels 11ms is not between bcet"),
        ("{ model = \"bimodal\", levels = [2, 9] }", "needs a probability of the second level"),
        ("{ model = \"bimodal\", probability = 0.5 }", "needs levels"),
        ("{ model = \"bimodal\", levels = [2, 9], probability = 2 }", "probability = 2 must be a number from 0 to 1"),
        ("{ model = \"lognormal\", median = 4, sigma = 1, mu = 3 }", "mu"),
    ] {
        let error = model(&format!("execution = {line}")).unwrap_err();
        assert!(error.starts_with("set.toml:6: ") && error.contains(message), "{line}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn models_and_errors_survive_toml_and_json(
        low in 1u64..1_000_000_000, more in 1u64..1_000_000_000, share in 0.0..=1.0f64, spread in 0.0..=10.0f64,
        error in proptest::option::of(0.0..=10.0f64), is_bimodal in any::<bool>(),
    ) {
        let median = Time(low + (more as f64 * share) as u64);
        let mut task = Task::periodic("a", Time(5_000_000_000), Time(low + more));
        (task.bcet, task.estimate_error) = (Time(low), error);
        task.execution = match is_bimodal {
            true => ExecutionModel::Bimodal { levels: [Time(low), median], probability: share, spread },
            false => ExecutionModel::Lognormal { median, sigma: spread },
        };
        let set = TaskSet::new("set", vec![task], 1);
        prop_assert_eq!(set.system.validate(), Ok(()));
        for format in [Format::Toml, Format::Json] {
            let text = write(&set, format).unwrap();
            let again = read(&text, format).unwrap();
            prop_assert_eq!(again.tasks(), set.tasks(), "{}", text);
        }
    }

    #[test]
    fn listed_estimates_survive_csv(list in prop::collection::vec((1u64..1000, 0u64..1000, 0u64..1000, any::<bool>()), 1..20)) {
        let job = |(execution, median, high, has): &(u64, u64, u64, bool)| {
            let wcet = Time(2_000 + execution);
            let estimate = Estimate::new(Time(1 + median), Time(1 + median + high)).filter(|_| *has);
            let (release, deadline, execution, bcet) = (Time(0), Time(9_000), Time(*execution), Time(1));
            ListedJob::new(release, deadline, execution).with_wcet(wcet).with_bcet(bcet).with_estimate(estimate)
        };
        let jobs: Vec<ListedJob> = list.iter().map(job).collect();
        let most = jobs.iter().map(|job| job.wcet).max().unwrap();
        let arrival = Arrival::Listed(jobs.into());
        let task = Task::periodic("a", Time(9_000), most).with_arrival(arrival).with_bcet(Time(1)).with_deadline(Time(9_000));
        let text = write(&TaskSet::new("set", vec![task.clone()], 1), Format::Csv).unwrap();
        let again = read(&text, Format::Csv).unwrap();
        prop_assert_eq!(&again.tasks()[0], &task, "{}", text);
    }
}
