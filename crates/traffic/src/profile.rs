//! The named models. What the tests they come from say is theirs; what they leave open is ours, and marked so:
//!
//! | profile | theirs | ours |
//! |---|---|---|
//! | `zte` | subscribers, active users, mean of 690 B, HTTP 85 % and UDP 15 % of the volume | flows, lengths that give the mean, up as much as down, HTTP in the clear 40 and in TLS 45 %, QUIC 8 and media 7 % |
//! | `samsung` | subscribers, active users, mean of 690 B, UDP alone | flows, lengths, up as much as down, media as the UDP |
//! | `cht-512`, `cht-1280` | payload of 512 or 1,280 B in GTP-U, "downlink heavy" | users, flows, one packet of five goes up, media |
//! | `epc-us`, `epc-us-stress` | subscribers, packet rates and mean lengths each way, shares of the five services each way | flows, one length each way, the transports of web and video |
//!
//! How many packets open flows, and how many flows are preceded by a DNS lookup, no test says: ours everywhere.
//! Shares are of packets of a direction; as all services of a profile have the same lengths, they are shares of the
//! volume too, but for the packets that open flows, which are as long as they are.
//!
//! A profile whose figures change gets a higher version, so that results name what they were measured with.

use serde::Serialize;

/// Packets of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    /// Bytes of the user's IP packet.
    pub bytes: u16,
    /// Its share of all packets of its direction; the shares of a mix add up to 1.
    pub share: f64,
}

/// What carries a service, and what its first packets say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// HTTP/1.1 in the clear over TCP, port 80: a request line and Host.
    Http,
    /// TLS 1.2 or 1.3 over TCP, port 443: a ClientHello with server name and ALPN.
    Tls,
    /// QUIC version 1 over UDP, port 443: an Initial with a ClientHello.
    Quic,
    /// Media shaped like RTP over UDP: nothing but addresses and ports tells the application.
    Udp,
    /// A lookup over UDP, port 53. Not in any profile's mix: lookups precede other flows.
    Dns,
}

/// One service of a profile, over one transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// What the model calls it. Services of one name add up.
    pub name: &'static str,
    /// What carries it.
    pub transport: Transport,
    /// Its share of the packets that go up.
    pub uplink: f64,
    /// Its share of the packets that go down.
    pub downlink: f64,
}

/// One traffic model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// What `--profile` calls it.
    pub name: &'static str,
    /// Raised whenever a figure below changes.
    pub version: u32,
    /// Sessions that exist.
    pub subscribers: u32,
    /// Sessions that send and receive.
    pub active: u32,
    /// Flows of all active sessions together that are open at once. Not given by any of the tests; ours.
    pub flows: u32,
    /// Share of the packets that open flows: handshakes, first payloads, lookups. With about five such packets a
    /// flow, 0.05 means a flow in a hundred packets. Not given by any of the tests; ours.
    pub opening: f64,
    /// Share of the flows to a named host that a DNS lookup of the same user precedes. Ours.
    pub lookups: f64,
    /// Share of packets that go up.
    pub uplink: f64,
    /// Lengths up, of all but the packets that open and close flows.
    pub uplink_lengths: &'static [Length],
    /// Lengths down, of all but the packets that open and close flows.
    pub downlink_lengths: &'static [Length],
    /// The application mix; the shares of a direction add up to 1.
    pub services: &'static [Service],
}

/// Mean 690 bytes. The tests give the mean alone; the three lengths are ours.
const MIX_690: &[Length] = &[
    Length { bytes: 110, share: 0.45 },
    Length { bytes: 576, share: 0.10 },
    Length { bytes: 1295, share: 0.45 },
];

const fn only(bytes: u16) -> [Length; 1] {
    [Length { bytes, share: 1.0 }]
}

/// Payloads of 512 and 1,280 bytes in UDP over IPv4.
const CHT_512: &[Length] = &only(512 + 28);
const CHT_1280: &[Length] = &only(1280 + 28);

const fn service(name: &'static str, transport: Transport, uplink: f64, downlink: f64) -> Service {
    Service { name, transport, uplink, downlink }
}

const ZTE: &[Service] = &[
    service("http", Transport::Http, 0.40, 0.40),
    service("http", Transport::Tls, 0.45, 0.45),
    service("udp", Transport::Quic, 0.08, 0.08),
    service("udp", Transport::Udp, 0.07, 0.07),
];

const UDP_ALONE: &[Service] = &[service("udp", Transport::Udp, 1.0, 1.0)];

/// Up: voice 32, web 43, video 12, apps 7, mail and other 6 %; down: 5, 52, 29, 7, 7 %.
const EPC_US: &[Service] = &[
    service("volte", Transport::Udp, 0.32, 0.05),
    service("web", Transport::Http, 0.17, 0.21),
    service("web", Transport::Tls, 0.17, 0.21),
    service("web", Transport::Quic, 0.09, 0.10),
    service("video", Transport::Tls, 0.05, 0.12),
    service("video", Transport::Quic, 0.07, 0.17),
    service("apps", Transport::Tls, 0.07, 0.07),
    service("mail", Transport::Tls, 0.06, 0.07),
];

