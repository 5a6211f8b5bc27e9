//! Whom a session's records are about.

use super::Charging;
use charging::{Account, Session, Slice, User};
use ipnet::{IpNet, Ipv6Net};
use machine::Clock;
use pfcp::{NetworkInstance, SessionEstablishmentRequest, SourceInterface};
use rules::{Interface, Rules};
use session::{ChargingRecord, SessionRecord};
use std::net::IpAddr;

/// The charging of a session that begins now.
pub(crate) fn opened(
    record: &SessionRecord,
    request: &SessionEstablishmentRequest,
    (charging, clock): (&Charging, Clock),
) -> Box<ChargingRecord> {
    let slice = request.s_nssai.as_deref().and_then(Slice::read);
    let mut user = User { dnn: data_network(request), slice, ..User::default() };
    request.user_id.iter().for_each(|user_id| user.read_user_id(user_id));
    let mut session = Session {
        seid: record.seid.0,
        owner: record.owner.clone(),
        cp_seid: record.cp_f_seid.seid,
        cp_address: record.cp_f_seid.address,
        serving_nodes: vec![],
        user,
    };
    describe(&mut session, record);
    Box::new(ChargingRecord { account: Account::new(session, &charging.policy, clock), own: vec![] })
}

/// What the owner calls it, or else the network instance on its side.
fn data_network(request: &SessionEstablishmentRequest) -> Option<String> {
    let told = request.apn_dnn.as_ref().and_then(|dnn| NetworkInstance(dnn.clone()).name());
    let pdis = || request.create_pdrs.iter().map(|pdr| &pdr.pdi);
    let of_core = pdis().filter(|pdi| pdi.source_interface == SourceInterface::Core);
    let mut instances = of_core.chain(pdis()).filter_map(|pdi| pdi.network_instance.as_ref()?.name());
    told.or_else(|| instances.next())
}

/// What of it may change with the session.
pub(super) fn describe(session: &mut Session, record: &SessionRecord) {
    session.owner.clone_from(&record.owner);
    (session.cp_seid, session.cp_address) = (record.cp_f_seid.seid, record.cp_f_seid.address);
    session.serving_nodes = serving_nodes(&record.rules);
    let endpoints = record.extras.iter().flat_map(|extras| &extras.endpoints);
    let pdis = || record.rules.pdrs.iter().map(|pdr| &pdr.pdi);
    let ipv4 = pdis().find_map(|pdi| pdi.ue_ipv4);
    let ipv6 = pdis().find_map(|pdi| Some(delegated(pdi, pdi.ue_ipv6?)));
    let user = &mut session.user;
    user.ipv4 = ipv4.or_else(|| endpoints.clone().find_map(|it| it.ue_ipv4)).or(user.ipv4);
    let ipv6 = ipv6.or_else(|| endpoints.clone().find_map(|it| it.ue_ipv6));
    user.ipv6 = ipv6.map(|net| (net.addr(), net.prefix_len())).or(user.ipv6);
}

/// The shortest prefix that a site gets (RFC 6177). A network behind the user that is larger is none that was delegated to him.
const SITE: u8 = 48;

/// The prefix that a user's link is of, where it has more links: rules have it among the networks behind the user.
fn delegated(pdi: &rules::Pdi, link: Ipv6Net) -> Ipv6Net {
    let wide = pdi.framed_routes.iter().filter_map(|route| match route {
        IpNet::V6(route) => Some(*route),
        IpNet::V4(_) => None,
    });
    wide.filter(|route| route.contains(&link) && route.prefix_len() >= SITE)
        .max_by_key(Ipv6Net::prefix_len)
        .unwrap_or(link)
}

/// Where tunnels towards the radio lead, each once.
pub(super) fn serving_nodes(rules: &Rules) -> Vec<IpAddr> {
    let forwarding = rules.fars.iter().filter_map(|far| far.forwarding.as_ref());
    let to_radio = forwarding.filter(|to| to.destination_interface == Interface::Access);
    let mut nodes: Vec<IpAddr> = to_radio
        .filter_map(|to| to.outer_header_creation)
        .filter(|to| to.teid().is_some())
        .map(|to| to.address)
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.truncate(Session::SERVING_NODES);
    nodes
}
