//! What is wrong with files, and what the log says of it: once for each change of its kind.

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// Files are written, and may soon not be.
    Ahead(String),
    /// Files cannot be written.
    Here(String),
}

/// What the log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Records wait that should not.
    Error(String),
    /// Somebody should do something.
    Warning(String),
    /// What was wrong is over.
    Info(&'static str),
}

impl Problem {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Ahead(text) | Self::Here(text) => text,
        }
    }
}

/// What is to be said where something is wrong that was not, or no more. What a problem says changes with every megabyte;
/// people want to hear of it once.
pub(super) fn said(before: Option<&Problem>, now: Option<&Problem>) -> Option<Said> {
    use Problem::{Ahead, Here};
    match (before, now) {
        (Some(Here(_)), Some(Here(_))) | (Some(Ahead(_)), Some(Ahead(_))) | (None, None) => None,
        (_, Some(Here(text))) => Some(Said::Error(format!("{text}; records wait in the session database"))),
        (None, Some(Ahead(text))) => Some(Said::Warning(format!("{text}; files are written so far"))),
        (Some(Here(_)), Some(Ahead(text))) => {
            Some(Said::Warning(format!("{text}; files can be written again so far")))
        }
        (Some(Here(_)), None) => Some(Said::Info("files can be written again")),
        (Some(Ahead(_)), None) => Some(Said::Info("files have room again")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk becomes full slowly, and has room again.
    #[test]
    fn each_change_is_said_once() {
        let scarce = |mib: u64| Some(Problem::Ahead(format!("only {mib} MiB are free for files")));
        let full = || Some(Problem::Here("a file cannot be written: no space".to_owned()));
        let course =
            [None, None, scarce(200), scarce(199), full(), full(), scarce(10), full(), None, scarce(9), None];
        let heard: Vec<Said> =
            course.windows(2).filter_map(|pair| said(pair[0].as_ref(), pair[1].as_ref())).collect();
        let full =
            || Said::Error("a file cannot be written: no space; records wait in the session database".into());
        let expected = [
            Said::Warning("only 200 MiB are free for files; files are written so far".into()),
            full(),
            Said::Warning("only 10 MiB are free for files; files can be written again so far".into()),
            full(),
            Said::Info("files can be written again"),
            Said::Warning("only 9 MiB are free for files; files are written so far".into()),
            Said::Info("files have room again"),
        ];
        assert_eq!(heard, expected);
    }
}
