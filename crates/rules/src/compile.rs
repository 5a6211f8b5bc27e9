//! Rules into the immutable program one worker runs: sorted, resolved, nothing left to look up.

pub(crate) mod source;
mod steps;
#[cfg(test)]
mod tests;

use crate::check::Checked;
use crate::classifier::{Classifier, EthernetClassifier};
use crate::error::RuleError;
use crate::ids::{ApplicationTag, BarId, FarId, Instance, PdrId, Policy, QerId, Qfi, Teid, UrrId};
use crate::intent::{BitRates, FTeid, Interface, OuterHeader, PacketRates, Pdi, Pdr, Rules};
use crate::list::{Mostly1, Places, Rare};
use crate::treatment::Treatment;
use crate::urr::{DroppedDownlink, Since, Triggers, Urr, Volume};
use ipnet::{IpNet, Ipv6Net};
use std::collections::HashSet;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use steps::Steps;

/// From or to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// From the user.
    Uplink,
    /// To the user.
    Downlink,
}

impl Direction {
    /// The other one.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Uplink => Self::Downlink,
            Self::Downlink => Self::Uplink,
        }
    }
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

/// The outer header a packet gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulation {
    /// Of which kind: the peer's tunnel, or its port.
    pub header: OuterHeader,
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
    /// The network there.
    pub instance: Instance,
    /// The tunnel, if any.
    pub encapsulation: Option<Encapsulation>,
    /// DSCP of the outermost header.
    pub dscp: Option<u8>,
    /// Says the way of what leaves outside of tunnels.
    pub policy: Option<Policy>,
}

/// What becomes of a packet a step matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The FAR says DROP.
    Drop {
        /// Tell the control plane of the first.
        notify: bool,
        /// Of which QoS flow; `None` where no QER names one, or one names 0, which is that of no flow.
        qfi: Option<Qfi>,
    },
    /// A QER's gate is closed.
    GateClosed,
    /// Keep it.
    Buffer {
        /// Tell the control plane of the first.
        notify: bool,
        /// As of what is dropped.
        qfi: Option<Qfi>,
        /// Of the session, at most so many by this; `None` leaves it to the data plane.
        most: Option<u16>,
        /// For longer than others: by which BAR, and how many seconds; `None` is for ever.
        extended: Option<(BarId, Option<u32>)>,
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
    /// The tunnel its packets come in; `None` for plain ones.
    pub teid: Option<Teid>,
    /// The way its packets go.
    pub direction: Direction,
    /// What to do.
    pub action: Action,
    /// Copies to send besides; none unless it is forwarded.
    pub duplicates: Rare<Forward>,
    /// Places in [`Program::meters`]: those of its QERs that limit a rate, each once.
    pub meters: Places,
    /// Places in [`Program::usages`]: its URRs, each once.
    pub usages: Places,
}

/// What becomes of a step's packets once certain quotas are used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beyond {
    /// The place of the step it stands in for.
    pub of: u16,
    /// Places in [`Program::usages`]: those of the step's URRs whose quotas lead here.
    pub usages: Places,
    /// The same PDR with the FAR of these URRs.
    pub step: Step,
}

/// What PDRs look at in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where it came from; of packets in tunnels, only the direction matters.
    pub source: Interface,
    /// The network there; of packets in tunnels, nobody asks.
    pub instance: Instance,
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
    /// What is known of its flow.
    pub application: Application,
}

/// What is known of the application a flow is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// It is of none, or not known to be of any: PDRs of applications do not match.
    None,
    /// PDRs of this one match, too.
    Of(ApplicationTag),
    /// As [`Application::Of`], where it is of one; and PDRs of what its content rule charges it under match
    /// ([`ApplicationId::of_charging`](crate::ApplicationId::of_charging)).
    Charged(Option<ApplicationTag>, ApplicationTag),
    /// It may be of any: all of them match.
    Any,
}

/// A QER that limits a rate, or several of one correlation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meter {
    /// The first of them. Finds the meter's state again after a modification.
    pub qer: QerId,
    /// The limit, if bits are limited.
    pub mbr: Option<BitRates>,
    /// The limits, if packets are limited.
    pub packet_rates: PacketRates,
    /// Meters of one number are one, in whichever sessions.
    pub correlation: Option<u64>,
}

