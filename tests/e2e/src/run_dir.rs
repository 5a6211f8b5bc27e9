//! Where a run keeps its logs, and where its programs are.

use anyhow::{Context, Result, ensure};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

/// A directory of this run alone, under the build's target directory. It stays unless told to go.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes `target/lab/LABEL-PID`, empty.
    ///
    /// # Errors
    /// Where the directory cannot be made.
    pub fn create(label: &str) -> Result<Self> {
        let target = profile_dir()?.parent().context("no target directory")?.to_owned();
        let path = target.join("lab").join(format!("{label}-{}", process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("cannot empty {}", path.display()))?;
        }
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it: nothing went wrong, nobody will look.
    pub fn remove(&self) {
        // What cannot be removed is only untidy.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A directory on the laboratory's own `/run`, which is memory. It goes when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes it, empty.
    pub(crate) fn create() -> Result<Self> {
        let path = PathBuf::from("/run/scratch");
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed goes with this process's mounts.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// An executable of this workspace, built into the same directory as the running one.
///
/// # Errors
/// Where it is not there, with how to build it.
pub fn program(name: &str) -> Result<PathBuf> {
    let path = profile_dir()?.join(name);
    ensure!(path.is_file(), "{} is not built; `make build` builds it", path.display());
    Ok(path)
}

/// `target/PROFILE`; tests run from its subdirectory `deps`.
fn profile_dir() -> Result<PathBuf> {
    let executable = env::current_exe()?;
    let dir = executable.parent().context("no directory holds this program")?;
    let above = dir.parent().filter(|_| dir.ends_with("deps"));
    Ok(above.unwrap_or(dir).to_owned())
}
