use super::*;
use rules::{
    ApplyAction, BitRates, Far, FarId, FlowDescription, FlowEnd, ForwardingParameters, Gate, HeaderField,
    Instance, PacketRate, PacketRates, Pdi, PortRange, Qer, QerId, Redirect, SdfFilter, Urr, limits,
};

fn end() -> FlowEnd {
    let ports = vec![PortRange { first: u16::MAX, last: u16::MAX }; limits::PORT_RANGES];
    let text = "permit out ip from !ff00:ffff:ffff:ffff::/128 to assigned";
    FlowEnd { ports, ..text.parse::<FlowDescription>().unwrap().remote }
}

/// As much as a PDR may say without names.
fn pdr() -> Pdr {
    let flow = FlowDescription { protocol: Some(u8::MAX), remote: end(), user: end() };
    let many = Some(u32::MAX);
    let filter =
        SdfFilter { flow: Some(flow), spi: many, flow_label: many, id: many, ..SdfFilter::default() };
    let pdi = Pdi {
        source_interface: Interface::SgiLan,
        instance: Instance::DEFAULT,
        f_teid: None,
        ue_ipv4: Some([255; 4].into()),
        ue_ipv6: "ff00:ffff:ffff:ffff::/128".parse().ok(),
        framed_routes: vec!["ff00:ffff:ffff:ffff::/64".parse().unwrap(); limits::FRAMED_ROUTES_PER_PDI],
        qfis: Qfi::new(Qfi::MAX).into_iter().cycle().take(limits::QFIS_PER_PDI).collect(),
        sdf_filters: vec![filter; limits::SDF_FILTERS_PER_PDI],
        application: None,
        ethernet: None,
    };
    Pdr {
        id: PdrId(u16::MAX),
        precedence: u32::MAX,
        pdi,
        outer_header_removal: true,
        far: FarId(u32::MAX),
        qers: vec![QerId(u32::MAX); limits::QERS_PER_PDR].into(),
        urrs: vec![UrrId(u32::MAX); limits::URRS_PER_PDR].into(),
    }
}

fn far() -> Far {
    let tunnel = OuterHeaderCreation::gtpu(Teid(u32::MAX), [u16::MAX; 8].into());
    let parameters = ForwardingParameters {
        destination_interface: Interface::SgiLan,
        instance: Instance::DEFAULT,
        outer_header_creation: Some(tunnel),
        dscp: Some(63),
        policy: None,
    };
    let url = format!("http://{}", "a".repeat(993));
    Far {
        id: FarId(u32::MAX),
        apply_action: ApplyAction::Forward,
        notify: true,
        forwarding: Some(parameters),
        duplicating: true,
        duplicates: vec![parameters; limits::DUPLICATES],
        bar: None,
        redirect: Some(Redirect::new(&url).unwrap()),
        enrichment: Some(HeaderField::new(&"a".repeat(255), &"b".repeat(255)).unwrap()),
    }
}

fn qer() -> Qer {
    let (rates, rate) = (
        Some(BitRates { uplink_kbps: u64::MAX, downlink_kbps: u64::MAX }),
        Some(PacketRate { packets: u16::MAX, window_s: u32::MAX }),
    );
    Qer {
        id: QerId(u32::MAX),
        uplink_gate: Gate::Closed,
        downlink_gate: Gate::Closed,
        mbr: rates,
        packet_rates: PacketRates { uplink: rate, downlink: rate },
        correlation: Some(u64::MAX),
        gbr: rates,
        qfi: Qfi::new(Qfi::MAX),
        reflective: true,
    }
}

#[test]
fn few_rules_fit_whatever_they_say() {
    let urr = Urr { linked: vec![UrrId(u32::MAX); limits::LINKED_URRS], ..Urr::default() };
    let rules = |count: usize| Rules {
        pdrs: vec![pdr(); count],
        fars: vec![far(); count],
        qers: vec![qer(); count],
        urrs: vec![urr.clone(); count],
        bars: vec![],
    };
    let few = Desired::new(Seid(u64::MAX), u64::MAX, rules(FEW));
    assert!(few.fits() && frame::fits(&few));
    let many = Desired::new(Seid(u64::MAX), u64::MAX, rules(4 * FEW));
    assert!(!many.fits() && !frame::fits(&many));
}
