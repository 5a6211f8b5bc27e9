//! Rules into the immutable program one worker runs: sorted, resolved, nothing left to look up.

use crate::classifier::{Classifier, Matcher};
use crate::error::RuleError;
use crate::ids::{FarId, PdrId, QerId, Qfi, Teid, UrrId};
use crate::intent::{
    ApplyAction, BitRates, FTeid, Far, ForwardingParameters, Gate, Interface, Pdi, Pdr, Qer, Rules,
};
use crate::urr::{Urr, Volume};
use ipnet::Ipv6Net;
use std::net::{IpAddr, Ipv4Addr};

/// From or to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the user.
    Uplink,
    /// To the user.
    Downlink,
}

impl Interface {
    /// The direction of packets that arrive here.
    pub const fn direction(self) -> Direction {
        match self {
            Self::Access => Direction::Uplink,
            Self::Core | Self::SgiLan => Direction::Downlink,
        }
    }
}

/// The tunnel header a packet gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulation {
    /// The peer's tunnel.
    pub teid: Teid,
    /// The peer's address.
    pub peer: IpAddr,
    /// Carried in a PDU session container; `None` sends none (4G).
    pub qfi: Option<Qfi>,
    /// The container's RQI, in packets to the user.
    pub reflective: bool,
}

/// Where a packet goes, and in what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The side it leaves on.
    pub to: Interface,
    /// The tunnel, if any.
    pub encapsulation: Option<Encapsulation>,
    /// DSCP of the outermost header.
    pub dscp: Option<u8>,
}

/// What becomes of a packet a step matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The FAR says DROP.
    Drop,
    /// A QER's gate is closed.
    GateClosed,
    /// Keep it.
    Buffer {
        /// Tell the control plane of the first.
        notify: bool,
    },
    /// Send it out, in a tunnel or plain.
    Forward(Forward),
}

/// One PDR with everything it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// For counters, traces and reports.
    pub pdr: PdrId,
    /// For reports.
    pub far: FarId,
    /// The way its packets go.
    pub direction: Direction,
    /// What to do.
    pub action: Action,
    /// Copies to send besides.
    pub duplicates: Box<[Forward]>,
    /// Places in [`Program::meters`]: those of its QERs that limit a rate.
    pub meters: Box<[u16]>,
    /// Places in [`Program::usages`]: its URRs.
    pub usages: Box<[u16]>,
}

/// What PDRs look at in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where it came from.
    pub source: Interface,
    /// The tunnel it came in.
    pub teid: Option<Teid>,
    /// The QoS flow its tunnel header names.
    pub qfi: Option<Qfi>,
    /// The user's address: its source on the uplink, its destination on the downlink.
    pub ue: IpAddr,
    /// The other address.
    pub remote: IpAddr,
    /// The upper layer's protocol number.
    pub protocol: u8,
    /// The port at the user's end, where there is one: not in later fragments.
    pub ue_port: Option<u16>,
    /// The port at the far end.
    pub remote_port: Option<u16>,
    /// Type of service, or traffic class.
    pub traffic_class: u8,
    /// Of an IPsec packet.
    pub spi: Option<u32>,
    /// Of an IPv6 packet.
    pub flow_label: Option<u32>,
}

/// A QER that limits a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meter {
    /// Finds the meter's state again after a modification.
    pub qer: QerId,
    /// The limit.
    pub mbr: BitRates,
}

/// A URR, as far as the data plane obeys it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Finds the counts again after a modification.
    pub urr: UrrId,
    /// Tell the control engine after so much, again and again.
    pub threshold: Volume,
    /// Packets beyond are dropped or go by `quota_far`.
    pub quota: Volume,
    /// A quota of another grant counts from now.
    pub quota_grant: u32,
    /// Tell of the first packet.
    pub start_of_traffic: bool,
    /// Count packets that QoS enforcement drops, too.
    pub before_qos: bool,
    /// Count nothing.
    pub inactive: bool,
}

/// A session's rules, ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Finds a packet's step.
    pub classifier: Classifier,
    /// By precedence, then PDR ID.
    pub steps: Box<[Step]>,
    /// In the order of their QERs.
    pub meters: Box<[Meter]>,
    /// In the order of their URRs.
    pub usages: Box<[Usage]>,
    /// The tunnels that lead to this session, each once.
    pub f_teids: Box<[FTeid]>,
    /// The user addresses that lead to this session on the downlink, each once.
    pub ue_ipv4s: Box<[Ipv4Addr]>,
    /// The user prefixes that lead to this session on the downlink, each once.
    pub ue_ipv6s: Box<[Ipv6Net]>,
    /// Packets it may keep at most; `None` leaves it to the data plane.
    pub buffer_packets: Option<u16>,
}

