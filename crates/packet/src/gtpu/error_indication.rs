//! Error indications (TS 29.281 7.3.1).

use super::element::{Elements, PEER_ADDRESS, TEID_DATA_I, recovery_time_stamp};
use super::extension::{Extension, extension_type};
use super::header::{MANDATORY, Message, Start, write_message};
use super::message_type::ERROR_INDICATION;
use super::signalling::read_recovery_time_stamp;
use std::net::{IpAddr, Ipv4Addr};

/// Tells a peer that its packets lead nowhere, or is told so by it; over IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelError {
    /// The tunnel of the packet that led nowhere.
    pub teid: u32,
    /// The address that packet was sent to.
    pub address: IpAddr,
    /// The UDP port it came from, so that its sender can tell which of its threads sent it (TS 29.281 5.2.2.1).
    pub udp_port: Option<u16>,
    /// The sender's Recovery Time Stamp, in seconds since 1900 (TS 29.281 8.8).
    pub recovery_time_stamp: Option<u32>,
}

impl TunnelError {
    /// Most bytes of the whole message.
    pub const LENGTH_MAX: usize = MANDATORY + 4 + 4 + 5 + 3 + 16 + 7;

    /// Writes the message; returns its length, `None` where `bytes` are too short.
    pub fn write(&self, bytes: &mut [u8]) -> Option<usize> {
        let port = self.udp_port.unwrap_or(0).to_be_bytes();
        let extension = [Extension { kind: extension_type::UDP_PORT, content: &port }];
        let extensions = if self.udp_port.is_some() { &extension[..] } else { &[] };
        let (v4, v6);
        let address = match self.address {
            IpAddr::V4(address) => {
                v4 = address.octets();
                &v4[..]
            }
            IpAddr::V6(address) => {
                v6 = address.octets();
                &v6[..]
            }
        };
        let start = Start { kind: ERROR_INDICATION, sequence: Some(0), teid: 0 };
        let stamp = self.recovery_time_stamp.map(recovery_time_stamp);
        let stamp = stamp.as_ref().map_or(&[][..], |stamp| stamp);
        let at = write_message(bytes, start, extensions, 5 + 3 + address.len() + stamp.len())?;
        let body = bytes.get_mut(at..)?;
        let [a, b, c, d] = self.teid.to_be_bytes();
        *body.first_chunk_mut()? = [TEID_DATA_I, a, b, c, d, PEER_ADDRESS, 0, address.len() as u8];
        let (into, rest) = body.get_mut(8..)?.split_at_mut_checked(address.len())?;
        into.copy_from_slice(address);
        rest.get_mut(..stamp.len())?.copy_from_slice(stamp);
        Some(at + 8 + address.len() + stamp.len())
    }

    /// Reads `message`, found in `bytes`; `None` where the tunnel or the address is missing.
    pub fn read(message: &Message, bytes: &[u8]) -> Option<Self> {
        let body = bytes.get(message.header_length..message.total_length)?;
        let (mut teid, mut address) = (None, None);
        for element in Elements::of(body) {
            match element.kind {
                TEID_DATA_I => teid = element.value.first_chunk().map(|octets| u32::from_be_bytes(*octets)),
                PEER_ADDRESS => address = read_address(element.value),
                _ => {}
            }
        }
        let udp_port = message.extensions(bytes).flatten().find_map(|extension| extension.udp_port());
        let recovery_time_stamp = read_recovery_time_stamp(message, bytes);
        Some(Self { teid: teid?, address: address?, udp_port, recovery_time_stamp })
    }
}

fn read_address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).ok().map(IpAddr::from);
    v4.or_else(|| <[u8; 16]>::try_from(octets).ok().map(IpAddr::from))
}

/// A [`TunnelError`] over IPv4, with neither port nor stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorIndication {
    /// The tunnel of the packet that led nowhere.
    pub teid: u32,
    /// The address that packet was sent to.
    pub address: Ipv4Addr,
}

impl ErrorIndication {
    /// Bytes of the whole message.
    pub const LENGTH: usize = MANDATORY + 4 + 5 + 7;

    /// Writes the message; returns its length, `None` where `bytes` are too short.
    pub fn write(&self, bytes: &mut [u8]) -> Option<usize> {
        let address = self.address.into();
        TunnelError { teid: self.teid, address, udp_port: None, recovery_time_stamp: None }.write(bytes)
    }

    /// Reads the information elements of `message`, found in `bytes`; `None` where either of the two is missing or
    /// the address is of IPv6.
    pub fn read(message: &Message, bytes: &[u8]) -> Option<Self> {
        let read = TunnelError::read(message, bytes)?;
        match read.address {
            IpAddr::V4(address) => Some(Self { teid: read.teid, address }),
            IpAddr::V6(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_error_indication_reads_as_it_was_written(teid: u32, address: [u8; 4]) {
            let sent = ErrorIndication { teid, address: address.into() };
            let mut bytes = [0; ErrorIndication::LENGTH];
            prop_assert_eq!(sent.write(&mut bytes), Some(ErrorIndication::LENGTH));
            let message = Message::parse(&bytes).unwrap();
            prop_assert_eq!(ErrorIndication::read(&message, &bytes), Some(sent));
        }

        #[test]
        fn of_either_version_with_and_without_port(
            teid: u32,
            address: IpAddr,
            udp_port: Option<u16>,
            recovery_time_stamp: Option<u32>,
        ) {
            let sent = TunnelError { teid, address, udp_port, recovery_time_stamp };
            let mut bytes = [0; TunnelError::LENGTH_MAX];
            let length = sent.write(&mut bytes).unwrap();
            let message = Message::parse(&bytes[..length]).unwrap();
            prop_assert_eq!((message.message_type, message.total_length), (ERROR_INDICATION, length));
            prop_assert_eq!(TunnelError::read(&message, &bytes[..length]), Some(sent));
            prop_assert_eq!(ErrorIndication::read(&message, &bytes).is_some(), address.is_ipv4());
            for short in 0..length {
                prop_assert_eq!(sent.write(&mut bytes[..short]), None);
                prop_assert_eq!(TunnelError::read(&message, &bytes[..short]), None);
            }
        }

        #[test]
        fn elements_of_any_shape_end(body in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut bytes = vec![0; 12];
            let start = Start { kind: ERROR_INDICATION, sequence: Some(0), teid: 0 };
            write_message(&mut bytes, start, &[], body.len()).unwrap();
            bytes.extend(&body);
            let message = Message::parse(&bytes).unwrap();
            if let Some(read) = TunnelError::read(&message, &bytes) {
                prop_assert!(body.windows(4).any(|octets| octets == read.teid.to_be_bytes()));
            }
        }
    }
}
