//! Rules into the immutable program one worker runs: sorted, resolved, nothing left to look up.

use crate::check::RuleError;
use crate::ids::{PdrId, Qfi, Teid};
use crate::intent::{ApplyAction, FTeid, Far, Gate, Interface, Pdi, Pdr, Qer, Rules};
use std::net::Ipv4Addr;

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
    pub peer: Ipv4Addr,
    /// Carried in a PDU session container; `None` sends none (4G).
    pub qfi: Option<Qfi>,
}

/// What becomes of a packet a step matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The FAR says DROP.
    Drop,
    /// A QER's gate is closed.
    GateClosed,
    /// Send it out, in a tunnel or plain.
    Forward {
        /// The side it leaves on.
        to: Interface,
        /// The tunnel, if any.
        encapsulation: Option<Encapsulation>,
    },
}

/// One PDR with everything it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// For counters, traces and reports.
    pub pdr: PdrId,
    /// Where the packet must come from.
    pub source: Interface,
    /// The tunnel it must come in; `None` takes plain packets only.
    pub teid: Option<Teid>,
    /// The user's address it must carry, if any.
    pub ue: Option<Ipv4Addr>,
    /// Bit n set: QFI n matches. 0 matches everything.
    pub qfis: u64,
    /// What to do.
    pub action: Action,
}

/// What PDRs look at in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where it came from.
    pub source: Interface,
    /// The tunnel it came in.
    pub teid: Option<Teid>,
    /// The user's address: its source on the uplink, its destination on the downlink.
    pub ue: Ipv4Addr,
    /// The QoS flow its tunnel header names.
    pub qfi: Option<Qfi>,
}

impl Step {
    /// Whether a packet matches.
    #[inline]
    pub fn matches(&self, packet: &Arrival) -> bool {
        self.source == packet.source
            && self.teid == packet.teid
            && self.ue.is_none_or(|ue| ue == packet.ue)
            && (self.qfis == 0 || packet.qfi.is_some_and(|qfi| self.qfis & bit(qfi) != 0))
    }
}

/// A session's rules, ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// By precedence, then PDR ID.
    pub steps: Box<[Step]>,
    /// The tunnels that lead to this session, each once.
    pub f_teids: Box<[FTeid]>,
    /// The user addresses that lead to this session on the downlink, each once.
    pub ue_ipv4s: Box<[Ipv4Addr]>,
}

/// Compiles rules that pass [`Rules::check`].
///
/// # Errors
/// Whatever [`Rules::check`] finds.
pub fn compile(rules: &Rules) -> Result<Program, RuleError> {
    rules.check()?;
    let mut pdrs: Vec<&Pdr> = rules.pdrs.iter().collect();
    pdrs.sort_by_key(|pdr| (pdr.precedence, pdr.id));
    Ok(Program {
        steps: pdrs.iter().map(|pdr| step(pdr, rules)).collect(),
        f_teids: unique(pdrs.iter().filter_map(|pdr| pdr.pdi.f_teid)),
        ue_ipv4s: unique(pdrs.iter().filter_map(|pdr| plain_address(&pdr.pdi))),
    })
}

