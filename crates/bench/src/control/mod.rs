//! A control plane that asks as fast as it is answered, and the node it asks: the shipped executable over UDP.

mod bare;
mod client;
mod messages;
mod node;

pub(crate) use bare::{Bare, Turn};
pub(crate) use client::{Client, Tally, WINDOW};
pub(crate) use messages::{deletion, establishment, modification};
pub(crate) use node::Node;
