//! A plain session for tests.

use crate::*;
use std::net::{IpAddr, Ipv4Addr};

pub(crate) const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
pub(crate) const GNB: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 30, 0, 1));
const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 30, 0, 2));

pub(crate) fn pdi(source_interface: Interface) -> Pdi {
    Pdi {
        source_interface,
        instance: Instance::DEFAULT,
        f_teid: None,
        ue_ipv4: Some(UE),
        ue_ipv6: None,
        framed_routes: vec![],
        qfis: vec![],
        sdf_filters: vec![],
        application: None,
        ethernet: None,
    }
}

pub(crate) fn pdr(id: u16, pdi: Pdi, far: u32) -> Pdr {
    Pdr {
        id: PdrId(id),
        precedence: 100,
        pdi,
        outer_header_removal: true,
        far: FarId(far),
        qers: vec![].into(),
        urrs: vec![].into(),
    }
}

pub(crate) fn drop_far(id: u32) -> Far {
    Far {
        id: FarId(id),
        apply_action: ApplyAction::Drop,
        notify: false,
        forwarding: None,
        duplicating: false,
        duplicates: vec![],
        bar: None,
        redirect: None,
        enrichment: None,
    }
}

pub(crate) fn towards(destination_interface: Interface) -> ForwardingParameters {
    ForwardingParameters {
        destination_interface,
        instance: Instance::DEFAULT,
        outer_header_creation: None,
        dscp: None,
        policy: None,
    }
}

pub(crate) fn qer(id: u32) -> Qer {
    Qer {
        id: QerId(id),
        uplink_gate: Gate::Open,
        downlink_gate: Gate::Open,
        mbr: None,
        packet_rates: PacketRates::default(),
        correlation: None,
        gbr: None,
        qfi: None,
        reflective: false,
    }
}

pub(crate) fn urr(id: u32) -> Urr {
    Urr { id: UrrId(id), ..Urr::default() }
}

pub(crate) fn bar(id: u8) -> Bar {
    Bar { id: BarId(id), notification_delay_50ms: 0, suggested_packets: None, extended: None }
}

/// PDR 1 takes the user's packets from a tunnel to the core by FAR 1; PDR 2 drops what comes back by FAR 2.
pub(crate) fn rules() -> Rules {
    let f_teid = Some(FTeid { teid: Teid(0x100), address: OURS });
    let uplink = Pdi { f_teid, ..pdi(Interface::Access) };
    let forward =
        Far { apply_action: ApplyAction::Forward, forwarding: Some(towards(Interface::Core)), ..drop_far(1) };
    Rules {
        pdrs: vec![pdr(1, uplink, 1), pdr(2, pdi(Interface::Core), 2)],
        fars: vec![forward, drop_far(2)],
        ..Rules::default()
    }
}
