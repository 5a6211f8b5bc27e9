//! What the demo says while it runs, on standard error.

use anyhow::{Error, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The steps taken so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    number: u32,
    step: String,
    /// Where a reader finds more, once there is such a place.
    pub(crate) logs: Option<PathBuf>,
}

impl Progress {
    /// Takes a step: a spinner while it runs, and a line with what came of it. `work` returns a value and a
    /// remark.
    pub(crate) fn step<T>(&mut self, name: &str, work: impl FnOnce() -> Result<(T, String)>) -> Result<T> {
        self.number += 1;
        self.step = name.into();
        let spinner = spinner(self.number, name);
        let started = Instant::now();
        let done = work();
        spinner.finish_and_clear();
        let (value, remark) = done?;
        let seconds = started.elapsed().as_secs_f32();
        say(&format!("{:>2}. {name:<44} {seconds:>5.1} s  {remark}", self.number));
        Ok(value)
    }

    /// Says what broke, where, and where to look.
    pub(crate) fn failed(&self, error: &Error) {
        say("");
        if self.number > 0 {
            say(&format!("demo: FAILED in step {}: {}", self.number, self.step));
        }
        say(&format!("demo: {error:#}"));
        if let Some(logs) = &self.logs {
            say(&format!("demo: the logs are in {}", logs.display()));
        }
    }
}

/// Says a line on standard error. Where nobody listens any more, the work goes on.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Drawn only on a terminal.
fn spinner(number: u32, name: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(format!("{number:>2}. {name}"));
    if let Ok(style) = ProgressStyle::with_template("{msg:48} {elapsed:>4} {spinner}") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}
