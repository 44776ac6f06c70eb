//! Contract with axum: the layer goes around a router as any other.

use axum::Router;
use axum::routing::get;
use http::{Request, StatusCode};
use temponet_dispatch::{Dispatcher, Policy, SimulatedClock};
use temponet_tower::DispatchLayer;
use tower::ServiceExt;

#[tokio::test]
async fn a_router_is_served_and_shut_down() {
    let settings = Dispatcher::builder().policy(Policy::guarded()).clock(SimulatedClock::new());
    let layer = DispatchLayer::new(settings).unwrap();
    let handle = layer.handle();
    let router = Router::new().route("/", get(async || "an answer")).layer(layer);
    let ask =
        || Request::builder().uri("/").header("x-request-deadline", "1s").body(axum::body::Body::empty()).unwrap();
    let answer = router.clone().oneshot(ask()).await.unwrap();
    assert_eq!((answer.status(), handle.stats().running), (StatusCode::OK, 1));
    let text = axum::body::to_bytes(answer.into_body(), 100).await.unwrap();
    assert_eq!((&text[..], handle.stats().met, handle.stats().running), (&b"an answer"[..], 1, 0));
    handle.shutdown();
    assert_eq!(router.oneshot(ask()).await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
}
