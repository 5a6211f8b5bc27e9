//! What is to be expected of each control plane: who it is, and what packets meet.

use ran::config::FTeidMode;
use ran::smf::Dialect;

/// What becomes of downlink packets before the radio is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    /// Nobody gets them.
    Dropped,
    /// They wait, and the control plane hears of them.
    Kept,
    /// The next gateway is known already.
    Sent,
}

/// A control plane.
#[derive(Debug)]
pub(crate) struct Persona {
    pub(crate) dialect: Dialect,
    pub(crate) f_teid: FTeidMode,
    /// The QoS flow of its default rules, of 5G.
    pub(crate) qfi: Option<u8>,
    /// Uplink packets go to another gateway.
    pub(crate) is_between: bool,
    pub(crate) early: Early,
    /// It asks for End Markers.
    pub(crate) ends_paths: bool,
    /// Which ways it measures: up, down.
    pub(crate) measures: (bool, bool),
    /// Rows of the matrix with nothing in them: it has no such procedure.
    pub(crate) lacks: &'static [&'static str],
}

const OPEN5GS: Persona = Persona {
    dialect: Dialect::Open5gs,
    f_teid: FTeidMode::Choose,
    qfi: Some(9),
    is_between: false,
    early: Early::Kept,
    ends_paths: true,
    measures: (false, true),
    lacks: &[],
};

const FORWARDING: &str = "indirect forwarding";
const FLOW: &str = "dedicated flow";
const QUERY: &str = "usage query";
const GRANT: &str = "usage grant";
const RESTORATION: &str = "restoration";

pub(crate) const PERSONAS: [Persona; 7] = [
    Persona {
        dialect: Dialect::Plain,
        early: Early::Dropped,
        measures: (true, true),
        lacks: &[FORWARDING, GRANT, RESTORATION],
        ..OPEN5GS
    },
    OPEN5GS,
    Persona {
        dialect: Dialect::Open5gsSgwC,
        qfi: None,
        is_between: true,
        measures: (false, false),
        // Advertisements are the PGW's.
        lacks: &["router solicitation", QUERY, GRANT, RESTORATION],
        ..OPEN5GS
    },
    // Packets are forwarded from radio to radio by the SGW.
    Persona { dialect: Dialect::Open5gsPgwC, qfi: None, early: Early::Sent, lacks: &[FORWARDING], ..OPEN5GS },
    Persona {
        dialect: Dialect::Free5gc,
        f_teid: FTeidMode::Explicit(matrix::N3_ADDRESS),
        early: Early::Dropped,
        measures: (true, true),
        lacks: &[FORWARDING],
        ..OPEN5GS
    },
    // It has no URRs.
    Persona {
        dialect: Dialect::Omec,
        measures: (false, false),
        lacks: &[FORWARDING, QUERY, GRANT, RESTORATION],
        ..OPEN5GS
    },
    Persona {
        dialect: Dialect::Oai,
        early: Early::Dropped,
        ends_paths: false,
        measures: (true, true),
        lacks: &[FLOW, FORWARDING, GRANT, RESTORATION],
        ..OPEN5GS
    },
];
