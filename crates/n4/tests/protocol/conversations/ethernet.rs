//! Sessions of Ethernet frames.

use super::sessions::{accept, delete, establish, flow, modify, setup};
use super::{Conversation, Stage, Step};
use crate::common::billing::urr;
use crate::common::smf::{self, establishment};
use dplink::Notice;
use n4::Input;
use pfcp::*;
use rules::Triggers;

const A: Mac = [2, 0, 0, 0, 0, 1];
const B: Mac = [2, 0, 0, 0, 0, 2];

fn established() -> SessionEstablishmentRequest {
    let mut request = establishment(77);
    request.pdn_type = Some(PdnType::Ethernet);
    request.create_urrs = vec![CreateUrr {
        measurement_method: flags::METHOD_EVENT,
        ethernet_inactivity_timer: Some(30),
        ..urr(5, Triggers::MAC_ADDRESSES.0)
    }];
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.urr_ids = vec![5]);
    let range = MacAddresses { destination: Some(A), upper_destination: Some(B), ..MacAddresses::default() };
    let pdi = &mut request.create_pdrs[1].pdi;
    pdi.ue_ip_addresses.clear();
    pdi.ethernet_packet_filters = vec![EthernetPacketFilter {
        ethernet_filter_id: Some(9),
        ethernet_filter_properties: Some(flags::ETHERNET_FILTER_BIDE),
        mac_addresses: vec![range],
        ethertype: Some(0x0800),
        c_tag: Some(VlanTag { id: Some(7), ..VlanTag::default() }),
        s_tag: Some(VlanTag { priority: Some(3), drop_eligible: Some(true), id: None }),
        ethernet_sdf_filters: vec![flow("permit out 17 from any 53 to assigned")],
        carried: vec![],
    }];
    request
}

/// Frames by what a rule looks at, and by what a traffic endpoint does.
fn unnamed(cp_seid: u64, by_endpoint: bool) -> SessionEstablishmentRequest {
    let mut request = establishment(cp_seid);
    request.pdn_type = None;
    let information = Some(flags::ETHERNET_ETHI);
    let pdi = &mut request.create_pdrs[1].pdi;
    pdi.ue_ip_addresses.clear();
    if by_endpoint {
        (pdi.network_instance, pdi.traffic_endpoint_id) = (None, Some(3));
        request.create_traffic_endpoints = vec![CreateTrafficEndpoint {
            traffic_endpoint_id: 3,
            ethernet_pdu_session_information: information,
            ..CreateTrafficEndpoint::default()
        }];
    } else {
        pdi.ethernet_pdu_session_information = information;
    }
    request
}

fn hears(stage: &mut Stage, macs: &[Mac]) {
    let session = stage.session(0);
    let macs = macs.iter().map(|mac| rules::SeenMac::untagged(*mac)).collect();
    stage.lab.handle(Input::DataPath(&Notice::Macs { session, macs }));
    stage.pass(2);
}

pub fn whole() -> Conversation {
    let pdi = Pdi {
        ethernet_packet_filters: vec![EthernetPacketFilter { ethertype: Some(0x0806), ..Default::default() }],
        ..smf::pdi(SourceInterface::Core)
    };
    let update = UpdatePdr { pdr_id: 2, pdi: Some(pdi), ..UpdatePdr::default() };
    let timer = UpdateUrr { urr_id: 5, ethernet_inactivity_timer: Some(60), ..UpdateUrr::default() };
    let change = SessionModificationRequest {
        update_pdrs: vec![update],
        update_urrs: vec![timer],
        ..SessionModificationRequest::default()
    };
    let steps = vec![
        setup(),
        establish(established()),
        establish(unnamed(78, false)),
        establish(unnamed(79, true)),
        Step::Do(|stage| hears(stage, &[A, B])),
        accept(),
        Step::Do(|stage| hears(stage, &[B])),
        accept(),
        modify(change),
        delete(),
    ];
    Conversation::new("sessions of frames", steps)
}
