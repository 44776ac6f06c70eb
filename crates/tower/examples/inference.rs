//! An inference server that knows due times: 16 answers at a time, 25 ms for each token, lengths unknown until learned.
//!
//! `cargo run -p temponet-tower --example inference`, then for example
//! `curl -i -H 'x-request-deadline: 2s' 'localhost:8080/generate?tokens=40'`. Ctrl-C lets what runs finish.

use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, RawQuery};
use axum::routing::post;
use temponet_dispatch::{Dispatcher, Estimator, Policy, Token};
use temponet_tower::DispatchLayer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dispatcher = Dispatcher::builder()
        .workers(16)
        .capacity(1_000)
        .policy(Policy::guarded())
        // How long an answer takes follows from the length of the prompt, as far as it does.
        .estimator(Estimator::Regressor { features: 1 });
    let layer = DispatchLayer::new(dispatcher)?.default_due(Duration::from_secs(10)).describe(|parts, request| {
        let length = parts.headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
        request.features([length.unwrap_or(f64::NAN)])
    });
    let handle = layer.handle();
    let router = Router::new().route("/generate", post(generate).get(generate)).layer(layer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    let stop = async move {
        _ = tokio::signal::ctrl_c().await;
        handle.shutdown();
        handle.drained().await;
        eprintln!("{:?}", handle.stats());
    };
    axum::serve(listener, router).with_graceful_shutdown(stop).await?;
    Ok(())
}

/// Stands for a model: 25 ms a token. Work that does not wait, as on a processor, has to watch its token.
async fn generate(Extension(token): Extension<Token>, RawQuery(query): RawQuery) -> String {
    let tokens = query.as_deref().and_then(|query| query.strip_prefix("tokens=")?.parse().ok()).unwrap_or(100u32);
    let mut answer = String::new();
    for _ in 0..tokens.min(10_000) {
        if token.is_cancelled() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
        answer.push_str("word ");
    }
    answer
}
