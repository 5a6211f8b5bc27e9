//! Every value there can be.

use pfcp::*;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub fn carried() -> impl Strategy<Value = Vec<RawIe>> {
    let value = vec(any::<u8>(), 3..6);
    vec((0x8000u16.., value).prop_map(|(ie, value)| RawIe { ie, value }), 0..2)
}

/// What we only keep is well formed all the same: tshark looks into it.
pub fn text() -> impl Strategy<Value = Vec<u8>> {
    "[a-z]{1,12}".prop_map(String::into_bytes)
}

pub fn label() -> impl Strategy<Value = Vec<u8>> {
    "[a-z]{1,12}".prop_map(|name| NetworkInstance::labels(&name).0)
}

pub fn imsi() -> impl Strategy<Value = Vec<u8>> {
    vec(0u8..10, 7).prop_map(|digits| [&[1, 8][..], &digits, &[0xF1]].concat())
}

pub fn node_id() -> impl Strategy<Value = NodeId> {
    prop_oneof![
        any::<Ipv4Addr>().prop_map(NodeId::Ipv4),
        any::<Ipv6Addr>().prop_map(NodeId::Ipv6),
        "[a-z]{1,10}(\\.[a-z0-9-]{1,10}){0,3}".prop_map(NodeId::Fqdn),
    ]
}

pub fn f_seid() -> impl Strategy<Value = FSeid> {
    let both = any::<(u64, Ipv4Addr, Ipv6Addr)>();
    let some = both.prop_map(|(seid, v4, v6)| FSeid { seid, ipv4: Some(v4), ipv6: Some(v6) });
    prop_oneof![some, any::<(u64, IpAddr)>().prop_map(|(seid, address)| FSeid::new(seid, address))]
}

pub fn cause() -> impl Strategy<Value = Cause> {
    any::<u8>().prop_map(Cause::from_number)
}

pub fn up_features() -> impl Strategy<Value = UpFunctionFeatures> {
    let all = vec![UpFeature::Ftup, UpFeature::Empu, UpFeature::Ueip, UpFeature::Gcom];
    proptest::sample::subsequence(all, 0..4).prop_map(|bits| UpFunctionFeatures::of(&bits))
}

pub fn cp_features() -> impl Strategy<Value = CpFunctionFeatures> {
    let all = vec![CpFeature::Load, CpFeature::Ovrl, CpFeature::Uiaur];
    proptest::sample::subsequence(all, 0..3).prop_map(|bits| CpFunctionFeatures::of(&bits))
}

pub fn f_teid() -> impl Strategy<Value = FTeid> {
    let explicit = any::<(u32, Option<Ipv4Addr>, Option<Ipv6Addr>)>();
    let explicit = explicit.prop_filter_map("an address", |(teid, ipv4, ipv6)| {
        (ipv4.is_some() || ipv6.is_some()).then_some(FTeid::Explicit { teid, ipv4, ipv6 })
    });
    let choose = any::<(bool, bool, Option<u8>)>();
    prop_oneof![explicit, choose.prop_map(|(ipv4, ipv6, choose_id)| FTeid::Choose { ipv4, ipv6, choose_id })]
}

pub fn ue_ip_address() -> impl Strategy<Value = UeIpAddress> {
    let fields = any::<(Option<Ipv4Addr>, Option<Ipv6Addr>, bool, bool, Option<u8>)>();
    fields.prop_map(|(ipv4, ipv6, is_destination, choose, bits)| UeIpAddress {
        ipv4,
        ipv6,
        is_destination,
        choose_ipv4: choose && ipv4.is_none(),
        choose_ipv6: choose && ipv6.is_none(),
        ipv6_prefix_delegation_bits: bits.filter(|_| ipv6.is_some()),
        ipv6_prefix_length: bits.filter(|_| ipv6.is_none() && choose),
    })
}

pub fn network_instance() -> impl Strategy<Value = NetworkInstance> {
    prop_oneof![text(), label()].prop_map(NetworkInstance)
}

