//! Serves what Prometheus is told over HTTP: `GET /metrics`, without any secret, so on a network that may read it.

use super::control::{Order, Ordered};
use super::metrics::{Pfcp, exposition};
use crate::{exit, observer};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use n4::AssociationStatus;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

/// Connections at once; who comes besides is hung up on.
const CONNECTIONS_MAX: usize = 8;
/// A connection lasts no longer.
const CONNECTION_MAX: Duration = Duration::from_secs(10);
/// A data plane that has not answered by then is told as down.
const DPE_PATIENCE: Duration = Duration::from_secs(2);
/// Of a control plane engine that is too busy to say how associations stand by then, they are left out.
const CPE_PATIENCE: Duration = Duration::from_secs(1);
/// After an error of the socket.
const PAUSE: Duration = Duration::from_millis(100);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// The endpoint.
pub(crate) struct Endpoint {
    listener: TcpListener,
    source: Source,
}

/// Where the figures come from.
#[derive(Clone)]
pub(crate) struct Source {
    /// The data plane's socket.
    pub(crate) link: PathBuf,
    pub(crate) pfcp: watch::Receiver<Pfcp>,
    /// By which the node is asked what is worked out for a scrape only.
    pub(crate) asker: mpsc::Sender<Ordered>,
}

impl Source {
    async fn associations(&self) -> Option<Vec<AssociationStatus>> {
        let (answer, answered) = oneshot::channel();
        let asked = async {
            self.asker.send((Order::Associations, answer)).await.ok()?;
            answered.await.ok()
        };
        Some(timeout(CPE_PATIENCE, asked).await.ok()??.associations)
    }
}

impl Endpoint {
    /// Listens.
    pub(crate) async fn bind(listen: SocketAddr, source: Source) -> anyhow::Result<Self> {
        let bound = TcpListener::bind(listen).await;
        let listener = bound.map_err(|error| exit::unusable(bind_error(listen, &error)))?;
        Ok(Self { listener, source })
    }

    /// Serves for ever.
    pub(crate) async fn serve(self) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            let source = self.source.clone();
            tokio::spawn(async move {
                let _ = timeout(CONNECTION_MAX, converse(stream, source)).await;
                drop(place);
            });
        }
    }
}

/// Why they cannot be served there, and what to do about it.
pub(crate) fn bind_error(listen: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    anyhow::anyhow!("metrics cannot be served at {listen}: {error}; change metrics.listen")
}

/// One request and its answer. A client that breaks off is no concern of ours.
async fn converse(stream: TcpStream, source: Source) {
    let answer = service_fn(|request: Request<Incoming>| {
        let source = &source;
        async move { Ok::<_, Infallible>(answer(&request, source).await) }
    });
    let _ = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), answer).await;
}

async fn answer(request: &Request<Incoming>, source: &Source) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => scrape(source).await,
        (_, "/metrics") => response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".to_owned()),
        _ => response(StatusCode::NOT_FOUND, TEXT, "there is only /metrics\n".to_owned()),
    }
}

async fn scrape(source: &Source) -> Response<Full<Bytes>> {
    let asked = timeout(DPE_PATIENCE, observer::statistics(&source.link)).await;
    let dpe = asked.ok().and_then(Result::ok);
    let associations = source.associations().await;
    let pfcp = *source.pfcp.borrow();
    match exposition(pfcp, associations, dpe) {
        Ok(told) => response(StatusCode::OK, OPEN_METRICS, told),
        Err(error) => response(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{error}\n")),
    }
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpe::control::Done;
    use crate::ctl::associations::fixture::status;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// What the endpoint of a node without data plane says.
    fn say(request: &str) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_told, pfcp) = watch::channel(Pfcp::default());
            let listen = "127.0.0.1:0".parse().unwrap();
            let (asker, mut asked) = mpsc::channel::<Ordered>(1);
            tokio::spawn(async move {
                let (order, answer) = asked.recv().await.unwrap();
                assert_eq!(order, Order::Associations);
                answer.send(Done { associations: vec![status()], ..Done::default() }).unwrap();
            });
            let source = Source { link: "/nowhere/dpe.sock".into(), pfcp, asker };
            let endpoint = Endpoint::bind(listen, source).await.unwrap();
            let address = endpoint.listener.local_addr().unwrap();
            tokio::spawn(endpoint.serve());
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(request.as_bytes()).await.unwrap();
            let mut said = String::new();
            client.read_to_string(&mut said).await.unwrap();
            said
        })
    }

    #[test]
    fn a_scrape_without_a_data_plane_is_answered() {
        let said = say("GET /metrics HTTP/1.1\r\nHost: upf\r\n\r\n");
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.contains(OPEN_METRICS), "{said}");
        assert!(said.contains("\nanchorline_dpe_up 0\n"), "{said}");
        assert!(said.contains("\nanchorline_pfcp_associations{state=\"silent\"} 1\n"), "{said}");
    }

    #[test]
    fn anything_else_is_refused() {
        assert!(say("GET / HTTP/1.1\r\nHost: upf\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(say("POST /metrics HTTP/1.1\r\nHost: upf\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(say("\r\n\r\nnonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    }
}
