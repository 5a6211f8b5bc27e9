//! Which changes of rules by a control plane split what was used before and after them, and which do not.

use crate::charging::{charging, key};
use crate::common::billing::*;
use crate::common::{Lab, SMF, smf};
use ::charging::{Conditions, Policy, Rating};
use n4::{Charging, Config, Predefined, PredefinedRule};
use pfcp::*;
use rules::Seid;

const DNS: &str = "permit out 17 from any 53 to assigned";
const WEB: &str = "permit out 6 from any 80 to assigned";
const MAIL: &str = "permit out 6 from any 25 to assigned";
const FORW: u16 = ApplyAction::FORW;
const BUFF: u16 = ApplyAction::BUFF;
const NOCP: u16 = ApplyAction::NOCP;
const DROP: u16 = ApplyAction::DROP;
const TO_USER: DestinationInterface = DestinationInterface::Access;
const TO_CORE: DestinationInterface = DestinationInterface::Core;

type Request = SessionModificationRequest;

/// What PDR 3 is about.
fn service(filters: &[&str]) -> Pdi {
    let sdf_filters = filters.iter().map(|text| SdfFilter::flow(*text)).collect();
    let f_teid = Some(smf::given(7));
    Pdi { f_teid, sdf_filters, ..smf::pdi(SourceInterface::Access) }
}

fn service_pdr(filters: &[&str]) -> CreatePdr {
    CreatePdr { pdi: service(filters), precedence: Some(100), ..smf::uplink(3, smf::given(7)) }
}

/// All packets by PDRs 1 and 2, those of two services by PDR 3 first.
fn establishment() -> SessionEstablishmentRequest {
    let mut request = smf::establishment(77);
    let tunnel = Some(smf::tunnel(5));
    let to_user = ForwardingParameters { outer_header_creation: tunnel, ..smf::forwarding(TO_USER) };
    request.create_pdrs =
        vec![smf::uplink(1, smf::given(7)), smf::downlink(2, Some(smf::UE)), service_pdr(&[DNS, WEB])];
    request.create_fars[1] = smf::far(2, FORW, Some(to_user));
    request
}

fn of_pdr(update: UpdatePdr) -> Request {
    Request { update_pdrs: vec![update], ..Request::default() }
}

/// Another PDI of PDR 3.
fn about(pdi: Pdi) -> Request {
    of_pdr(UpdatePdr { pdi: Some(pdi), ..UpdatePdr::new(3) })
}

fn precedences(all: &[(u16, u32)]) -> Request {
    let update = |(id, value): &(u16, u32)| UpdatePdr { precedence: Some(*value), ..UpdatePdr::new(*id) };
    Request { update_pdrs: all.iter().map(update).collect(), ..Request::default() }
}

fn acts(far: u32, action: u16) -> Request {
    request::updates(vec![request::far_action(far, ApplyAction::new(action))])
}

fn leads(far: u32, to: UpdateForwardingParameters) -> Request {
    let update = UpdateFar { update_forwarding_parameters: Some(to), ..UpdateFar::new(far) };
    request::updates(vec![update])
}

fn to() -> UpdateForwardingParameters {
    UpdateForwardingParameters::default()
}

/// PDR 3 goes by another FAR.
fn goes_by(far: CreateFar) -> Request {
    let update = UpdatePdr { far_id: Some(far.far_id), ..UpdatePdr::new(3) };
    Request { create_fars: vec![far], ..of_pdr(update) }
}

fn far(id: u32, action: u16) -> CreateFar {
    smf::far(id, action, Some(smf::forwarding(TO_CORE)))
}

/// What was used before and after a change, and why it was told apart: nobody tells of it but who is asked.
fn told(
    config: Config,
    establishment: SessionEstablishmentRequest,
    steps: Vec<Request>,
) -> Vec<(u64, Conditions)> {
    let mut lab = Lab::associated_with(config);
    let session = lab.establish(establishment);
    lab.traffic(session, (1, 0), true);
    for (at, request) in (1..).zip(steps) {
        let response = lab.modify(session, request);
        assert_eq!(response.cause, Cause::RequestAccepted, "{response:?} {:?}", lab.notes);
        lab.traffic(session, (1 << at, 0), true);
    }
    lab.delete(session);
    let containers = lab.cdrs.iter().flat_map(|cdr| &cdr.containers);
    containers.map(|it| (it.uplink_bytes, it.conditions)).collect()
}

