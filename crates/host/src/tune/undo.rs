//! Undoing what was applied, as far as it is still ours to undo.

use super::Hands;
use super::step::{Command, Write, chosen};
use crate::facts::{INTERRUPTS, UNUSED, holder};
use serde::{Deserialize, Serialize};
use std::io;

/// What was changed, in the order in which it was, and how it is undone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    pub(super) changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    Written(Write),
    Ran(Command),
}

impl Undo {
    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// How many changes there were.
    pub fn len(&self) -> usize {
        self.changes.len()
    }
}

/// What came of undoing.
#[derive(Clone, Debug, Default)]
pub struct Undone {
    /// How many changes are taken back.
    pub back: usize,
    /// What is left as it is, for good, and why: it is gone, is somebody else's by now, or the kernel refuses.
    pub left: Vec<String>,
    /// What could not be undone, with the system's words.
    pub failed: Vec<String>,
    /// Those changes, to undo another time.
    pub remaining: Undo,
}

/// Where a change stands before any is undone.
enum Standing {
    /// The file says what was written, or it is a program's doing, which cannot be read.
    Ours,
    /// Nothing was changed, or somebody has changed it back.
    AsBefore,
    /// It is not to be touched.
    Left(String),
    Failed(io::Error),
}

/// Undoes changes, the last first, and goes on where one cannot be undone. What a file says is undone only if it is what was
/// written: all else is somebody else's by now.
pub fn undo(changes: &Undo, hands: &mut impl Hands) -> Undone {
    // All are read before any is undone: the kernel changes one as another changes (EPP with the governor).
    let stand = |change: &Change| (change.clone(), standing(change, hands));
    let stands: Vec<_> = changes.changes.iter().map(stand).collect();
    take_back(stands, hands)
}

/// Undoes what was changed just now, whatever it says: a step that failed may have changed it to something else.
pub(super) fn roll_back(changes: &Undo, hands: &mut impl Hands) -> Undone {
    take_back(changes.changes.iter().map(|change| (change.clone(), Standing::Ours)).collect(), hands)
}

fn standing(change: &Change, hands: &mut impl Hands) -> Standing {
    let Change::Written(write) = change else { return Standing::Ours };
    let now = match hands.read(&write.path) {
        Ok(now) => now,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return gone(write),
        Err(error) => return Standing::Failed(error),
    };
    let is = |text: &str| chosen(&write.path, &now) == chosen(&write.path, text);
    if let Some(other) = another_holder(write, hands) {
        return Standing::Left(format!("{}: the interrupt is {other}'s by now", write.path));
    }
    match (is(&write.then) || is_on_the_way(write, &now), is(&write.now)) {
        (true, _) => Standing::Ours,
        (false, true) => Standing::AsBefore,
        _ => Standing::Left(format!(
            "{}: somebody has changed it since: {:?} was written, and it says {:?}",
            write.path,
            chosen(&write.path, &write.then),
            chosen(&write.path, &now)
        )),
    }
}

/// Pages are reserved one by one, and whoever is killed meanwhile leaves some of those there were to be.
fn is_on_the_way(write: &Write, now: &str) -> bool {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (before, now, then) = (number(&write.now), number(now), number(&write.then));
    write.path.ends_with("/nr_hugepages") && before < now && now < then
}

fn gone(write: &Write) -> Standing {
    Standing::Left(format!("{}: it is gone, and what was changed with it", write.path))
}

/// Numbers of interrupts are given away anew, and another device's may happen to go where this one went. One that nobody has
/// now keeps its CPUs for whoever had it: an interface that is down.
fn another_holder(write: &Write, hands: &mut impl Hands) -> Option<String> {
    let owner = write.owner.as_ref()?;
    let table = hands.read(INTERRUPTS).ok()?;
    Some(holder(&table, owner.interrupt)).filter(|name| *name != UNUSED && *name != owner.name)
}

fn take_back(stands: Vec<(Change, Standing)>, hands: &mut impl Hands) -> Undone {
    let mut undone = Undone::default();
    for (change, standing) in stands.into_iter().rev() {
        let standing = match standing {
            Standing::Ours => restored(&change, hands),
            other => other,
        };
        match standing {
            Standing::Ours | Standing::AsBefore => undone.back += 1,
            Standing::Left(why) => undone.left.push(why),
            Standing::Failed(error) => {
                undone.failed.push(format!("{}: {error}", what(&change)));
                undone.remaining.changes.insert(0, change);
            }
        }
    }
    undone
}

fn what(change: &Change) -> String {
    match change {
        Change::Written(write) => write.path.clone(),
        Change::Ran(command) => command.undo.join(" "),
    }
}

/// How it stands when it was tried. What says what it said is left alone: it may be that nothing can be written there.
fn restored(change: &Change, hands: &mut impl Hands) -> Standing {
    let result = match change {
        Change::Written(write) if hands.read(&write.path).is_ok_and(|now| now == write.now) => Ok(()),
        Change::Written(write) => restore(write, hands),
        Change::Ran(command) => hands.run(&command.undo),
    };
    match (result, change) {
        (Ok(()), _) => Standing::AsBefore,
        (Err(error), Change::Written(write)) if error.kind() == io::ErrorKind::NotFound => gone(write),
        // Who may not write at all had better ask again as somebody else.
        (Err(error), Change::Written(write)) if error.kind() != io::ErrorKind::PermissionDenied => {
            write.refused(&error).map_or(Standing::Failed(error), Standing::Left)
        }
        (Err(error), _) => Standing::Failed(error),
    }
}

/// Of a choice in brackets the kernel wants the one; all else goes back as it was, to the octet.
pub(super) fn restore(write: &Write, hands: &mut impl Hands) -> io::Result<()> {
    let choice = chosen(&write.path, &write.now);
    let text = if choice == write.now.trim() { &write.now } else { choice };
    hands.write(&write.path, text)
}
