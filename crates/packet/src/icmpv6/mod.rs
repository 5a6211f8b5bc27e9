//! ICMP for IPv6 (RFC 4443): echo, and errors about packets that go no further. Neighbour discovery is in
//! [`crate::ndp`].

mod echo;
mod error;
mod message;

pub use echo::{NoReply, reply_to_echo};
pub use error::{ERROR_LENGTH_MAX, Error, NotAnswered, unreachable, write_error};
pub(crate) use error::{is_error, is_too_big};
pub(crate) use message::{is_intact, seal};