const SPLIT: [(u64, Conditions); 2] = [(1, Conditions::RULE_CHANGE), (2, Conditions::SESSION_END)];
const WHOLE: [(u64, Conditions); 1] = [(3, Conditions::SESSION_END)];

fn splits(what: &str, request: Request) {
    assert_eq!(told(charging(Policy::default()), establishment(), vec![request]), SPLIT, "{what}");
}

fn splits_nothing(what: &str, request: Request) {
    assert_eq!(told(charging(Policy::default()), establishment(), vec![request]), WHOLE, "{what}");
}

/// Time passes before it is measured, and while it is not.
#[test]
fn time_is_charged_that_was_measured() {
    let measuring = |method| {
        let update_urrs =
            vec![UpdateUrr { urr_id: 10, measurement_method: Some(method), ..UpdateUrr::default() }];
        Request { update_urrs, ..Request::default() }
    };
    let (volume, both) = (flags::METHOD_VOLUM, flags::METHOD_VOLUM | flags::METHOD_DURAT);
    for (first, charged) in [(volume, 4), (both, 12)] {
        let mut lab = Lab::associated_with(charging(Policy::default()));
        let urr = CreateUrr { measurement_method: first, ..urr(10, 0) };
        let session = lab.establish(metered(77, vec![urr]));
        lab.traffic(session, (1, 0), false);
        seconds(&mut lab, 8);
        for (method, pause) in [(volume, 16), (both, 4)] {
            lab.modify(session, measuring(method));
            seconds(&mut lab, pause);
        }
        lab.delete(session);
        let all = lab.cdrs.iter().flat_map(|cdr| &cdr.containers);
        let all: Vec<_> = all.map(|one| (one.duration_ms, one.uplink_bytes, one.conditions)).collect();
        assert_eq!(all.iter().map(|one| one.0).sum::<u64>(), charged * 1_000, "{all:?}");
    }
}

#[test]
fn packets_that_a_rule_was_not_about_are_told_apart() {
    splits("filters", about(service(&[DNS, MAIL])));
    splits("fewer filters", about(service(&[DNS])));
    let application_id = Some(b"video".to_vec());
    splits("an application", about(Pdi { application_id, ..service(&[DNS, WEB]) }));
    splits("a QoS flow", about(Pdi { qfis: vec![9], ..service(&[DNS, WEB]) }));
    let mut framed = smf::pdi(SourceInterface::Core);
    framed.ue_ip_addresses = vec![smf::ue(smf::UE)];
    framed.carried = vec![RawIe { ie: ie::FRAMED_ROUTE, value: b"192.168.9.0/24".to_vec() }];
    let other_user = Pdi { ue_ip_addresses: vec![smf::ue([10, 60, 0, 2].into())], ..framed.clone() };
    let of_user = |pdi| of_pdr(UpdatePdr { pdi: Some(pdi), ..UpdatePdr::new(2) });
    splits("a network behind the user", of_user(framed));
    splits("another address", of_user(Pdi { carried: vec![], ..other_user }));
    let lan = Pdi { source_interface: SourceInterface::SgiLan, ..service(&[DNS, WEB]) };
    splits("another side", about(lan));
    let f_teid = Some(smf::given(9));
    let tunnel = Pdi { f_teid, ue_ip_addresses: vec![smf::ue(smf::UE)], ..smf::pdi(SourceInterface::Core) };
    let outer_header_removal = Some(OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IP));
    let n9 = UpdatePdr { pdi: Some(tunnel), outer_header_removal, ..UpdatePdr::new(2) };
    splits("from a tunnel", of_pdr(n9));
    let again = Request {
        remove_pdrs: vec![RemovePdr::new(3)],
        create_pdrs: vec![service_pdr(&[MAIL])],
        ..Request::default()
    };
    splits("another PDR in its place", again);
}

