//! A modification of a session's rules: applied whole or not at all (TS 29.244 6.3.3).

use crate::check::{RuleError, RuleRef};
use crate::ids::{FarId, PdrId, QerId, Qfi};
use crate::intent::{
    ApplyAction, Far, ForwardingParameters, Gate, Interface, OuterHeaderCreation, Pdi, Rules,
};

/// What an Update PDR replaces; `None` leaves as it is (TS 29.244 7.5.4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdrUpdate {
    /// The rule to update.
    pub id: PdrId,
    /// New precedence.
    pub precedence: Option<u32>,
    /// Replaces the whole PDI.
    pub pdi: Option<Pdi>,
    /// New outer header removal.
    pub outer_header_removal: Option<bool>,
    /// New FAR.
    pub far: Option<FarId>,
    /// Replaces the whole list.
    pub qers: Option<Vec<QerId>>,
}

/// What Update Forwarding Parameters replace; `None` leaves as it is (TS 29.244 7.5.4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardingUpdate {
    /// New destination interface.
    pub destination_interface: Option<Interface>,
    /// New tunnel.
    pub outer_header_creation: Option<OuterHeaderCreation>,
}

/// What an Update FAR replaces (TS 29.244 7.5.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarUpdate {
    /// The rule to update.
    pub id: FarId,
    /// New action.
    pub apply_action: Option<ApplyAction>,
    /// Merged into the forwarding parameters the FAR has.
    pub forwarding: Option<ForwardingUpdate>,
}

/// What an Update QER replaces (TS 29.244 7.5.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QerUpdate {
    /// The rule to update.
    pub id: QerId,
    /// New uplink and downlink gate.
    pub gates: Option<(Gate, Gate)>,
    /// New QFI.
    pub qfi: Option<Qfi>,
}

/// One modification request: removals, then creations, then updates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// PDRs to remove.
    pub remove_pdrs: Vec<PdrId>,
    /// FARs to remove.
    pub remove_fars: Vec<FarId>,
    /// QERs to remove.
    pub remove_qers: Vec<QerId>,
    /// Rules to create.
    pub create: Rules,
    /// PDRs to update.
    pub update_pdrs: Vec<PdrUpdate>,
    /// FARs to update.
    pub update_fars: Vec<FarUpdate>,
    /// QERs to update.
    pub update_qers: Vec<QerUpdate>,
}

impl Rules {
    /// These rules after `change`; `self` stays as it is.
    ///
    /// # Errors
    /// The first rule that is unknown, or that leaves the whole in a state [`Rules::check`] refuses.
    pub fn change(&self, change: Change) -> Result<Self, RuleError> {
        let mut next = self.clone();
        next.remove(&change)?;
        next.pdrs.extend(change.create.pdrs);
        next.fars.extend(change.create.fars);
        next.qers.extend(change.create.qers);
        change.update_pdrs.into_iter().try_for_each(|update| next.update_pdr(update))?;
        change.update_fars.into_iter().try_for_each(|update| next.update_far(update))?;
        change.update_qers.into_iter().try_for_each(|update| next.update_qer(update))?;
        next.check()?;
        Ok(next)
    }

    fn remove(&mut self, change: &Change) -> Result<(), RuleError> {
        for id in &change.remove_pdrs {
            let at = self.pdrs.iter().position(|r| r.id == *id);
            self.pdrs.remove(at.ok_or(RuleError::Unknown(RuleRef::Pdr(*id)))?);
        }
        for id in &change.remove_fars {
            let at = self.fars.iter().position(|r| r.id == *id);
            self.fars.remove(at.ok_or(RuleError::Unknown(RuleRef::Far(*id)))?);
        }
        for id in &change.remove_qers {
            let at = self.qers.iter().position(|r| r.id == *id);
            self.qers.remove(at.ok_or(RuleError::Unknown(RuleRef::Qer(*id)))?);
        }
        Ok(())
    }

    fn update_pdr(&mut self, update: PdrUpdate) -> Result<(), RuleError> {
        let unknown = RuleError::Unknown(RuleRef::Pdr(update.id));
        let pdr = self.pdrs.iter_mut().find(|r| r.id == update.id).ok_or(unknown)?;
        set(&mut pdr.precedence, update.precedence);
        set(&mut pdr.pdi, update.pdi);
        set(&mut pdr.outer_header_removal, update.outer_header_removal);
        set(&mut pdr.far, update.far);
        set(&mut pdr.qers, update.qers);
        Ok(())
    }

    fn update_far(&mut self, update: FarUpdate) -> Result<(), RuleError> {
        let rule = RuleRef::Far(update.id);
        let far = self.fars.iter_mut().find(|r| r.id == update.id).ok_or(RuleError::Unknown(rule))?;
        set(&mut far.apply_action, update.apply_action);
        let Some(to) = update.forwarding else { return Ok(()) };
        far.forwarding = Some(merge(far, to).ok_or(RuleError::NoForwardingParameters(rule))?);
        Ok(())
    }

