//! A limit of our own for users whose rules have none, so that nobody takes all of a worker's time.

use rules::{BitRates, Direction, Gate, PacketRates, Pdr, Qer, QerId, Rules, limits};

/// Gives PDRs whose way no QER limits one that all of them share; a user without limits is held to `mbr` each way. Sessions with
/// a QER of that name, or as many as there may be, go without, and so do such PDRs.
pub(crate) fn hold(rules: &mut Rules, mbr: BitRates) {
    if rules.qers.len() >= limits::QERS || rules.qers.iter().any(|qer| qer.id == QerId::OWN) {
        return;
    }
    let Rules { pdrs, qers, .. } = rules;
    let mut is_needed = false;
    for pdr in pdrs.iter_mut() {
        if pdr.qers.len() < limits::QERS_PER_PDR && !is_limited(pdr, qers) {
            pdr.qers.push(QerId::OWN);
            is_needed = true;
        }
    }
    qers.extend(is_needed.then(|| own(mbr)));
}

fn own(mbr: BitRates) -> Qer {
    Qer {
        id: QerId::OWN,
        uplink_gate: Gate::Open,
        downlink_gate: Gate::Open,
        mbr: Some(mbr),
        packet_rates: PacketRates::default(),
        correlation: None,
        gbr: None,
        qfi: None,
        reflective: false,
    }
}

/// Whether some QER of a PDR limits the way its packets go.
fn is_limited(pdr: &Pdr, qers: &[Qer]) -> bool {
    let direction = pdr.pdi.source_interface.direction();
    let limits = |qer: &Qer| match direction {
        Direction::Uplink => (qer.mbr.map(|mbr| mbr.uplink_kbps), qer.packet_rates.uplink),
        Direction::Downlink => (qer.mbr.map(|mbr| mbr.downlink_kbps), qer.packet_rates.downlink),
    };
    let mut named = qers.iter().filter(|qer| pdr.qers.contains(&qer.id));
    // A rate of 0 is no limit.
    named.any(|qer| matches!(limits(qer), (Some(1..), _) | (_, Some(_))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::rules;
    use rules::{FarId, PacketRate};

    const MBR: BitRates = BitRates { uplink_kbps: 7, downlink_kbps: 7 };

    /// Which PDRs of a session with these QERs, all named by both of its PDRs, get the limit: the uplink one, the downlink one.
    fn held(qers: Vec<Qer>) -> [bool; 2] {
        let mut rules = rules(1);
        rules.pdrs.iter_mut().for_each(|pdr| pdr.qers = qers.iter().map(|qer| qer.id).collect());
        rules.qers = qers;
        let before = rules.qers.len();
        hold(&mut rules, MBR);
        assert_eq!(
            rules.pdrs.iter().map(|pdr| pdr.far).collect::<Vec<_>>(),
            [FarId(1), FarId(2)],
            "up, down"
        );
        let held = [0, 1].map(|at| rules.pdrs[at].qers.contains(&QerId::OWN));
        assert_eq!(rules.qers.len() - before, usize::from(held.contains(&true)));
        held
    }

    fn qer(id: u32, mbr: Option<BitRates>) -> Qer {
        Qer { id: QerId(id), mbr, ..own(MBR) }
    }

    #[test]
    fn who_has_no_limit_gets_one_each_way_it_is_missing() {
        let rates = |uplink_kbps, downlink_kbps| Some(BitRates { uplink_kbps, downlink_kbps });
        assert_eq!(held(vec![]), [true, true]);
        assert_eq!(held(vec![qer(1, None)]), [true, true]);
        assert_eq!(held(vec![qer(1, rates(0, 0))]), [true, true], "0 is no limit");
        assert_eq!(held(vec![qer(1, rates(5, 0))]), [false, true]);
        assert_eq!(held(vec![qer(1, None), qer(2, rates(0, 5))]), [true, false]);
        let packets = Some(PacketRate { packets: 0, window_s: 1 });
        let few = PacketRates { uplink: packets, downlink: None };
        assert_eq!(held(vec![Qer { packet_rates: few, ..qer(1, None) }]), [false, true]);
    }

    #[test]
    fn where_there_is_no_room_nothing_is_changed() {
        let many = |count| (0..count).map(|id| qer(id, None)).collect::<Vec<_>>();
        assert_eq!(held(many(limits::QERS_PER_PDR as u32)), [false, false]);
        assert_eq!(held(many(limits::QERS_PER_PDR as u32 - 1)), [true, true]);
        let mut rules = rules(1);
        rules.qers = many(limits::QERS as u32);
        let before = rules.clone();
        hold(&mut rules, MBR);
        assert_eq!(rules, before);
        rules.qers = vec![own(MBR)];
        let before = rules.clone();
        hold(&mut rules, MBR);
        assert_eq!(rules, before);
    }
}