/// A URR, as far as the data plane obeys it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Finds the counts again after a modification.
    pub urr: UrrId,
    /// Tell the control engine after so much, again and again.
    pub threshold: Volume,
    /// From where it counts, until that was told.
    pub threshold_since: Since,
    /// Packets beyond are dropped, or go as [`Program::beyond_quota`] says.
    pub quota: Volume,
    /// From where it counts; `None` from where it is put in force.
    pub quota_since: Option<Since>,
    /// One of another grant is another quota.
    pub quota_grant: u32,
    /// Tell after so much downlink traffic that was dropped, again and again.
    pub dropped_downlink: DroppedDownlink,
    /// Tell of the first packet since this number changed; `None` tells of none.
    pub start_of_traffic: Option<u32>,
    /// Count packets that QoS enforcement drops, too.
    pub before_qos: bool,
    /// Measure how long there is traffic, up to so long after each packet (TS 29.244 5.2.2.2).
    pub inactivity_detection_s: Option<NonZeroU32>,
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
    pub meters: Mostly1<Meter>,
    /// In the order of their URRs.
    pub usages: Box<[Usage]>,
    /// The tunnels that lead to this session, each once.
    pub f_teids: Mostly1<FTeid>,
    /// The user addresses that lead to this session on the downlink, each once, and in which network.
    pub ue_ipv4s: Mostly1<(Instance, Ipv4Addr)>,
    /// The user prefixes that lead to this session on the downlink, each once, without host bits, and in which network.
    pub ue_ipv6s: Mostly1<(Instance, Ipv6Net)>,
    /// Networks behind the user that lead to this session on the downlink, each once, without host bits, and in which network
    /// instance. Most sessions have none.
    pub framed_routes: Rare<(Instance, IpNet)>,
    /// What becomes of packets once a quota is used up whose URR has a FAR for that (TS 29.244 5.2.2.2.1), by step, then
    /// in the order of the PDR's URRs; of several used up, the first URR in that order decides, unless one has no FAR: that
    /// ends packets. Steps that drop have none: what no quota lets pass, the end of one does not either.
    pub beyond_quota: Rare<Beyond>,
    /// What FARs do to the requests of steps that forward by them.
    pub treatments: Rare<(FarId, Treatment)>,
    /// The session carries Ethernet frames: finds a frame's step, in place of [`Program::classifier`].
    pub ethernet: Option<Box<EthernetProgram>>,
}

/// What an Ethernet PDU session has besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EthernetProgram {
    /// Finds a frame's step.
    pub classifier: EthernetClassifier,
    /// The network whose frames outside tunnels it takes, and in which its MAC addresses are known; `None` where all its
    /// frames come in tunnels, as between user planes: nothing is learnt then.
    pub network: Option<Instance>,
    /// A MAC address without frames for so long is no longer in use: the shortest time any URR that reports them gives.
    pub inactivity_s: Option<u32>,
    /// Some URR wants to hear of MAC addresses.
    pub reports: bool,
}

impl Program {
    /// What a step does to requests; `None` for all that do not forward, and most that do.
    pub fn treatment(&self, step: &Step) -> Option<&Treatment> {
        let forwards = matches!(step.action, Action::Forward(_));
        let found = self.treatments.iter().find(|(far, _)| *far == step.far);
        found.filter(|_| forwards).map(|(_, treatment)| treatment)
    }

    /// Bytes allocated, without what the allocator adds: the design figure of memory per session, besides the size of
    /// the struct. A test prints both for a plain session.
    pub fn heap_bytes(&self) -> usize {
        let all_steps = self.steps.iter().chain(self.beyond_quota.iter().map(|beyond| &beyond.step));
        let duplicates: usize = all_steps.map(|step| step.duplicates.heap_bytes()).sum();
        let users = self.ue_ipv4s.heap_bytes() + self.ue_ipv6s.heap_bytes() + self.framed_routes.heap_bytes();
        let keys = self.f_teids.heap_bytes() + users;
        let states = self.meters.heap_bytes()
            + size_of_val(&*self.usages)
            + self.beyond_quota.heap_bytes()
            + self.treatments.heap_bytes();
        let ethernet = self
            .ethernet
            .as_ref()
            .map_or(0, |ethernet| size_of::<EthernetProgram>() + ethernet.classifier.heap_bytes());
        self.classifier.heap_bytes() + size_of_val(&*self.steps) + duplicates + keys + states + ethernet
    }
}

