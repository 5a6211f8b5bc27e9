//! One PDR into one step.

use super::{Action, Beyond, Direction, Encapsulation, Forward, Meter, QosFlow, Step};
use crate::check::Checked;
use crate::ids::{FarId, QerId, Qfi, UrrId};
use crate::intent::{
    ApplyAction, Far, ForwardingParameters, Gate, Interface, OuterHeaderCreation, Pdr, Qer, Rules,
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
    /// By tunnel to the radio, the QoS flow of packets that nobody has given one.
    usual: HashMap<OuterHeaderCreation, Qfi>,
}

impl<'a> Steps<'a> {
    /// `pdrs` are in the order they are tried.
    pub(super) fn new(rules: &Rules, checked: &'a Checked<'a>, pdrs: &[&Pdr]) -> Self {
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
        let meters = meters.into_iter().collect();
        let mut steps = Self { checked, meters, meter_places, usual: HashMap::new() };
        if pdrs.iter().any(|pdr| qfi(&steps.qers(pdr)).is_none()) {
            let flow = |pdr: &&Pdr| Some((steps.tunnel_to_radio(pdr)?, qfi(&steps.qers(pdr))?));
            steps.usual = pdrs.iter().filter_map(flow).collect();
        }
        steps
    }

    /// The tunnel to the radio that a PDR's packets are for. Of the PDRs of one tunnel, the last that names a QoS flow names the
    /// default one.
    fn tunnel_to_radio(&self, pdr: &Pdr) -> Option<OuterHeaderCreation> {
        let to = self.checked.fars.get(pdr.far)?.forwarding?;
        to.outer_header_creation.filter(|_| to.destination_interface == Interface::Access)
    }

    /// Where a control plane sends router advertisements itself, its PDR names no QoS flow, and the radio wants one
    /// (TS 38.415 5.4).
    fn mend(&self, action: &mut Action) {
        let Action::Forward(Forward { to: Interface::Access, encapsulation: Some(tunnel), .. }) = action
        else {
            return;
        };
        let name = OuterHeaderCreation { teid: tunnel.teid, address: tunnel.peer };
        if let (QosFlow::None, Some(usual)) = (tunnel.flow, self.usual.get(&name)) {
            tunnel.flow = QosFlow::Usual(*usual);
        }
    }

    /// What becomes of a PDR's packets by a FAR: its own, or another.
    pub(super) fn step(&self, pdr: &Pdr, far: FarId) -> Step {
        let (direction, qers) = (pdr.pdi.source_interface.direction(), self.qers(pdr));
        let found = self.checked.fars.get(far);
        let mut action = found.map_or(Action::Drop, |far| action(far, &qers, direction));
        self.mend(&mut action);
        let copies = match (action, found) {
            (Action::Forward(_), Some(far)) => &*far.duplicates,
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
        if fars.is_empty() || matches!(self.step(pdr, pdr.far).action, Action::Drop | Action::GateClosed) {
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
        pdr.qers.iter().filter_map(|id| self.checked.qers.get(*id)).collect()
    }

    /// `None` for a QER without a limit.
    fn meter(&self, qer: QerId) -> Option<u16> {
        *self.meter_places.get(self.checked.qers.place(qer)?)?
    }

    fn usage(&self, urr: UrrId) -> Option<u16> {
        u16::try_from(self.checked.urrs.place(urr)?).ok()
    }
}

/// `None` for a QER without a limit.
fn meter(qer: &Qer) -> Option<Meter> {
    let Qer { id, mbr, packet_rates, correlation, .. } = *qer;
    let is_limited = mbr.is_some() || !packet_rates.is_none();
    is_limited.then_some(Meter { qer: id, mbr, packet_rates, correlation })
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
        instance: to.instance,
        encapsulation: to.outer_header_creation.map(|tunnel| Encapsulation {
            teid: tunnel.teid,
            peer: tunnel.address,
            flow: qfi(qers).map_or(QosFlow::None, QosFlow::One),
            reflective: qers.iter().any(|qer| qer.reflective),
        }),
        dscp: to.dscp,
    }
}

fn qfi(qers: &[&Qer]) -> Option<Qfi> {
    qers.iter().find_map(|qer| qer.qfi)
}
