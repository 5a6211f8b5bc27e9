//! GTP-U version 1 (TS 29.281) with the PDU session container (TS 38.415).

mod element;
mod error_indication;
mod extension;
mod framed;
mod header;
mod pdu_session;
mod relay;
mod signalling;
mod template;

pub use error_indication::{ErrorIndication, TunnelError};
pub use extension::{BrokenChain, EXTENSIONS_MAX, Extension, Extensions, SUPPORTED, extension_type};
pub use framed::{Framed, ShortTunnel};
pub use header::{Malformed, Message, encapsulated_length, write_g_pdu, write_g_pdu_with};
pub use pdu_session::{PduSession, PduType, ShortContainer};
pub use relay::Relayed;
pub use signalling::{
    ECHO_MAX, read_recovery_time_stamp, read_supported_extension_headers, write_echo_request,
    write_echo_response, write_end_marker, write_end_marker_of_flow, write_supported_extension_headers,
};
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
    /// These are the extension headers I know.
    pub const SUPPORTED_EXTENSION_HEADERS_NOTIFICATION: u8 = 31;
    /// Says things about a tunnel.
    pub const TUNNEL_STATUS: u8 = 253;
    /// Nothing more comes through this tunnel.
    pub const END_MARKER: u8 = 254;
    /// A user's packet.
    pub const G_PDU: u8 = 255;
}
