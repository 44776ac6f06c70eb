//! Contract with tonic: the layer goes around a server of gRPC, over HTTP/2; what is shed is a status that its clients
//! understand, and trailers end the request.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use temponet_dispatch::{Dispatcher, Policy, Reason};
use temponet_tower::DispatchLayer;
use tokio::net::TcpListener;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{NamedService, UnaryService};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};
use tower::Service;

/// Messages are bytes as they are.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// Answers with what it was sent. `fail` is an error, and `wait` takes for ever.
#[derive(Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

impl UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        Box::pin(async move {
            match &request.get_ref()[..] {
                b"fail" => Err(Status::not_found("as the test wants it")),
                b"wait" => std::future::pending().await,
                _ => Ok(Response::new(request.into_inner())),
            }
        })
    }
}

impl Service<http::Request<tonic::body::Body>> for Echo {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        Box::pin(async move { Ok(tonic::server::Grpc::new(Raw).unary(Echo, request).await) })
    }
}

/// What a client gets for a message that is due after this time.
async fn ask(channel: Channel, message: &'static str, deadline: &'static str) -> Result<Bytes, Code> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|_| Code::Unknown)?;
    let mut request = Request::new(Bytes::from(message));
    request.metadata_mut().insert("x-request-deadline", deadline.parse().unwrap());
    let path = PathAndQuery::from_static("/test.Echo/Say");
    client.unary(request, path, Raw).await.map(Response::into_inner).map_err(|status| status.code())
}

#[tokio::test]
async fn a_server_of_grpc_is_served_and_its_clients_understand_what_is_shed() {
    let layer = DispatchLayer::new(Dispatcher::builder().policy(Policy::Fcfs)).unwrap();
    let handle = layer.handle();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let server = Server::builder().layer(layer).add_service(Echo).serve_with_incoming(incoming);
    tokio::spawn(server);
    let channel = Endpoint::try_from(format!("http://{address}")).unwrap().connect().await.unwrap();

    assert_eq!(ask(channel.clone(), "word", "9s").await, Ok(Bytes::from("word")));
    assert_eq!(ask(channel.clone(), "fail", "9s").await, Err(Code::NotFound));
    assert_eq!(handle.stats().met, 2, "trailers are the end of both");
    assert_eq!(ask(channel.clone(), "word", "0").await, Err(Code::ResourceExhausted));
    assert_eq!(handle.stats().shed(Reason::Late), 1);
    assert_eq!(ask(channel.clone(), "wait", "50ms").await, Err(Code::DeadlineExceeded));
    assert_eq!((handle.stats().cancelled, handle.stats().running), (1, 0));
    handle.shutdown();
    assert_eq!(ask(channel, "word", "9s").await, Err(Code::Unavailable));
    tokio::time::timeout(Duration::from_secs(9), handle.drained()).await.unwrap();
}
