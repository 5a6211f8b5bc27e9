//! A web server in a namespace: files of one directory, as fast as the kernel copies them, or evenly paced where
//! the query asks for it: `/file?bytes_s=1000000`.

use crate::{Namespace, interrupt};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A client that neither sends nor takes anything for so long is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a paced download goes on.
const PACE: Duration = Duration::from_millis(2);

/// A running server; it ends when dropped.
#[derive(Debug)]
pub struct FileServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FileServer {
    /// Serves the files of `root` at `address`:`port` in `namespace`.
    ///
    /// # Errors
    /// Where the port cannot be had.
    pub fn start(namespace: &Namespace, address: (Ipv4Addr, u16), root: &Path) -> Result<Self> {
        let listener =
            namespace.inside(|| Ok(TcpListener::bind(address)?)).context("no port for the web server")?;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, root) = (Arc::clone(&stop), root.to_owned());
        let thread =
            thread::Builder::new().name("http".into()).spawn(move || accept(&listener, &root, &flag))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It fails only where the server panicked: its clients have noticed.
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, root: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((client, _)) => {
                let root = root.to_owned();
                // A client that fails sees it: its download is short.
                thread::spawn(move || serve(client, &root));
            }
            Err(_) => thread::sleep(interrupt::TICK),
        }
    }
}

fn serve(mut client: TcpStream, root: &Path) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let wanted = request(&client)?.unwrap_or_default();
    let (name, rate) = wanted.split_once("?bytes_s=").unwrap_or((&wanted, ""));
    let Some(mut file) = path(root, name).and_then(|path| File::open(path).ok()) else {
        return client.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let length = file.metadata()?.len();
    write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    match rate.parse() {
        Ok(bytes_s) => paced(&mut file, &mut client, bytes_s),
        // The kernel copies from file to socket; nothing passes through here.
        Err(_) => io::copy(&mut file, &mut client).map(drop),
    }
}

/// Sends a little at a time: a burst at the speed of a veth would overrun every queue on its way.
fn paced(file: &mut File, client: &mut TcpStream, bytes_s: u64) -> io::Result<()> {
    let (started, mut sent) = (Instant::now(), 0);
    loop {
        let due =
            bytes_s * u64::try_from((started.elapsed() + PACE).as_micros()).unwrap_or(u64::MAX) / 1_000_000;
        let copied = io::copy(&mut Read::by_ref(file).take(due.saturating_sub(sent)), client)?;
        if copied == 0 && due > sent {
            return Ok(());
        }
        sent += copied;
        thread::sleep(PACE);
    }
}

/// The path a GET asks for.
fn request(client: &TcpStream) -> io::Result<Option<String>> {
    let mut lines = BufReader::new(client).lines();
    let first = lines.next().ok_or(ErrorKind::UnexpectedEof)??;
    while lines.next().transpose()?.is_some_and(|header| !header.is_empty()) {}
    Ok(first.strip_prefix("GET /").and_then(|rest| rest.split(' ').next()).map(str::to_owned))
}

/// A file of `root` itself, nothing above or below.
fn path(root: &Path, name: &str) -> Option<PathBuf> {
    let plain = !name.contains('/') && !name.starts_with('.');
    plain.then(|| root.join(name))
}
