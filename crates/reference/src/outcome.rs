//! What became of one frame.

use crate::reason::DropReason;
use rules::Teid;
use std::fmt;
use std::net::IpAddr;

/// The end of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It, or the answer it was turned into, was sent.
    Sent,
    /// It was dropped.
    Dropped(DropReason),
    /// It was for us and reached its end.
    Consumed,
    /// A fragment addressed to us: it is kept until the others of its datagram come.
    Gathered,
    /// It is held until its next hop's Ethernet address is known.
    Held,
    /// It is kept for its user, who sleeps: its FAR says BUFF.
    Kept,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent => f.write_str("send"),
            Self::Dropped(reason) => write!(f, "drop:{}", reason.name()),
            Self::Consumed => f.write_str("consumed"),
            Self::Gathered => f.write_str("gather"),
            Self::Held => f.write_str("hold"),
            Self::Kept => f.write_str("keep"),
        }
    }
}

/// What became of one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Frames that left, each with its port: the packet first, then copies of it (DUPL), then what other packets
    /// left because of it.
    pub sent: Vec<(usize, Vec<u8>)>,
    /// What became of the packet itself.
    pub fate: Fate,
    /// What became of copies of it, of all its fragments but the first, and of a request for its next hop, that were not
    /// sent; and of fragments to us that waited for it, or gave way to it.
    pub copies: Vec<Fate>,
    /// An Error Indication told of this tunnel at this peer.
    pub error_indication: Option<(Teid, IpAddr)>,
}

impl Outcome {
    /// Nothing but its fate.
    pub(crate) const fn of(fate: Fate) -> Self {
        Self { sent: Vec::new(), fate, copies: Vec::new(), error_indication: None }
    }

    /// One frame sent.
    pub(crate) fn sent(port: usize, frame: Vec<u8>) -> Self {
        Self { sent: vec![(port, frame)], ..Self::of(Fate::Sent) }
    }

    /// Adds what became of a copy, or of another fragment.
    pub(crate) fn add_copy(&mut self, copy: Self) {
        self.sent.extend(copy.sent);
        self.copies.extend(copy.copies);
        if copy.fate != Fate::Sent {
            self.copies.push(copy.fate);
        }
    }
}

impl From<Result<Self, DropReason>> for Outcome {
    fn from(result: Result<Self, DropReason>) -> Self {
        result.unwrap_or_else(|reason| Self::of(Fate::Dropped(reason)))
    }
}
