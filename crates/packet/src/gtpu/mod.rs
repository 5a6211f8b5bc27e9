//! GTP-U version 1 (TS 29.281) with the PDU session container (TS 38.415).

mod header;
mod pdu_session;
mod signalling;
mod template;

pub use header::{Malformed, Message, encapsulated_length, write_g_pdu};
pub use pdu_session::{PduSession, PduType};
pub use signalling::{ErrorIndication, write_echo_request, write_echo_response, write_end_marker};
pub use template::{Endpoints, OuterHeader, Template, Template4, Template6, Tunnel, UdpChecksum};

/// UDP port of GTP-U (TS 29.281 4.4.2).
pub const PORT: u16 = 2152;

/// Message types (TS 29.281 table 6.1-1).
pub mod message_type {
    /// Are you there?
    pub const ECHO_REQUEST: u8 = 1;
    /// I am.
    pub const ECHO_RESPONSE: u8 = 2;
    /// I have no use for what you send into this tunnel.
    pub const ERROR_INDICATION: u8 = 26;
    /// Nothing more comes through this tunnel.
    pub const END_MARKER: u8 = 254;
    /// A user's packet.
    pub const G_PDU: u8 = 255;
}
