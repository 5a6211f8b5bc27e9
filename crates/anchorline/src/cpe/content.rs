//! Watches the files of content rules and categories: a change is read, checked and told, and a file with a mistake changes nothing.

use crate::charged::Charged;
use crate::content::{RuleText, Sources, Whole};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Between two looks at the file.
const PAUSE: Duration = Duration::from_secs(1);

/// The rules to be in force; none, where no file is configured.
pub(crate) type Rules = Option<Arc<RuleText>>;

/// What tells one writing of a file from another.
type Stamp = Option<(SystemTime, u64)>;

/// Reads the files, and goes on watching them. What they say that is not charged is told in the log.
///
/// # Errors
/// A file that is refused: a node that is started with it should not run.
pub(crate) fn watch(
    sources: Option<&Sources>,
    charged: Option<Charged>,
) -> anyhow::Result<watch::Receiver<Rules>> {
    let Some(sources) = sources else { return Ok(watch::channel(None).1) };
    let stamps = stamps(sources);
    let (tell, rules) = watch::channel(Some(Arc::new(text(&sources.read()?, charged.as_ref()))));
    tokio::spawn(follow((sources.clone(), charged), stamps, tell));
    Ok(rules)
}

fn text(rules: &Whole, charged: Option<&Charged>) -> RuleText {
    if let Some(warning) = charged.and_then(|charged| charged.warning(rules)) {
        tracing::warn!("{warning}");
    }
    rules.text()
}

async fn follow(
    (sources, charged): (Sources, Option<Charged>),
    mut seen: Vec<Stamp>,
    tell: watch::Sender<Rules>,
) {
    while !tell.is_closed() {
        sleep(PAUSE).await;
        let now = stamps(&sources);
        if now == seen {
            continue;
        }
        seen = now;
        let (all, charged) = (sources.clone(), charged.clone());
        let read = move || Ok::<_, anyhow::Error>(text(&all.read()?, charged.as_ref()));
        match tokio::task::spawn_blocking(read).await {
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
            Err(_) => tracing::warn!("the content rules stay as they are: reading them failed"),
        }
    }
}

fn stamps(sources: &Sources) -> Vec<Stamp> {
    sources.files().map(stamp).collect()
}

fn stamp(file: &Path) -> Stamp {
    let found = std::fs::metadata(file).ok()?;
    Some((found.modified().ok()?, found.len()))
}

/// Between a change of PFDs and when the data plane is told: what else changes meanwhile is told with it, since it builds
/// all rules anew for each.
const GATHER: Duration = Duration::from_millis(400);
/// Until a data plane that does not say what became of rules is told of others.
const PATIENCE: Duration = Duration::from_secs(60);

/// When the data plane is told of content rules: one set of them at a time.
#[derive(Debug, Default)]
pub(super) struct Telling {
    due: Option<Instant>,
    /// Until when its answer is waited for.
    busy: Option<Instant>,
}

impl Telling {
    /// PFDs have changed.
    pub(super) fn pfds_changed(&mut self, now: Instant) {
        self.due.get_or_insert(now + GATHER);
    }

    /// The file has changed.
    pub(super) fn file_changed(&mut self, now: Instant) {
        self.due = Some(now);
    }

    /// It is told.
    pub(super) fn told(&mut self, now: Instant) {
        *self = Self { due: None, busy: Some(now + PATIENCE) };
    }

    /// It has answered.
    pub(super) fn answered(&mut self) {
        self.busy = None;
    }

    /// It is gone: the next one is told what it does not have.
    pub(super) fn lost(&mut self) {
        *self = Self::default();
    }

    /// When it is to be told.
    pub(super) fn at(&self) -> Option<Instant> {
        self.due.map(|due| self.busy.map_or(due, |busy| busy.max(due)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_in_a_row_are_told_once_and_one_set_at_a_time() {
        let now = Instant::now();
        let after = |ms| now + Duration::from_millis(ms);
        let mut telling = Telling::default();
        assert_eq!(telling.at(), None);
        telling.pfds_changed(now);
        telling.pfds_changed(after(300));
        assert_eq!(telling.at(), Some(now + GATHER), "later changes do not put it off");
        telling.told(after(400));
        assert_eq!(telling.at(), None);
        telling.pfds_changed(after(450));
        assert_eq!(telling.at(), Some(after(400) + PATIENCE), "it still builds the others");
        telling.answered();
        assert_eq!(telling.at(), Some(after(850)));
        telling.file_changed(after(500));
        assert_eq!(telling.at(), Some(after(500)));
        telling.lost();
        assert_eq!(telling.at(), None);
    }
    use std::fs;

    #[tokio::test]
    async fn a_change_is_told_and_a_mistake_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("content.rules");
        fs::write(&file, "id=1 precedence=1 rating-group=1 any\n").unwrap();
        let sources = Sources { rules: file.clone(), categories: vec![], ..Sources::default() };
        let mut rules = watch(Some(&sources), None).unwrap();
        let first = rules.borrow_and_update().clone().unwrap();
        fs::write(&file, "id=1 precedence=1 rating-group=1\n").unwrap();
        sleep(2 * PAUSE).await;
        assert!(!rules.has_changed().unwrap());
        fs::write(&file, "id=2 precedence=1 rating-group=1 any # another\n").unwrap();
        rules.changed().await.unwrap();
        let second = rules.borrow_and_update().clone().unwrap();
        assert_ne!(first.revision, second.revision);
        fs::write(&file, "id=x\n").unwrap();
        assert!(format!("{:#}", watch(Some(&sources), None).unwrap_err()).contains("line 1: "));
    }
}
