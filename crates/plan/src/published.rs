//! What others measured on their systems, beside what is modelled of ours.

use serde::Serialize;

/// A published result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// What was compared, by whom.
    pub what: &'static str,
    /// Their figures.
    pub figure: &'static str,
    /// What of the model is nearest to it: cores, and which of its columns.
    pub beside: &'static str,
}

/// The papers' own figures, none of them ours.
pub const PUBLISHED: [Published; 4] = [
    Published {
        what: "Chunghwa MEC: queues and cores 1, 1, 4, 5, 6, 7, as printed",
        figure: "1.00, 1.35, 1.60, 1.84, 2.08, 1.93 times",
        beside: "scaling",
    },
    Published {
        what: "Chunghwa MEC: inner hash on over off, 512 B and 1,280 B",
        figure: "1.97 and 2.07 times",
        beside: "gain",
    },
    Published {
        what: "ZTE UPF: mean one-way latency, distribution by software, then by the card",
        figure: "150 us, then 74 us: 0.49",
        beside: "latency",
    },
    Published { what: "Connectem EPC: nodes 2, then 4", figure: "linear", beside: "none" },
];
