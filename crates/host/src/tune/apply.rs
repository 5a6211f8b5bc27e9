//! Applying a plan whole or not at all.

use super::plan::Plan;
use super::record::UNDO_FILE;
use super::step::{Step, chosen};
use super::undo::{Change, Undo, restore, roll_back};
use crate::Root;
use std::fs;
use std::io;

/// What changes the system, so that tests change something else.
pub trait Hands {
    /// All a file says.
    ///
    /// # Errors
    /// The system's.
    fn read(&mut self, path: &str) -> io::Result<String>;

    /// Writes a file that is there.
    ///
    /// # Errors
    /// The system's.
    fn write(&mut self, path: &str, text: &str) -> io::Result<()>;

    /// Runs a program to its end.
    ///
    /// # Errors
    /// If it cannot be started or says that it failed.
    fn run(&mut self, words: &[String]) -> io::Result<()>;
}

/// The system below a root. Programs are those of this system, so it runs none below another root.
#[derive(Debug)]
pub struct Kernel(pub Root);

impl Hands for Kernel {
    fn read(&mut self, path: &str) -> io::Result<String> {
        fs::read_to_string(self.0.place(path))
    }

    fn write(&mut self, path: &str, text: &str) -> io::Result<()> {
        use std::io::Write as _;
        // Not made if absent, and in one call, as the kernel's files want it.
        fs::OpenOptions::new().write(true).truncate(true).open(self.0.place(path))?.write_all(text.as_bytes())
    }

    fn run(&mut self, words: &[String]) -> io::Result<()> {
        if self.0.place("/") != std::path::Path::new("/") {
            return Err(io::Error::other("programs are run on this system alone"));
        }
        let (program, arguments) =
            words.split_first().ok_or_else(|| io::Error::other("no program is named"))?;
        let status = std::process::Command::new(program).args(arguments).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("{program} says {status}"))) }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// To undo it.
    pub undo: Undo,
    /// Files the kernel would not change, with its words; those that may be left alone.
    pub left: Vec<String>,
}

/// A step that failed. All before it were undone.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}; {}{}", undone(*.before), also(.not_undone))]
pub struct Failure {
    /// How many changes were made before.
    pub before: usize,
    /// The file or program.
    pub what: String,
    /// As the system says it.
    pub why: String,
    /// What could not be undone, which should be nothing.
    pub not_undone: Vec<String>,
    /// What of it can be tried again.
    pub remaining: Undo,
}

const fn undone(before: usize) -> &'static str {
    if before == 0 { "nothing else was changed" } else { "all that was changed before has been undone" }
}

fn also(not_undone: &[String]) -> String {
    if not_undone.is_empty() { String::new() } else { format!(", except: {}", not_undone.join("; ")) }
}

/// Takes all steps of a plan. Before each change, `record` is given all changes including this one, so that a crash in
/// between leaves something to undo by.
///
/// # Errors
/// The step that failed, when all before it are undone.
pub fn apply(
    plan: &Plan,
    hands: &mut impl Hands,
    mut record: impl FnMut(&Undo) -> io::Result<()>,
) -> Result<Applied, Failure> {
    let mut applied = Applied::default();
    for step in &plan.steps {
        let change = match step {
            Step::Write(write) => Change::Written(write.clone()),
            Step::Run(command) => Change::Ran(command.clone()),
            Step::Done(_) | Step::Advice { .. } | Step::NotHere { .. } => continue,
        };
        applied.undo.changes.push(change);
        let taken = record(&applied.undo).and_then(|()| take(step, hands));
        match (taken, step) {
            (Ok(()), _) => {}
            (Err(error), Step::Write(write)) if let Some(left) = write.refused(&error) => {
                // It may have taken something else than it was given.
                let _ = restore(write, hands);
                applied.undo.changes.pop();
                applied.left.push(left);
            }
            (Err(error), step) => return Err(fail(step, &error, &applied.undo, hands)),
        }
    }
    // The last change may have been left alone.
    match record(&applied.undo) {
        Ok(()) => Ok(applied),
        Err(error) => Err(fail(&Step::Done(UNDO_FILE.to_owned()), &error, &applied.undo, hands)),
    }
}

fn take(step: &Step, hands: &mut impl Hands) -> io::Result<()> {
    match step {
        Step::Write(write) => {
            hands.write(&write.path, &write.then)?;
            let now = hands.read(&write.path)?;
            // The kernel takes fewer pages than there is memory for, and says so only when asked.
            if chosen(&write.path, &now) == chosen(&write.path, &write.then) {
                Ok(())
            } else {
                Err(io::Error::other(format!(
                    "{:?} was written, and it says {:?}",
                    write.then,
                    chosen(&write.path, &now)
                )))
            }
        }
        Step::Run(command) => hands.run(&command.words),
        Step::Done(_) | Step::Advice { .. } | Step::NotHere { .. } => Ok(()),
    }
}

fn fail(step: &Step, error: &io::Error, changes: &Undo, hands: &mut impl Hands) -> Failure {
    let what = match step {
        Step::Write(write) => write.path.clone(),
        Step::Run(command) => command.words.join(" "),
        Step::Done(what) | Step::Advice { what, .. } | Step::NotHere { what, .. } => what.clone(),
    };
    // The step itself may have changed something before it failed, so it is undone too.
    let undone = roll_back(changes, hands);
    let not_undone = undone.failed.into_iter().chain(undone.left).collect();
    let before = changes.len().saturating_sub(usize::from(!matches!(step, Step::Done(_))));
    Failure { before, what, why: error.to_string(), not_undone, remaining: undone.remaining }
}