#[test]
fn packets_that_are_left_to_another_rule_are_told_apart() {
    splits("behind the other", precedences(&[(3, 300)]));
    splits("before each other", precedences(&[(1, 100), (3, 255)]));
}

/// What the others no longer take, or take now, is left to it or not.
#[test]
fn a_rule_that_stays_between_others_that_change_places_is_another() {
    let rating = Rating::new(None, vec![(10..=19, key(10))], []).unwrap();
    let policy = Policy::default();
    let config = Config { charging: Some(Charging { rating, policy }), ..charging(Policy::default()) };
    let mut request = establishment();
    request.create_urrs = vec![urr(10, 0)];
    request.create_pdrs[2].urr_ids = vec![10];
    request.create_pdrs.push(CreatePdr { precedence: Some(50), ..smf::uplink(4, smf::given(7)) });
    let change = |all: &[(u16, u32)]| told(config.clone(), request.clone(), vec![precedences(all)]);
    assert_eq!(change(&[(1, 50), (4, 255)]), SPLIT);
    assert_eq!(change(&[(1, 90), (4, 80)]), SPLIT);
    assert_eq!(change(&[(1, 300), (4, 99)]), WHOLE);
}

#[test]
fn packets_that_are_dealt_with_otherwise_are_told_apart() {
    splits("dropped", acts(1, DROP));
    splits("dropped, and told of", acts(1, DROP | NOCP));
    splits("the user's dropped", acts(2, DROP));
    splits("dropped by another FAR", goes_by(smf::far(9, DROP, None)));
    splits("dropped by another FAR, and told of", goes_by(smf::far(9, DROP | NOCP, None)));
    let created = Request { create_fars: vec![smf::far(1, DROP, None)], ..Request::default() };
    splits("dropped by another FAR in its place", created);
    let lan = Some(DestinationInterface::SgiLan);
    splits("to another side", leads(1, UpdateForwardingParameters { destination_interface: lan, ..to() }));
    let portal = Some(RedirectInformation::Url("http://portal.example/".to_owned()));
    splits("redirected", leads(1, UpdateForwardingParameters { redirect_information: portal, ..to() }));
    let field = HeaderEnrichment::Http { name: "X-User".into(), value: "1".into() };
    let enriched = UpdateForwardingParameters { header_enrichment: Some(field), ..to() };
    splits("with a header field", leads(1, enriched));
    let marked = UpdateForwardingParameters { transport_level_marking: Some(0xB8FC), ..to() };
    splits("marked", leads(1, marked));
    let n9 = UpdateForwardingParameters { outer_header_creation: Some(smf::tunnel(9)), ..to() };
    splits("into a tunnel to the next user plane", leads(1, n9));
}

/// Networks are told apart where the operator has several.
#[test]
fn packets_for_another_network_are_told_apart() {
    let named = |name: &str| Some(NetworkInstance::labels(name));
    let network_instances = ["ims", "internet"].map(str::to_owned).to_vec();
    let config = Config { network_instances, ..charging(Policy::default()) };
    let ims = UpdateForwardingParameters { network_instance: named("ims"), ..to() };
    let expected = told(config.clone(), establishment(), vec![leads(1, ims.clone())]);
    assert_eq!(expected, SPLIT);
    // Of what leaves in a tunnel it says nothing.
    assert_eq!(told(config.clone(), establishment(), vec![leads(2, ims)]), WHOLE);
    let from_ims = |pdi| Pdi { network_instance: named("ims"), ..pdi };
    let of_user = Pdi { ue_ip_addresses: vec![smf::ue(smf::UE)], ..smf::pdi(SourceInterface::Core) };
    let update = UpdatePdr { pdi: Some(from_ims(of_user)), ..UpdatePdr::new(2) };
    assert_eq!(told(config.clone(), establishment(), vec![of_pdr(update)]), SPLIT);
    // Nor of what comes in one.
    assert_eq!(told(config, establishment(), vec![about(from_ims(service(&[DNS, WEB])))]), WHOLE);
}

