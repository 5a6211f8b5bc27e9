//! Grouped IEs: the rules of a session.

mod far;
mod pdr;
mod qer;
mod usage;

pub use far::{CreateFar, ForwardingParameters, RemoveFar, UpdateFar, UpdateForwardingParameters};
pub use pdr::{CreatePdr, CreatedPdr, Pdi, RemovePdr, UpdatePdr};
pub use qer::{CreateQer, RemoveQer, UpdateQer};
pub use usage::{CreateBar, CreateUrr, RemoveBar, RemoveUrr, UpdateBar, UpdateUrr};
