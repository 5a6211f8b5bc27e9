//! What QERs, URRs and the FAR of a PDR do with a packet (TS 29.244 5.2.2, 5.2.3, 5.4).

mod bearing;
mod keeping;
mod leaving;
mod of_frames;
mod usage;

pub(crate) use bearing::Bearing;
pub(crate) use leaving::is_of_a_link;
pub(crate) use of_frames::FrameAction;
pub use usage::UsageCounts;

use crate::detection::Arrival;
use crate::errors::Stopped;
use crate::forwarding::towards;
use crate::ip::UserPacket;
use crate::meters::{Load, Meter, is_limited, meter_key};
use crate::portal;
use crate::reason::DropReason;
use crate::redirection::{Redirected, leaves_for};
use crate::setup::{Network, Setup};
use leaving::{Refused, may_leave};
use rules::{
    ApplyAction, Direction, Far, FarId, ForwardingParameters, Gate, Interface, Pdr, PdrId, Qer, QerId, Qfi,
    Rules, Seid, UrrId, limits,
};
use usage::Usage;

/// One session: its rules, and what they remember.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) seid: Seid,
    pub(crate) rules: Rules,
    meters: Vec<Meter>,
    /// The node's own limit, once a packet was held to it.
    own: Option<Meter>,
    usages: Vec<Usage>,
    /// Of packets kept for a user who sleeps, the URRs.
    kept: Vec<(Vec<UrrId>, Load)>,
    /// PDRs of which the control plane hears, as packets to the user were kept by them.
    pub(crate) woken: Vec<PdrId>,
    /// Flows with other addresses than the user knows.
    pub(crate) redirected: Vec<Redirected>,
}

/// What marks a packet that is put into a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) qfi: Option<Qfi>,
    pub(crate) reflective: bool,
    pub(crate) paging_policy: Option<u8>,
}

/// What is to be done with a packet whose FAR forwards or buffers.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) action: Action,
    pub(crate) marks: Marks,
    /// Where copies go (DUPL), whatever becomes of the packet.
    pub(crate) copies: Vec<ForwardingParameters>,
    /// What it was decided by.
    pub(crate) far: Chosen,
    /// The packet as it leaves, where its addresses are others.
    pub(crate) readdressed: Option<UserPacket>,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Forward(ForwardingParameters),
    Buffer,
    /// Nothing is forwarded, but who sent it may be answered.
    Answer,
    /// To be split, or its sender told; it would have left on this side.
    Stop(Stopped, Network),
    Drop(DropReason),
}

/// What else matters when a packet comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) now_ns: u64,
    pub(crate) setup: &'a Setup,
    /// Of a fragment: what was chosen for its packet.
    pub(crate) part_of: Option<Chosen>,
    /// Of a flow that waits to be of an application, and takes down what it uses.
    pub(crate) waits: bool,
}

/// A FAR, and whether it stands in for the PDR's own beyond a quota.
pub(crate) type Chosen = (FarId, bool);

impl Session {
    pub(crate) fn new(seid: Seid, rules: Rules, shared: &[Meter], now_ns: u64) -> Self {
        let mut session = Self { seid, ..Self::default() };
        session.replace(rules, shared, now_ns);
        session
    }

    /// New rules: QERs and URRs that stay remember what they were. Correlated meters go on
    /// where others have brought them, by the limits of these rules. What was kept is dropped.
    pub(crate) fn replace(&mut self, rules: Rules, shared: &[Meter], now_ns: u64) {
        std::mem::take(&mut self.kept).iter().for_each(|(urrs, load)| self.count_dropped(urrs, *load));
        self.woken.clear();
        let mut meters: Vec<Meter> = Vec::new();
        for meter in rules.qers.iter().filter_map(Meter::new) {
            let known = self.meters.iter().chain(shared).find(|known| known.key == meter.key);
            // Of several QERs of one correlation the first one's limits count.
            if meters.iter().all(|other| other.key != meter.key) {
                meters.push(meter.continuing(known, now_ns));
            }
        }
        self.meters = meters;
        if !rules.pdrs.iter().any(|pdr| is_held(&rules, pdr)) {
            self.own = None;
        }
        self.usages = rules.urrs.iter().map(|urr| self.usage(urr)).collect();
        self.rules = rules;
    }

    /// Its meters that other sessions may have, too.
    pub(crate) fn shared_meters(&self) -> Vec<Meter> {
        let is_shared = |meter: &&Meter| meter.is_shared();
        self.meters.iter().filter(is_shared).cloned().collect()
    }

    /// Its meters, but for the node's own limit.
    pub(crate) fn meters(&self) -> &[Meter] {
        &self.meters
    }

    /// The node's own limit, once a packet was held to it.
    pub(crate) const fn own_limit(&self) -> Option<&Meter> {
        self.own.as_ref()
    }

