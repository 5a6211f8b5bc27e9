//! ARP for IPv4 over Ethernet (RFC 826).

use crate::ethernet::{self, MacAddress};
use std::net::Ipv4Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a [`Message`].
pub const LENGTH: usize = size_of::<Message>();

const HARDWARE_ETHERNET: u16 = 1;
const REQUEST: u16 = 1;
const REPLY: u16 = 2;

/// Who asks or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Who has the target address?
    Request,
    /// The sender has it.
    Reply,
}

/// An ARP message on the wire.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Message {
    hardware_type: U16,
    protocol_type: U16,
    hardware_length: u8,
    protocol_length: u8,
    operation: U16,
    sender_mac: MacAddress,
    sender_address: [u8; 4],
    target_mac: MacAddress,
    target_address: [u8; 4],
}

/// One side of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its Ethernet address; in a request's target, all zero.
    pub mac: MacAddress,
    /// Its IPv4 address.
    pub address: Ipv4Addr,
}

impl Message {
    /// A message from `sender` to `target`.
    pub const fn new(operation: Operation, sender: Station, target: Station) -> Self {
        let code = match operation {
            Operation::Request => REQUEST,
            Operation::Reply => REPLY,
        };
        Self {
            hardware_type: U16::new(HARDWARE_ETHERNET),
            protocol_type: U16::new(ethernet::IPV4),
            hardware_length: 6,
            protocol_length: 4,
            operation: U16::new(code),
            sender_mac: sender.mac,
            sender_address: sender.address.octets(),
            target_mac: target.mac,
            target_address: target.address.octets(),
        }
    }

    /// The message after an Ethernet header; `None` where it is cut short or not IPv4 over Ethernet.
    pub fn parse(payload: &[u8]) -> Option<&Self> {
        let (message, _) = Self::ref_from_prefix(payload).ok()?;
        let known = message.hardware_type.get() == HARDWARE_ETHERNET
            && message.protocol_type.get() == ethernet::IPV4
            && (message.hardware_length, message.protocol_length) == (6, 4);
        known.then_some(message)
    }

    /// `None` for operations other than request and reply.
    pub const fn operation(&self) -> Option<Operation> {
        match self.operation.get() {
            REQUEST => Some(Operation::Request),
            REPLY => Some(Operation::Reply),
            _ => None,
        }
    }

    /// Who sent it.
    pub const fn sender(&self) -> Station {
        Station { mac: self.sender_mac, address: Ipv4Addr::from_octets(self.sender_address) }
    }

    /// Whom it asks for or answers.
    pub const fn target(&self) -> Station {
        Station { mac: self.target_mac, address: Ipv4Addr::from_octets(self.target_address) }
    }

    /// Writes the message to the front of `payload`; `None`, and no change, where it is too short.
    pub fn write(&self, payload: &mut [u8]) -> Option<()> {
        self.write_to_prefix(payload).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Station = Station { mac: MacAddress([2, 0, 0, 0, 0, 1]), address: Ipv4Addr::new(10, 0, 0, 1) };
    const B: Station = Station { mac: MacAddress([2, 0, 0, 0, 0, 2]), address: Ipv4Addr::new(10, 0, 0, 2) };

    #[test]
    fn a_message_reads_as_it_was_written() {
        let mut bytes = [0; LENGTH];
        Message::new(Operation::Reply, A, B).write(&mut bytes).unwrap();
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.operation(), Some(Operation::Reply));
        assert_eq!((message.sender(), message.target()), (A, B));
    }

    #[test]
    fn other_protocols_and_short_messages_are_none() {
        let mut bytes = [0; LENGTH];
        Message::new(Operation::Request, A, B).write(&mut bytes).unwrap();
        assert!(Message::parse(&bytes[..LENGTH - 1]).is_none());
        bytes[3] = 0xdd;
        assert!(Message::parse(&bytes).is_none());
    }
}
