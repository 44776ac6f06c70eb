//! Requests from the public trace of an LLM service (Azure LLM inference traces 2023).

use std::time::Duration;

use temponet_oracle::{OracleJob, optimum};
use temponet_task::Time;

/// A request. Its length is known to the handler alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// Time since the first one.
    pub arrival: Duration,
    pub length: Duration,
    /// Time from arrival to due time.
    pub window: Duration,
    pub prompt_tokens: u32,
    /// Error of its estimate, in standard deviations.
    pub error: f64,
}

/// Uniform numbers from 0 to 1.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Reads the first requests: 0.1 ms for each token of the prompt and 25 ms for each of the answer, seven in ten due in
/// 10 s and the others in 60 s, all times `scale`. Arrivals are stretched so that the work is `load` times what the
/// workers can do. An error names the line.
pub fn read(text: &str, count: usize, workers: usize, load: f64, scale: f64, seed: u64) -> Result<Vec<Asked>, String> {
    let mut draws = Draws(seed.wrapping_mul(2).wrapping_add(1));
    let mut asked = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1).take(count) {
        let (arrival, prompt, answer) = cells(line)
            .ok_or_else(|| format!("line {}: {line:?} is no arrival with two numbers of tokens", number + 1))?;
        let window = if draws.next() < 0.7 { 10.0 } else { 60.0 };
        // About normal.
        let error = (0..12).map(|_| draws.next()).sum::<f64>() - 6.0;
        asked.push((arrival, (1e-4 * prompt + 0.025 * answer) * scale, window * scale, prompt, error));
    }
    let (Some(first), Some(last)) = (asked.first(), asked.last()) else { return Err("no requests".into()) };
    let (first, span) = (first.0, last.0 - first.0);
    if span.is_nan() || span <= 0.0 {
        return Err("the requests come at one time".into());
    }
    let work: f64 = asked.iter().map(|request| request.1).sum();
    let stretch = work / (workers as f64 * load) / span;
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds.max(0.0));
    let request = |(arrival, length, window, prompt, error): (f64, f64, f64, f64, f64)| Asked {
        arrival: seconds((arrival - first) * stretch),
        length: seconds(length),
        window: seconds(window),
        prompt_tokens: prompt as u32,
        error,
    };
    Ok(asked.into_iter().map(request).collect())
}

/// The most steps for the bound; about half a second.
const STEPS: u64 = 20_000_000;

/// Percent of the requests that could be in time at most, for whoever knows all of them beforehand and can interrupt them.
pub fn bound(requests: &[Asked], workers: usize) -> f64 {
    let time = |duration: Duration| Time(duration.as_nanos() as u64);
    let job = |asked: &Asked| OracleJob {
        release: time(asked.arrival),
        deadline: time(asked.arrival + asked.window),
        execution: time(asked.length),
        weight: 1.0,
    };
    let jobs: Vec<OracleJob> = requests.iter().map(job).collect();
    100.0 * optimum(&jobs, workers, STEPS).upper / requests.len() as f64
}

/// Arrival in seconds, tokens of the prompt, tokens of the answer.
fn cells(line: &str) -> Option<(f64, f64, f64)> {
    let cells: Vec<&str> = line.trim().split(',').collect();
    let [date, prompt, answer] = cells[..] else { return None };
    let (day, time) = date.split_once(' ')?;
    let day: f64 = day.rsplit('-').next()?.parse().ok()?;
    let clock: Vec<f64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = clock[..] else { return None };
    let tokens = |cell: &str| cell.parse::<u32>().ok().map(f64::from);
    Some((((day * 24.0 + hours) * 60.0 + minutes) * 60.0 + seconds, tokens(prompt)?, tokens(answer)?))
}
