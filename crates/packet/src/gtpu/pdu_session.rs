//! The PDU session container (TS 38.415 5.5), as the extension header of type 0x85 carries it.

/// Bytes of the extension header without optional fields.
pub(super) const LENGTH: usize = 4;
/// Bytes of the extension header with a paging policy.
const LENGTH_WITH_POLICY: usize = 8;

const QFI: u8 = 0b0011_1111;
const REFLECTIVE: u8 = 0b0100_0000;
const PAGING_POLICY_PRESENT: u8 = 0b1000_0000;
const PAGING_POLICY_SHIFT: u8 = 5;
const PAGING_POLICY_MAX: u8 = 7;

/// The direction of the packet it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PduType {
    /// From a user plane function to the radio.
    Downlink,
    /// From the radio.
    Uplink,
}

/// What a packet's container says of its QoS flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PduSession {
    /// The direction.
    pub pdu_type: PduType,
    /// QoS Flow Identifier, 0 to 63.
    pub qfi: u8,
    /// Downlink only: the user's device derives uplink QoS from this packet (RQI).
    pub reflective: bool,
    /// Downlink only: Paging Policy Indicator, 0 to 7, by which the radio pages a sleeping device.
    pub paging_policy: Option<u8>,
}

impl PduSession {
    /// A downlink container without reflective QoS and paging policy.
    pub const fn downlink(qfi: u8) -> Self {
        Self { pdu_type: PduType::Downlink, qfi: qfi & QFI, reflective: false, paging_policy: None }
    }

    /// An uplink container.
    pub const fn uplink(qfi: u8) -> Self {
        Self { pdu_type: PduType::Uplink, ..Self::downlink(qfi) }
    }

    /// Other optional fields (time stamps, delays, sequence numbers) are skipped; `None` where the first two octets
    /// or a paging policy announced by them are missing, or the type is unknown.
    #[inline]
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let [kind, flow] = *content.first_chunk()?;
        let qfi = flow & QFI;
        match kind >> 4 {
            0 => {
                let paging_policy = match flow & PAGING_POLICY_PRESENT {
                    0 => None,
                    _ => Some(content.get(2)? >> PAGING_POLICY_SHIFT),
                };
                Some(Self { reflective: flow & REFLECTIVE != 0, paging_policy, ..Self::downlink(qfi) })
            }
            1 => Some(Self::uplink(qfi)),
            _ => None,
        }
    }

    /// Bytes of the extension header.
    #[inline]
    pub(super) const fn length(self) -> usize {
        match (self.pdu_type, self.paging_policy) {
            (PduType::Downlink, Some(_)) => LENGTH_WITH_POLICY,
            _ => LENGTH,
        }
    }

    /// What is between its length and the type of the next: so many bytes of these.
    pub(super) fn content(self) -> ([u8; LENGTH_WITH_POLICY - 2], usize) {
        let [_, kind, flow, policy] = self.word().to_be_bytes();
        ([kind, flow, policy, 0, 0, 0], self.length() - 2)
    }

    /// The first four octets of the extension header, last of its chain; the others, if any, are 0.
    #[inline]
    pub(super) const fn word(self) -> u32 {
        let flow = self.qfi & QFI | if self.reflective { REFLECTIVE } else { 0 };
        let octets = match (self.pdu_type, self.paging_policy) {
            (PduType::Uplink, _) => [1, 1 << 4, self.qfi & QFI, 0],
            (PduType::Downlink, None) => [1, 0, flow, 0],
            (PduType::Downlink, Some(policy)) => {
                [2, 0, flow | PAGING_POLICY_PRESENT, (policy & PAGING_POLICY_MAX) << PAGING_POLICY_SHIFT]
            }
        };
        u32::from_be_bytes(octets)
    }
}

/// A container without a paging policy, or none, as it stands on the wire: what most packets get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortContainer(u32);

impl ShortContainer {
    /// No container.
    pub const NONE: Self = Self(0);

    /// Of the octet with QFI and, downlink only, RQI.
    #[inline(always)]
    pub const fn new(pdu_type: PduType, flow: u8) -> Self {
        Self(match pdu_type {
            PduType::Downlink => u32::from_be_bytes([1, 0, flow & (QFI | REFLECTIVE), 0]),
            PduType::Uplink => u32::from_be_bytes([1, 1 << 4, flow & QFI, 0]),
        })
    }

    /// The same of a container; `None` of one with a paging policy.
    pub const fn of(container: Option<PduSession>) -> Option<Self> {
        match container {
            None => Some(Self::NONE),
            Some(container) if container.length() == LENGTH => Some(Self(container.word())),
            Some(_) => None,
        }
    }

    /// The four octets of the extension header; 0 of none.
    #[inline(always)]
    pub(super) const fn word(self) -> u32 {
        self.0
    }
}
