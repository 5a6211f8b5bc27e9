//! Servers of the data network, one for each way a service is spoken: HTTP/1.1 and HTTP/2, in the clear and over TLS,
//! HTTP/3, and DNS. They are at every address of the data network, and tell what they were spoken to in.

use super::{DNS, SERVICES};
use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use lab::{Lab, command};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, ServerConfig, TokioRuntime};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::convert::Infallible;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

/// Bytes of every answer: several packets.
pub(super) const ANSWER_BYTES: usize = 6_000;

/// Running servers; they end when dropped.
pub(super) struct Servers {
    _runtime: Runtime,
    /// A file with their certificate (PEM), which is its own issuer.
    pub(super) certificate: PathBuf,
}

impl Servers {
    /// Starts them in the data network, with an address for each service.
    ///
    /// # Errors
    /// Where an address or a port cannot be had.
    pub(super) fn start(lab: &Lab) -> Result<Self> {
        for service in SERVICES {
            lab.dn.ip(&format!("addr add {}/32 dev n6", service.address()))?;
        }
        let (certificate, key) = certificate(lab)?;
        let chain = vec![CertificateDer::from_pem_file(&certificate)?];
        let key = PrivateKeyDer::from_pem_file(key)?;
        let mut tls = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let quic = QuicServerConfig::try_from(tls.clone())?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let anywhere = Ipv4Addr::UNSPECIFIED;
        let [clear, secure] =
            [80, 443].map(|port| lab.dn.inside(|| Ok(TcpListener::bind((anywhere, port))?)));
        let [datagrams, lookups] = [(anywhere, 443), (DNS.address(), 53)]
            .map(|address| lab.dn.inside(|| Ok(UdpSocket::bind(address)?)));
        let lookups = lookups?;
        std::thread::spawn(move || answer_lookups(&lookups));
        let guard = runtime.enter();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        runtime.spawn(listen(from_std(clear?)?, None));
        runtime.spawn(listen(from_std(secure?)?, Some(acceptor)));
        let config = ServerConfig::with_crypto(Arc::new(quic));
        let endpoint =
            Endpoint::new(EndpointConfig::default(), Some(config), datagrams?, Arc::new(TokioRuntime))?;
        runtime.spawn(listen_quic(endpoint));
        drop(guard);
        Ok(Self { _runtime: runtime, certificate })
    }
}

fn from_std(listener: TcpListener) -> Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    Ok(tokio::net::TcpListener::from_std(listener)?)
}

/// A certificate for all services' hosts, and its key: the files.
fn certificate(lab: &Lab) -> Result<(PathBuf, PathBuf)> {
    let (certificate, key) = (lab.scratch.path().join("certificate.pem"), lab.scratch.path().join("key.pem"));
    let names: Vec<String> = SERVICES.iter().map(|service| format!("DNS:{}", service.host)).collect();
    let mut openssl = Command::new("openssl");
    openssl.args(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=lab".split(' '),
    );
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl.args(["-addext", &format!("subjectAltName={}", names.join(","))]);
    openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    command::run(&mut openssl, command::SHORT)?.success().context("no certificate")?;
    Ok((certificate, key))
}

/// What every request is answered with: the version of HTTP that it came in, and something to carry.
fn answer(version: hyper::Version) -> Bytes {
    let mut text = format!("{version:?}\n");
    text.extend(std::iter::repeat_n('.', ANSWER_BYTES - text.len()));
    text.into()
}

async fn listen(listener: tokio::net::TcpListener, tls: Option<TlsAcceptor>) {
    while let Ok((client, _)) = listener.accept().await {
        let tls = tls.clone();
        // A client that fails sees it.
        tokio::spawn(async move {
            match tls {
                None => serve(client).await,
                Some(tls) => {
                    if let Ok(client) = tls.accept(client).await {
                        serve(client).await;
                    }
                }
            }
        });
    }
}

async fn serve(client: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let respond = service_fn(async |request: Request<_>| {
        let answer = Response::builder().header("content-type", "text/plain");
        Ok::<_, Infallible>(answer.body(Full::new(answer_of(&request))).unwrap_or_default())
    });
    let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(client), respond).await;
}

fn answer_of(request: &Request<hyper::body::Incoming>) -> Bytes {
    answer(request.version())
}

async fn listen_quic(endpoint: Endpoint) {
    while let Some(client) = endpoint.accept().await {
        // As above.
        tokio::spawn(serve_quic(client));
    }
}

async fn serve_quic(client: quinn::Incoming) -> Result<()> {
    let mut connection = h3::server::Connection::new(h3_quinn::Connection::new(client.await?)).await?;
    while let Some(request) = connection.accept().await? {
        let (request, mut stream) = request.resolve_request().await?;
        let head = Response::builder().header("content-type", "text/plain").body(())?;
        stream.send_response(head).await?;
        stream.send_data(answer(request.version())).await?;
        stream.finish().await?;
    }
    Ok(())
}

/// A lookup of a service's host is answered with its address, any other with none (RFC 1035 4).
fn answer_lookups(socket: &UdpSocket) {
    let mut query = [0; 512];
    while let Ok((length, client)) = socket.recv_from(&mut query) {
        if let Some(answer) = query.get(..length).and_then(answer_lookup) {
            let _ = socket.send_to(&answer, client);
        }
    }
}

fn answer_lookup(query: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let (mut at, mut labels) = (HEADER, vec![]);
    while let length @ 1.. = usize::from(*query.get(at)?) {
        labels.push(std::str::from_utf8(query.get(at + 1..=at + length)?).ok()?);
        at += 1 + length;
    }
    let question = query.get(HEADER..at + 5)?;
    let host = labels.join(".");
    let service = SERVICES.iter().find(|service| service.host == host);
    let found = service.map(|service| service.address().octets());
    let mut answer = query.get(..2)?.to_vec();
    // A response, recursion desired and available; one question, and an answer where there is one.
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(found.is_some()), 0, 0, 0, 0]);
    answer.extend(question);
    if let Some(address) = found {
        // The name is that of the question; type A, class IN, a minute, four octets.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(address);
    }
    Some(answer)
}