prop_compose! {
    pub fn sdf_filter()(
        flow_description in of("[ -~]{0,60}"),
        tos_traffic_class in any::<Option<[u8; 2]>>(),
        security_parameter_index in any::<Option<u32>>(),
        flow_label in any::<Option<[u8; 3]>>(),
        filter_id in any::<Option<u32>>(),
    ) -> SdfFilter {
        SdfFilter { flow_description, tos_traffic_class, security_parameter_index, flow_label, filter_id }
    }
}

pub fn source_interface() -> impl Strategy<Value = SourceInterface> {
    use SourceInterface::*;
    prop_oneof![Just(Access), Just(Core), Just(SgiLan), Just(CpFunction), (4u8..16).prop_map(Other)]
}

pub fn destination_interface() -> impl Strategy<Value = DestinationInterface> {
    use DestinationInterface::*;
    let known = prop_oneof![Just(Access), Just(Core), Just(SgiLan), Just(CpFunction), Just(LiFunction)];
    prop_oneof![known, (5u8..16).prop_map(Other)]
}

pub fn outer_header_removal() -> impl Strategy<Value = OuterHeaderRemoval> {
    any::<(u8, Option<u8>)>().prop_map(|(description, extension_header_deletion)| OuterHeaderRemoval {
        description,
        extension_header_deletion,
    })
}

pub fn apply_action() -> impl Strategy<Value = ApplyAction> {
    prop_oneof![any::<u8>().prop_map(ApplyAction::short), any::<u16>().prop_map(ApplyAction::new),]
}

pub fn outer_header_creation() -> impl Strategy<Value = OuterHeaderCreation> {
    prop_oneof![
        any::<(u32, Ipv4Addr)>().prop_map(|(teid, address)| OuterHeaderCreation::GtpuIpv4 { teid, address }),
        any::<(u32, Ipv6Addr)>().prop_map(|(teid, address)| OuterHeaderCreation::GtpuIpv6 { teid, address }),
        any::<(Ipv4Addr, u16)>().prop_map(|(address, port)| OuterHeaderCreation::UdpIpv4 { address, port }),
        any::<(Ipv6Addr, u16)>().prop_map(|(address, port)| OuterHeaderCreation::UdpIpv6 { address, port }),
        any::<[u8; 22]>().prop_map(|udp| OuterHeaderCreation::Other([&[12, 0][..], &udp].concat())),
        any::<[u8; 24]>().prop_map(|both| OuterHeaderCreation::Other([&[3, 0][..], &both].concat())),
        any::<[u8; 8]>().prop_map(|n19| OuterHeaderCreation::Other([&[1, 1][..], &n19].concat())),
    ]
}

pub fn rates() -> impl Strategy<Value = Rates> {
    let limit = 1u64 << 40;
    (0..limit, 0..limit).prop_map(|(uplink_kbps, downlink_kbps)| Rates { uplink_kbps, downlink_kbps })
}

pub fn gate() -> impl Strategy<Value = Gate> {
    prop_oneof![Just(Gate::Open), Just(Gate::Closed)]
}

pub fn failed_rule_id() -> impl Strategy<Value = FailedRuleId> {
    use FailedRuleId::*;
    prop_oneof![
        any::<u16>().prop_map(Pdr),
        any::<u32>().prop_map(Far),
        any::<u32>().prop_map(Qer),
        any::<u32>().prop_map(Urr),
        any::<u8>().prop_map(Bar),
    ]
}

pub fn redirect_information() -> impl Strategy<Value = RedirectInformation> {
    let sip = |uri: String| [&[3, 0, uri.len() as u8], uri.as_bytes()].concat();
    prop_oneof![
        "http://[a-z]{1,12}/".prop_map(RedirectInformation::Url),
        any::<IpAddr>().prop_map(RedirectInformation::Address),
        any::<(Ipv4Addr, Ipv6Addr)>().prop_map(|(ipv4, ipv6)| RedirectInformation::Addresses(ipv4, ipv6)),
        "sip:[a-z]{1,12}".prop_map(move |uri| RedirectInformation::Other(sip(uri))),
    ]
}

pub fn header_enrichment() -> impl Strategy<Value = HeaderEnrichment> {
    (text(), text()).prop_map(|(name, value)| HeaderEnrichment::Http { name, value })
}