#[test]
fn frames_that_a_rule_was_not_about_are_told_apart() {
    let filters = |types: &[u16]| {
        let filter =
            |ethertype: &u16| EthernetPacketFilter { ethertype: Some(*ethertype), ..Default::default() };
        let ethernet_packet_filters = types.iter().map(filter).collect();
        Pdi { ethernet_packet_filters, ..smf::pdi(SourceInterface::Core) }
    };
    let change = |types: &[u16]| {
        let mut request = crate::ethernet::ethernet(77);
        request.create_pdrs[1].pdi.ethernet_packet_filters =
            filters(&[0x0800, 0x0806]).ethernet_packet_filters;
        let update = UpdatePdr { pdi: Some(filters(types)), ..UpdatePdr::new(2) };
        told(charging(Policy::default()), request, vec![of_pdr(update)])
    };
    assert_eq!(change(&[0x0800, 0x86DD]), SPLIT);
    assert_eq!(change(&[0x0806, 0x0800]), WHOLE);
}

#[test]
fn a_drop_that_ends_is_told_apart_but_for_the_way_to_the_radio() {
    let config = || charging(Policy::default());
    let mut blocked = establishment();
    blocked.create_fars[0] = smf::far(1, DROP, None);
    let open = Request { create_fars: vec![far(1, FORW)], ..Request::default() };
    assert_eq!(told(config(), blocked, vec![open]), SPLIT);
    let mut begun = establishment();
    begun.create_fars[1] = smf::far(2, DROP, None);
    assert_eq!(told(config(), begun.clone(), vec![smf::path_switch(5)]), WHOLE);
    // As one control plane has packets kept before there is a tunnel.
    let mut kept = begun.clone();
    kept.create_fars[1] = smf::far(2, DROP, Some(smf::forwarding(TO_USER)));
    assert_eq!(told(config(), kept, vec![acts(2, BUFF | NOCP)]), WHOLE);
    let no_tunnel = vec![RawIe { ie: ie::OUTER_HEADER_CREATION, value: vec![] }];
    let mut rests = leads(2, UpdateForwardingParameters { carried: no_tunnel, ..to() });
    rests.update_fars[0].apply_action = Some(ApplyAction::new(DROP));
    splits_nothing("the tunnel is gone", rests);
    // What leaves to the core has no tunnel to wait for, whichever way it came.
    let mut onwards = begun.clone();
    onwards.create_fars[1] = far(2, FORW);
    assert_eq!(told(config(), onwards, vec![acts(2, DROP)]), SPLIT);
    // Another FAR is another rule.
    let another =
        ForwardingParameters { outer_header_creation: Some(smf::tunnel(5)), ..smf::forwarding(TO_USER) };
    let update = UpdatePdr { far_id: Some(9), ..UpdatePdr::new(2) };
    let create_fars = vec![smf::far(9, FORW, Some(another))];
    assert_eq!(told(config(), begun, vec![Request { create_fars, ..of_pdr(update) }]), SPLIT);
}

#[test]
fn a_user_who_sleeps_and_wakes_up_splits_nothing() {
    for action in [BUFF | NOCP, BUFF, DROP | NOCP] {
        let steps = vec![acts(2, action), smf::path_switch(6)];
        let expected = [(7, Conditions::SESSION_END)];
        assert_eq!(told(charging(Policy::default()), establishment(), steps), expected, "{action}");
    }
    splits_nothing("uplink packets kept", acts(1, BUFF));
    splits_nothing("another tunnel of the same node", smf::path_switch(6));
    let mut bar = Request { create_bar: Some(CreateBar::new(1)), ..acts(2, BUFF | NOCP) };
    bar.update_fars[0].bar_id = Some(1);
    splits_nothing("by a BAR", bar);
    let tunnel = Pdi { f_teid: Some(smf::given(8)), ..service(&[DNS, WEB]) };
    splits_nothing("another tunnel of ours", about(tunnel));
    let endmarker = UpdateForwardingParameters { pfcpsm_req_flags: Some(flags::PFCPSM_SNDEM), ..to() };
    let tunnel = UpdateForwardingParameters { outer_header_creation: Some(smf::tunnel(8)), ..endmarker };
    splits_nothing("with an end marker", leads(2, tunnel));
}

