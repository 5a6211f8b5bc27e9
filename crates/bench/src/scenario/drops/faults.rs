//! What is wrong with packets that are dropped.

use crate::meter::seal;
use crate::setup::{ENDPOINTS, Refusal, TUNNEL_HEADERS};
use dataplane::DropReason;
use packet::{ethernet, ipv4, udp};

/// Octets before the user's own packet on the way up, and before GTP-U's TEID.
const USER: usize = ethernet::LENGTH + TUNNEL_HEADERS;
const TEID: usize = ethernet::LENGTH + ipv4::LENGTH + udp::LENGTH + 4;
/// Where headers of IPv4 have these.
const LENGTH: usize = 2;
const HOPS: usize = 8;
const CHECKSUM: usize = 10;
const SOURCE: usize = 12;
const DESTINATION: usize = 16;

/// What is wrong with all packets of a round.
#[derive(Clone, Copy)]
pub(super) struct Fault {
    /// In words.
    pub(super) what: &'static str,
    pub(super) reason: DropReason,
    pub(super) up: bool,
    pub(super) cause: Cause,
    /// A few users send or get all of them, and have done so for seconds.
    pub(super) is_flood: bool,
}

/// Where the fault is.
#[derive(Clone, Copy)]
pub(super) enum Cause {
    /// In the frame: makes it so.
    Frame(fn(&mut [u8]) -> Option<()>),
    /// In nothing of the packet: its user's rules refuse it.
    Rules(Refusal),
}

/// Stations, tunnels and addresses that are wrong, and packets that are unsound.
pub(super) const IN_FRAMES: [Fault; 9] = [
    Fault {
        what: "for another station",
        reason: DropReason::NotOurMac,
        up: true,
        cause: Cause::Frame(|frame| set(frame, 5, 0xee)),
        is_flood: false,
    },
    Fault {
        what: "with a wrong checksum of the tunnel's header",
        reason: DropReason::Ip4Checksum,
        up: true,
        cause: Cause::Frame(|frame| frame.get_mut(ethernet::LENGTH + CHECKSUM).map(|octet| *octet ^= 1)),
        is_flood: false,
    },
    Fault {
        what: "in a tunnel that is not there",
        reason: DropReason::NoTunnel,
        up: true,
        cause: Cause::Frame(|frame| set(frame, TEID, 0xee)),
        is_flood: false,
    },
    Fault {
        what: "of a user, and cut short",
        reason: DropReason::UserPacketMalformed,
        up: true,
        cause: Cause::Frame(|frame| set(frame, USER + LENGTH, 0xee)),
        is_flood: false,
    },
    Fault {
        what: "from an address that is not the user's",
        reason: DropReason::NoPdr,
        up: true,
        cause: Cause::Frame(|frame| resealed(frame, USER, (SOURCE, &[0xee]))),
        is_flood: false,
    },
    Fault {
        what: "to the node itself, in a tunnel",
        reason: DropReason::ToOurselves,
        up: true,
        cause: Cause::Frame(|frame| resealed(frame, USER, (DESTINATION, &ENDPOINTS.n3.1.octets()))),
        is_flood: false,
    },
    Fault {
        what: "to an address that no user has",
        reason: DropReason::NoSession,
        up: false,
        cause: Cause::Frame(|frame| resealed(frame, ethernet::LENGTH, (DESTINATION, &[0xee]))),
        is_flood: false,
    },
    Fault {
        what: "from the data network, and cut short",
        reason: DropReason::Ip4Truncated,
        up: false,
        cause: Cause::Frame(|frame| resealed(frame, ethernet::LENGTH, (LENGTH, &[0xee]))),
        is_flood: false,
    },
    Fault {
        what: "from the data network, at their last hop",
        reason: DropReason::TtlExpired,
        up: false,
        cause: Cause::Frame(|frame| resealed(frame, ethernet::LENGTH, (HOPS, &[1]))),
        is_flood: false,
    },
];

/// A rate of which a long packet takes 11 seconds. The clock of a worker that is measured runs only while it does: whoever has
/// sent one has nothing left for all of a measurement.
const FAR_BEYOND: Refusal = Refusal::Rate { kbps: 1 };
/// A rate of which next to nothing is within it that a few users send as fast as they can, and no packet takes more than 90 ms:
/// none is farther beyond it than may be caught up on, so each has what passed in the last second looked at.
const JUST_BEYOND: Refusal = Refusal::Rate { kbps: 128 };
/// Users of a flood: so few that a worker remembers the last second of each.
pub(super) const FLOODING: u32 = 1_000;

/// Packets that their users' own rules drop: it is known as late as a packet that is forwarded, and in the same nodes. One kind is
/// beside itself the other way, so that rules change as seldom as they can.
pub(super) const IN_RULES: [Fault; 8] = [
    refused("from users whose gate is closed", true, Refusal::Gates),
    refused("to users whose gate is closed", false, Refusal::Gates),
    refused("from users seconds beyond their rate", true, FAR_BEYOND),
    refused("to users seconds beyond their rate", false, FAR_BEYOND),
    Fault {
        is_flood: true,
        ..refused("from a few users who are always just beyond their rate", true, JUST_BEYOND)
    },
    Fault {
        is_flood: true,
        ..refused("to a few users who are always just beyond their rate", false, JUST_BEYOND)
    },
    refused("from users whose quota is used up", true, Refusal::Quota),
    refused("to users whose quota is used up", false, Refusal::Quota),
];

const fn refused(what: &'static str, up: bool, refusal: Refusal) -> Fault {
    let reason = match refusal {
        Refusal::Gates => DropReason::GateClosed,
        Refusal::Rate { .. } => DropReason::RateExceeded,
        Refusal::Quota => DropReason::QuotaExhausted,
    };
    Fault { what, reason, up, cause: Cause::Rules(refusal), is_flood: false }
}

fn set(frame: &mut [u8], at: usize, octet: u8) -> Option<()> {
    *frame.get_mut(at)? = octet;
    Some(())
}

/// Octets of the IPv4 header that begins `at`, whose checksum is right again.
fn resealed(frame: &mut [u8], at: usize, (field, octets): (usize, &[u8])) -> Option<()> {
    let header = frame.get_mut(at..)?;
    header.get_mut(field..field + octets.len())?.copy_from_slice(octets);
    seal(header)
}
