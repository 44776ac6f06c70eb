//! Answers to requests that are not served.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use temponet_dispatch::Reason;

/// Header that tells the reason.
const SHED_REASON: &str = "x-shed-reason";

/// Which protocol a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

impl Protocol {
    pub fn of(headers: &HeaderMap) -> Protocol {
        let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        match kind {
            Some(kind) if kind.starts_with(b"application/grpc") => Protocol::Grpc,
            _ => Protocol::Http,
        }
    }
}

/// The answer to a request that was not begun: 503, or `RESOURCE_EXHAUSTED`, and `UNAVAILABLE` at shutdown.
pub(crate) fn shed<B: Default>(protocol: Protocol, reason: Reason, retry_after: Duration) -> Response<B> {
    let code = if reason == Reason::Shutdown { GrpcCode::Unavailable } else { GrpcCode::ResourceExhausted };
    let mut response = refused(protocol, StatusCode::SERVICE_UNAVAILABLE, code, reason);
    let seconds = retry_after.as_secs_f64().ceil().max(1.0) as u64;
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    if protocol == Protocol::Grpc {
        response.headers_mut().insert("grpc-retry-pushback-ms", (1000 * seconds).into());
    }
    response
}

/// The answer to a request that was ended before it was done: 504, or `DEADLINE_EXCEEDED`.
pub(crate) fn ended<B: Default>(protocol: Protocol, reason: Reason) -> Response<B> {
    refused(protocol, StatusCode::GATEWAY_TIMEOUT, GrpcCode::DeadlineExceeded, reason)
}

/// Codes of gRPC.
#[derive(Clone, Copy)]
enum GrpcCode {
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unavailable = 14,
}

fn refused<B: Default>(protocol: Protocol, status: StatusCode, code: GrpcCode, reason: Reason) -> Response<B> {
    let mut response = Response::new(B::default());
    let name = HeaderValue::from_static(reason.name());
    match protocol {
        Protocol::Http => *response.status_mut() = status,
        // Headers that take the place of trailers; the status of HTTP is then 200.
        Protocol::Grpc => {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
            headers.insert("grpc-status", (code as u64).into());
            headers.insert("grpc-message", name.clone());
        }
    }
    response.headers_mut().insert(SHED_REASON, name);
    response
}
