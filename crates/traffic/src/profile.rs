//! The named models. Figures are those of the tests they come from; where a test does not say, the field says so.

/// Packets of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    /// Bytes of the user's IP packet.
    pub bytes: u16,
    /// Its share of all packets of its direction; the shares of a mix add up to 1.
    pub share: f64,
}

/// One traffic model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// What `--profile` calls it.
    pub name: &'static str,
    /// Sessions that exist.
    pub subscribers: u32,
    /// Sessions that send and receive.
    pub active: u32,
    /// Flows of all active sessions together. Not given by any of the tests; ours.
    pub flows: u32,
    /// Share of packets that go up.
    pub uplink: f64,
    /// Lengths up.
    pub uplink_lengths: &'static [Length],
    /// Lengths down.
    pub downlink_lengths: &'static [Length],
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

/// All of them.
pub const PROFILES: &[Profile] = &[
    // Up and down alike: the test does not say.
    Profile {
        name: "zte",
        subscribers: 600_000,
        active: 6_000,
        flows: 1_000_000,
        uplink: 0.5,
        uplink_lengths: MIX_690,
        downlink_lengths: MIX_690,
    },
    Profile {
        name: "samsung",
        subscribers: 600_000,
        active: 70_400,
        flows: 1_000_000,
        uplink: 0.5,
        uplink_lengths: MIX_690,
        downlink_lengths: MIX_690,
    },
    // "Downlink heavy"; an edge site of 1,000 users is ours.
    Profile {
        name: "cht-512",
        subscribers: 1_000,
        active: 1_000,
        flows: 10_000,
        uplink: 0.2,
        uplink_lengths: CHT_512,
        downlink_lengths: CHT_512,
    },
    Profile {
        name: "cht-1280",
        subscribers: 1_000,
        active: 1_000,
        flows: 10_000,
        uplink: 0.2,
        uplink_lengths: CHT_1280,
        downlink_lengths: CHT_1280,
    },
    // 1.07 Mpps down, 0.32 Mpps up.
    Profile {
        name: "epc-us",
        subscribers: 1_000_000,
        active: 1_000_000,
        flows: 4_000_000,
        uplink: 0.32 / (0.32 + 1.07),
        uplink_lengths: &only(172),
        downlink_lengths: &only(673),
    },
    // 11.5 Mpps down, 3.6 Mpps up.
    Profile {
        name: "epc-us-stress",
        subscribers: 1_000_000,
        active: 1_000_000,
        flows: 4_000_000,
        uplink: 3.6 / (3.6 + 11.5),
        uplink_lengths: &only(172),
        downlink_lengths: &only(345),
    },
];

/// The profile of this name.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

impl Profile {
    /// Mean bytes of a user's packet, both directions together.
    pub fn mean_bytes(&self) -> f64 {
        let mean = |lengths: &[Length]| -> f64 {
            lengths.iter().map(|length| f64::from(length.bytes) * length.share).sum()
        };
        self.uplink * mean(self.uplink_lengths) + (1.0 - self.uplink) * mean(self.downlink_lengths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_actives_exist() {
        for profile in PROFILES {
            for mix in [profile.uplink_lengths, profile.downlink_lengths] {
                let sum: f64 = mix.iter().map(|length| length.share).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{}", profile.name);
            }
            assert!(profile.active <= profile.subscribers && profile.active <= profile.flows);
        }
    }

    #[test]
    fn means_are_those_of_the_tests() {
        for name in ["zte", "samsung"] {
            assert!((profile(name).unwrap().mean_bytes() - 690.0).abs() < 0.5);
        }
    }
}
