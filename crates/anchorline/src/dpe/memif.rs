//! Sockets of memif's servers: DPDK's driver makes them as files, and a data plane that was killed leaves its own behind, at which the
//! next one could not listen.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Where the driver makes a socket, unless a device says otherwise.
const USUAL: &str = "/run/memif.sock";

/// Removes the socket that a device is to listen at, if nobody does.
pub(super) fn make_way(device: &str) {
    if let Some(socket) = listens_at(device).filter(|socket| is_abandoned(socket)) {
        match fs::remove_file(socket) {
            Ok(()) => tracing::info!("{}: nobody listened there any more: removed", socket.display()),
            Err(error) => tracing::warn!("{} is nobody's, and cannot be removed: {error}", socket.display()),
        }
    }
}

/// The file at which a memif of this name and arguments listens; `None` of a client, of a name that is no file's, and of other devices.
fn listens_at(device: &str) -> Option<&Path> {
    let mut parts = device.split(',');
    parts.next().filter(|name| name.starts_with("net_memif"))?;
    let (mut is_server, mut is_abstract, mut socket) = (false, true, USUAL);
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        match key {
            "role" => is_server = matches!(value, "server" | "master"),
            "socket-abstract" => is_abstract = value != "no",
            "socket" => socket = value,
            _ => {}
        }
    }
    (is_server && !is_abstract).then_some(Path::new(socket))
}

/// Whether there is a socket with nobody behind it. (Behind one of another type somebody is.)
fn is_abandoned(socket: &Path) -> bool {
    let is_socket = fs::symlink_metadata(socket).is_ok_and(|about| about.file_type().is_socket());
    is_socket && UnixStream::connect(socket).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
    use std::os::fd::{AsRawFd, OwnedFd};

    /// As the driver does.
    fn listening_at(path: &Path) -> OwnedFd {
        let made = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::empty(), None).unwrap();
        bind(made.as_raw_fd(), &UnixAddr::new(path).unwrap()).unwrap();
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
}
