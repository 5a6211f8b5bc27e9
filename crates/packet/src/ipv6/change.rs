//! Changes to packets in place. The fixed header has no checksum, so each is one write.

use super::header::Header;

/// Takes one hop off the packet at the front of `bytes`; `None`, and no change, where none is left or it is not IPv6.
#[inline]
pub fn decrement_hop_limit(bytes: &mut [u8]) -> Option<()> {
    let header = Header::of(bytes)?;
    header.hop_limit = header.hop_limit.checked_sub(1).filter(|hops| *hops > 0)?;
    Some(())
}

/// Sets how much follows the header of the packet at the front of `bytes`; `None` where it is not IPv6.
pub fn set_payload_length(bytes: &mut [u8], length: u16) -> Option<()> {
    Header::of(bytes).map(|header| header.payload_length.set(length))
}

/// Sets the traffic class (DSCP and ECN) of the packet at the front of `bytes`; `None` where it is not IPv6.
#[inline]
pub fn set_traffic_class(bytes: &mut [u8], class: u8) -> Option<()> {
    Header::of(bytes).map(|header| header.set_traffic_class(class))
}

/// Sets the DSCP, of which the lower six bits count, and leaves ECN alone (RFC 2474); `None` where it is not IPv6.
#[inline]
pub fn set_dscp(bytes: &mut [u8], dscp: u8) -> Option<()> {
    let header = Header::of(bytes)?;
    header.set_traffic_class(dscp << 2 | header.traffic_class() & 3);
    Some(())
}

/// Sets ECN, of which the lower two bits count, and leaves the DSCP alone (RFC 3168); `None` where it is not IPv6.
#[inline]
pub fn set_ecn(bytes: &mut [u8], ecn: u8) -> Option<()> {
    let header = Header::of(bytes)?;
    header.set_traffic_class(header.traffic_class() & !3 | ecn & 3);
    Some(())
}

/// Sets the flow label, of which the lower 20 bits count; `None` where it is not IPv6.
#[inline]
pub fn set_flow_label(bytes: &mut [u8], label: u32) -> Option<()> {
    Header::of(bytes).map(|header| header.set_flow_label(label))
}

/// Turns the packet at the front of `bytes` around: source and destination swapped, 64 hops. Upper-layer checksums
/// stay right, for they do not mind the order. `None` where it is not IPv6.
pub fn reverse(bytes: &mut [u8]) -> Option<()> {
    let header = Header::of(bytes)?;
    std::mem::swap(&mut header.source, &mut header.destination);
    header.hop_limit = 64;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::{LENGTH, Packet};
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    fn packet() -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let header = Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, 59, 0).unwrap();
        header.with_hop_limit(2).write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_last_hop_is_not_taken() {
        let mut bytes = packet();
        decrement_hop_limit(&mut bytes).unwrap();
        assert_eq!(decrement_hop_limit(&mut bytes), None);
        assert_eq!(Packet::parse(&bytes).unwrap().hop_limit(), 1);
    }

    #[test]
    fn nothing_else_is_touched() {
        let mut short = packet();
        assert_eq!(set_traffic_class(&mut short[..39], 1), None);
        short[0] = 0x45;
        let before = short;
        assert_eq!((set_dscp(&mut short, 1), set_ecn(&mut short, 1)), (None, None));
        assert_eq!((set_flow_label(&mut short, 1), reverse(&mut short)), (None, None));
        assert_eq!(decrement_hop_limit(&mut short), None);
        assert_eq!(short, before);
    }

    proptest! {
        #[test]
        fn fields_do_not_disturb_each_other(class: u8, dscp in 0u8..64, ecn in 0u8..4, label in 0u32..1 << 20) {
            let mut bytes = packet();
            set_flow_label(&mut bytes, label).unwrap();
            set_traffic_class(&mut bytes, class).unwrap();
            prop_assert_eq!(Packet::parse(&bytes).unwrap().traffic_class(), class);
            set_dscp(&mut bytes, dscp).unwrap();
            prop_assert_eq!(Packet::parse(&bytes).unwrap().traffic_class(), dscp << 2 | class & 3);
            set_ecn(&mut bytes, ecn).unwrap();
            let read = Packet::parse(&bytes).unwrap();
            prop_assert_eq!((read.traffic_class(), read.flow_label()), (dscp << 2 | ecn, label));
        }
    }
}
