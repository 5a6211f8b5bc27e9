//! One PDR into one step.

use super::{Action, Beyond, Direction, Encapsulation, Forward, Meter, Step};
use crate::check::Checked;
use crate::ids::{FarId, QerId, Qfi, UrrId};
use crate::intent::{
    ApplyAction, Bar, Far, ForwardingParameters, Gate, Interface, OuterHeader, OuterHeaderCreation, Pdr, Qer,
    Rules,
};
use crate::list::{Mostly1, Rare};
use std::collections::HashMap;

/// What steps are made of.
pub(super) struct Steps<'a> {
    checked: &'a Checked<'a>,
    /// Of QERs that limit a rate, in their order.
    pub(super) meters: Mostly1<Meter>,
    /// For each QER, the place of its meter; `None` without a limit.
    meter_places: Vec<Option<u16>>,
    /// The QoS flow of packets to the user by a FAR, where packets of the control plane go by it, too.
    flows: HashMap<FarId, Qfi>,
}

impl<'a> Steps<'a> {
    pub(super) fn new(rules: &Rules, checked: &'a Checked<'a>) -> Self {
        let (mut meters, mut correlated) = (Vec::new(), HashMap::new());
        let mut place_of = |qer: &Qer| {
            let meter = meter(qer)?;
            let next = meters.len() as u16;
            let place = qer.correlation.map_or(next, |number| *correlated.entry(number).or_insert(next));
            if place == next {
                meters.push(meter);
            }
            Some(place)
        };
        let meter_places = rules.qers.iter().map(&mut place_of).collect();
        let flows = flows(rules, checked);
        Self { checked, meters: meters.into_iter().collect(), meter_places, flows }
    }

    /// What becomes of a PDR's packets by a FAR: its own, or another.
    pub(super) fn step(&self, pdr: &Pdr, far: FarId) -> Step {
        let (direction, qers) = (pdr.pdi.source_interface.direction(), self.qers(pdr));
        let found = self.checked.fars.get(far);
        let mut action = found.map_or(DROP, |far| action((far, self.bar(far)), &qers, direction));
        if keeps_tunnel(pdr) && matches!(action, Action::Forward(_)) {
            action = DROP;
        }
        if far == pdr.far && is_back_to_radio(pdr, &action) {
            action.goes_in(self.flows.get(&far).copied());
        }
        // What a FAR drops or keeps is copied, too (TS 29.244 8.2.26); not what a gate stops, nor what has its tunnel's header still.
        let is_obeyed = action != Action::GateClosed && !keeps_tunnel(pdr);
        let copies = match found {
            Some(far) if far.duplicating && is_obeyed => &*far.duplicates,
            _ => &[],
        };
        Step {
            pdr: pdr.id,
            far,
            teid: pdr.pdi.f_teid.map(|f_teid| f_teid.teid),
            direction,
            action,
            duplicates: copies.iter().map(|to| forward(to, &qers)).collect(),
            meters: pdr.qers.iter().filter_map(|id| self.meter(*id)).collect(),
            usages: pdr.urrs.iter().filter_map(|id| self.usage(*id)).collect(),
        }
    }

    /// The FAR's own (TS 29.244 5.2.4.2).
    fn bar(&self, far: &Far) -> Option<&Bar> {
        self.checked.bars.get(far.bar?)
    }

    pub(super) fn beyond_quota(&self, pdrs: &[&Pdr]) -> Rare<Beyond> {
        pdrs.iter().zip(0..).flat_map(|(pdr, of)| self.beyond(pdr, of)).collect()
    }

    /// One for each FAR that URRs of the PDR name.
    fn beyond(&self, pdr: &Pdr, of: u16) -> Vec<Beyond> {
        let quota_far = |urr: &UrrId| self.checked.urrs.get(*urr)?.quota_far;
        let mut fars: Vec<FarId> = Vec::new();
        for far in pdr.urrs.iter().filter_map(quota_far) {
            if !fars.contains(&far) {
                fars.push(far);
            }
        }
        if fars.is_empty()
            || matches!(self.step(pdr, pdr.far).action, Action::Drop { .. } | Action::GateClosed)
        {
            return Vec::new();
        }
        let leading_to = |far| pdr.urrs.iter().filter(move |urr| quota_far(urr) == Some(far));
        let beyond = |far| Beyond {
            of,
            usages: leading_to(far).filter_map(|urr| self.usage(*urr)).collect(),
            step: self.step(pdr, far),
        };
        fars.into_iter().map(beyond).collect()
    }

    fn qers(&self, pdr: &Pdr) -> Vec<&'a Qer> {
        qers(pdr, self.checked)
    }

    /// `None` for a QER without a limit.
    fn meter(&self, qer: QerId) -> Option<u16> {
        *self.meter_places.get(self.checked.qers.place(qer)?)?
    }

    fn usage(&self, urr: UrrId) -> Option<u16> {
        u16::try_from(self.checked.urrs.place(urr)?).ok()
    }
}

/// Some control planes tell of the outer header's removal when the radio is known. Until then packets stay where they are: no
/// network takes them with the header of a tunnel that ends here.
const fn keeps_tunnel(pdr: &Pdr) -> bool {
    pdr.pdi.f_teid.is_some() && !pdr.outer_header_removal
}

