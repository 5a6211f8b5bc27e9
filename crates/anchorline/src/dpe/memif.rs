//! Sockets of memif's servers: DPDK's driver makes them as files, and a data plane that was killed leaves its own behind, at which the
//! next one could not listen. And a client connects when its port is opened, and never again.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Where the driver makes a socket, unless a device says otherwise.
const USUAL: &str = "/run/memif.sock";
/// What /proc/net/unix says of a socket that listens, and of its type (packets in order).
const LISTENS: &str = "00010000";
const SEQPACKET: &str = "0005";

/// Removes the socket that a device is to listen at, if nobody does.
pub(super) fn make_way(device: &str) {
    if let Some(socket) = listens_at(device).filter(|socket| is_abandoned(socket)) {
        match fs::remove_file(socket) {
            Ok(()) => tracing::info!("{}: nobody listened there any more: removed", socket.display()),
            Err(error) => tracing::warn!("{} is nobody's, and cannot be removed: {error}", socket.display()),
        }
    }
}

/// The server of a memif whose end here is the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Server {
    socket: PathBuf,
    is_abstract: bool,
}

impl Server {
    /// `None` of other devices.
    pub(super) fn of(device: &str) -> Option<Self> {
        let end = End::of(device).filter(|end| !end.is_server)?;
        Some(Self { socket: end.socket.to_owned(), is_abstract: end.is_abstract })
    }

    /// Whether somebody listens at its socket. Nobody is called for that: to a socket of packets a stream cannot connect.
    pub(super) fn is_there(&self) -> bool {
        match self.is_abstract {
            true => fs::read_to_string("/proc/net/unix")
                .is_ok_and(|sockets| listens_as(&self.socket.to_string_lossy(), &sockets)),
            false => is_socket(&self.socket) && !is_abandoned(&self.socket),
        }
    }
}

/// Whether a socket without a file listens under this name.
fn listens_as(name: &str, sockets: &str) -> bool {
    sockets.lines().any(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        // Octets of zero, with which the driver may fill a name up, are shown like the first.
        let [_, _, _, LISTENS, SEQPACKET, _, _, told] = fields.as_slice() else { return false };
        told.strip_prefix('@').is_some_and(|told| told.trim_end_matches('@') == name)
    })
}

/// A memif's end, as its arguments say.
struct End<'a> {
    is_server: bool,
    is_abstract: bool,
    socket: &'a Path,
}

impl<'a> End<'a> {
    /// `None` of other devices.
    fn of(device: &'a str) -> Option<Self> {
        let mut parts = device.split(',');
        parts.next().filter(|name| name.starts_with("net_memif"))?;
        let mut end = Self { is_server: false, is_abstract: true, socket: Path::new(USUAL) };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key {
                "role" => end.is_server = matches!(value, "server" | "master"),
                "socket-abstract" => end.is_abstract = value != "no",
                "socket" => end.socket = Path::new(value),
                _ => {}
            }
        }
        Some(end)
    }
}

/// The file at which a memif of this name and arguments listens; `None` of a client, of a name that is no file's, and of other devices.
fn listens_at(device: &str) -> Option<&Path> {
    End::of(device).filter(|end| end.is_server && !end.is_abstract).map(|end| end.socket)
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket())
}

/// Whether there is a socket with nobody behind it. (Behind one of another type somebody is.)
fn is_abandoned(socket: &Path) -> bool {
    is_socket(socket)
        && UnixStream::connect(socket).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
    use std::os::fd::{AsRawFd, OwnedFd};

    fn listening_at(path: &Path) -> OwnedFd {
        listening(&UnixAddr::new(path).unwrap())
    }

    /// As the driver does.
    fn listening(at: &UnixAddr) -> OwnedFd {
        let made = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::empty(), None).unwrap();
        bind(made.as_raw_fd(), at).unwrap();
        listen(&made, Backlog::new(1).unwrap()).unwrap();
        made
    }

    #[test]
    fn a_socket_that_a_killed_process_has_left_makes_way_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memif.sock");
        let device =
            |role: &str, rest: &str| format!("net_memif0,role={role},socket={}{rest}", path.display());
        let server = device("server", ",socket-abstract=no");
        make_way(&server);
        let listener = listening_at(&path);
        make_way(&server);
        assert!(path.exists(), "somebody listens");
        drop(listener);
        for other in [device("client", ",socket-abstract=no"), device("server", ""), "net_tap0".to_owned()] {
            make_way(&other);
            assert!(path.exists(), "{other}");
        }
        make_way(&server);
        assert!(!path.exists());
        fs::write(&path, "a file").unwrap();
        make_way(&server);
        assert!(path.exists(), "it is no socket");
    }

    #[test]
    fn a_client_knows_whether_somebody_listens_whatever_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memif.sock");
        let name = path.to_str().unwrap();
        let filled: Vec<u8> = name.bytes().chain([0; 3]).collect();
        let without_file = [name.as_bytes(), &filled].map(|name| UnixAddr::new_abstract(name).unwrap());
        let file = UnixAddr::new(&path).unwrap();
        let [abstract_, with_file] = ["", ",socket-abstract=no"]
            .map(|rest| Server::of(&format!("net_memif0,role=client,socket={name}{rest}")).unwrap());
        for (at, server) in
            [(&without_file[0], &abstract_), (&without_file[1], &abstract_), (&file, &with_file)]
        {
            assert!(!server.is_there(), "{server:?}");
            let listener = listening(at);
            assert!(server.is_there(), "{server:?}");
            drop(listener);
            assert!(!server.is_there(), "a file alone is nobody: {server:?}");
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        assert!(!with_file.is_there());
        let usual = Server { socket: USUAL.into(), is_abstract: true };
        assert_eq!(Server::of("net_memif1"), Some(usual));
        assert_eq!(Server::of("net_memif1,role=server"), None);
        assert_eq!(Server::of("net_tap0,role=client"), None);
    }
}
