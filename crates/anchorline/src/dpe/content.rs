//! Builds content rules on a thread of its own: the data plane goes on meanwhile.

use dpi::matching::Classifier;
use dpi::rule_file;
use dplink::{ContentPart, Notice};
use tokio::sync::mpsc;

/// Rules of a revision, ready to be asked, or why not.
pub(super) struct Built {
    pub(super) revision: u64,
    pub(super) outcome: Result<Classifier, String>,
}

impl Built {
    /// As the control plane is told.
    pub(super) const fn refused(revision: u64, reason: String) -> Notice {
        Notice::ContentRefused { revision, reason }
    }
}

/// Gathers parts, and builds.
pub(super) struct Builder {
    text: String,
    revision: u64,
    next: u32,
    tell: mpsc::Sender<Built>,
    built: mpsc::Receiver<Built>,
    /// Rules that are being built.
    under_way: usize,
}

impl Builder {
    pub(super) fn new() -> Self {
        let (tell, built) = mpsc::channel(4);
        Self { text: String::new(), revision: 0, next: 0, tell, built, under_way: 0 }
    }

    /// A part; the last one begins the work. A part that is out of order says so.
    pub(super) fn take(&mut self, part: ContentPart) -> Result<(), Notice> {
        if part.part == 0 {
            (self.text, self.revision, self.next) = (String::new(), part.revision, 0);
        }
        let fits = part.text.len() <= ContentPart::BYTES && part.parts <= ContentPart::PARTS;
        if (part.revision, part.part) != (self.revision, self.next) || !fits || part.revision == 0 {
            return Err(Built::refused(part.revision, "a part of the rules is missing".to_owned()));
        }
        self.text.push_str(&part.text);
        self.next += 1;
        if self.next == part.parts {
            let (text, revision, tell) = (std::mem::take(&mut self.text), self.revision, self.tell.clone());
            self.under_way += 1;
            tokio::task::spawn_blocking(move || {
                let outcome = rule_file::read_lines(&text).and_then(|rules| rules.compile());
                let outcome = outcome.map_err(|mistakes| mistakes.to_string());
                // Nobody there: the engine ends.
                let _ = tell.blocking_send(Built { revision, outcome });
            });
        }
        Ok(())
    }

    /// What was built, in the order in which it was ready.
    pub(super) async fn built(&mut self) -> Option<Built> {
        let built = self.built.recv().await;
        self.under_way = self.under_way.saturating_sub(1);
        built
    }

    /// Whether there are rules yet to come out.
    pub(super) const fn is_building(&self) -> bool {
        self.under_way > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(part: u32, parts: u32, text: &str) -> ContentPart {
        ContentPart { revision: 5, part, parts, text: text.to_owned() }
    }

    #[tokio::test]
    async fn rules_are_built_once_all_parts_are_there() {
        let mut builder = Builder::new();
        assert!(builder.take(part(1, 2, "")).is_err(), "the first is missing");
        builder.take(part(0, 2, "id=1 precedence=1 rat")).unwrap();
        builder.take(part(1, 2, "ing-group=1 any\n")).unwrap();
        assert!(builder.is_building());
        let built = builder.built().await.unwrap();
        assert!(!builder.is_building());
        assert_eq!((built.revision, built.outcome.unwrap().shape().rules), (5, 1));
        builder.take(part(0, 1, "id=x\n")).unwrap();
        assert!(builder.built().await.unwrap().outcome.unwrap_err().starts_with("line 1: "));
    }
}