fn qers<'a>(pdr: &Pdr, checked: &'a Checked<'a>) -> Vec<&'a Qer> {
    pdr.qers.iter().filter_map(|id| checked.qers.get(*id)).collect()
}

/// Of several, the first that means one: 0 stands for none (TS 24.501 9.11.4.12), and control planes send it with QERs that
/// are of all flows.
fn qfi(qers: &[&Qer]) -> Option<Qfi> {
    let named = || qers.iter().filter_map(|qer| qer.qfi);
    named().find(|qfi| qfi.value() != 0).or_else(|| named().next())
}

/// Packets that come by a tunnel of the radio side and go into another there: those of the control plane for the user are
/// among them, and some control planes give them no QER. The radio wants to know their flow all the same.
fn is_back_to_radio(pdr: &Pdr, action: &Action) -> bool {
    let is_from_radio = pdr.pdi.source_interface == Interface::Access && pdr.pdi.f_teid.is_some();
    let Action::Forward(Forward { to: Interface::Access, encapsulation: Some(into), .. }) = action else {
        return false;
    };
    is_from_radio && into.qfi.is_none()
}

/// Nothing where no PDR asks for it, as in nearly all sessions.
fn flows(rules: &Rules, checked: &Checked<'_>) -> HashMap<FarId, Qfi> {
    let mut flows = HashMap::new();
    let is_asked_for = |pdr: &Pdr| {
        let far = checked.fars.get(pdr.far);
        far.is_some_and(|far| {
            is_back_to_radio(pdr, &action((far, None), &qers(pdr, checked), Direction::Uplink))
        })
    };
    if rules.pdrs.iter().any(is_asked_for) {
        let downlink = rules.pdrs.iter().filter(|pdr| pdr.pdi.source_interface != Interface::Access);
        for (far, qfi) in downlink.filter_map(|pdr| Some((pdr.far, qfi(&qers(pdr, checked))?))) {
            flows.entry(far).or_insert(qfi);
        }
    }
    flows
}

impl Action {
    /// In this QoS flow, if in a tunnel of GTP-U.
    fn goes_in(&mut self, flow: Option<Qfi>) {
        if let Self::Forward(Forward { encapsulation: Some(into), .. }) = self
            && matches!(into.header, OuterHeader::Gtpu(_))
        {
            into.qfi = flow;
        }
    }
}

/// Nobody is told.
const DROP: Action = Action::Drop { notify: false, qfi: None };

/// `None` for a QER without a limit.
fn meter(qer: &Qer) -> Option<Meter> {
    let Qer { id, mbr, packet_rates, correlation, .. } = *qer;
    let is_limited = mbr.is_some() || !packet_rates.is_none();
    is_limited.then_some(Meter { qer: id, mbr, packet_rates, correlation })
}

fn action((far, bar): (&Far, Option<&Bar>), qers: &[&Qer], direction: Direction) -> Action {
    let gate = |qer: &&Qer| match direction {
        Direction::Uplink => qer.uplink_gate,
        Direction::Downlink => qer.downlink_gate,
    };
    // All gates of a PDR's QERs apply, not just the first (TS 29.244 5.4.3).
    if qers.iter().any(|qer| gate(qer) == Gate::Closed) {
        return Action::GateClosed;
    }
    let flow = qfi(qers).filter(|qfi| qfi.value() != 0);
    match (far.apply_action, &far.forwarding) {
        (ApplyAction::Forward | ApplyAction::Reset, Some(to)) => Action::Forward(forward(to, qers)),
        (ApplyAction::Buffer, _) => keep((far.notify, flow), bar),
        (ApplyAction::Drop, _) => Action::Drop { notify: far.notify, qfi: flow },
        _ => DROP,
    }
}

fn keep((notify, qfi): (bool, Option<Qfi>), bar: Option<&Bar>) -> Action {
    let extended = bar.and_then(|bar| Some((bar.id, bar.extended?)));
    let meanwhile = extended.and_then(|(_, extended)| extended.packets);
    let most = meanwhile.or(bar.and_then(|bar| bar.suggested_packets));
    let extended = extended.map(|(bar, extended)| (bar, extended.lasts_s));
    Action::Buffer { notify, qfi, most, extended }
}

fn forward(to: &ForwardingParameters, qers: &[&Qer]) -> Forward {
    Forward {
        to: to.destination_interface,
        instance: to.instance,
        encapsulation: to.outer_header_creation.map(|creation| encapsulation(creation, qers)),
        dscp: to.dscp,
        policy: to.policy,
    }
}

/// Only GTP-U has room for the QoS flow and what is said of it.
fn encapsulation(creation: OuterHeaderCreation, qers: &[&Qer]) -> Encapsulation {
    let OuterHeaderCreation { header, address: peer } = creation;
    match header {
        OuterHeader::Gtpu(_) => {
            let reflective = qers.iter().any(|qer| qer.reflective);
            Encapsulation { header, peer, qfi: qfi(qers), reflective }
        }
        OuterHeader::Udp(_) => Encapsulation { header, peer, qfi: None, reflective: false },
    }
}