/// Compiles rules that pass [`Rules::check`].
///
/// # Errors
/// Whatever [`Rules::check`] finds.
pub fn compile(rules: &Rules) -> Result<Program, RuleError> {
    rules.check()?;
    let mut pdrs: Vec<&Pdr> = rules.pdrs.iter().collect();
    pdrs.sort_by_key(|pdr| (pdr.precedence, pdr.id));
    let index = Index::new(rules);
    Ok(Program {
        classifier: Classifier::new(pdrs.iter().map(|pdr| Matcher::new(&pdr.pdi, rules)).collect()),
        steps: pdrs.iter().map(|pdr| index.step(pdr)).collect(),
        meters: index.meters.clone().into(),
        usages: rules.urrs.iter().map(usage).collect(),
        f_teids: unique(pdrs.iter().filter_map(|pdr| pdr.pdi.f_teid)),
        ue_ipv4s: unique(plain(&pdrs).filter_map(|pdi| pdi.ue_ipv4)),
        ue_ipv6s: unique(plain(&pdrs).filter_map(|pdi| pdi.ue_ipv6)),
        buffer_packets: rules.bars.iter().filter_map(|bar| bar.suggested_packets).max(),
    })
}

/// PDIs of packets outside any tunnel: their addresses lead to the session.
fn plain<'a>(pdrs: &'a [&Pdr]) -> impl Iterator<Item = &'a Pdi> {
    pdrs.iter().map(|pdr| &pdr.pdi).filter(|pdi| pdi.f_teid.is_none())
}

/// Rules by identifier.
struct Index<'a> {
    fars: std::collections::HashMap<FarId, &'a Far>,
    qers: std::collections::HashMap<QerId, &'a Qer>,
    meters: Vec<Meter>,
    meter_places: std::collections::HashMap<QerId, u16>,
    usage_places: std::collections::HashMap<UrrId, u16>,
}

impl<'a> Index<'a> {
    fn new(rules: &'a Rules) -> Self {
        let limited = rules.qers.iter().filter_map(|qer| Some(Meter { qer: qer.id, mbr: qer.mbr? }));
        let meters: Vec<Meter> = limited.collect();
        Self {
            fars: rules.fars.iter().map(|far| (far.id, far)).collect(),
            qers: rules.qers.iter().map(|qer| (qer.id, qer)).collect(),
            meter_places: meters.iter().map(|meter| meter.qer).zip(0..).collect(),
            usage_places: rules.urrs.iter().map(|urr| urr.id).zip(0..).collect(),
            meters,
        }
    }

    fn step(&self, pdr: &Pdr) -> Step {
        let qers: Vec<&Qer> = pdr.qers.iter().filter_map(|id| self.qers.get(id).copied()).collect();
        let far = self.fars.get(&pdr.far);
        let direction = pdr.pdi.source_interface.direction();
        let copies = far.map_or(&[][..], |far| &far.duplicates);
        Step {
            pdr: pdr.id,
            far: pdr.far,
            direction,
            action: far.map_or(Action::Drop, |far| action(far, &qers, direction)),
            duplicates: copies.iter().map(|to| forward(to, &qers)).collect(),
            meters: pdr.qers.iter().filter_map(|id| self.meter_places.get(id).copied()).collect(),
            usages: pdr.urrs.iter().filter_map(|id| self.usage_places.get(id).copied()).collect(),
        }
    }
}

fn action(far: &Far, qers: &[&Qer], direction: Direction) -> Action {
    let gate = |qer: &&Qer| match direction {
        Direction::Uplink => qer.uplink_gate,
        Direction::Downlink => qer.downlink_gate,
    };
    // All gates of a PDR's QERs apply, not just the first (TS 29.244 5.4.3).
    if qers.iter().any(|qer| gate(qer) == Gate::Closed) {
        return Action::GateClosed;
    }
    match (far.apply_action, &far.forwarding) {
        (ApplyAction::Forward, Some(to)) => Action::Forward(forward(to, qers)),
        (ApplyAction::Buffer, _) => Action::Buffer { notify: far.notify },
        _ => Action::Drop,
    }
}

fn forward(to: &ForwardingParameters, qers: &[&Qer]) -> Forward {
    Forward {
        to: to.destination_interface,
        encapsulation: to.outer_header_creation.map(|tunnel| Encapsulation {
            teid: tunnel.teid,
            peer: tunnel.address,
            qfi: qers.iter().find_map(|qer| qer.qfi),
            reflective: qers.iter().any(|qer| qer.reflective),
        }),
        dscp: to.dscp,
    }
}

fn usage(urr: &Urr) -> Usage {
    Usage {
        urr: urr.id,
        threshold: urr.volume_threshold.unwrap_or_default(),
        quota: urr.volume_quota.unwrap_or_default(),
        quota_grant: urr.quota_grant,
        start_of_traffic: urr.triggers.contains(crate::urr::Triggers::START_OF_TRAFFIC),
        before_qos: urr.before_qos,
        inactive: urr.inactive,
    }
}

fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Box<[T]> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen.into()
}
