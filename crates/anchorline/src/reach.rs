//! Why an engine's socket could not be spoken to.

use nix::unistd::{Uid, User};
use std::fs;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// As a sentence: that no engine runs there, or that one may not, and as whom to run the command.
pub(crate) fn unreached(error: &Error, engine: &str, path: &Path) -> String {
    let shown = path.display();
    match error.kind() {
        ErrorKind::PermissionDenied => {
            format!("this user may not speak to the {engine} at {shown}; run it as {}", whose(path))
        }
        _ => format!("no {engine} runs at {shown}; is the node up, and is --config that of the node?"),
    }
}

/// That one may not read a file of an engine's, and who may; `None` of other errors.
pub(crate) fn unreadable(error: &Error, path: &Path) -> Option<String> {
    let is_denied = error.kind() == ErrorKind::PermissionDenied;
    is_denied.then(|| format!("this user may not read {}; run it as {}", path.display(), whose(path)))
}

/// Whose it is, or whose the folder that hides it.
fn whose(path: &Path) -> String {
    let seen = path.ancestors().find_map(|place| fs::metadata(place).ok());
    let owner = seen.map_or(Uid::from_raw(0), |seen| Uid::from_raw(seen.uid()));
    let name = User::from_uid(owner).ok().flatten().map(|user| user.name);
    let name = name.unwrap_or_else(|| format!("user {owner}"));
    if owner.is_root() { name } else { format!("{name}, or as root") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpe::control::{self, Order};
    use nix::unistd::setfsuid;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn who_may_not_is_told_so_and_who_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        let owner = whose(&path);
        // Of this thread alone; an ordinary user may not either, and stays who it is.
        let asked = std::thread::spawn(move || {
            setfsuid(Uid::from_raw(65_534));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let dpe = crate::observer::statistics(&path).await.unwrap_err();
                let cpe = control::order(&path, Order::Associations).await.unwrap_err();
                [dpe, cpe].map(|error| format!("{error:#}"))
            })
        });
        for (said, engine) in asked.join().unwrap().iter().zip(["data plane", "control plane"]) {
            assert!(said.contains(&format!("this user may not speak to the {engine} at ")), "{said}");
            assert!(said.contains(&format!("run it as {owner}")), "{said}");
        }
        assert!(unreadable(&Error::from(ErrorKind::NotFound), folder.path()).is_none());
    }
}
