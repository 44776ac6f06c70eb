//! Contract of answers: every request gets one, the right one, whatever its headers, its handler and its client do.

use std::time::Duration;

use http::{Request, StatusCode};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use temponet_dispatch::{Policy, Reason, Token};
use tower::{Layer, Service, ServiceExt};

use crate::scene::{due, header, request, scene, settings, settle};

#[tokio::test]
async fn permits_follow_due_times() {
    let scene = scene(settings(Policy::Edf), |layer| layer);
    let first = scene.send(request("first")).await;
    let late = scene.send(due("late", "9s")).await;
    let soon = scene.send(due("soon", "500ms")).await;
    assert_eq!(scene.begun(), 1);
    scene.go.add_permits(2);
    settle().await;
    assert!(first.is_finished() && soon.is_finished() && !late.is_finished());
    scene.go.add_permits(1);
    assert_eq!(late.await.unwrap().status(), StatusCode::OK);
    assert_eq!(scene.handle.stats().met, 3);
}

#[tokio::test]
async fn what_is_too_much_is_answered_503_with_the_time_to_come_back() {
    let describe = |layer: temponet_tower::DispatchLayer| {
        layer.describe(|_, request| request.estimate(temponet_dispatch::Estimate::seconds(3.5)))
    };
    let scene = scene(settings(Policy::Fcfs), describe);
    let _served = scene.send(request("")).await;
    let _waiting = [scene.send(request("")).await, scene.send(request("")).await];
    let answer = scene.send(request("")).await.await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!((header(&answer, "retry-after"), header(&answer, "x-shed-reason")), (Some("7"), Some("full")));
    let grpc = Request::builder().header("content-type", "application/grpc+proto").body(String::new()).unwrap();
    let answer = scene.send(grpc).await.await.unwrap();
    assert_eq!((answer.status(), header(&answer, "grpc-status")), (StatusCode::OK, Some("8")));
    assert_eq!(header(&answer, "content-type"), Some("application/grpc"));
    assert_eq!((header(&answer, "grpc-retry-pushback-ms"), header(&answer, "retry-after")), (Some("7000"), Some("7")));
}

