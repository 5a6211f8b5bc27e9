//! Clients of the services: the programs that people use.

use super::servers::ANSWER_BYTES;
use super::{DNS, Service};
use anyhow::{Context, Result, ensure};
use bytes::Buf;
use lab::address::SERVER;
use lab::{Lab, command};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, EndpointConfig, TokioRuntime};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

/// Asks a service by `curl`, with options, and expects an answer in that version of HTTP.
pub(super) fn curl(lab: &Lab, service: &Service, (options, version): (&str, &str)) -> Result<()> {
    let mut curl = lab.ran.command("curl");
    curl.args(["--silent", "--show-error", "--insecure", "--noproxy", "*", "--max-time", "20"]);
    curl.args(options.split_whitespace());
    for port in [80, 443] {
        curl.args(["--resolve", &format!("{}:{port}:{}", service.host, service.address())]);
    }
    let scheme = if service.is_clear { "http" } else { "https" };
    let told = command::run(curl.arg(format!("{scheme}://{}/", service.host)), LIMIT)?.success()?;
    expect(service, &told, version)
}

fn expect(service: &Service, told: &str, version: &str) -> Result<()> {
    let is_right = told.lines().next() == Some(version) && told.trim_end().len() == ANSWER_BYTES;
    ensure!(is_right, "{}: {version} expected, not {:?}", service.host, told.get(..20));
    Ok(())
}

/// Asks a server by its address alone, so that nothing says whom the connection is with.
pub(super) fn curl_by_address(lab: &Lab) -> Result<()> {
    let mut curl = lab.ran.command("curl");
    curl.args(["--silent", "--show-error", "--insecure", "--noproxy", "*", "--max-time", "20"]);
    let told = command::run(curl.arg(format!("https://{SERVER}/")), LIMIT)?.success()?;
    ensure!(told.len() == ANSWER_BYTES, "{} octets", told.len());
    Ok(())
}

/// Looks a service's host up by `dig`.
pub(super) fn dig(lab: &Lab, service: &Service) -> Result<()> {
    let resolver = DNS.address();
    let told = lab.ran.run(&format!("dig @{resolver} {} A +short +tries=1 +time=5", service.host), LIMIT)?;
    ensure!(told.trim() == service.address().to_string(), "dig says {told}");
    Ok(())
}

/// Asks a service by HTTP/3, with quinn.
pub(super) fn quinn(lab: &Lab, service: &Service, certificate: &Path) -> Result<()> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate)?)?;
    let mut tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let socket = lab.ran.inside(|| Ok(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let told = runtime.block_on(async { tokio::time::timeout(LIMIT, ask(socket, config, service)).await });
    expect(service, &told.context("no answer in time")??, "HTTP/3.0")
}

async fn ask(socket: UdpSocket, config: ClientConfig, service: &Service) -> Result<String> {
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
    let connection = endpoint.connect_with(config, (service.address(), 443).into(), service.host)?.await?;
    let (mut driver, mut requests) = h3::client::new(h3_quinn::Connection::new(connection)).await?;
    let driver = tokio::spawn(async move { driver.wait_idle().await });
    let request = http::Request::get(format!("https://{}/", service.host)).body(())?;
    let mut stream = requests.send_request(request).await?;
    stream.finish().await?;
    stream.recv_response().await?;
    let mut told = vec![];
    while let Some(mut more) = stream.recv_data().await? {
        told.extend_from_slice(&more.copy_to_bytes(more.remaining()));
    }
    // Without requests the connection ends, and all of it has been sent when the endpoint is idle.
    drop((stream, requests));
    driver.await?;
    endpoint.wait_idle().await;
    Ok(String::from_utf8(told)?)
}

/// Whether there is a Chromium here.
pub(super) fn has_chromium() -> bool {
    Path::new("/usr/bin/chromium").exists()
}

/// Asks a service by Chromium, and expects the page to tell that version of HTTP.
pub(super) fn chromium(lab: &Lab, service: &Service, (certificate, version): (&Path, &str)) -> Result<()> {
    let (scheme, host) = (if service.is_clear { "http" } else { "https" }, service.host);
    let home = lab.scratch.path().join("chromium");
    let mut chromium = lab.ran.command("chromium");
    chromium.env("HOME", &home).args(CHROMIUM.split_whitespace());
    chromium.arg(format!("--user-data-dir={}", home.join(host).display()));
    chromium.arg(format!("--host-resolver-rules=MAP {host} {}, MAP * ~NOTFOUND", service.address()));
    chromium.arg(format!("--ignore-certificate-errors-spki-list={}", key_digest(certificate)?));
    if version == "HTTP/3.0" {
        chromium.arg(format!("--origin-to-force-quic-on={host}:443"));
    }
    let told = command::run(chromium.args(["--dump-dom", &format!("{scheme}://{host}/")]), LIMIT)?;
    let told = told.success()?;
    ensure!(told.contains(version), "{host}: {version} expected, not {:?}", told.get(..200).unwrap_or(&told));
    Ok(())
}

/// It is root here, in a laboratory without any other network, and is not to look for one.
const CHROMIUM: &str = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --disable-extensions \
    --disable-features=HttpsUpgrades --timeout=15000";

/// What Chromium knows a certificate by: the SHA-256 of its public key, in base 64.
fn key_digest(certificate: &Path) -> Result<String> {
    let pipe = format!(
        "openssl x509 -in {} -noout -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary \
         | openssl enc -base64",
        certificate.display()
    );
    let told =
        command::run(std::process::Command::new("sh").args(["-c", &pipe]), command::SHORT)?.success()?;
    Ok(told.trim().to_owned())
}
