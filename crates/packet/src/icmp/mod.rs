//! ICMP for IPv4 (RFC 792): echo, and errors about packets that go no further.

mod echo;
mod error;

pub use echo::{NoReply, reply_to_echo};
pub use error::{ERROR_LENGTH_MAX, Error, NotAnswered, unreachable, write_error};
pub(crate) use error::{is_error, is_too_long, put};