    fn update_qer(&mut self, update: QerUpdate) -> Result<(), RuleError> {
        let unknown = RuleError::Unknown(RuleRef::Qer(update.id));
        let qer = self.qers.iter_mut().find(|r| r.id == update.id).ok_or(unknown)?;
        if let Some((uplink, downlink)) = update.gates {
            qer.uplink_gate = uplink;
            qer.downlink_gate = downlink;
        }
        qer.qfi = update.qfi.or(qer.qfi);
        Ok(())
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// `None` where the FAR had no forwarding parameters and the update names no interface.
fn merge(far: &Far, update: ForwardingUpdate) -> Option<ForwardingParameters> {
    let old = far.forwarding;
    let destination_interface = update.destination_interface.or(old.map(|p| p.destination_interface))?;
    let outer_header_creation = update.outer_header_creation.or(old.and_then(|p| p.outer_header_creation));
    let dscp = old.and_then(|p| p.dscp);
    Some(ForwardingParameters { destination_interface, outer_header_creation, dscp })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ids::Teid;
    use crate::intent::{FTeid, Pdr};
    use std::net::Ipv4Addr;

    pub(crate) fn rules() -> Rules {
        let ue = Ipv4Addr::new(10, 60, 0, 1);
        let f_teid = FTeid { teid: Teid(0x100), address: Ipv4Addr::new(10, 30, 0, 2) };
        let uplink = Pdi {
            source_interface: Interface::Access,
            f_teid: Some(f_teid),
            ue_ipv4: Some(ue),
            qfis: vec![],
        };
        let downlink =
            Pdi { source_interface: Interface::Core, f_teid: None, ue_ipv4: Some(ue), qfis: vec![] };
        let pdr = |id, pdi: Pdi, far| Pdr {
            id,
            precedence: 100,
            pdi,
            outer_header_removal: true,
            far,
            qers: vec![],
        };
        let to_core =
            ForwardingParameters { destination_interface: Interface::Core, outer_header_creation: None };
        Rules {
            pdrs: vec![pdr(PdrId(1), uplink, FarId(1)), pdr(PdrId(2), downlink, FarId(2))],
            fars: vec![
                Far { id: FarId(1), apply_action: ApplyAction::Forward, forwarding: Some(to_core) },
                Far { id: FarId(2), apply_action: ApplyAction::Drop, forwarding: None },
            ],
            qers: vec![],
        }
    }

    #[test]
    fn an_update_far_gives_the_downlink_its_tunnel() {
        let tunnel = OuterHeaderCreation { teid: Teid(9), address: Ipv4Addr::new(10, 30, 0, 1) };
        let forwarding = ForwardingUpdate {
            destination_interface: Some(Interface::Access),
            outer_header_creation: Some(tunnel),
        };
        let update = FarUpdate {
            id: FarId(2),
            apply_action: Some(ApplyAction::Forward),
            forwarding: Some(forwarding),
        };
        let next = rules().change(Change { update_fars: vec![update], ..Change::default() }).unwrap();
        assert_eq!(next.fars[1].apply_action, ApplyAction::Forward);
        assert_eq!(next.fars[1].forwarding.unwrap().outer_header_creation, Some(tunnel));
    }

    #[test]
    fn a_path_switch_keeps_the_interface_it_does_not_name() {
        let old = OuterHeaderCreation { teid: Teid(9), address: Ipv4Addr::new(10, 30, 0, 1) };
        let new = OuterHeaderCreation { teid: Teid(5), ..old };
        let mut rules = rules();
        rules.fars[1].forwarding = Some(ForwardingParameters {
            destination_interface: Interface::Access,
            outer_header_creation: Some(old),
        });
        let to = ForwardingUpdate { destination_interface: None, outer_header_creation: Some(new) };
        let update = FarUpdate { id: FarId(2), apply_action: None, forwarding: Some(to) };
        let next = rules.change(Change { update_fars: vec![update], ..Change::default() }).unwrap();
        let forwarding = next.fars[1].forwarding.unwrap();
        assert_eq!(forwarding.destination_interface, Interface::Access);
        assert_eq!(forwarding.outer_header_creation, Some(new));
    }

    #[test]
    fn removing_a_far_still_in_use_is_refused() {
        let change = Change { remove_fars: vec![FarId(1)], ..Change::default() };
        assert!(matches!(rules().change(change), Err(RuleError::Dangling(RuleRef::Pdr(PdrId(1)), _))));
    }

    #[test]
    fn unknown_rules_are_named() {
        let change = Change { remove_pdrs: vec![PdrId(40)], ..Change::default() };
        assert_eq!(rules().change(change), Err(RuleError::Unknown(RuleRef::Pdr(PdrId(40)))));
        let update = QerUpdate { id: QerId(3), gates: None, qfi: None };
        let change = Change { update_qers: vec![update], ..Change::default() };
        assert_eq!(rules().change(change), Err(RuleError::Unknown(RuleRef::Qer(QerId(3)))));
    }

    #[test]
    fn a_rule_can_be_replaced_within_one_change() {
        let replacement = Far { id: FarId(2), apply_action: ApplyAction::Drop, forwarding: None };
        let create = Rules { fars: vec![replacement], ..Rules::default() };
        let change = Change { remove_fars: vec![FarId(2)], create, ..Change::default() };
        assert!(rules().change(change).is_ok());
    }
}
