//! Results others published, per core where they say so. REFERENCE: the papers' own figures, none of them ours.

/// How a figure was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Packets came over network cards.
    Nic,
    /// Of documentation that does not say all conditions.
    Documentation,
}

/// One published result.
pub(super) struct Published {
    pub(super) system: &'static str,
    pub(super) mpps_per_core: f64,
    pub(super) hardware: &'static str,
    pub(super) packets: &'static str,
    pub(super) differs: &'static str,
    pub(super) kind: Kind,
}

/// Forwarding without services.
pub(super) const FORWARDING: &[Published] = &[
    Published {
        system: "ZTE UPF, forwarding only",
        mpps_per_core: 1.275,
        hardware: "2x Xeon 6230N, 24 worker cores (48 threads), 2.8 GHz",
        packets: "IMIX, mean 690 B",
        differs: "100G network cards; 83 % busy; two threads a core; 173 Gb/s in all",
        kind: Kind::Nic,
    },
    Published {
        system: "ZTE UPF, forwarding only",
        mpps_per_core: 1.06,
        hardware: "2x Xeon 8280, 42 worker cores",
        packets: "IMIX, mean 690 B",
        differs: "100G network cards; 53 % busy; 252 Gb/s in all",
        kind: Kind::Nic,
    },
    Published {
        system: "Connectem EPC",
        mpps_per_core: 1.4,
        hardware: "Xeon E5-2697 v2, per logical core",
        packets: "345 B down, 172 B up",
        differs: "network cards; signalling of a million subscribers at the same time",
        kind: Kind::Nic,
    },
    Published {
        system: "Ella Core (open)",
        mpps_per_core: 2.50,
        hardware: "not said",
        packets: "uplink",
        differs: "one flow; zero loss",
        kind: Kind::Documentation,
    },
    Published {
        system: "eUPF (open)",
        mpps_per_core: 1.0,
        hardware: "not said",
        packets: "not said",
        differs: "zero loss",
        kind: Kind::Documentation,
    },
    Published {
        system: "VPP, plain IPv4 (open)",
        mpps_per_core: 18.3,
        hardware: "136 cycles a packet",
        packets: "64 B",
        differs: "routes only: no session, no tunnel, no rule; the best any software path does",
        kind: Kind::Documentation,
    },
];

/// One way, in microseconds.
pub(super) const LATENCY: &[(&str, &str)] = &[
    ("ZTE UPF, packets distributed by software", "150 us, mean, over network cards"),
    ("ZTE UPF, packets distributed by the card (DDP)", "74 us, mean, over network cards"),
    ("Samsung UPF", "69 us, over network cards"),
];

impl Kind {
    /// In a table.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nic => "network card",
            Self::Documentation => "documentation",
        }
    }
}
