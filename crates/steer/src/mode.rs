//! Which of three ways a port's packets get to the worker that owns the user.

use crate::Family;
use serde::Serialize;

/// How far into a GTP-U packet a port's hash reaches; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// No hash: one queue, or queues it cannot choose by what a packet says.
    Nothing,
    /// Addresses and ports of the outer headers: all users of a gNB look alike.
    Outer,
    /// The TEID.
    Teid,
    /// The addresses of the packet in the tunnel.
    Inner,
}

/// Whether the package that teaches a card GTP-U (Intel DDP) is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Package {
    /// It is on this host.
    Present,
    /// It is not.
    Absent,
    /// It cannot be known from here: the host of this virtual machine has it or not, or firmware must be asked.
    Unknown,
}

/// What a port can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Abilities {
    /// How far its hash reaches.
    pub reach: Reach,
    /// Receive queues it has.
    pub queues: u16,
}

impl Abilities {
    /// What a family can do, as far as its documentation says, with `queues` queues. `Unknown` counts as present for
    /// cards that parse GTP-U by themselves or by their host's package, so that the port tries and then says.
    pub const fn of(family: Family, package: Package, queues: u16) -> Self {
        let absent = matches!(package, Package::Absent);
        let reach = match family {
            Family::I40e | Family::Ice if !matches!(package, Package::Present) => Reach::Outer,
            Family::I40e | Family::Ice => Reach::Inner,
            Family::Iavf | Family::Mlx5 if absent => Reach::Outer,
            Family::Iavf | Family::Mlx5 => Reach::Inner,
            Family::Ixgbe | Family::Bnxt | Family::Ena | Family::Gve | Family::Vmxnet3 => Reach::Outer,
            Family::Virtio | Family::Other => Reach::Nothing,
        };
        Self { reach, queues }
    }
}

/// How packets get to the worker that owns their user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// (a) The port hashes the user's address: inner source up, destination down.
    InnerHash,
    /// (b) The port hashes the TEID, and TEIDs are chosen so that they lead to the queue of the user's address.
    TeidHash,
    /// (c) The worker that receives a packet of another's hands it over.
    Software,
}

/// A mode and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The way taken.
    pub mode: Mode,
    /// Why, as a sentence for people.
    pub reason: String,
}

/// Chooses the best way a port allows for so many workers.
pub fn decide(port: Abilities, workers: u16) -> Decision {
    let (mode, reason) = match port.reach {
        _ if workers < 2 => (Mode::Software, "one worker owns every user: nothing is handed over".to_owned()),
        _ if port.queues < workers => (
            Mode::Software,
            format!(
                "the port has {} receive queues for {workers} workers: those without one are handed packets",
                port.queues
            ),
        ),
        Reach::Inner => (Mode::InnerHash, "the port sees the addresses inside GTP-U".to_owned()),
        Reach::Teid => (
            Mode::TeidHash,
            "the port sees the TEID but not what is inside: TEIDs are chosen to lead to the user's worker"
                .to_owned(),
        ),
        Reach::Outer => (
            Mode::Software,
            "the port sees only the outer headers, where all users of a gNB look alike".to_owned(),
        ),
        Reach::Nothing => (Mode::Software, "the port does not choose queues by what packets say".to_owned()),
    };
    Decision { mode, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(family: Family, package: Package, queues: u16) -> Mode {
        decide(Abilities::of(family, package, queues), 4).mode
    }

    #[test]
    fn a_card_needs_its_package() {
        assert_eq!(mode(Family::I40e, Package::Present, 4), Mode::InnerHash);
        assert_eq!(mode(Family::I40e, Package::Absent, 4), Mode::Software);
        assert_eq!(mode(Family::Ice, Package::Unknown, 4), Mode::Software);
        assert_eq!(mode(Family::Iavf, Package::Unknown, 4), Mode::InnerHash);
        assert_eq!(mode(Family::Virtio, Package::Present, 4), Mode::Software);
    }

    #[test]
    fn too_few_queues_or_one_worker_end_in_software() {
        assert_eq!(mode(Family::Ice, Package::Present, 2), Mode::Software);
        let one = decide(Abilities { reach: Reach::Inner, queues: 8 }, 1);
        assert!(one.mode == Mode::Software && one.reason.contains("one worker"));
    }

    #[test]
    fn a_port_that_sees_teids_gets_chosen_teids() {
        assert_eq!(decide(Abilities { reach: Reach::Teid, queues: 8 }, 8).mode, Mode::TeidHash);
    }
}
