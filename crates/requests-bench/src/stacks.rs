//! The servers to compare: one handler, and what stands before it.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use little_loadshedder::LoadShedResponse;
use temponet_dispatch::{Dispatcher, Estimate, Estimator, Policy};
use temponet_tower::DispatchLayer;
use tokio::sync::Semaphore;
use tower::ServiceBuilder;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::timeout::TimeoutLayer;
use tower::util::MapResponseLayer;
use tower_resilience_adaptive::{AdaptiveLimiterLayer, Aimd};

/// What stands before the handler.
#[derive(Clone, Debug)]
pub enum Stack {
    /// tower's limit of concurrency that sheds load, with one timeout for all.
    Tower,
    /// Requests wait for a semaphore, at most until they are due.
    Semaphore,
    /// The same, behind `little-loadshedder`, which keeps the mean latency at the time that most requests have.
    Little,
    /// The same, behind the AIMD limit of `tower-resilience-adaptive`, which falls when a request takes longer than the
    /// time that most have.
    Adaptive,
    /// Our layer.
    Dispatch(Policy),
}

impl Stack {
    pub fn all() -> Vec<Stack> {
        let policies = [
            Policy::RejectWhenBusy { queue: 0 },
            Policy::Fcfs,
            Policy::Edf,
            Policy::Lifo,
            Policy::Hrrn,
            Policy::EdfShed { q: 0.5 },
            Policy::SjfShed { q: 0.5 },
            Policy::MhEdf { q: 0.5 },
            Policy::learned(),
            Policy::guarded(),
        ];
        [Stack::Tower, Stack::Semaphore, Stack::Little, Stack::Adaptive]
            .into_iter()
            .chain(policies.map(Stack::Dispatch))
            .collect()
    }

    /// Returns the servers with these names; all if there are none.
    pub fn named(names: &[String]) -> Result<Vec<Stack>, String> {
        let all = Stack::all();
        if names.is_empty() {
            return Ok(all);
        }
        let find = |name: &String| {
            let is_meant =
                |stack: &&Stack| stack.name() == *name || stack.name().strip_prefix("temponet ") == Some(name);
            all.iter().find(is_meant).cloned().ok_or_else(|| {
                let known: Vec<String> = all.iter().map(Stack::name).collect();
                format!("{name:?} is none of the servers: {}", known.join(", "))
            })
        };
        names.iter().map(find).collect()
    }

    pub fn name(&self) -> String {
        match self {
            Stack::Tower => "tower limit + shed + timeout".into(),
            Stack::Semaphore => "semaphore + timeout".into(),
            Stack::Little => "little-loadshedder".into(),
            Stack::Adaptive => "tower-resilience-adaptive".into(),
            Stack::Dispatch(policy) => format!("temponet {policy}"),
        }
    }
}

/// What requests tell of their lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    Nothing,
    Prompt,
    /// An estimate with this standard deviation of its logarithm.
    Estimate(f64),
}

impl FromStr for Known {
    type Err = String;

    fn from_str(text: &str) -> Result<Known, String> {
        match (text, text.parse::<f64>()) {
            ("none", _) => Ok(Known::Nothing),
            ("prompt", _) => Ok(Known::Prompt),
            (_, Ok(error)) if error >= 0.0 && error.is_finite() => Ok(Known::Estimate(error)),
            _ => Err(format!("{text:?} is none of none, prompt, and the error of an estimate, such as 0.5")),
        }
    }
}

/// How a handler takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Work {
    /// It waits, as for an accelerator.
    Sleep,
    /// It keeps a processor busy. Give no more workers than there are processors.
    Spin,
}

/// A server and the time that its handlers took.
#[derive(Clone)]
struct Handler {
    work: Work,
    busy: Arc<AtomicU64>,
}

