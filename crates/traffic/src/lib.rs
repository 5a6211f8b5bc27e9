//! Traffic as models describe it: how many users, how long packets are, which way they go, what they are about; and
//! the packets themselves, the same for the same seed.
//!
//! [`Flows`] gives packets of flows that begin with a lookup and a handshake, say what they are about as real clients
//! do, go on, and end; [`Flows::label`] knows the truth about each. [`Packets`] gives packets of flows that the caller
//! names, with nothing in them.
//!
//! ```
//! use anchorline_traffic::{Endpoints, FRAME_MAX, Flows, profile};
//!
//! let mut flows = Flows::new(profile("zte").unwrap(), Endpoints::EXAMPLE, 1).unwrap();
//! let mut frame = [0; FRAME_MAX];
//! let written = flows.next(&mut frame).unwrap();
//! assert!(written.first_packets && written.position == 0);
//! println!("{:?}: {:?}", flows.tuple(written.flow), flows.label(written.flow));
//! ```

mod args;
mod bulk;
pub mod catalogue;
mod flows;
mod frame;
mod line;
mod opening;
mod origin;
mod packets;
mod payload;
mod profile;
mod random;
mod record;
mod segment;
mod table;

pub use args::Args;
pub use bulk::PACKET_MAX;
pub use flows::{Error, FRAME_MAX, Flows, Written, openings};
pub use frame::{Endpoints, User, Users};
pub use origin::{Label, Tuple};
pub use packets::Packets;
pub use profile::{Length, PROFILES, Profile, Service, Transport, profile};
pub use record::{RecordError, Recorded, record, write_pcap};
