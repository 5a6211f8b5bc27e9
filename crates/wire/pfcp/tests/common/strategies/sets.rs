//! Traffic endpoints, sets of sessions, and what is said of load.

use super::values::*;
use pfcp::*;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use std::net::IpAddr;

prop_compose! {
    pub fn create_traffic_endpoint()(
        (traffic_endpoint_id, ethernet_pdu_session_information) in (any::<u8>(), of(0u8..2)),
        local_f_teid in of(f_teid()),
        network_instance in of(network_instance()),
        ue_ip_addresses in vec(ue_ip_address(), 0..3),
        qfis in vec(0u8..64, 0..3),
        ue_ip_address_pool in of(pool_identity()),
        interface_type in of(0u8..32),
        carried in carried(),
    ) -> CreateTrafficEndpoint {
        CreateTrafficEndpoint { traffic_endpoint_id, ethernet_pdu_session_information, local_f_teid, network_instance, ue_ip_addresses, qfis,
            ue_ip_address_pool, interface_type, carried }
    }
}

pub fn update_traffic_endpoint() -> impl Strategy<Value = UpdateTrafficEndpoint> {
    create_traffic_endpoint().prop_map(|create| UpdateTrafficEndpoint {
        traffic_endpoint_id: create.traffic_endpoint_id,
        local_f_teid: create.local_f_teid,
        network_instance: create.network_instance,
        ue_ip_addresses: create.ue_ip_addresses,
        qfis: create.qfis,
        interface_type: create.interface_type,
        carried: create.carried,
    })
}

pub fn created_traffic_endpoint() -> impl Strategy<Value = CreatedTrafficEndpoint> {
    create_traffic_endpoint().prop_map(|create| CreatedTrafficEndpoint {
        traffic_endpoint_id: create.traffic_endpoint_id,
        local_f_teid: create.local_f_teid,
        ue_ip_addresses: create.ue_ip_addresses,
        carried: create.carried,
    })
}

pub fn pool_identity() -> impl Strategy<Value = PoolIdentity> {
    text().prop_map(PoolIdentity)
}

prop_compose! {
    pub fn pool_information()(
        identity in pool_identity(),
        network_instance in of(network_instance()),
        ip_version in of(1u8..4),
        carried in carried(),
    ) -> PoolInformation {
        PoolInformation { identity, network_instance, ip_version, carried }
    }
}

pub fn fq_csid() -> impl Strategy<Value = FqCsid> {
    let node = prop_oneof![
        (Just(0u8), vec(any::<u8>(), 4)),
        (Just(1u8), vec(any::<u8>(), 16)),
        (Just(2u8), vec(1u8..9, 4)),
    ];
    let fields = (node, vec(any::<u16>(), 1..4), of(0u8..8));
    fields.prop_map(|((node_id_type, node), csids, node_type)| FqCsid {
        node_id_type,
        node,
        csids,
        node_type,
    })
}

pub fn cp_ip_address() -> impl Strategy<Value = CpIpAddress> {
    any::<IpAddr>().prop_map(CpIpAddress::new)
}

pub fn alternative() -> impl Strategy<Value = CpIpAddress> {
    (cp_ip_address(), any::<bool>())
        .prop_map(|(address, is_preferred)| CpIpAddress { is_preferred, ..address })
}

/// The octet in front of the name is spare (TS 29.244 8.2.126).
pub fn set_id() -> impl Strategy<Value = Vec<u8>> {
    label().prop_map(|label| [&[0][..], &label].concat())
}

pub fn load() -> impl Strategy<Value = LoadControlInformation> {
    (any::<u32>(), 0u8..101).prop_map(|(sequence_number, metric)| LoadControlInformation {
        sequence_number,
        metric,
        carried: vec![],
    })
}

pub fn overload() -> impl Strategy<Value = OverloadControlInformation> {
    (any::<u32>(), 0u8..101, any::<u8>(), of(0u8..2)).prop_map(
        |(sequence_number, reduction_metric, period_of_validity, flags)| OverloadControlInformation {
            sequence_number,
            reduction_metric,
            period_of_validity,
            flags,
            carried: vec![],
        },
    )
}

prop_compose! {
    fn change()(
        fq_csids in vec(fq_csid(), 0..3),
        group_ids in vec(text(), 0..3),
        cp_ip_addresses in vec(cp_ip_address(), 0..3),
        alternative in alternative(),
    ) -> SessionChangeInfo {
        SessionChangeInfo { fq_csids, group_ids, cp_ip_addresses, alternative, carried: vec![] }
    }
}

fn peers() -> impl Strategy<Value = Option<PathReport>> {
    let peers = vec(any::<IpAddr>().prop_map(RemoteGtpuPeer::new), 1..3);
    of(peers.prop_map(|peers| PathReport { peers, carried: vec![] }))
}

fn domain_name() -> impl Strategy<Value = DomainName> {
    (text(), of(text())).prop_map(|(name, protocol)| DomainName { name, protocol })
}

fn pfd_context() -> impl Strategy<Value = PfdContext> {
    let texts = (vec(text(), 0..4), vec(text(), 0..4), vec(domain_name(), 0..4), of(text()));
    let contents = texts.prop_map(|(flow_descriptions, urls, domain_names, custom)| PfdContents {
        flow_descriptions,
        urls,
        domain_names,
        custom,
    });
    (vec(contents, 1..3), carried()).prop_map(|(contents, carried)| PfdContext { contents, carried })
}

/// Messages about what applications look like.
pub fn pfd_body() -> impl Strategy<Value = Body> {
    let application = (text(), vec(pfd_context(), 0..3))
        .prop_map(|(application_id, contexts)| ApplicationPfds { application_id, contexts, carried: vec![] });
    prop_oneof![
        (vec(application, 0..3), of(node_id()), carried()).prop_map(|(applications, node_id, carried)| {
            PfdManagementRequest { applications, node_id, carried }.into()
        }),
        (cause(), of(1u16..300), of(node_id())).prop_map(|(cause, offending_ie, node_id)| {
            PfdManagementResponse { cause, offending_ie, node_id, carried: vec![] }.into()
        }),
    ]
}

/// Messages about sets of sessions, and about the node.
pub fn set_body() -> impl Strategy<Value = Body> {
    let answer = || (node_id(), cause(), of(1u16..300));
    prop_oneof![
        (node_id(), vec(fq_csid(), 0..3), carried()).prop_map(|(node_id, fq_csids, carried)| {
            SessionSetDeletionRequest { node_id, fq_csids, carried }.into()
        }),
        answer().prop_map(|(node_id, cause, offending_ie)| {
            SessionSetDeletionResponse { node_id, cause, offending_ie, carried: vec![] }.into()
        }),
        (node_id(), vec(change(), 1..3)).prop_map(|(node_id, changes)| {
            SessionSetModificationRequest { node_id, changes, carried: vec![] }.into()
        }),
        answer().prop_map(|(node_id, cause, offending_ie)| {
            SessionSetModificationResponse { node_id, cause, offending_ie, carried: vec![] }.into()
        }),
        (node_id(), 0u8..32, [peers(), peers(), peers()]).prop_map(
            |(node_id, report_type, [failed, recovered, restarted])| {
                NodeReportRequest { node_id, report_type, failed, recovered, restarted, carried: vec![] }
                    .into()
            }
        ),
        answer().prop_map(|(node_id, cause, offending_ie)| {
            NodeReportResponse { node_id, cause, offending_ie, carried: vec![] }.into()
        }),
    ]
}
