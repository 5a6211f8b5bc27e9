//! Changes at run time: a plan that is printed first, applied whole or not at all, and undone.

mod apply;
mod frequency;
mod interrupts;
mod memory;
mod plan;
mod record;
mod speed_select;
mod start;
mod step;
mod undo;

pub use apply::{Applied, Failure, Hands, Kernel, apply};
pub use plan::{Options, Plan, plan};
pub use record::{Record, UNDO_FILE};
pub use step::{Command, Owner, Step, Write};
pub use undo::{Undo, Undone, undo};