/// Whoever reads records must not learn of it.
#[test]
fn a_user_who_is_copied_splits_nothing() {
    let to = UpdateDuplicatingParameters {
        destination_interface: Some(DestinationInterface::LiFunction),
        outer_header_creation: Some(smf::tunnel(0x99)),
        ..UpdateDuplicatingParameters::default()
    };
    let update = UpdateFar {
        update_duplicating_parameters: vec![to],
        ..request::far_action(1, ApplyAction::new(FORW | ApplyAction::DUPL))
    };
    splits_nothing("copies", request::updates(vec![update]));
}

#[test]
fn what_is_said_again_or_in_another_order_splits_nothing() {
    splits_nothing("nothing", Request::default());
    splits_nothing("the PDI", about(service(&[DNS, WEB])));
    splits_nothing("the PDI, from behind", about(service(&[WEB, DNS])));
    splits_nothing("the action", acts(1, FORW));
    let created = Request { create_fars: vec![far(1, FORW)], ..Request::default() };
    splits_nothing("the FAR", created);
    splits_nothing("another FAR that does the same", goes_by(far(9, FORW)));
    splits_nothing("other precedences in the same order", precedences(&[(3, 7), (1, 8), (2, 9)]));
    splits_nothing("of packets the other way", precedences(&[(2, 50)]));
    let again = Request {
        remove_pdrs: vec![RemovePdr::new(3)],
        create_pdrs: vec![service_pdr(&[WEB, DNS])],
        ..Request::default()
    };
    splits_nothing("the PDR", again);
}

/// As control planes do that create in each modification what they have created before.
#[test]
fn a_qer_that_is_created_as_it_is_splits_nothing() {
    let mut request = establishment();
    request.create_qers = vec![smf::qer(8), smf::qer(9)];
    request.create_pdrs[2].qer_ids = vec![8, 9];
    let change = |qer| {
        let step = Request { create_qers: vec![qer], ..Request::default() };
        told(charging(Policy::default()), request.clone(), vec![step])
    };
    assert_eq!(change(smf::qer(8)), WHOLE);
    let slower = Some(Rates { uplink_kbps: 1, downlink_kbps: 1 });
    let expected = [(1, Conditions::QOS_CHANGE), (2, Conditions::SESSION_END)];
    assert_eq!(change(request::qer(8, slower, Some(9))), expected);
}

#[test]
fn rules_that_come_and_go_split_nothing() {
    let create_pdrs = vec![CreatePdr { precedence: Some(50), ..smf::uplink(9, smf::given(7)) }];
    splits_nothing("a new one", Request { create_pdrs: create_pdrs.clone(), ..Request::default() });
    let create_qers = vec![smf::qer(9)];
    let rated = create_pdrs.into_iter().map(|pdr| CreatePdr { qer_ids: vec![9], ..pdr }).collect();
    splits_nothing("with its rate", Request { create_pdrs: rated, create_qers, ..Request::default() });
    splits_nothing("one that goes", request::removals(&[3], &[], &[]));
}

/// Of rules that nobody is charged by, nobody is charged otherwise.
#[test]
fn rules_that_nothing_is_charged_by_split_nothing() {
    let rating = Rating::new(None, vec![(10..=19, key(10))], []).unwrap();
    let policy = Policy::default();
    let config = Config { charging: Some(Charging { rating, policy }), ..charging(Policy::default()) };
    let mut request = establishment();
    request.create_urrs = vec![urr(10, 0), urr(2, 0)];
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.urr_ids = vec![10]);
    request.create_pdrs[2].urr_ids = vec![2];
    let free = about(service(&[MAIL]));
    assert_eq!(told(config.clone(), request.clone(), vec![free.clone()]), WHOLE);
    request.create_pdrs[2].urr_ids = vec![2, 10];
    assert_eq!(told(config.clone(), request.clone(), vec![free]), SPLIT);
    // One that is not charged goes before those that are.
    request.create_pdrs[2].urr_ids = vec![2];
    assert_eq!(told(config, request, vec![precedences(&[(3, 300)])]), SPLIT);
}

