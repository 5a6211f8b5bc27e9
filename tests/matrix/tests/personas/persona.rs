//! What is to be expected of each control plane: who it is, and what packets meet.

use ran::config::FTeidMode;
use ran::smf::Dialect;

/// What becomes of packets before the radio is known.
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
    /// As the table has it.
    pub(crate) name: &'static str,
    pub(crate) dialect: Dialect,
    pub(crate) f_teid: FTeidMode,
    /// The QoS flow of its default rules, of 5G.
    pub(crate) qfi: Option<u8>,
    /// Uplink packets go to another gateway.
    pub(crate) is_between: bool,
    /// The TEID at which packets from the next gateway come in, where it is given.
    pub(crate) core_teid: Option<u32>,
    /// It says which interface a tunnel is of, or gives its address.
    pub(crate) names_interfaces: bool,
    /// The user plane has a pool of addresses, and is asked for one.
    pub(crate) has_pool: bool,
    /// What becomes of uplink packets before the radio is known.
    pub(crate) early_uplink: Early,
    pub(crate) early: Early,
    /// A session that was lost has the endpoint it had, once it is made again.
    pub(crate) keeps_endpoint: bool,
    /// It asks for End Markers.
    pub(crate) ends_paths: bool,
    /// Which ways it measures: up, down.
    pub(crate) measures: (bool, bool),
    /// Rows of the matrix with nothing in them: it has no such procedure.
    pub(crate) lacks: &'static [&'static str],
}

const OPEN5GS: Persona = Persona {
    name: "open5gs",
    dialect: Dialect::Open5gs,
    f_teid: FTeidMode::Choose,
    qfi: Some(9),
    is_between: false,
    core_teid: None,
    names_interfaces: true,
    has_pool: false,
    early_uplink: Early::Sent,
    early: Early::Kept,
    keeps_endpoint: true,
    ends_paths: true,
    measures: (false, true),
    lacks: &[RESTART],
};

const FORWARDING: &str = "indirect forwarding";
const FLOW: &str = "dedicated flow";
const QUERY: &str = "usage query";
const GRANT: &str = "usage grant";
const IPV6: &str = "IPv6 packets";
const RATES: &str = "rates";
const GATES: &str = "gates";
const SOLICITATION: &str = "router solicitation";
const BY_US: &str = "association by us";
const RESTART: &str = "radio anew";

const FREE5GC: Persona = Persona {
    name: "free5gc",
    dialect: Dialect::Free5gc,
    f_teid: FTeidMode::Explicit(matrix::N3_ADDRESS),
    early: Early::Dropped,
    measures: (true, true),
    lacks: &[RESTART, BY_US, FORWARDING],
    ..OPEN5GS
};

/// It charges by quotas.
pub(crate) const FREE5GC_QUOTA: Persona =
    Persona { name: "free5gc-quota", dialect: Dialect::Free5gcQuota, ..FREE5GC };

/// It has no URRs.
const OMEC: Persona = Persona {
    name: "omec",
    dialect: Dialect::Omec,
    names_interfaces: false,
    keeps_endpoint: false,
    measures: (false, false),
    lacks: &[RESTART, BY_US, FORWARDING, QUERY, GRANT],
    ..OPEN5GS
};

pub(crate) const UPLINK_CLASSIFIER: Persona = Persona {
    name: "free5gc-i-upf",
    dialect: Dialect::Free5gcIUpf,
    is_between: true,
    core_teid: Some(0x0010_0001),
    measures: (false, false),
    // Advertisements are the anchor's, and so are flows and charging.
    lacks: &[RESTART, BY_US, SOLICITATION, FLOW, FORWARDING, QUERY, GRANT],
    ..FREE5GC
};

pub(crate) const OAI: Persona = Persona {
    name: "oai",
    dialect: Dialect::Oai,
    early_uplink: Early::Dropped,
    early: Early::Dropped,
    keeps_endpoint: false,
    ends_paths: false,
    measures: (true, true),
    lacks: &[RESTART, FLOW, FORWARDING, GRANT],
    ..OPEN5GS
};

/// As it is if nobody configures it otherwise.
pub(crate) const OAI_LATER: Persona = Persona { name: "oai-later", dialect: Dialect::OaiLater, ..OAI };

pub(crate) const PERSONAS: [Persona; 12] = [
    Persona {
        name: "plain",
        dialect: Dialect::Plain,
        names_interfaces: false,
        early: Early::Dropped,
        keeps_endpoint: false,
        measures: (true, true),
        lacks: &[FORWARDING, GRANT],
        ..OPEN5GS
    },
    OPEN5GS,
    Persona {
        name: "open5gs-sgw-c",
        dialect: Dialect::Open5gsSgwC,
        qfi: None,
        is_between: true,
        early_uplink: Early::Kept,
        keeps_endpoint: false,
        measures: (false, false),
        // Advertisements are the PGW's, and so are rates.
        lacks: &[RESTART, SOLICITATION, QUERY, GRANT, RATES, GATES],
        ..OPEN5GS
    },
    // Packets are forwarded from radio to radio by the SGW.
    Persona {
        name: "open5gs-pgw-c",
        dialect: Dialect::Open5gsPgwC,
        qfi: None,
        early: Early::Sent,
        lacks: &[RESTART, FORWARDING],
        ..OPEN5GS
    },
    FREE5GC,
    FREE5GC_QUOTA,
    UPLINK_CLASSIFIER,
    // What is the radio to it is the intermediate UPF.
    Persona {
        name: "free5gc-psa",
        dialect: Dialect::Free5gcPsa,
        early: Early::Sent,
        measures: (false, false),
        lacks: &[RESTART, BY_US, FLOW, FORWARDING, QUERY, GRANT],
        ..FREE5GC
    },
    OMEC,
    Persona {
        name: "omec-pool",
        has_pool: true,
        // Its users have IPv4 alone.
        lacks: &[RESTART, BY_US, SOLICITATION, IPV6, FORWARDING, QUERY, GRANT],
        ..OMEC
    },
    OAI,
    OAI_LATER,
];
