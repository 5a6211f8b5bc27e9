//! Watches the file of content rules: a change is read, checked and told, and a file with a mistake changes nothing.

use crate::content::RuleText;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::sleep;

/// Between two looks at the file.
const PAUSE: Duration = Duration::from_secs(1);

/// The rules to be in force; none, where no file is configured.
pub(crate) type Rules = Option<Arc<RuleText>>;

/// What tells one writing of a file from another.
type Stamp = Option<(SystemTime, u64)>;

/// Reads the file, and goes on watching it.
///
/// # Errors
/// A file that is refused: a node that is started with it should not run.
pub(crate) fn watch(file: Option<&Path>) -> anyhow::Result<watch::Receiver<Rules>> {
    let Some(file) = file else { return Ok(watch::channel(None).1) };
    let stamp = stamp(file);
    let (tell, rules) = watch::channel(Some(Arc::new(RuleText::read(file)?)));
    tokio::spawn(follow(file.to_owned(), stamp, tell));
    Ok(rules)
}

async fn follow(file: PathBuf, mut seen: Stamp, tell: watch::Sender<Rules>) {
    while !tell.is_closed() {
        sleep(PAUSE).await;
        let now = stamp(&file);
        if now == seen {
            continue;
        }
        seen = now;
        let path = file.clone();
        match tokio::task::spawn_blocking(move || RuleText::read(&path)).await {
            Ok(Ok(rules)) => {
                tell.send_if_modified(|told| {
                    let is_new = told.as_ref().is_none_or(|told| **told != rules);
                    if is_new {
                        *told = Some(Arc::new(rules));
                    }
                    is_new
                });
            }
            Ok(Err(error)) => tracing::warn!("the content rules stay as they are: {error:#}"),
            Err(_) => tracing::warn!("the content rules stay as they are: reading {} failed", file.display()),
        }
    }
}

fn stamp(file: &Path) -> Stamp {
    let found = std::fs::metadata(file).ok()?;
    Some((found.modified().ok()?, found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[tokio::test]
    async fn a_change_is_told_and_a_mistake_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("content.rules");
        fs::write(&file, "id=1 precedence=1 rating-group=1 any\n").unwrap();
        let mut rules = watch(Some(&file)).unwrap();
        let first = rules.borrow_and_update().clone().unwrap();
        fs::write(&file, "id=1 precedence=1 rating-group=1\n").unwrap();
        sleep(2 * PAUSE).await;
        assert!(!rules.has_changed().unwrap());
        fs::write(&file, "id=2 precedence=1 rating-group=1 any # another\n").unwrap();
        rules.changed().await.unwrap();
        let second = rules.borrow_and_update().clone().unwrap();
        assert_ne!(first.revision, second.revision);
        fs::write(&file, "id=x\n").unwrap();
        assert!(format!("{:#}", watch(Some(&file)).unwrap_err()).contains("line 1: "));
    }
}