    /// Another session has used, or changed, meters that may be of this session, too.
    pub(crate) fn adopt(&mut self, shared: &[Meter]) {
        for meter in &mut self.meters {
            if let Some(other) = shared.iter().find(|other| other.key == meter.key) {
                meter.clone_from(other);
            }
        }
    }

    /// Decides about a packet that matches a PDR, charges it and counts it. The order:
    ///
    /// 1. the gates;
    /// 2. the FAR: once a quota is used up, that of its URR stands in for one that forwards or buffers, unless another one that is
    ///    used up has none;
    /// 3. copies, but of what is answered (`portal.rs`);
    /// 4. a FAR that drops, buffers or answers: nothing is charged or counted, for nothing leaves;
    /// 5. what is not sent in any case: to ourselves, no hop left, too long;
    /// 6. redirection to another address, by which routes go;
    /// 7. the quotas, but for those that have a FAR, where one stands in: what they stop takes nothing of a rate;
    /// 8. the rates, and counting. Where no rule limits a packet, the node itself may.
    ///
    /// What gates and rates drop is counted by those URRs that count before QoS enforcement (MBQE). Of several quotas used
    /// up one without a FAR decides, and of several with one the first in the order of the PDR. Fragments go by the FAR of their
    /// packet, but the quotas are asked for each.
    pub(crate) fn decide(
        &mut self,
        pdr: &Pdr,
        arrival: &Arrival,
        moment: Moment<'_>,
    ) -> Result<Verdict, DropReason> {
        let part_of = moment.part_of;
        let direction = arrival.source.direction();
        let load = Load::of(arrival);
        let qers = self.qers(pdr);
        if qers.iter().any(|qer| gate(qer, direction) == Gate::Closed) {
            self.count(pdr, load, |urr| urr.before_qos);
            return Err(DropReason::GateClosed);
        }
        let (far, stands_in) = self.far_for(pdr, part_of).ok_or(DropReason::FarDrop)?;
        let marks = self.marks(pdr, &far);
        let is_answered = portal::answers(&far).is_some();
        let copies = if far.duplicating && !is_answered { far.duplicates.clone() } else { Vec::new() };
        let stays = |action, copies| {
            Ok(Verdict { action, marks, copies, far: (far.id, stands_in), readdressed: None })
        };
        let to = match (far.apply_action, &far.forwarding) {
            _ if is_answered => return stays(Action::Answer, copies),
            (ApplyAction::Buffer, _) => {
                let kept = self.keep((pdr, &far), load);
                return stays(kept.map_or_else(Action::Drop, |()| Action::Buffer), copies);
            }
            (ApplyAction::Drop | ApplyAction::Reset, _) | (_, None) => {
                self.count_dropped(&pdr.urrs, load);
                return stays(Action::Drop(DropReason::FarDrop), copies);
            }
            (ApplyAction::Forward, Some(to)) => *to,
        };
        let mut readdressed_to = None;
        let way = (&to, leaves_for(&far, arrival));
        let action = match may_leave(arrival, way, marks, moment.setup) {
            Err(Refused::Quietly(reason)) => Action::Drop(reason),
            Err(Refused::Stopped(stopped)) => Action::Stop(stopped, towards(&to)),
            Ok(()) => {
                let readdressed = self.readdress(&far, arrival, moment.setup);
                let enforced = readdressed.and_then(|packet| {
                    self.enforce((pdr, stands_in), load, moment)?;
                    Ok(packet)
                });
                match enforced {
                    Ok(packet) => {
                        readdressed_to = packet;
                        Action::Forward(to)
                    }
                    Err(reason) => Action::Drop(reason),
                }
            }
        };
        Ok(Verdict { action, marks, copies, far: (far.id, stands_in), readdressed: readdressed_to })
    }

    /// The FAR to obey, and whether it stands in for the PDR's own. A part of a packet goes by the packet's.
    fn far_for(&self, pdr: &Pdr, part_of: Option<Chosen>) -> Option<(Far, bool)> {
        if let Some((id, stands_in)) = part_of {
            return Some((self.far(id)?.clone(), stands_in));
        }
        let own = self.far(pdr.far)?;
        let drops = own.apply_action == ApplyAction::Drop;
        let other = self.exhausted(pdr).and_then(|urr| self.far(urr.quota_far?)).filter(|_| !drops);
        Some((other.unwrap_or(own).clone(), other.is_some()))
    }

    /// Holds a packet that may leave to quotas, but for those for whose end a FAR stands in, and to rates, and counts it.
    fn enforce(
        &mut self,
        (pdr, stands_in): (&Pdr, bool),
        load: Load,
        moment: Moment<'_>,
    ) -> Result<(), DropReason> {
        if self.exhausted(pdr).is_some_and(|urr| !stands_in || urr.quota_far.is_none()) {
            return Err(DropReason::QuotaExhausted);
        }
        if !self.charge(pdr, load, moment) {
            self.count(pdr, load, |urr| urr.before_qos);
            return Err(DropReason::RateExceeded);
        }
        if !moment.waits {
            self.count(pdr, load, |_| true);
        }
        Ok(())
    }

