//! Open-loop load on an axum server over loopback: our tower layer beside what servers do today.

#![forbid(unsafe_code)]

mod load;
mod stacks;
mod trace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::load::Outcomes;
use crate::stacks::{Known, Stack, Work};

/// Goodput of servers in overload, with lengths and arrivals from a trace of an LLM service.
#[derive(Parser)]
#[command(name = "temponet-requests-bench")]
struct Arguments {
    /// Trace: AzureLLMInferenceTrace_conv.csv.
    trace: PathBuf,
    /// Number of requests of a run.
    #[arg(long, default_value_t = 2_000)]
    requests: usize,
    /// Work that comes, relative to what the workers can do.
    #[arg(long, value_delimiter = ',', default_value = "0.5,1,1.3,2")]
    loads: Vec<f64>,
    /// Number of requests served at a time.
    #[arg(long, default_value_t = 16)]
    workers: usize,
    /// Factor on all lengths and due times.
    #[arg(long, default_value_t = 0.02)]
    scale: f64,
    /// Runs of each server; the order of the servers changes from run to run.
    #[arg(long, default_value_t = 3)]
    runs: u64,
    /// Servers to measure, by their names in the table, "temponet" left out or not; all by default.
    #[arg(long, value_delimiter = ',')]
    servers: Vec<String>,
    /// How handlers take their time.
    #[arg(long, value_enum, default_value = "sleep")]
    work: Work,
    /// What requests tell of their lengths: none, prompt (tokens), or an estimate with this error.
    #[arg(long, default_value = "prompt")]
    known: Known,
    /// One JSON object for each load, in place of tables.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(arguments: &Arguments) -> Result<(), String> {
    let Arguments { trace: path, requests, loads, workers, scale, runs, servers, work, known, json } = arguments;
    let positive = [("--scale", *scale)].into_iter().chain(loads.iter().map(|load| ("--loads", *load)));
    for (name, value) in positive {
        if !(value > 0.0 && value.is_finite()) {
            return Err(format!("{name} is above 0, not {value}"));
        }
    }
    if *workers == 0 || *runs == 0 || *requests < 2 {
        return Err("--workers and --runs are at least 1, --requests at least 2".into());
    }
    let stacks = Stack::named(servers)?;
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| format!("no runtime: {error}"))?;
    for load in loads {
        let mut found: Vec<Vec<Outcomes>> = vec![Vec::new(); stacks.len()];
        let mut bound = 0.0;
        for run in 0..*runs {
            let asked = trace::read(&text, *requests, *workers, *load, *scale, run)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            bound += trace::bound(&asked, *workers) / *runs as f64;
            for turn in 0..stacks.len() {
                let place = (turn + run as usize) % stacks.len();
                let outcomes = runtime.block_on(load::run(&stacks[place], &asked, *workers, *work, *known));
                found[place].push(outcomes.map_err(|error| format!("no server: {error}"))?);
            }
        }
        let summaries: Vec<Summary> =
            stacks.iter().zip(&found).map(|(stack, runs)| Summary::of(stack.name(), runs)).collect();
        if *json {
            let stacks: Vec<String> = summaries.iter().map(Summary::json).collect();
            let stacks = stacks.join(",");
            println!(
                "{{\"load\":{load},\"requests\":{requests},\"runs\":{runs},\"clairvoyant_percent\":{bound:.3},\"stacks\":[{stacks}]}}"
            );
            continue;
        }
        println!("Load {load}, {requests} requests, {runs} runs:\n");
        println!("| | in time, % | late, % | refused, % | broken, % | p50, ms | p99, ms | wasted time, % |");
        println!("|---|--:|--:|--:|--:|--:|--:|--:|");
        summaries.iter().for_each(|summary| println!("{}", summary.row()));
        println!("| clairvoyant, at most | {bound:.1} | | | | | | |");
        println!();
    }
    Ok(())
}

/// Means over the runs of one server: percents, and milliseconds.
struct Summary {
    name: String,
    in_time: f64,
    /// Half the width of the 95% interval of `in_time`; none after a single run.
    interval: Option<f64>,
    late: f64,
    refused: f64,
    broken: f64,
    median: f64,
    high: f64,
    wasted: f64,
}

