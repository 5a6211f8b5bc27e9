//! What modifications change of a session.

use super::environment::Below;
use super::random::{Random, chance};
use super::sessions::{bar, gate, rates, volume};
use rules::*;

/// The same rules with one thing changed, as modifications do.
pub(super) fn tweaked(random: &mut Random, rules: &Rules) -> Rules {
    let mut rules = rules.clone();
    match random.next_below(6) {
        0 => rules.fars.iter_mut().take(2).for_each(|far| flip(random, far)),
        1 => rules.qers.iter_mut().for_each(|qer| qer.downlink_gate = gate(random)),
        2 => rules
            .qers
            .iter_mut()
            .filter(|qer| qer.mbr.is_some())
            .for_each(|qer| qer.mbr = Some(rates(random))),
        3 => rules.urrs.iter_mut().for_each(|urr| regrant(random, urr)),
        4 => rules.bars.iter_mut().for_each(|known| *known = bar(random, known.id.0)),
        _ => rules.pdrs.iter_mut().for_each(|pdr| pdr.precedence = random.next_below(4)),
    }
    rules
}

/// Forward becomes drop and back; a tunnel moves to another TEID, as in a handover.
fn flip(random: &mut Random, far: &mut Far) {
    if let Some(tunnel) = far.forwarding.as_mut().and_then(|to| to.outer_header_creation.as_mut()) {
        let new = random.next_below(100);
        tunnel.header = match tunnel.header {
            OuterHeader::Gtpu(_) => OuterHeader::Gtpu(Teid(0x9000 + new)),
            OuterHeader::Udp(_) => OuterHeader::Udp(6_000 + new as u16),
        };
    }
    if chance(random, 400) {
        far.apply_action = match (far.apply_action, far.forwarding) {
            (ApplyAction::Forward, _) => ApplyAction::Drop,
            (_, Some(_)) => ApplyAction::Forward,
            (other, None) => other,
        };
    }
}

fn regrant(random: &mut Random, urr: &mut Urr) {
    if urr.volume_quota.is_some() {
        urr.quota_grant += random.next_below(2);
        urr.volume_quota = Some(volume(random));
        let since = |random: &mut Random| i64::from(random.next_below(6_000)) - 1_000;
        let place = Since { uplink: since(random), downlink: since(random) };
        urr.quota_since = chance(random, 500).then_some(place);
    }
}
