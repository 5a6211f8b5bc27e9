use super::*;
use rules::{
    ApplyAction, Far, FarId, ForwardingParameters, Gate, Instance, Interface, Pdi, Pdr, PdrId, Qer, QerId,
    Qfi, Rules, Teid, Urr, UrrId, Volume,
};
use session::{UrrUsage, UsageRecord, Used};

fn pdr(id: u16, source_interface: Interface) -> Pdr {
    let f_teid =
        (id == 1).then_some(rules::FTeid { teid: Teid(0xffff_0000), address: [10, 30, 0, 2].into() });
    Pdr {
        id: PdrId(id),
        precedence: 255,
        pdi: Pdi {
            source_interface,
            instance: Instance::DEFAULT,
            f_teid,
            ue_ipv4: Some([10, 60, 0, 1].into()),
            ue_ipv6: None,
            framed_routes: vec![],
            qfis: vec![],
            sdf_filters: vec![],
            application: None,
            ethernet: None,
        },
        outer_header_removal: f_teid.is_some(),
        far: FarId(id.into()),
        qers: vec![QerId(1)].into(),
        urrs: vec![UrrId(1)].into(),
    }
}

fn far(id: u32, destination_interface: Interface) -> Far {
    let tunnel = rules::OuterHeaderCreation::gtpu(Teid(0xffff_0001), [10, 30, 0, 3].into());
    let forwarding = ForwardingParameters {
        destination_interface,
        instance: Instance::DEFAULT,
        outer_header_creation: (id == 2).then_some(tunnel),
        dscp: None,
        policy: None,
    };
    Far {
        id: FarId(id),
        apply_action: ApplyAction::Forward,
        notify: false,
        forwarding: Some(forwarding),
        duplicating: false,
        duplicates: vec![],
        bar: None,
        redirect: None,
        enrichment: None,
    }
}

/// Two PDRs, two FARs, a QER and a URR, as an SMF sets up a PDU session.
fn record() -> SessionRecord {
    let qer = Qer {
        id: QerId(1),
        uplink_gate: Gate::Open,
        downlink_gate: Gate::Open,
        mbr: None,
        packet_rates: rules::PacketRates::default(),
        correlation: None,
        gbr: None,
        qfi: Qfi::new(9),
        reflective: false,
    };
    let threshold = Volume { total: Some(1 << 30), ..Volume::default() };
    let urr = Urr { id: UrrId(1), volume_threshold: Some(threshold), ..Urr::default() };
    let known = Used { at_ms: 3_900_000_000_000, ..Used::default() };
    let usage = UrrUsage { urr: UrrId(1), known, reported: known, granted: known, ..UrrUsage::default() };
    SessionRecord {
        seid: Seid(u64::MAX),
        revision: 1,
        owner: "smf.example".to_owned(),
        cp_f_seid: CpFSeid { seid: u64::MAX, address: [10, 40, 0, 1].into() },
        era: 0,
        rules: Rules {
            pdrs: vec![pdr(1, Interface::Access), pdr(2, Interface::Core)],
            fars: vec![far(1, Interface::Core), far(2, Interface::Access)],
            qers: vec![qer],
            urrs: vec![urr],
            bars: vec![],
        }
        .into(),
        usage: UsageRecord { epoch: u64::MAX, urrs: vec![usage], ..UsageRecord::default() },
        extras: None,
        charging: None,
    }
}

/// The issue asks for 1,536 octets. Beside the place and the record there are its names, some 100 octets more.
#[test]
fn sessions_asleep_are_small() {
    let octets = size_of::<(Seid, Slot)>() + Packed::of(&record()).size();
    assert!(octets <= 512, "{octets}");
}

#[test]
fn who_sleeps_wakes_as_before() {
    let mut sessions = Sessions::new((1, 0), 8);
    let seid = sessions.restore(record());
    let session = sessions.get_mut(seid).unwrap();
    (session.reporting, session.report_again_ms, session.timer) =
        (Some(9), 2_000, Some(machine::Time::from_millis(7)));
    sessions.rest(1_000);
    assert!(!sessions.by_seid[&seid].is_awake());
    let session = sessions.get(seid).unwrap();
    assert_eq!((&session.record, session.revision), (&record(), 2));
    assert_eq!((session.reporting, session.report_again_ms), (Some(9), 2_000));
    assert_eq!(session.timer, Some(machine::Time::from_millis(7)));
    // What has been looked at sleeps again, and moments that have passed are forgotten.
    sessions.rest(2_000);
    assert!(!sessions.by_seid[&seid].is_awake());
    assert_eq!(sessions.get(seid).unwrap().report_again_ms, 0);
    assert_eq!(sessions.remove(seid).unwrap().record, record());
    assert_eq!((sessions.len(), sessions.of_owner("smf.example", record().cp_f_seid)), (0, None));
}

/// No name comes again before all others have had their turn, in whatever process.
#[test]
fn names_go_on_where_the_process_before_may_have_been() {
    const STAMP: u64 = 1 << 32;
    let mut sessions = Sessions::new((1, 0), 8);
    let first = sessions.new_seid();
    let mut next = Sessions::new((1, sessions.reserved()), 8);
    assert_eq!((first, next.new_seid()), (Seid(STAMP + 1), Seid(STAMP + u64::from(BLOCK) + 1)));
    assert_eq!(next.reserved(), 2 * BLOCK);
    let mut last = Sessions::new((1, u32::MAX), 8);
    assert_eq!((last.new_seid(), last.reserved()), (Seid(STAMP + 1), BLOCK));
}
