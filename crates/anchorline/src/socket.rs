//! Sockets of the running node, below `node.run_dir`: one engine answers at each.

use crate::exit;
use anyhow::Context;
use std::fs;
use std::path::Path;
use tokio::net::UnixListener;

/// Whether `engine` may listen at `path`, where nobody does yet; the folder is made if absent. A socket that somebody answers at is
/// no dead engine's.
///
/// # Errors
/// Another engine, or a folder that cannot be made.
pub(crate) fn claim(path: &Path, engine: &str) -> anyhow::Result<()> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(exit::unusable(anyhow::anyhow!(
            "another {engine} runs at {}; stop it or change node.run_dir",
            path.display()
        )));
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))
}

/// Listens at `path`, in place of a socket that a dead engine left behind.
///
/// # Errors
/// As [`claim`], or the system's.
pub(crate) fn listen(path: &Path, engine: &str) -> anyhow::Result<UnixListener> {
    claim(path, engine)?;
    let _ = fs::remove_file(path);
    UnixListener::bind(path).with_context(|| format!("{} cannot be listened at", path.display()))
}
