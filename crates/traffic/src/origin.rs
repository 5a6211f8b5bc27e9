//! What every flow is, as a function of the seed and its number alone: nothing needs to be remembered to tell the
//! truth about a flow that is long over.

use crate::catalogue;
use crate::frame::Users;
use crate::payload::tls::Client;
use crate::profile::{Profile, Service, Transport};
use crate::random::{Choice, mixed, popular, threshold};
use crate::segment::TCP;
use packet::ipv4;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr};

/// What a flow is about, for those who must find out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Label {
    /// The service of the profile, or "dns".
    pub service: &'static str,
    /// What carries it.
    pub transport: Transport,
    /// The application of [`crate::catalogue`]; of a lookup, the one whose host is looked up.
    pub application: u32,
    /// The host that the first packets name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The path asked for, in the clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A flow's addresses. Both directions have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Tuple {
    /// The user's address.
    pub user: IpAddr,
    /// The user's port.
    pub user_port: u16,
    /// The server's address.
    pub server: IpAddr,
    /// The server's port.
    pub server_port: u16,
    /// IP protocol number.
    pub protocol: u8,
}

/// How far one direction of a flow got.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Packets sent.
    pub(crate) packets: u32,
    /// The next sequence number, where there are such.
    pub(crate) sequence: u32,
}

/// One flow as it stands. Never across two cache lines: tables are larger than caches.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Flow {
    /// Numbers of flows begin anew after four billion.
    pub(crate) serial: u32,
    /// The user's number.
    pub(crate) user: u32,
    application: u16,
    /// The user's port.
    pub(crate) port: u16,
    /// Of all that differs between flows of one application.
    pub(crate) variant: u16,
    pub(crate) up: Progress,
    pub(crate) down: Progress,
}

// A table of a million flows is 32 MB.
const _: () = assert!(size_of::<Flow>() == 32 && catalogue::APPLICATIONS <= 1 << 16);

/// Ports of users: the dynamic ones (RFC 6335 6).
const FIRST_PORT: u16 = 49_152;
const PORTS: u64 = 1 << 14;
/// A prime above any number of users, so that multiples of it visit each pair of user and port before any again.
const STRIDE: u128 = 4_294_967_291;

/// Where flows come from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    base: u64,
    active: u64,
    lookups: u32,
    services: &'static [Service],
    arrivals: Choice,
}

impl Origin {
    pub(crate) fn new(profile: &Profile, seed: u64) -> Self {
        Self {
            base: mixed(seed),
            active: u64::from(profile.active.max(1)),
            lookups: threshold(profile.lookups),
            services: profile.services,
            arrivals: Choice::new(profile.services.iter().map(|service| profile.share(service))),
        }
    }

    /// Three numbers of each flow that have nothing to do with each other.
    fn number(&self, serial: u32, which: u64) -> u64 {
        mixed(self.base.wrapping_add(u64::from(serial) * 4).wrapping_add(which))
    }

    /// The place in the profile of a flow's service.
    pub(crate) fn service(&self, serial: u32) -> usize {
        self.arrivals.pick(self.number(serial, 0) as u32)
    }

    /// What carries a flow.
    pub(crate) fn transport(&self, serial: u32) -> Transport {
        self.services.get(self.service(serial)).map_or(Transport::Udp, |service| service.transport)
    }

    /// Whether a lookup comes before a flow.
    pub(crate) fn looks_up(&self, serial: u32) -> bool {
        let named = self.transport(serial) != Transport::Udp;
        named && ((self.number(serial, 0) >> 32) as u32) < self.lookups
    }

    /// What of a flow looks random to others.
    pub(crate) fn secret(&self, serial: u32) -> u64 {
        self.number(serial, 2)
    }

    /// A flow before its first packet.
    pub(crate) fn flow(&self, serial: u32) -> Flow {
        let place = u128::from(self.base >> 32) + u128::from(serial);
        let place = (place * STRIDE % u128::from(self.active * PORTS)) as u64;
        let random = self.number(serial, 1);
        let secret = self.secret(serial);
        let start = |sequence: u64| Progress { packets: 0, sequence: sequence as u32 };
        Flow {
            serial,
            user: (place % self.active) as u32,
            application: application(self.transport(serial), (random >> 32) as u32) as u16,
            port: FIRST_PORT + (place / self.active) as u16,
            variant: random as u16,
            up: start(secret),
            down: start(secret >> 32),
        }
    }

    /// What the flow with this identity is about. Odd identities are those of lookups before the flow.
    pub(crate) fn label(&self, identity: u64) -> Label {
        let serial = serial(identity);
        let flow = self.flow(serial);
        let service = self.services.get(self.service(serial)).map_or("", |service| service.name);
        let (service, transport) = match identity % 2 {
            0 => (service, self.transport(serial)),
            _ => ("dns", Transport::Dns),
        };
        Label {
            service,
            transport,
            application: flow.application(),
            host: flow.host(),
            path: (transport == Transport::Http).then(|| flow.path()),
        }
    }

    /// Its addresses.
    pub(crate) fn tuple(&self, identity: u64, users: Users) -> Tuple {
        let serial = serial(identity);
        let transport = if identity.is_multiple_of(2) { self.transport(serial) } else { Transport::Dns };
        let flow = self.flow(serial);
        let (server, server_port) = flow.server(transport);
        Tuple {
            user: users.user(flow.user).address.into(),
            user_port: flow.port,
            server: server.into(),
            server_port,
            protocol: if transport.is_tcp() { TCP } else { ipv4::UDP },
        }
    }
}

