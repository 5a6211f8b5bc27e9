//! What others measured on their systems, beside what is measured and modelled of ours.

use serde::Serialize;

/// What of ours is nearest to a published result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Nearest {
    /// What several workers carry beside one, packets coming to their users' workers at once.
    Scaling,
    /// What it gains that a card hashes inside tunnels, beside outer headers.
    Gain,
    /// How long packets are under way, with distribution by software and by the card.
    Latency,
    /// What it gains that no core has to distribute.
    Freed,
    /// Nothing.
    None,
}

/// A published result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// What was compared, by whom.
    pub what: &'static str,
    /// Their figures.
    pub figure: &'static str,
    /// What is nearest to it.
    pub beside: Nearest,
    /// The traffic profile whose packets are as long as theirs, where they say how long those were.
    pub profile: Option<&'static str>,
}

/// Cores that the papers had, of their table over queues and cores: more than one.
pub const PUBLISHED_CORES: [u32; 4] = [4, 5, 6, 7];

/// The papers' own figures, none of them ours.
pub const PUBLISHED: [Published; 6] = [
    Published {
        what: "Chunghwa MEC: queues and cores 1, 1, 4, 5, 6, 7, as printed",
        figure: "1.00, 1.35, 1.60, 1.84, 2.08, 1.93 times",
        beside: Nearest::Scaling,
        profile: None,
    },
    Published {
        what: "Chunghwa MEC: inner hash on over off, 512 B",
        figure: "1.97 times",
        beside: Nearest::Gain,
        profile: Some("cht-512"),
    },
    Published {
        what: "Chunghwa MEC: inner hash on over off, 1,280 B",
        figure: "2.07 times",
        beside: Nearest::Gain,
        profile: Some("cht-1280"),
    },
    Published {
        what: "ZTE UPF: mean one-way latency, distribution by software, then by the card",
        figure: "150 us, then 74 us: 0.49",
        beside: Nearest::Latency,
        profile: None,
    },
    Published {
        what: "ZTE UPF: distribution cores freed for processing",
        figure: "in the figures of its servers",
        beside: Nearest::Freed,
        profile: None,
    },
    Published {
        what: "Connectem EPC: nodes 2, then 4",
        figure: "linear",
        beside: Nearest::None,
        profile: None,
    },
];