#[tokio::test]
async fn what_is_past_due_never_reaches_the_handler() {
    let scene = scene(settings(Policy::Edf), |layer| layer);
    for past in ["0", "-5", "-1.5s"] {
        let answer = scene.send(due("", past)).await.await.unwrap();
        assert_eq!(
            (answer.status(), header(&answer, "x-shed-reason")),
            (StatusCode::SERVICE_UNAVAILABLE, Some("late"))
        );
    }
    let _served = scene.send(request("")).await;
    let waits = scene.send(due("", "10")).await;
    scene.advance(10).await;
    assert_eq!(waits.await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!((scene.begun(), scene.handle.stats().shed(Reason::Late)), (1, 4));
}

#[tokio::test]
async fn at_its_due_time_a_handler_is_ended_unless_that_is_off() {
    let ends = scene(settings(Policy::Edf), |layer| layer);
    let answer = ends.send(due("", "10")).await;
    let grpc = Request::builder().header("content-type", "application/grpc").header("grpc-timeout", "30m");
    let other = ends.send(grpc.body(String::new()).unwrap()).await;
    ends.advance(10).await;
    assert_eq!(answer.await.unwrap().status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(ends.begun(), 2, "its permit is free");
    ends.advance(20).await;
    assert_eq!(header(&other.await.unwrap(), "grpc-status"), Some("4"));
    assert_eq!(ends.handle.stats().cancelled, 2);

    let goes_on = scene(settings(Policy::Edf).cancel_when_due(false), |layer| layer);
    let answer = goes_on.send(due("", "10")).await;
    goes_on.advance(10).await;
    goes_on.advance(10).await;
    goes_on.go.add_permits(1);
    assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
    assert_eq!(goes_on.handle.stats().late, 1);
}

#[tokio::test]
async fn a_due_time_that_makes_no_sense_is_counted_and_the_default_holds() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let scene = scene(settings(Policy::Edf), |layer| layer.default_due(Duration::from_millis(10)));
    let odd = [scene.send(due("", "soon")).await, scene.send(due("", "99999999999")).await];
    let stated = scene.send(due("", "1s")).await;
    scene.advance(10).await;
    for (answer, status) in odd.into_iter().zip([StatusCode::GATEWAY_TIMEOUT, StatusCode::SERVICE_UNAVAILABLE]) {
        assert_eq!(answer.await.unwrap().status(), status);
    }
    scene.go.add_permits(1);
    assert_eq!(stated.await.unwrap().status(), StatusCode::OK);
    let mut found: Vec<String> = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let labels: Vec<&str> = key.key().labels().map(|label| label.value()).collect();
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(values) => values.len() as f64,
        };
        found.push(format!("{} {labels:?} {value}", key.key().name()));
    }
    found.sort();
    let expected = [
        "temponet_request_deadlines_malformed_total [] 2",
        "temponet_request_wait_seconds [] 2",
        "temponet_requests_running [] 0",
        "temponet_requests_shed_total [\"late\"] 1",
        "temponet_requests_total [\"cancelled\"] 1",
        "temponet_requests_total [\"met\"] 1",
        "temponet_requests_total [\"shed\"] 1",
        "temponet_requests_waiting [] 0",
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn clients_that_go_away_and_handlers_that_panic_leave_nothing_behind() {
    let scene = scene(settings(Policy::Fcfs), |layer| layer);
    let served = scene.send(request("")).await;
    let waits = scene.send(request("")).await;
    waits.abort();
    settle().await;
    assert_eq!(scene.handle.stats().shed(Reason::Cancelled), 1);
    served.abort();
    settle().await;
    assert_eq!((scene.handle.stats().cancelled, scene.handle.stats().running), (1, 0));
    scene.go.add_permits(2);
    assert!(scene.send(request("panic")).await.await.unwrap_err().is_panic());
    assert_eq!((scene.handle.stats().failed, scene.handle.stats().running), (1, 0));
    assert_eq!(scene.send(request("well")).await.await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn at_shutdown_what_runs_finishes_and_what_waits_is_answered() {
    let scene = scene(settings(Policy::Fcfs), |layer| layer);
    let served = scene.send(request("")).await;
    let waits = scene.send(request("")).await;
    scene.handle.shutdown();
    let answer = waits.await.unwrap();
    assert_eq!(
        (answer.status(), header(&answer, "x-shed-reason")),
        (StatusCode::SERVICE_UNAVAILABLE, Some("shutdown"))
    );
    let grpc = Request::builder().header("content-type", "application/grpc").body(String::new()).unwrap();
    assert_eq!(header(&scene.send(grpc).await.await.unwrap(), "grpc-status"), Some("14"));
    let drained = tokio::spawn({
        let handle = scene.handle.clone();
        async move { handle.drained().await }
    });
    settle().await;
    assert!(!drained.is_finished() && !served.is_finished());
    scene.go.add_permits(1);
    assert_eq!(served.await.unwrap().status(), StatusCode::OK);
    drained.await.unwrap();
}

#[tokio::test]
async fn handlers_can_watch_their_tokens() {
    let settings = settings(Policy::Fcfs).clock(temponet_dispatch::SimulatedClock::new());
    let layer = temponet_tower::DispatchLayer::new(settings).unwrap().default_due(Duration::from_secs(1));
    let handler = |request: Request<String>| async move {
        let token = request.extensions().get::<Token>().unwrap();
        assert!(token.due().is_some() && !token.is_cancelled());
        Ok::<_, std::convert::Infallible>(http::Response::new(String::new()))
    };
    let mut service = layer.layer(tower::service_fn(handler));
    assert_eq!(service.ready().await.unwrap().call(request("")).await.unwrap().status(), StatusCode::OK);
    assert_eq!(layer.handle().stats().met, 1, "an empty body is sent at once");
}

#[tokio::test]
async fn browsers_are_answered_in_grpc_web() {
    let scene = scene(settings(Policy::Edf), |layer| layer);
    let expected = [
        ("application/grpc-web+proto", StatusCode::OK, Some("application/grpc-web+proto")),
        ("application/grpc-web-text", StatusCode::OK, Some("application/grpc-web-text")),
        ("Application/gRPC; charset=utf-8", StatusCode::OK, Some("application/grpc")),
        ("application/grpcish", StatusCode::SERVICE_UNAVAILABLE, None),
    ];
    for (content_type, status, answered) in expected {
        let request = Request::builder().header("content-type", content_type).header("grpc-timeout", "0m");
        let answer = scene.send(request.body(String::new()).unwrap()).await.await.unwrap();
        assert_eq!((answer.status(), header(&answer, "content-type")), (status, answered), "{content_type}");
        assert_eq!(header(&answer, "grpc-status"), answered.map(|_| "8"));
    }
}

/// Estimates of a century each; clients read the milliseconds into 32 bits with a sign.
#[tokio::test]
async fn the_time_to_come_back_is_one_that_clients_can_read() {
    let century = |layer: temponet_tower::DispatchLayer| {
        layer.describe(|_, request| request.estimate(temponet_dispatch::Estimate::seconds(3.1e9)))
    };
    let scene = scene(settings(Policy::Fcfs).capacity(20), century);
    let mut waiting = Vec::new();
    for _ in 0..21 {
        waiting.push(scene.send(request("")).await);
    }
    let grpc = Request::builder().header("content-type", "application/grpc").body(String::new()).unwrap();
    let answer = scene.send(grpc).await.await.unwrap();
    let pushback: i32 = header(&answer, "grpc-retry-pushback-ms").unwrap().parse().unwrap();
    assert_eq!(pushback, 1000 * header(&answer, "retry-after").unwrap().parse::<i32>().unwrap());
    assert!(pushback > 1_000_000_000, "{pushback}");
}

/// Both its permit and the inner service's readiness come at its due time.
#[tokio::test]
async fn what_is_late_by_the_time_the_inner_service_is_ready_is_not_begun() {
    let (inner, mut driver) = tower_test::mock::pair::<Request<String>, http::Response<String>>();
    driver.allow(0);
    let clock = temponet_dispatch::SimulatedClock::new();
    let layer = temponet_tower::DispatchLayer::new(settings(Policy::Fcfs).clock(clock.clone())).unwrap();
    let mut service = layer.layer(inner);
    let mut call = std::pin::pin!(service.call(due("", "10")));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_pending());
    clock.advance(Duration::from_millis(10));
    driver.allow(1);
    let std::task::Poll::Ready(Ok(answer)) = call.as_mut().poll(&mut context) else { panic!("it is late") };
    assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
    assert!(std::pin::pin!(driver.next_request()).poll(&mut context).is_pending(), "nothing was asked");
}
