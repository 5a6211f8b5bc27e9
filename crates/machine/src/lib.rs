//! The kit every protocol machine is built from: time that comes in as an argument, requests that are sent
//! again until answered, and answers that are remembered for requests that come again.
//!
//! Nothing here reads a clock, sleeps or sends: a machine is `input + time -> outputs`.

mod answers;
mod clock;
mod line;
mod numbers;
mod requests;
mod seeded;
mod short;
mod time;

pub use answers::{AnswerCache, AnswerLimits, Seen};
pub use clock::Clock;
pub use requests::{Full, Overdue, Requests};
pub use seeded::{SeededMap, SeededSet};
pub use short::write_short;
pub use time::Time;
