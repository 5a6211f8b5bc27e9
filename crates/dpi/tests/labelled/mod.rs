//! The traffic crate's catalogue as rules, and its frames as the packets in them.

use anchorline_dpi::extract::{Datagram, Inspection, Verdict};
use anchorline_dpi::matching::{Conditions, Facts, PortRange, Rule};
use packet::{FiveTuple, ethernet, gtpu, ipv4, protocol, tcp, udp};
use std::net::IpAddr;
use traffic::catalogue::{self, Application, Match};

/// The rules of the `zte` profile: id and rating group are the application's number.
pub(crate) fn rules() -> Vec<Rule> {
    catalogue::applications().map(rule).collect()
}

fn rule(application: Application) -> Rule {
    let host = |text: String| vec![text.parse().unwrap()];
    let (precedence, when) = match application.told_by {
        Match::Url { host: name, prefix } => {
            let paths = vec![format!("{prefix}*").parse().unwrap()];
            (100, Conditions { hosts: host(name), paths, ..Conditions::default() })
        }
        Match::Host(name) => (200, Conditions { hosts: host(name), ..Conditions::default() }),
        Match::Domain(name) => (300, Conditions { hosts: host(format!(".{name}")), ..Conditions::default() }),
        Match::Port { network, protocol, port } => {
            let ports = vec![PortRange { first: port, last: port }];
            let networks = vec![network.into()];
            (400, Conditions { networks, ports, protocol: Some(protocol), ..Conditions::default() })
        }
        Match::Network(network) => {
            (500, Conditions { networks: vec![network.into()], ..Conditions::default() })
        }
    };
    let id = application.id;
    Rule { id, precedence, rating_group: id, service: None, when }
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
