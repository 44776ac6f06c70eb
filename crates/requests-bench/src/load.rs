//! The load generator. Requests come when they come, whether the server keeps up or not (an open loop), and latency
//! counts from when they should have come.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::stacks::{Known, Stack, Work, server};
use crate::trace::Asked;

/// What became of the requests of one run.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    pub requests: usize,
    /// Answers 200 by the due time.
    pub in_time: usize,
    /// Answers 200 after it.
    pub late: usize,
    /// Answers 503 and 504.
    pub refused: usize,
    /// Connections that failed, and other answers.
    pub broken: usize,
    /// Latencies of those in time, in seconds, sorted.
    pub latencies: Vec<f64>,
    /// Share of the handlers' time that was not for requests in time.
    pub wasted: f64,
}

/// Runs a server and sends it the requests.
pub async fn run(
    stack: &Stack,
    requests: &[Asked],
    workers: usize,
    work: Work,
    known: Known,
) -> std::io::Result<Outcomes> {
    let windows = || requests.iter().map(|asked| asked.window);
    let windows = [windows().min().unwrap_or_default(), windows().max().unwrap_or_default()];
    let (router, busy) = server(stack, workers, work, known, windows);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let start = Instant::now() + Duration::from_millis(50);
    let requests: Arc<[Asked]> = requests.into();
    let tasks: Vec<_> = (0..requests.len())
        .map(|place| {
            let requests = requests.clone();
            tokio::spawn(async move {
                let asked = &requests[place];
                let arrival = start + asked.arrival;
                tokio::time::sleep_until(arrival).await;
                let status = ask(address, &head(asked, known)).await;
                (place, status, arrival.elapsed())
            })
        })
        .collect();
    let mut outcomes = Outcomes { requests: requests.len(), ..Outcomes::default() };
    let mut useful = Duration::ZERO;
    for task in tasks {
        match task.await {
            Ok((place, Ok(200), latency)) if latency <= requests[place].window => {
                outcomes.in_time += 1;
                outcomes.latencies.push(latency.as_secs_f64());
                useful += requests[place].length;
            }
            Ok((_, Ok(200), _)) => outcomes.late += 1,
            Ok((_, Ok(503 | 504), _)) => outcomes.refused += 1,
            _ => outcomes.broken += 1,
        }
    }
    server.abort();
    outcomes.latencies.sort_by(f64::total_cmp);
    let busy = busy.load(Ordering::Relaxed) as f64 / 1e9;
    outcomes.wasted = if busy > 0.0 { (1.0 - useful.as_secs_f64() / busy).max(0.0) } else { 0.0 };
    Ok(outcomes)
}

/// The request as it is sent.
fn head(asked: &Asked, known: Known) -> String {
    let (deadline, length) = (asked.window.as_millis(), asked.length.as_micros());
    let stated = match known {
        Known::Nothing => String::new(),
        Known::Prompt => format!("x-prompt-tokens: {}\r\n", asked.prompt_tokens),
        Known::Estimate(error) => {
            format!("x-estimate: {:.6}\r\n", asked.length.as_secs_f64() * (error * asked.error).exp())
        }
    };
    format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-request-deadline: {deadline}\r\nx-length-us: \
         {length}\r\n{stated}\r\n"
    )
}

/// Sends a request on a connection of its own. Returns the status.
async fn ask(address: std::net::SocketAddr, head: &str) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let status = String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| std::io::Error::other("no answer of HTTP"))
}