    /// Where packets of a PDR go in a tunnel, with what marks, be it only what the node says itself; `None` where they do not.
    pub(crate) fn tunnel_of(&self, pdr: &Pdr) -> Option<(ForwardingParameters, Marks)> {
        let far = self.far(pdr.far)?;
        let (to, marks) = self.way(pdr, far)?;
        to.outer_header_creation.is_some().then_some((to, marks))
    }

    /// Where a FAR leads packets of a PDR, with what marks, be it only answers in their place; `None` where they do not leave.
    pub(crate) fn way(&self, pdr: &Pdr, far: &Far) -> Option<(ForwardingParameters, Marks)> {
        let direction = pdr.pdi.source_interface.direction();
        let open = self.qers(pdr).iter().all(|qer| gate(qer, direction) == Gate::Open);
        let leads = matches!(far.apply_action, ApplyAction::Forward | ApplyAction::Reset);
        Some((far.forwarding.filter(|_| open && leads)?, self.marks(pdr, far)))
    }

    /// Packets that come by a tunnel of the radio side and go into another there are in the flow of others by the same FAR, if
    /// no QER names one.
    fn marks(&self, pdr: &Pdr, far: &Far) -> Marks {
        let own = marks(&self.qers(pdr));
        let is_from_radio = pdr.pdi.source_interface == Interface::Access && pdr.pdi.f_teid.is_some();
        let goes_back = far.forwarding.is_some_and(|to| {
            to.destination_interface == Interface::Access && to.outer_header_creation.is_some()
        });
        if own.qfi.is_some() || far.id != pdr.far || !is_from_radio || !goes_back {
            return own;
        }
        let others = self
            .rules
            .pdrs
            .iter()
            .filter(|other| other.far == far.id && other.pdi.source_interface != Interface::Access);
        Marks { qfi: others.map(|other| marks(&self.qers(other))).find_map(|marks| marks.qfi), ..own }
    }

    fn qers(&self, pdr: &Pdr) -> Vec<Qer> {
        pdr.qers.iter().filter_map(|id| self.qer(*id)).cloned().collect()
    }

    fn qer(&self, id: QerId) -> Option<&Qer> {
        self.rules.qers.iter().find(|qer| qer.id == id)
    }

    pub(crate) fn far(&self, id: FarId) -> Option<&Far> {
        self.rules.fars.iter().find(|far| far.id == id)
    }

    /// Whether all meters of a PDR's QERs, or the node's own, let the packet pass; if so, all are charged, else none.
    fn charge(&mut self, pdr: &Pdr, load: Load, moment: Moment<'_>) -> bool {
        let qers = self.qers(pdr);
        let held_to = moment.setup.session_mbr.filter(|_| is_held(&self.rules, pdr));
        let own = held_to.map(|mbr| self.own.get_or_insert(Meter::of_the_node(mbr)));
        let is_meant = |meter: &&mut Meter| qers.iter().any(|qer| meter_key(qer) == Some(meter.key));
        let mut meters: Vec<&mut Meter> = self.meters.iter_mut().filter(is_meant).chain(own).collect();
        // Each of them is asked, as some note that they were.
        let conform = meters.iter_mut().map(|meter| meter.conforms(load.direction, moment));
        let all = conform.fold(true, std::ops::BitAnd::bitand);
        if all {
            meters.iter_mut().for_each(|meter| meter.charge(load, moment.now_ns));
        }
        all
    }
}

/// Whether the node's own limit is for packets of a PDR: no QER limits the way they go, and there is room for one.
fn is_held(rules: &Rules, pdr: &Pdr) -> bool {
    let named = rules.qers.iter().filter(|qer| pdr.qers.contains(&qer.id));
    let named: Vec<Qer> = named.cloned().collect();
    let has_room = rules.qers.len() < limits::QERS && pdr.qers.len() < limits::QERS_PER_PDR;
    has_room && !is_limited(&named, pdr.pdi.source_interface.direction())
}

const fn gate(qer: &Qer, direction: Direction) -> Gate {
    match direction {
        Direction::Uplink => qer.uplink_gate,
        Direction::Downlink => qer.downlink_gate,
    }
}

fn marks(qers: &[Qer]) -> Marks {
    let named = || qers.iter().filter_map(|qer| qer.qfi);
    // 0 is no flow's number; where nothing else is said, it is what is said.
    let qfi = named().find(|qfi| qfi.value() != 0).or_else(|| named().next());
    let reflective = qers.iter().any(|qer| qer.reflective);
    Marks { qfi, reflective, paging_policy: None }
}

#[cfg(test)]
mod tests;
