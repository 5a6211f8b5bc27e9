//! PFCP messages as trees of IEs that know no meaning, and changes to them: what tests and fuzzers send to see that
//! bad messages are refused. Lengths come out right unless one is to be a lie, so a change gets as far as it can.
//!
//! Nothing here decides anything, and the product does not use it.

mod datagram;
mod dice;
mod mutate;
mod script;
mod tree;

pub use datagram::Datagram;
pub use dice::Dice;
pub use mutate::mutate;
pub use script::{Line, Script};
pub use tree::{GROUPS, Tree, Way, around, parse, places, write};