fn step(pdr: &Pdr, rules: &Rules) -> Step {
    let qers: Vec<&Qer> = pdr.qers.iter().filter_map(|id| rules.qers.iter().find(|q| q.id == *id)).collect();
    let far = rules.fars.iter().find(|far| far.id == pdr.far);
    Step {
        pdr: pdr.id,
        source: pdr.pdi.source_interface,
        teid: pdr.pdi.f_teid.map(|f_teid| f_teid.teid),
        ue: pdr.pdi.ue_ipv4,
        qfis: pdr.pdi.qfis.iter().fold(0, |mask, qfi| mask | bit(*qfi)),
        action: far.map_or(Action::Drop, |far| action(far, &qers, pdr.pdi.source_interface.direction())),
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
    match (far.apply_action, far.forwarding) {
        (ApplyAction::Forward, Some(forwarding)) => Action::Forward {
            to: forwarding.destination_interface,
            encapsulation: forwarding.outer_header_creation.map(|tunnel| Encapsulation {
                teid: tunnel.teid,
                peer: tunnel.address,
                qfi: qers.iter().find_map(|qer| qer.qfi),
            }),
        },
        _ => Action::Drop,
    }
}

const fn bit(qfi: Qfi) -> u64 {
    1 << qfi.value()
}

/// The address by which packets outside any tunnel find the session.
fn plain_address(pdi: &Pdi) -> Option<Ipv4Addr> {
    match pdi.f_teid {
        Some(_) => None,
        None => pdi.ue_ipv4,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::tests::rules;
    use crate::ids::QerId;
    use crate::intent::{ForwardingParameters, OuterHeaderCreation};

    const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);

    fn qer(id: u32, downlink_gate: Gate, qfi: Option<Qfi>) -> Qer {
        Qer { id: QerId(id), uplink_gate: Gate::Open, downlink_gate, qfi }
    }

    #[test]
    fn steps_stand_in_order_of_precedence() {
        let mut rules = rules();
        rules.pdrs[1].precedence = 1;
        let order: Vec<_> = compile(&rules).unwrap().steps.iter().map(|step| step.pdr).collect();
        assert_eq!(order, [PdrId(2), PdrId(1)]);
    }

    #[test]
    fn keys_are_the_tunnels_up_and_the_addresses_down() {
        let program = compile(&rules()).unwrap();
        assert_eq!(program.f_teids.len(), 1);
        assert_eq!(&*program.ue_ipv4s, [UE]);
    }

    #[test]
    fn any_closed_gate_closes_its_own_direction_only() {
        let mut rules = rules();
        rules.qers = vec![qer(1, Gate::Open, None), qer(2, Gate::Closed, None)];
        rules.pdrs.iter_mut().for_each(|pdr| pdr.qers = vec![QerId(1), QerId(2)]);
        let program = compile(&rules).unwrap();
        assert!(matches!(program.steps[0].action, Action::Forward { to: Interface::Core, .. }));
        assert_eq!(program.steps[1].action, Action::GateClosed);
    }

    #[test]
    fn the_first_qfi_marks_the_tunnel() {
        let mut rules = rules();
        rules.qers = vec![qer(1, Gate::Open, None), qer(2, Gate::Open, Qfi::new(9))];
        rules.pdrs[1].qers = vec![QerId(1), QerId(2)];
        let tunnel = OuterHeaderCreation { teid: Teid(7), address: Ipv4Addr::new(10, 30, 0, 1) };
        rules.fars[1].apply_action = ApplyAction::Forward;
        rules.fars[1].forwarding = Some(ForwardingParameters {
            destination_interface: Interface::Access,
            outer_header_creation: Some(tunnel),
        });
        let expected = Encapsulation { teid: Teid(7), peer: tunnel.address, qfi: Qfi::new(9) };
        let action = compile(&rules).unwrap().steps[1].action;
        assert_eq!(action, Action::Forward { to: Interface::Access, encapsulation: Some(expected) });
    }

    #[test]
    fn a_step_matches_only_what_its_pdi_says() {
        let mut rules = rules();
        rules.pdrs[0].pdi.qfis = vec![Qfi::new(5).unwrap()];
        let step = compile(&rules).unwrap().steps[0];
        let fits = Arrival { source: Interface::Access, teid: Some(Teid(0x100)), ue: UE, qfi: Qfi::new(5) };
        assert!(step.matches(&fits));
        assert!(!step.matches(&Arrival { qfi: Qfi::new(6), ..fits }));
        assert!(!step.matches(&Arrival { qfi: None, ..fits }));
        assert!(!step.matches(&Arrival { source: Interface::Core, ..fits }));
        assert!(!step.matches(&Arrival { teid: None, ..fits }));
        assert!(!step.matches(&Arrival { ue: Ipv4Addr::LOCALHOST, ..fits }));
    }
}
