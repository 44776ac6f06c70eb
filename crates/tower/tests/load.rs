//! Contract under load: on several threads, with real time, every request is answered once, and no more are served at a
//! time than there are workers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use temponet_dispatch::{Dispatcher, Estimator, Policy};
use temponet_tower::DispatchLayer;
use tower::{Layer, Service, ServiceExt};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_thousand_requests_are_answered_once() {
    const REQUESTS: usize = 20_000;
    const WORKERS: usize = 8;
    let dispatcher = Dispatcher::builder().workers(WORKERS).capacity(100).policy(Policy::guarded());
    let layer = DispatchLayer::new(dispatcher.estimator(Estimator::Class)).unwrap();
    let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (busy, most) = (busy.clone(), most.clone());
        move |request: Request<usize>| {
            let (busy, most) = (busy.clone(), most.clone());
            async move {
                /// One fewer is busy when it goes, however it goes.
                struct Busy(Arc<AtomicUsize>);
                impl Drop for Busy {
                    fn drop(&mut self) {
                        self.0.fetch_sub(1, Ordering::SeqCst);
                    }
                }
                let number = *request.body();
                most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let _busy = Busy(busy);
                match number % 100 {
                    0 => panic!("as the test wants it"),
                    // Five times what the workers can do.
                    1..=10 => tokio::time::sleep(Duration::from_millis(20)).await,
                    _ => tokio::task::yield_now().await,
                }
                Ok::<_, Infallible>(Response::new(String::new()))
            }
        }
    };
    let service = layer.layer(tower::service_fn(handler));
    // The panics are expected.
    std::panic::set_hook(Box::new(|_| ()));
    let mut tasks = Vec::new();
    for number in 0..REQUESTS {
        let mut service = service.clone();
        let request =
            Request::builder().header("x-request-deadline", format!("{}", 5 + number % 90)).body(number).unwrap();
        tasks.push(tokio::spawn(async move { service.ready().await.unwrap().call(request).await.unwrap().status() }));
        if number % 50 == 7 {
            tasks[number].abort();
        }
        if number % 40 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let [mut served, mut shed, mut ended, mut gone, mut panicked] = [0u64; 5];
    for task in tasks {
        match task.await {
            Ok(StatusCode::OK) => served += 1,
            Ok(StatusCode::SERVICE_UNAVAILABLE) => shed += 1,
            Ok(StatusCode::GATEWAY_TIMEOUT) => ended += 1,
            Ok(status) => panic!("{status}"),
            Err(error) if error.is_panic() => panicked += 1,
            Err(_) => gone += 1,
        }
    }
    let _ = std::panic::take_hook();
    layer.handle().shutdown();
    layer.handle().drained().await;
    let stats = layer.handle().stats();
    assert_eq!(served + shed + ended + gone + panicked, REQUESTS as u64);
    assert!(served > 100 && shed > 0 && panicked > 0, "{served} {shed} {ended} {gone} {panicked}");
    assert_eq!(stats.met + stats.late, served);
    assert_eq!(stats.failed, panicked);
    // Those that went away had been refused, had waited, or were being served; or had not come.
    assert!(stats.submitted <= REQUESTS as u64);
    assert_eq!(stats.submitted, served + panicked + stats.cancelled + stats.all_shed());
    assert_eq!((busy.load(Ordering::SeqCst), stats.running, stats.queued), (0, 0, 0));
    assert!(most.load(Ordering::SeqCst) <= WORKERS, "{most:?} at a time");
}