/// Counts the time of a handler, and tells it to end, however its future ends.
struct Serving {
    start: Instant,
    busy: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.busy.fetch_add(self.start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

async fn serve(State(handler): State<Handler>, headers: HeaderMap) -> StatusCode {
    let is_over = Arc::new(AtomicBool::new(false));
    let _serving = Serving { start: Instant::now(), busy: handler.busy.clone(), is_over: is_over.clone() };
    let length = Duration::from_micros(number(&headers, "x-length-us").unwrap_or(0.0) as u64);
    match handler.work {
        Work::Sleep => tokio::time::sleep(length).await,
        Work::Spin => {
            let spin = move || {
                let start = Instant::now();
                while start.elapsed() < length && !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            if tokio::task::spawn_blocking(spin).await.is_err() {
                return StatusCode::INTERNAL_SERVER_ERROR;
            }
        }
    }
    StatusCode::OK
}

fn number(headers: &HeaderMap, name: &str) -> Option<f64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// Returns a server for this many requests at a time, and the nanoseconds that its handlers take. `windows` are the
/// shortest, which most requests have, and the longest time to a due time.
pub fn server(
    stack: &Stack,
    workers: usize,
    work: Work,
    known: Known,
    windows: [Duration; 2],
) -> (Router, Arc<AtomicU64>) {
    let [shortest, longest] = windows;
    let busy = Arc::new(AtomicU64::new(0));
    let router = Router::new().route("/", get(serve)).with_state(Handler { work, busy: busy.clone() });
    // What the machine behind the handlers can do at a time.
    let slots = Arc::new(Semaphore::new(workers));
    let router = match stack {
        Stack::Tower => router.layer(
            ServiceBuilder::new()
                .layer(HandleErrorLayer::new(async |_| StatusCode::SERVICE_UNAVAILABLE))
                .layer(LoadShedLayer::new())
                .layer(GlobalConcurrencyLimitLayer::new(workers))
                .layer(TimeoutLayer::new(longest)),
        ),
        Stack::Semaphore => router.layer(from_fn_with_state(slots.clone(), wait)),
        Stack::Little => router.layer(from_fn_with_state(slots.clone(), wait)).layer(
            ServiceBuilder::new()
                .layer(MapResponseLayer::new(|response| match response {
                    LoadShedResponse::Inner(response) => response,
                    LoadShedResponse::Overload => StatusCode::SERVICE_UNAVAILABLE.into_response(),
                }))
                // The share of the newest latency that its example has.
                .layer(little_loadshedder::LoadShedLayer::new(0.01, shortest)),
        ),
        Stack::Adaptive => {
            let limit = Aimd::builder().initial_limit(workers).max_limit(64 * workers).latency_threshold(shortest);
            let limit = limit.build().unwrap_or_else(|error| panic!("settings of the limit: {error}"));
            router.layer(from_fn_with_state(slots.clone(), wait)).layer(
                ServiceBuilder::new()
                    .layer(HandleErrorLayer::new(async |_| StatusCode::SERVICE_UNAVAILABLE))
                    .layer(LoadShedLayer::new())
                    .layer(AdaptiveLimiterLayer::new(limit)),
            )
        }
        Stack::Dispatch(policy) => {
            let estimator = match known {
                Known::Prompt => Estimator::Regressor { features: 1 },
                Known::Nothing | Known::Estimate(_) => Estimator::Given,
            };
            let dispatcher = Dispatcher::builder().workers(workers).policy(policy.clone()).estimator(estimator);
            let layer = DispatchLayer::new(dispatcher).unwrap_or_else(|error| panic!("settings of {policy}: {error}"));
            router.layer(layer.describe(|parts, mut request| {
                request.features = vec![number(&parts.headers, "x-prompt-tokens").unwrap_or(f64::NAN)];
                request.estimate = number(&parts.headers, "x-estimate").map(Estimate::seconds);
                request
            }))
        }
    };
    (router, busy)
}

/// Waits for the semaphore and for the handler, until the request is due.
async fn wait(State(semaphore): State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    let left = number(request.headers(), "x-request-deadline").unwrap_or(f64::MAX).clamp(0.0, 1e9);
    let served = async {
        let _permit = semaphore.acquire().await;
        next.run(request).await
    };
    match tokio::time::timeout(Duration::from_secs_f64(left / 1e3), served).await {
        Ok(response) => response,
        Err(_) => StatusCode::GATEWAY_TIMEOUT.into_response(),
    }
}
