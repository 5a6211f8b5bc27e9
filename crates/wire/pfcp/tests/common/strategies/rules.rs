//! Every rule there can be.

use super::ethernet::packet_filter;
use super::sets::pool_identity;
use super::values::*;
use pfcp::*;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

prop_compose! {
    pub fn pdi()(
        source_interface in source_interface(),
        f_teid in of(f_teid()),
        network_instance in of(network_instance()),
        ue_ip_addresses in vec(ue_ip_address(), 0..3),
        traffic_endpoint_id in any::<Option<u8>>(),
        (ethernet_pdu_session_information, ethernet_packet_filters) in (of(0u8..2), vec(packet_filter(), 0..2)),
        sdf_filters in vec(sdf_filter(), 0..3),
        application_id in of(text()),
        qfis in vec(0u8..64, 0..3),
        interface_type in of(0u8..32),
        carried in carried(),
    ) -> Pdi {
        Pdi { source_interface, f_teid, network_instance, ue_ip_addresses, traffic_endpoint_id,
            ethernet_pdu_session_information, ethernet_packet_filters, sdf_filters, application_id, qfis, interface_type, carried }
    }
}

prop_compose! {
    pub fn create_pdr()(
        (pdr_id, precedence, far_id) in any::<(u16, Option<u32>, Option<u32>)>(),
        pdi in pdi(),
        outer_header_removal in of(outer_header_removal()),
        (urr_ids, qer_ids) in (vec(any::<u32>(), 0..3), vec(any::<u32>(), 0..3)),
        activate_predefined_rules in vec(text(), 0..2),
        ue_ip_address_pool in of(pool_identity()),
        carried in carried(),
    ) -> CreatePdr {
        CreatePdr { pdr_id, precedence, pdi, outer_header_removal, far_id, urr_ids, qer_ids,
            activate_predefined_rules, ue_ip_address_pool, carried }
    }
}

prop_compose! {
    pub fn update_pdr()(
        create in create_pdr(),
        pdi in of(pdi()),
        deactivate_predefined_rules in vec(text(), 0..2),
    ) -> UpdatePdr {
        UpdatePdr { pdr_id: create.pdr_id, outer_header_removal: create.outer_header_removal,
            precedence: create.precedence, pdi, far_id: create.far_id, urr_ids: create.urr_ids,
            qer_ids: create.qer_ids, activate_predefined_rules: create.activate_predefined_rules,
            deactivate_predefined_rules, carried: create.carried }
    }
}

prop_compose! {
    pub fn created_pdr()(
        pdr_id in any::<u16>(),
        local_f_teid in of(f_teid()),
        ue_ip_addresses in vec(ue_ip_address(), 0..3),
        carried in carried(),
    ) -> CreatedPdr {
        CreatedPdr { pdr_id, local_f_teid, ue_ip_addresses, carried }
    }
}

prop_compose! {
    pub fn forwarding_parameters()(
        destination_interface in destination_interface(),
        network_instance in of(network_instance()),
        outer_header_creation in of(outer_header_creation()),
        (transport_level_marking, linked_traffic_endpoint_id) in any::<(Option<u16>, Option<u8>)>(),
        (redirect_information, header_enrichment) in (of(redirect_information()), of(header_enrichment())),
        interface_type in of(0u8..32),
        carried in carried(),
    ) -> ForwardingParameters {
        ForwardingParameters { destination_interface, network_instance, outer_header_creation,
            transport_level_marking, redirect_information, header_enrichment, interface_type, linked_traffic_endpoint_id, carried }
    }
}

prop_compose! {
    pub fn duplicating_parameters()(
        destination_interface in destination_interface(),
        outer_header_creation in of(outer_header_creation()),
        transport_level_marking in any::<Option<u16>>(),
        carried in carried(),
    ) -> DuplicatingParameters {
        DuplicatingParameters { destination_interface, outer_header_creation, transport_level_marking, carried }
    }
}

prop_compose! {
    pub fn create_far()(
        far_id in any::<u32>(),
        apply_action in apply_action(),
        forwarding_parameters in of(forwarding_parameters()),
        duplicating_parameters in vec(duplicating_parameters(), 0..3),
        bar_id in any::<Option<u8>>(),
        carried in carried(),
    ) -> CreateFar {
        CreateFar { far_id, apply_action, forwarding_parameters, duplicating_parameters, bar_id, carried }
    }
}

const NOTHING: UpdateForwardingParameters = UpdateForwardingParameters {
    destination_interface: None,
    network_instance: None,
    outer_header_creation: None,
    transport_level_marking: None,
    redirect_information: None,
    header_enrichment: None,
    pfcpsm_req_flags: None,
    interface_type: None,
    linked_traffic_endpoint_id: None,
    carried: vec![],
};

prop_compose! {
    pub fn update_far()(
        create in create_far(),
        apply_action in of(apply_action()),
        destination_interface in of(destination_interface()),
        pfcpsm_req_flags in any::<Option<u8>>(),
    ) -> UpdateFar {
        let update = create.forwarding_parameters.map(|p| UpdateForwardingParameters { destination_interface,
            network_instance: p.network_instance, outer_header_creation: p.outer_header_creation,
            transport_level_marking: p.transport_level_marking, pfcpsm_req_flags,
            redirect_information: p.redirect_information, header_enrichment: p.header_enrichment,
            interface_type: p.interface_type, linked_traffic_endpoint_id: p.linked_traffic_endpoint_id,
            carried: p.carried });
        // A group of nothing is, in an update, the wish to remove it (TS 29.244 5.6.3): another message.
        let update = update.filter(|update| *update != NOTHING);
        UpdateFar { far_id: create.far_id, apply_action, update_forwarding_parameters: update, forwarding_parameters: None,
            update_duplicating_parameters: create.duplicating_parameters.into_iter().map(copies).collect(),
            bar_id: create.bar_id, carried: create.carried }
    }
}

fn copies(from: DuplicatingParameters) -> UpdateDuplicatingParameters {
    UpdateDuplicatingParameters {
        destination_interface: Some(from.destination_interface),
        outer_header_creation: from.outer_header_creation,
        transport_level_marking: from.transport_level_marking,
        carried: from.carried,
    }
}

prop_compose! {
    pub fn update_qer()(
        (qer_id, qer_correlation_id, rqi) in any::<(u32, Option<u32>, Option<u8>)>(),
        gate_status in of((gate(), gate()).prop_map(|(uplink, downlink)| GateStatus { uplink, downlink })),
        (mbr, gbr) in (of(rates()), of(rates())),
        qfi in of(0u8..64),
        carried in carried(),
    ) -> UpdateQer {
        UpdateQer { qer_id, qer_correlation_id, gate_status, mbr, gbr, qfi, rqi, carried }
    }
}

prop_compose! {
    pub fn create_qer()(q in update_qer(), uplink in gate(), downlink in gate()) -> CreateQer {
        CreateQer { qer_id: q.qer_id, qer_correlation_id: q.qer_correlation_id,
            gate_status: GateStatus { uplink, downlink }, mbr: q.mbr, gbr: q.gbr, qfi: q.qfi, rqi: q.rqi,
            carried: q.carried }
    }
}
