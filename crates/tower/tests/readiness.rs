//! Contract of readiness, as tower means it: a service that is ready takes the next request; with back pressure it is
//! not ready while the queue is full.

use std::pin::pin;
use std::task::{Context, Waker};

use http::{Request, Response, StatusCode};
use temponet_dispatch::{Dispatcher, Policy, SimulatedClock};
use temponet_tower::DispatchLayer;
use tower::{Layer, Service, ServiceExt};
use tower_test::mock;

use crate::scene::{request, scene, settings, settle};

#[tokio::test]
async fn with_back_pressure_a_full_queue_is_not_ready_and_nothing_is_refused() {
    let scene = scene(settings(Policy::Fcfs), |layer| layer.back_pressure(true));
    let mut answers = Vec::new();
    for _ in 0..6 {
        answers.push(scene.send(request("")).await);
    }
    // One is served, two wait, and three wait for room.
    let stats = scene.handle.stats();
    assert_eq!((stats.submitted, stats.running, stats.queued), (3, 1, 2));
    let mut service = scene.service.clone();
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_pending());
    drop(service);
    scene.go.add_permits(6);
    for answer in answers {
        assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
    }
    assert_eq!(scene.handle.stats().met, 6);
}

#[tokio::test]
async fn readiness_is_kept_for_whoever_was_told_and_given_back_if_not_used() {
    let scene = scene(settings(Policy::Fcfs).capacity(1), |layer| layer.back_pressure(true));
    let _served = scene.send(request("")).await;
    let mut context = Context::from_waker(Waker::noop());
    let [mut first, mut second] = [(); 2].map(|()| scene.service.clone());
    assert!(first.poll_ready(&mut context).is_ready() && first.poll_ready(&mut context).is_ready());
    assert!(second.poll_ready(&mut context).is_pending());
    assert!(first.clone().poll_ready(&mut context).is_pending(), "a clone has reserved nothing");
    drop(first);
    assert!(second.poll_ready(&mut context).is_ready());
    let mut call = pin!(second.call(request("")));
    assert!(call.as_mut().poll(&mut context).is_pending());
    assert_eq!(scene.handle.stats().queued, 1);
}

/// What the inner service reserves is not held by requests that wait, and its errors come through.
#[tokio::test]
async fn the_inner_service_is_asked_once_there_is_a_permit() {
    let (inner, mut driver) = mock::pair::<Request<String>, Response<String>>();
    driver.allow(0);
    let settings = Dispatcher::builder().policy(Policy::Fcfs).clock(SimulatedClock::new());
    let layer = DispatchLayer::new(settings).unwrap();
    let service = layer.layer(inner);
    let send = |body: &'static str| {
        let mut service = service.clone();
        tokio::spawn(async move { service.ready().await.unwrap().call(request(body)).await })
    };
    let (first, second) = (send("first"), send("second"));
    settle().await;
    assert_eq!((layer.handle().stats().running, layer.handle().stats().queued), (1, 1));
    driver.allow(1);
    let (served, respond) = driver.next_request().await.unwrap();
    assert_eq!(served.body(), "first");
    respond.send_response(Response::new(String::new()));
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
    settle().await;
    driver.send_error("broken");
    assert_eq!(second.await.unwrap().unwrap_err().to_string(), "broken");
    assert_eq!((layer.handle().stats().met, layer.handle().stats().failed), (1, 1));
}
