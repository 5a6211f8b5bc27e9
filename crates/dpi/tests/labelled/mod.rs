//! The traffic crate's catalogue as rules, and its frames as the packets in them.

use anchorline_dpi::extract::{Datagram, Inspection, Verdict};
use anchorline_dpi::matching::{Facts, Rule};
use packet::{FiveTuple, ethernet, gtpu, ipv4, protocol, tcp, udp};
use std::net::IpAddr;
use traffic::catalogue;

/// The rules of the `zte` profile: id and rating group are the application's number and service.
pub(crate) fn rules() -> Vec<Rule> {
    let lines: String = catalogue::applications().map(|rule| format!("{rule}\n")).collect();
    anchorline_dpi::rule_file::read_lines(&lines).unwrap().rules().to_vec()
}

/// A user's packet.
pub(crate) struct Taken<'a> {
    /// As it goes up.
    pub(crate) tuple: FiveTuple,
    /// Sequence number and flags of TCP.
    pub(crate) tcp: Option<(u32, u8)>,
    pub(crate) payload: &'a [u8],
}

/// What a frame of the traffic crate carries.
pub(crate) fn take(frame: &[u8], uplink: bool) -> Taken<'_> {
    let packet = &frame[ethernet::LENGTH..];
    let packet = if uplink {
        let outer = ipv4::LENGTH + udp::LENGTH;
        &packet[outer + gtpu::Message::parse(&packet[outer..]).unwrap().header_length..]
    } else {
        packet
    };
    let found = FiveTuple::parse(packet).unwrap();
    let tuple = if uplink { found.tuple } else { found.tuple.reversed() };
    let upper = &packet[found.upper..found.total];
    if tuple.protocol != protocol::TCP {
        return Taken { tuple, tcp: None, payload: &upper[udp::LENGTH..] };
    }
    let segment = tcp::Segment::parse(upper).unwrap();
    Taken { tuple, tcp: Some((segment.sequence(), segment.flags())), payload: segment.payload() }
}

impl<'a> Taken<'a> {
    /// What addresses tell.
    pub(crate) fn facts<'f>(&self) -> Facts<'f> {
        let server: IpAddr = self.tuple.destination_address();
        Facts {
            server,
            server_port: self.tuple.destination_port,
            protocol: self.tuple.protocol,
            dscp: self.tuple.tos >> 2,
            ..Facts::default()
        }
    }

    /// Looks at it; of TCP, only what goes up says anything.
    pub(crate) fn look(&self, inspection: &'a mut Inspection, uplink: bool) -> Verdict<'a> {
        let payload = self.payload;
        match self.tcp {
            None => inspection.datagram(Datagram { server_port: self.tuple.destination_port, payload }),
            Some(_) if !uplink => Verdict::More,
            Some((sequence, flags)) => {
                if flags & tcp::flag::SYN != 0 {
                    inspection.begin(sequence.wrapping_add(1));
                }
                inspection.segment(sequence, payload)
            }
        }
    }
}
