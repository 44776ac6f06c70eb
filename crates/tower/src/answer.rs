//! Answers to requests that are not served.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use temponet_dispatch::Reason;

/// The longest time to come back that is told, in seconds: clients of gRPC read milliseconds into 32 bits with a sign.
const LONGEST_RETRY: f64 = (i32::MAX / 1000) as f64;

/// Header that tells the reason.
const SHED_REASON: &str = "x-shed-reason";

/// Which protocol a request speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    /// gRPC, or gRPC-Web; answered with this type of content.
    Grpc(HeaderValue),
}

impl Protocol {
    pub fn of(headers: &HeaderMap) -> Protocol {
        let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Protocol::Http };
        let name = kind.as_bytes().split(|byte| matches!(byte, b'+' | b';' | b' ')).next().unwrap_or_default();
        match name.to_ascii_lowercase().as_slice() {
            b"application/grpc" => Protocol::Grpc(HeaderValue::from_static("application/grpc")),
            // Browsers read the status from the headers, too, but only in the form that they asked in.
            b"application/grpc-web" | b"application/grpc-web-text" => Protocol::Grpc(kind.clone()),
            _ => Protocol::Http,
        }
    }
}

/// The answer to a request that was not begun: 503, or `RESOURCE_EXHAUSTED`, and `UNAVAILABLE` at shutdown.
pub(crate) fn shed<B: Default>(protocol: &Protocol, reason: Reason, retry_after: Duration) -> Response<B> {
    let code = if reason == Reason::Shutdown { GrpcCode::Unavailable } else { GrpcCode::ResourceExhausted };
    let mut response = refused(protocol, StatusCode::SERVICE_UNAVAILABLE, code, reason);
    let seconds = retry_after.as_secs_f64().ceil().clamp(1.0, LONGEST_RETRY) as u64;
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    if matches!(protocol, Protocol::Grpc(_)) {
        response.headers_mut().insert("grpc-retry-pushback-ms", (1000 * seconds).into());
    }
    response
}

/// The answer to a request that was ended before it was done: 504, or `DEADLINE_EXCEEDED`.
pub(crate) fn ended<B: Default>(protocol: &Protocol, reason: Reason) -> Response<B> {
    refused(protocol, StatusCode::GATEWAY_TIMEOUT, GrpcCode::DeadlineExceeded, reason)
}

/// Codes of gRPC.
#[derive(Clone, Copy)]
enum GrpcCode {
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unavailable = 14,
}

fn refused<B: Default>(protocol: &Protocol, status: StatusCode, code: GrpcCode, reason: Reason) -> Response<B> {
    let mut response = Response::new(B::default());
    let name = HeaderValue::from_static(reason.name());
    match protocol {
        Protocol::Http => *response.status_mut() = status,
        // Headers that take the place of trailers; the status of HTTP is then 200.
        Protocol::Grpc(content_type) => {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, content_type.clone());
            headers.insert("grpc-status", (code as u64).into());
            headers.insert("grpc-message", name.clone());
        }
    }
    response.headers_mut().insert(SHED_REASON, name);
    response
}
