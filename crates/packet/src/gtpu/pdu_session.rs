//! The PDU session container (TS 38.415 5.5), as the extension header of type 0x85 carries it.

/// Type of the extension header (TS 29.281 5.2.1).
pub(super) const EXTENSION_TYPE: u8 = 0x85;
/// Bytes of the extension header without optional fields.
pub(super) const LENGTH: usize = 4;

const QFI: u8 = 0b0011_1111;
const REFLECTIVE: u8 = 0b0100_0000;

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
    /// Downlink only: the user's device derives uplink QoS from this packet.
    pub reflective: bool,
}

impl PduSession {
    /// A downlink container without reflective QoS.
    pub const fn downlink(qfi: u8) -> Self {
        Self { pdu_type: PduType::Downlink, qfi: qfi & QFI, reflective: false }
    }

    /// An uplink container.
    pub const fn uplink(qfi: u8) -> Self {
        Self { pdu_type: PduType::Uplink, qfi: qfi & QFI, reflective: false }
    }

    /// Optional fields after the first two octets are skipped; `None` where those are missing or the type is unknown.
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let [kind, flow] = *content.first_chunk()?;
        let pdu_type = match kind >> 4 {
            0 => PduType::Downlink,
            1 => PduType::Uplink,
            _ => return None,
        };
        let reflective = pdu_type == PduType::Downlink && flow & REFLECTIVE != 0;
        Some(Self { pdu_type, qfi: flow & QFI, reflective })
    }

    /// Writes the extension header, last of its chain, to the front of `bytes`.
    pub(super) fn write(self, bytes: &mut [u8]) -> Option<()> {
        let kind = match self.pdu_type {
            PduType::Downlink => 0,
            PduType::Uplink => 1 << 4,
        };
        let flow = self.qfi & QFI | if self.reflective { REFLECTIVE } else { 0 };
        *bytes.first_chunk_mut::<LENGTH>()? = [1, kind, flow, 0];
        Some(())
    }
}