/// All of them.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "zte",
        version: 2,
        subscribers: 600_000,
        active: 6_000,
        flows: 1_000_000,
        opening: 0.05,
        lookups: 0.25,
        uplink: 0.5,
        uplink_lengths: MIX_690,
        downlink_lengths: MIX_690,
        services: ZTE,
    },
    Profile {
        name: "samsung",
        version: 1,
        subscribers: 600_000,
        active: 70_400,
        flows: 1_000_000,
        opening: 0.02,
        lookups: 0.0,
        uplink: 0.5,
        uplink_lengths: MIX_690,
        downlink_lengths: MIX_690,
        services: UDP_ALONE,
    },
    Profile {
        name: "cht-512",
        version: 1,
        subscribers: 1_000,
        active: 1_000,
        flows: 10_000,
        opening: 0.02,
        lookups: 0.0,
        uplink: 0.2,
        uplink_lengths: CHT_512,
        downlink_lengths: CHT_512,
        services: UDP_ALONE,
    },
    Profile {
        name: "cht-1280",
        version: 1,
        subscribers: 1_000,
        active: 1_000,
        flows: 10_000,
        opening: 0.02,
        lookups: 0.0,
        uplink: 0.2,
        uplink_lengths: CHT_1280,
        downlink_lengths: CHT_1280,
        services: UDP_ALONE,
    },
    // 1.07 Mpps down, 0.32 Mpps up.
    Profile {
        name: "epc-us",
        version: 2,
        subscribers: 1_000_000,
        active: 1_000_000,
        flows: 4_000_000,
        opening: 0.05,
        lookups: 0.25,
        uplink: 0.32 / (0.32 + 1.07),
        uplink_lengths: &only(172),
        downlink_lengths: &only(673),
        services: EPC_US,
    },
    // 11.5 Mpps down, 3.6 Mpps up.
    Profile {
        name: "epc-us-stress",
        version: 2,
        subscribers: 1_000_000,
        active: 1_000_000,
        flows: 4_000_000,
        opening: 0.05,
        lookups: 0.25,
        uplink: 3.6 / (3.6 + 11.5),
        uplink_lengths: &only(172),
        downlink_lengths: &only(345),
        services: EPC_US,
    },
];

/// The profile of this name.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

impl Profile {
    /// Mean bytes of a user's packet, both directions together, of all but the packets that open and close flows.
    pub fn mean_bytes(&self) -> f64 {
        let mean = |lengths: &[Length]| -> f64 {
            lengths.iter().map(|length| f64::from(length.bytes) * length.share).sum()
        };
        self.uplink * mean(self.uplink_lengths) + (1.0 - self.uplink) * mean(self.downlink_lengths)
    }

    /// A service's share of all packets, both directions together.
    pub fn share(&self, service: &Service) -> f64 {
        self.uplink * service.uplink + (1.0 - self.uplink) * service.downlink
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_one(sum: f64) -> bool {
        (sum - 1.0).abs() < 1e-9
    }

    #[test]
    fn shares_add_up_and_actives_exist() {
        for profile in PROFILES {
            for mix in [profile.uplink_lengths, profile.downlink_lengths] {
                assert!(is_one(mix.iter().map(|length| length.share).sum()), "{}", profile.name);
            }
            assert!(is_one(profile.services.iter().map(|service| service.uplink).sum()), "{}", profile.name);
            assert!(
                is_one(profile.services.iter().map(|service| service.downlink).sum()),
                "{}",
                profile.name
            );
            assert!(profile.active <= profile.subscribers && profile.active <= profile.flows);
        }
    }

    #[test]
    fn means_are_those_of_the_tests() {
        for name in ["zte", "samsung"] {
            assert!((profile(name).unwrap().mean_bytes() - 690.0).abs() < 0.5);
        }
    }

    #[test]
    fn mixes_are_those_of_the_tests() {
        let shares = |name: &str, service: &str| {
            let of = |share: fn(&Service) -> f64| -> f64 {
                let services = profile(name).unwrap().services.iter();
                services.filter(|one| one.name == service).map(share).sum()
            };
            [of(|one| one.uplink), of(|one| one.downlink)].map(|share| (share * 100.0).round() as u32)
        };
        assert_eq!(shares("zte", "http"), [85, 85]);
        assert_eq!(shares("zte", "udp"), [15, 15]);
        assert_eq!(shares("samsung", "udp"), [100, 100]);
        for name in ["epc-us", "epc-us-stress"] {
            let mix = ["volte", "web", "video", "apps", "mail"].map(|service| shares(name, service));
            assert_eq!(mix, [[32, 5], [43, 52], [12, 29], [7, 7], [6, 7]]);
        }
    }
}
