//! Offline charging (TS 32.240): from what sessions use to charging data records (CDRs) in files. Pure: time comes as
//! an argument, files through the trait [`spool::Folder`].
//!
//! | module | what it is about |
//! |---|---|
//! | `record` | a closed CDR: who, what of, how much, why closed |
//! | `account` | one session's charging: containers, partial records, limits |
//! | `policy`, `rating` | what an operator sets: when to close, and what is charged under which rating group |
//! | `user` | who the user is, as PFCP tells it |
//! | `time`, `zone` | moments, as CDRs and file names tell them; local time |
//! | `ber` | CDRs in ASN.1 BER (TS 32.298), written and read |
//! | `file` | CDR files and their names (TS 32.297), and JSON Lines |
//! | `spool` | CDRs into files, each once, whenever the process dies |
//!
//! Moments are milliseconds since 1900, as PFCP counts.

mod account;
pub mod ber;
pub mod file;
mod policy;
mod rating;
mod record;
pub mod spool;
pub mod time;
mod user;
mod zone;

pub use account::{Account, Reading, Used};
pub use policy::Policy;
pub use rating::{OWN_METERS, Rating};
pub use record::{Cause, Cdr, Conditions, Container, Key, Session};
pub use user::{Slice, User};
pub use zone::Zone;