/// A PDR that names so many URRs has no room for a meter of ours.
#[test]
fn a_rule_that_no_meter_has_room_in_splits_nothing() {
    let mut request = establishment();
    request.create_urrs = (1..=8).map(|id| urr(id, 0)).collect();
    request.create_pdrs[2].urr_ids = (1..=8).collect();
    let change = || vec![about(service(&[MAIL]))];
    assert_eq!(told(charging(Policy::default()), request.clone(), change()), WHOLE);
    request.create_pdrs[2].urr_ids.pop();
    assert_eq!(told(charging(Policy::default()), request, change()), SPLIT);
}

/// Of content rules, too, where nothing else is charged: but by those no PDR is that names an application.
#[test]
fn a_rule_that_is_charged_under_the_keys_of_content_rules_is_charged() {
    let rating = Rating::new(None, vec![], [key(30)]).unwrap().with_content([key(30)]);
    let charged = Charging { rating, policy: Policy::default() };
    let config = Config { charging: Some(charged), ..charging(Policy::default()) };
    let mut request = establishment();
    let change = || vec![about(service(&[MAIL]))];
    assert_eq!(told(config.clone(), request.clone(), change()), SPLIT);
    request.create_pdrs[2].pdi.application_id = Some(b"video".to_vec());
    assert_eq!(told(config, request, change()), WHOLE);
}

/// The key of a predefined rule is that of the PDR that activates it.
#[test]
fn a_rule_that_is_charged_under_the_key_of_a_predefined_one_is_charged() {
    let video = PredefinedRule { key: Some(key(20)), ..PredefinedRule::new("video".to_owned()) };
    let predefined = Predefined::new(vec![video], &[]).unwrap();
    let rating = Rating::new(None, vec![], [key(20)]).unwrap();
    let charging = Some(Charging { rating, policy: Policy::default() });
    let config = Config { predefined, charging, ..crate::common::config() };
    let mut request = establishment();
    assert_eq!(told(config.clone(), request.clone(), vec![acts(1, DROP)]), []);
    request.create_pdrs[0].activate_predefined_rules = vec![b"video".to_vec()];
    assert_eq!(told(config.clone(), request.clone(), vec![acts(1, DROP)]), SPLIT);
    assert_eq!(told(config, request, vec![about(service(&[MAIL]))]), WHOLE);
}

/// All at once: one container, and both reasons.
#[test]
fn a_rule_and_its_rate_that_change_together_split_once() {
    let mut request = establishment();
    request.create_qers = vec![smf::qer(9)];
    let update = UpdatePdr { qer_ids: vec![9], pdi: Some(service(&[MAIL])), ..UpdatePdr::new(3) };
    let both = Conditions::RULE_CHANGE.and(Conditions::QOS_CHANGE);
    let expected = [(1, both), (2, Conditions::SESSION_END)];
    assert_eq!(told(charging(Policy::default()), request, vec![of_pdr(update)]), expected);
}

/// The whole session is told apart, as of a change of QoS.
#[test]
fn a_change_of_one_rule_splits_what_is_charged_under_all_keys() {
    let mut request = establishment();
    request.create_urrs = vec![urr(10, 0)];
    request.create_pdrs[2].urr_ids = vec![10];
    let mut lab = Lab::associated_with(charging(Policy::default()));
    let session: Seid = lab.establish(request);
    lab.traffic(session, (1, 0), true);
    lab.tell(SMF, &Message::session(session.0, 700, about(service(&[MAIL]))));
    assert!(matches!(lab.answer(700).body, Body::SessionModificationResponse(_)));
    lab.delete(session);
    let told = lab.cdrs[0].containers.iter().map(|it| (it.key.rating_group, it.uplink_bytes, it.conditions));
    let expected = [(1, 1, Conditions::RULE_CHANGE), (10, 1, Conditions::RULE_CHANGE)];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}
