//! Sockets of the running node, below `node.run_dir`: one engine answers at each.

use crate::exit;
use std::path::Path;
use std::{fs, io};
use tokio::net::UnixListener;

/// Whether `engine` may listen at `path`, where nobody does yet; the folder is made if absent. A socket that somebody
/// answers at is no dead engine's.
///
/// # Errors
/// Another engine, or a folder that cannot be made: ones that starting again does not mend.
pub(crate) fn claim(path: &Path, engine: &str) -> anyhow::Result<()> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(exit::unusable(anyhow::anyhow!(
            "another {engine} runs at {}; stop it or change node.run_dir",
            path.display()
        )));
    }
    fs::create_dir_all(folder_of(path)).map_err(|error| unusable(path, &error))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// That is how the node is configured, and to start again would change nothing.
fn unusable(path: &Path, error: &io::Error) -> anyhow::Error {
    let folder = folder_of(path).display();
    exit::unusable(anyhow::anyhow!("node.run_dir {folder} cannot be used: {error}"))
}

/// Listens at `path`, in place of a socket that a dead engine left behind.
///
/// # Errors
/// As [`claim`], or the system's.
pub(crate) fn listen(path: &Path, engine: &str) -> anyhow::Result<UnixListener> {
    claim(path, engine)?;
    let _ = fs::remove_file(path);
    UnixListener::bind(path).map_err(|error| unusable(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitCode;

    /// A folder that cannot be made, and one whose socket has too long a name.
    #[tokio::test]
    async fn a_run_dir_that_cannot_be_used_ends_the_node_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for below in ["file/x".to_owned(), "x".repeat(100)] {
            let run_dir = folder.path().join(below);
            let error = listen(&run_dir.join("dpe.sock"), "data plane").unwrap_err();
            let expected = format!("node.run_dir {} cannot be used: ", run_dir.display());
            assert!(error.to_string().starts_with(&expected), "{error:#}");
            assert_eq!(exit::code(Err(error)), ExitCode::from(exit::UNUSABLE));
        }
    }
}