impl Summary {
    fn of(name: String, runs: &[Outcomes]) -> Summary {
        let mean = |of: &dyn Fn(&Outcomes) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let share = |count: usize, run: &Outcomes| 100.0 * count as f64 / run.requests as f64;
        let in_time = mean(&|run| share(run.in_time, run));
        let squares: f64 = runs.iter().map(|run| (share(run.in_time, run) - in_time).powi(2)).sum();
        let interval = (runs.len() > 1).then(|| {
            // Of Student's distribution, by degrees of freedom; beyond, close to that of the normal one.
            let quantiles = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26];
            let quantile = quantiles.get(runs.len() - 2).copied().unwrap_or(2.2);
            quantile * (squares / (runs.len() - 1) as f64 / runs.len() as f64).sqrt()
        });
        let latency = |at: f64| {
            mean(&|run| {
                let place = (at * run.latencies.len() as f64) as usize;
                run.latencies.get(place.min(run.latencies.len().saturating_sub(1))).copied().unwrap_or(0.0) * 1e3
            })
        };
        Summary {
            name,
            in_time,
            interval,
            late: mean(&|run| share(run.late, run)),
            refused: mean(&|run| share(run.refused, run)),
            broken: mean(&|run| share(run.broken, run)),
            median: latency(0.5),
            high: latency(0.99),
            wasted: mean(&|run| 100.0 * run.wasted),
        }
    }

    fn row(&self) -> String {
        let Summary { name, in_time, interval, late, refused, broken, median, high, wasted } = self;
        let interval = interval.map_or(String::new(), |interval| format!(" ± {interval:.1}"));
        let shares = format!("{in_time:.1}{interval} | {late:.1} | {refused:.1} | {broken:.1}");
        format!("| {name} | {shares} | {median:.0} | {high:.0} | {wasted:.1} |")
    }

    fn json(&self) -> String {
        let Summary { name, in_time, interval, late, refused, broken, median, high, wasted } = self;
        let interval = interval.map_or("null".into(), |interval| format!("{interval:.3}"));
        format!(
            "{{\"name\":\"{name}\",\"in_time_percent\":{in_time:.3},\"interval\":{interval},\"late_percent\":{late:.3},\
             \"refused_percent\":{refused:.3},\"broken_percent\":{broken:.3},\"p50_ms\":{median:.3},\"p99_ms\":{high:.3},\
             \"wasted_percent\":{wasted:.3}}}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of 20 to 220 tokens, ten a second.
    fn text(count: usize) -> String {
        let line = |number: usize| {
            let (seconds, tenth) = (number / 10, number % 10);
            format!(
                "2023-11-16 18:{:02}:{:02}.{tenth},{},{}\n",
                seconds / 60,
                seconds % 60,
                100 + number,
                20 + number % 3 * 100
            )
        };
        "TIMESTAMP,ContextTokens,GeneratedTokens\n".to_owned() + &(0..count).map(line).collect::<String>()
    }

    #[test]
    fn arrivals_are_stretched_to_the_load_and_odd_lines_are_named() {
        let asked = trace::read(&text(100), 100, 4, 2.0, 0.01, 1).unwrap();
        let work: f64 = asked.iter().map(|asked| asked.length.as_secs_f64()).sum();
        assert!((work / (4.0 * asked[99].arrival.as_secs_f64()) - 2.0).abs() < 0.01);
        assert_eq!(trace::read(&text(100), 100, 4, 2.0, 0.01, 1).unwrap(), asked, "the same seed, the same requests");
        let broken = text(3).replace(",101,", ",many,");
        assert!(trace::read(&broken, 9, 4, 2.0, 0.01, 1).unwrap_err().starts_with("line 3:"));
        assert!(trace::read("TIMESTAMP\n", 9, 4, 2.0, 0.01, 1).is_err());
        assert!(trace::read(&text(1), 9, 4, 2.0, 0.01, 1).is_err());
    }

    #[test]
    fn no_more_is_in_time_than_a_clairvoyant_could_do() {
        let asked = trace::read(&text(100), 100, 4, 2.0, 0.01, 1).unwrap();
        assert!((50.0..100.0).contains(&trace::bound(&asked, 4)), "{}", trace::bound(&asked, 4));
        assert_eq!(trace::bound(&asked, 100), 100.0);
    }

    #[test]
    fn servers_are_chosen_by_name() {
        let names = |servers: &[&str]| {
            let servers: Vec<String> = servers.iter().map(|name| name.to_string()).collect();
            Stack::named(&servers).map(|stacks| stacks.iter().map(Stack::name).collect::<Vec<String>>())
        };
        assert_eq!(names(&[]).unwrap().len(), Stack::all().len());
        let chosen = names(&["guarded", "semaphore + timeout", "temponet fcfs"]).unwrap();
        assert_eq!(chosen, ["temponet guarded", "semaphore + timeout", "temponet fcfs"]);
        let error = names(&["fcfs", "semaphor"]).unwrap_err();
        assert!(error.contains("\"semaphor\"") && error.contains("little-loadshedder"), "{error}");
    }

    #[test]
    fn every_server_answers_every_request() {
        let asked = trace::read(&text(60), 60, 4, 2.0, 0.01, 1).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        for (place, stack) in Stack::all().iter().enumerate() {
            let known = [Known::Nothing, Known::Prompt, Known::Estimate(0.5)][place % 3];
            let work = if place == 2 { Work::Spin } else { Work::Sleep };
            let found = runtime.block_on(load::run(stack, &asked, 4, work, known)).unwrap();
            assert_eq!(found.in_time + found.late + found.refused, 60, "{}: {found:?}", stack.name());
            assert!(found.in_time > 0, "{}: {found:?}", stack.name());
            let summary = Summary::of(stack.name(), &[found.clone(), found]);
            assert!(summary.row().contains("± 0.0"), "{}", summary.row());
            assert!(
                summary.json().ends_with('}') && summary.json().contains("\"interval\":0.000"),
                "{}",
                summary.json()
            );
        }
    }
}