/// Popular ones are spread over all numbers: 7,919 is a prime and divides neither number of applications.
fn application(transport: Transport, random: u32) -> u32 {
    const SPREAD: u32 = 7_919;
    if transport == Transport::Udp {
        let rank = popular(catalogue::ADDRESSED, random);
        return catalogue::NAMED + rank * SPREAD % catalogue::ADDRESSED;
    }
    let rank = popular(catalogue::NAMED, random);
    catalogue::visible(rank * SPREAD % catalogue::NAMED, transport)
}

/// Of a flow and of the lookup before it.
fn serial(identity: u64) -> u32 {
    (identity / 2) as u32
}

impl Flow {
    fn application(&self) -> u32 {
        self.application.into()
    }

    /// How others know it.
    #[inline]
    pub(crate) fn identity(&self, transport: Transport) -> u64 {
        u64::from(self.serial) * 2 + u64::from(transport == Transport::Dns)
    }

    /// The host it contacts, if any.
    pub(crate) fn host(&self) -> Option<String> {
        catalogue::contacted(self.application(), self.variant)
    }

    /// The path it asks for.
    pub(crate) fn path(&self) -> String {
        catalogue::path(self.application(), self.variant)
    }

    /// The other end.
    #[inline]
    pub(crate) fn server(&self, transport: Transport) -> (Ipv4Addr, u16) {
        match transport {
            Transport::Dns => (catalogue::resolver(self.user), 53),
            Transport::Udp => self.server_at(catalogue::port(self.application())),
            Transport::Http => self.server_at(80),
            Transport::Tls | Transport::Quic => self.server_at(443),
        }
    }

    fn server_at(&self, port: u16) -> (Ipv4Addr, u16) {
        (catalogue::server(self.application(), self.variant), port)
    }

    /// Both addresses that a lookup of its host finds, and their other forms.
    pub(crate) fn found(&self) -> [IpAddr; 4] {
        let [one, other] = [0, 1].map(|variant| catalogue::server(self.application(), variant));
        let [six, other_six] = [one, other].map(catalogue::server_v6);
        [one.into(), other.into(), six.into(), other_six.into()]
    }

    /// The client: a quarter knows TLS 1.2 alone (QUIC needs 1.3), an eighth has a hello that fills two packets.
    pub(crate) fn client(&self, transport: Transport) -> Client {
        match (self.variant >> 8 & 7, transport) {
            (0 | 1, Transport::Tls) => Client::Tls12,
            (2, _) => Client::Tls13Large,
            _ => Client::Tls13,
        }
    }

    /// Packets so far, both ways.
    #[inline]
    pub(crate) fn position(&self) -> u32 {
        self.up.packets.wrapping_add(self.down.packets)
    }
}

impl Transport {
    pub(crate) fn is_tcp(self) -> bool {
        matches!(self, Self::Http | Self::Tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{PROFILES, profile};
    use std::collections::HashSet;

    #[test]
    fn no_two_flows_have_the_same_addresses() {
        for profile in PROFILES {
            let origin = Origin::new(profile, 3);
            let mut seen = HashSet::new();
            for serial in 0..60_000 {
                let flow = origin.flow(serial);
                assert!(seen.insert((flow.user, flow.port)), "{} {serial}", profile.name);
                assert!(flow.user < profile.active && flow.port >= FIRST_PORT);
            }
        }
    }

    #[test]
    fn one_user_has_all_ports_before_one_again() {
        let alone = Profile { active: 1, ..*profile("zte").unwrap() };
        let origin = Origin::new(&alone, 3);
        let ports: HashSet<u16> = (0..PORTS as u32).map(|serial| origin.flow(serial).port).collect();
        assert_eq!(ports.len() as u64, PORTS);
    }

    #[test]
    fn only_requests_in_the_clear_belong_to_paths() {
        let origin = Origin::new(profile("zte").unwrap(), 1);
        let labels: Vec<Label> = (0..20_000).map(|serial| origin.label(serial * 2)).collect();
        let of_paths = |label: &&Label| {
            let told_by = catalogue::application(label.application).unwrap().told_by;
            matches!(told_by, catalogue::Match::Url { .. })
        };
        assert!(labels.iter().filter(of_paths).count() > 500);
        assert!(labels.iter().filter(of_paths).all(|label| label.transport == Transport::Http));
    }

    #[test]
    fn lookups_are_of_the_same_user_and_host_and_as_many_as_the_profile_says() {
        let profile = profile("zte").unwrap();
        let origin = Origin::new(profile, 1);
        let looked = (0..40_000).filter(|serial| origin.looks_up(*serial)).count() as f64 / 40_000.0;
        let expected = 0.93 * profile.lookups;
        assert!((looked - expected).abs() < 0.01, "{looked}");
        let serial = (0..).find(|serial| origin.looks_up(*serial)).unwrap();
        let [main, lookup] = [u64::from(serial) * 2, u64::from(serial) * 2 + 1];
        assert_eq!(origin.label(main).host, origin.label(lookup).host);
        let [main, lookup] = [main, lookup].map(|identity| origin.tuple(identity, Users::default()));
        assert_eq!((main.user, lookup.server_port, lookup.protocol), (lookup.user, 53, 17));
    }
}
