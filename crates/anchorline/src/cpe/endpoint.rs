//! Serves what Prometheus is told over HTTP: `GET /metrics`, without any secret, so on a network that may read it. Who accepts
//! OpenMetrics gets that, and anyone else the text format 0.0.4.

use super::control::{Order, Ordered};
use super::metrics::{Pfcp, exposition, plain};
use crate::{exit, observer};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use n4::AssociationStatus;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// Connections at once. For who comes besides, the oldest is hung up on: a scrape takes milliseconds, so that one most likely waits for
/// nothing.
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
const OPEN_METRICS_TYPE: &str = "application/openmetrics-text";
const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
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
        let mut connections: VecDeque<AbortHandle> = VecDeque::with_capacity(CONNECTIONS_MAX);
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            connections.retain(|connection| !connection.is_finished());
            while connections.len() >= CONNECTIONS_MAX
                && let Some(oldest) = connections.pop_front()
            {
                oldest.abort();
            }
            let conversation = timeout(CONNECTION_MAX, converse(stream, self.source.clone()));
            connections.push_back(tokio::spawn(conversation).abort_handle());
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
        // Of an answer to HEAD the server leaves the body out (RFC 9110 9.3.2).
        (&Method::GET | &Method::HEAD, "/metrics") => {
            scrape(source, accepts_open_metrics(request.headers())).await
        }
        (_, "/metrics") => {
            let mut refused =
                response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n".to_owned());
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            refused
        }
        _ => response(StatusCode::NOT_FOUND, TEXT, "there is only /metrics\n".to_owned()),
    }
}

/// Whether it is named, with another weight than 0 (RFC 9110 12.5.1).
fn accepts_open_metrics(headers: &HeaderMap) -> bool {
    let fields = headers.get_all(ACCEPT).into_iter().filter_map(|field| field.to_str().ok());
    fields.flat_map(|field| field.split(',')).any(|range| {
        let mut words = range.split(';').map(str::trim);
        let is_named = words.next().is_some_and(|kind| kind.eq_ignore_ascii_case(OPEN_METRICS_TYPE));
        is_named && !words.any(is_no_weight)
    })
}

/// `q=0`, `q=0.0`...
fn is_no_weight(parameter: &str) -> bool {
    let weight = parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    weight.and_then(|(_, weight)| weight.trim().parse::<f32>().ok()).is_some_and(|weight| weight <= 0.0)
}

async fn scrape(source: &Source, is_open: bool) -> Response<Full<Bytes>> {
    let asked = timeout(DPE_PATIENCE, observer::statistics(&source.link)).await;
    let dpe = asked.ok().and_then(Result::ok);
    let associations = source.associations().await;
    let pfcp = *source.pfcp.borrow();
    match exposition(pfcp, associations, dpe) {
        Ok(told) if is_open => response(StatusCode::OK, OPEN_METRICS, told),
        Ok(told) => response(StatusCode::OK, METRICS_TEXT, plain(&told)),
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
        say_beside(0, request)
    }

    /// The same where so many others are connected and say nothing.
    fn say_beside(silent: usize, request: &str) -> String {
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
            let mut others = Vec::new();
            for _ in 0..silent {
                others.push(TcpStream::connect(address).await.unwrap());
            }
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(request.as_bytes()).await.unwrap();
            let mut said = String::new();
            client.read_to_string(&mut said).await.unwrap();
            said
        })
    }

    #[test]
    fn a_scrape_without_a_data_plane_is_answered() {
        for accept in ["text/html", OPEN_METRICS] {
            let said = say(&request("GET", accept));
            assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
            assert!(said.contains("\nanchorline_dpe_up 0\n"), "{said}");
            assert!(said.contains("\nanchorline_pfcp_associations{state=\"silent\"} 1\n"), "{said}");
        }
    }

    fn request(method: &str, accept: &str) -> String {
        format!("{method} /metrics HTTP/1.1\r\nHost: upf\r\nAccept: {accept}\r\n\r\n")
    }

    /// The first is what Prometheus 3 says.
    #[test]
    fn open_metrics_is_for_whoever_names_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                          application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.1";
        for accept in
            [prometheus, "Application/OpenMetrics-Text", "*/*, application/openmetrics-text ; q=0.001"]
        {
            let said = say(&request("GET", accept));
            assert!(said.contains(&format!("content-type: {OPEN_METRICS}\r\n")), "{said}");
            assert!(said.contains("\n# TYPE anchorline_pfcp_requests counter\n"), "{said}");
            assert!(said.ends_with("# EOF\n"), "{said}");
        }
        for accept in
            ["*/*", "", "text/plain", "application/openmetrics-text;q=0.0", "application/openmetrics-texts"]
        {
            let said = say(&request("GET", accept));
            assert!(said.contains(&format!("content-type: {METRICS_TEXT}\r\n")), "{said}");
            assert!(said.contains("\n# TYPE anchorline_pfcp_requests_total counter\n"), "{said}");
            assert!(said.contains("\n# HELP anchorline_pfcp_requests_total Requests"), "{said}");
            assert!(said.contains("\nanchorline_pfcp_requests_total{outcome=\"refused\"} 0\n"), "{said}");
            assert!(!said.contains("# EOF"), "{said}");
        }
    }

    #[test]
    fn head_is_answered_as_get_is_without_the_body() {
        let head = |said: &str| {
            let (head, body) = said.split_once("\r\n\r\n").unwrap();
            let fields = head.lines().filter(|line| !line.starts_with("date: "));
            (fields.map(str::to_owned).collect::<Vec<_>>(), body.len())
        };
        let (got, length) = head(&say(&request("GET", "*/*")));
        assert!(length > 0 && got.contains(&format!("content-length: {length}")), "{got:?}");
        assert_eq!(head(&say(&request("HEAD", "*/*"))), (got, 0));
    }

    #[test]
    fn who_says_nothing_keeps_nobody_from_an_answer() {
        for silent in [CONNECTIONS_MAX, 3 * CONNECTIONS_MAX] {
            assert!(say_beside(silent, &request("GET", "*/*")).starts_with("HTTP/1.1 200 OK\r\n"));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        assert!(say("GET / HTTP/1.1\r\nHost: upf\r\n\r\n").starts_with("HTTP/1.1 404"));
        let refused = say("POST /metrics HTTP/1.1\r\nHost: upf\r\n\r\n");
        assert!(
            refused.starts_with("HTTP/1.1 405") && refused.contains("\r\nallow: GET, HEAD\r\n"),
            "{refused}"
        );
        assert!(say("\r\n\r\nnonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    }
}