/// Compiles rules that pass [`Rules::check`]. Takes time n log n in their size; what the classifier adds is bounded.
///
/// # Errors
/// Whatever [`Rules::check`] finds.
pub fn compile(rules: &Rules) -> Result<Program, RuleError> {
    let checked = Checked::new(rules)?;
    let mut pdrs: Vec<&Pdr> = rules.pdrs.iter().collect();
    pdrs.sort_by_key(|pdr| (pdr.precedence, pdr.id));
    let steps = Steps::new(rules, &checked);
    let filled = source::with_source(&pdrs, rules, &checked.fars);
    let mut seen = pdrs.clone();
    for (place, pdr) in &filled {
        seen.iter_mut().skip(*place).take(1).for_each(|seen| *seen = pdr);
    }
    Ok(Program {
        classifier: Classifier::new(&seen, &checked),
        steps: pdrs.iter().map(|pdr| steps.step(pdr, pdr.far)).collect(),
        beyond_quota: steps.beyond_quota(&pdrs),
        meters: steps.meters,
        usages: rules.urrs.iter().map(usage).collect(),
        treatments: rules.fars.iter().filter_map(|far| Some((far.id, Treatment::of(far)?))).collect(),
        f_teids: unique(pdrs.iter().filter_map(|pdr| pdr.pdi.f_teid)),
        ue_ipv4s: unique(plain(&pdrs).filter_map(|pdi| Some((pdi.instance, pdi.ue_ipv4?)))),
        ue_ipv6s: unique(plain(&pdrs).filter_map(|pdi| Some((pdi.instance, pdi.ue_ipv6?.trunc())))),
        framed_routes: framed_routes(&pdrs),
        ethernet: ethernet(rules, &pdrs, &checked).map(Box::new),
    })
}

/// PDIs of packets outside any tunnel: their addresses lead to the session.
fn plain<'a>(pdrs: &'a [&Pdr]) -> impl Iterator<Item = &'a Pdi> {
    pdrs.iter().map(|pdr| &pdr.pdi).filter(|pdi| pdi.f_teid.is_none())
}

fn framed_routes(pdrs: &[&Pdr]) -> Rare<(Instance, IpNet)> {
    let of = |pdi: &Pdi| {
        let instance = pdi.instance;
        pdi.framed_routes.iter().map(move |route| (instance, route.trunc())).collect::<Vec<_>>()
    };
    unique(plain(pdrs).flat_map(of)).iter().copied().collect()
}

fn ethernet(rules: &Rules, pdrs: &[&Pdr], checked: &Checked<'_>) -> Option<EthernetProgram> {
    if pdrs.iter().all(|pdr| pdr.pdi.ethernet.is_none()) {
        return None;
    }
    let asking = || rules.urrs.iter().filter(|urr| urr.triggers.contains(Triggers::MAC_ADDRESSES));
    Some(EthernetProgram {
        classifier: EthernetClassifier::new(pdrs, checked),
        network: plain(pdrs).map(|pdi| pdi.instance).next(),
        inactivity_s: asking().filter_map(|urr| urr.ethernet_inactivity_s).min(),
        reports: asking().next().is_some(),
    })
}

fn usage(urr: &Urr) -> Usage {
    let starts = urr.triggers.contains(Triggers::START_OF_TRAFFIC);
    Usage {
        urr: urr.id,
        threshold: urr.volume_threshold.unwrap_or_default(),
        threshold_since: urr.threshold_since,
        quota: urr.volume_quota.unwrap_or_default(),
        quota_since: urr.quota_since,
        quota_grant: urr.quota_grant,
        dropped_downlink: urr.dropped_downlink.unwrap_or_default(),
        start_of_traffic: starts.then_some(urr.starts_awaited),
        before_qos: urr.before_qos,
        inactivity_detection_s: urr.inactivity_detection_time_s.and_then(NonZeroU32::new),
        inactive: urr.inactive,
    }
}

/// In the order in which they are first seen.
fn unique<T: Copy + Eq + Hash>(items: impl Iterator<Item = T>) -> Mostly1<T> {
    let mut seen = HashSet::new();
    items.filter(|item| seen.insert(*item)).collect()
}
