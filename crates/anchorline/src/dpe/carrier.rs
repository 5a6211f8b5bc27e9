//! The carrier's rules of config/zte.toml at work: 45 that a control plane switches on by name and five that it makes, over N4, and
//! packets of each application through the shipped data path, up to the bill.

use super::limits;
use super::room::{CHARGING, GNB, SMF, establishment, scaled};
use crate::cpe;
use dataplane::ContentRules;
use matrix::frames::{Tunnelled, datagram, from_network, g_pdu, packet_of, tunnelled};
use matrix::{N3, N6, UserPlane, plane_config};
use pfcp::*;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
/// The first session's.
const UE: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);
/// Applications with rules of the file, and those the control plane has rules for.
const STATIC: u16 = 45;
const ALL: u16 = 50;
/// What the file says of them: rules that put packets into a QoS flow, and the one that is closed.
const FIRST_MARKED: u16 = 10;
const CLOSED: u16 = 15;
/// A server's port for each application.
const PORT: u16 = 2_000;

/// A session, and who has it.
struct Carrier {
    plane: UserPlane,
    asked: u32,
    session: u64,
    tunnel: u32,
}

/// Application n is what goes to port 2,000 + n.
fn content() -> ContentRules {
    let line = |n: u16| {
        let port = PORT + n;
        format!("id={n} precedence=1 rating-group={n} application=service-{n} port={port} protocol=udp\n")
    };
    let text: String = (0..ALL).map(line).collect();
    let classifier = dpi::rule_file::read_lines(&text).unwrap().compile().unwrap();
    ContentRules::new(1, classifier, None).unwrap()
}

/// A rule each way and a count for an application, as a control plane makes them.
fn dynamic(request: &mut SessionEstablishmentRequest, n: u16) {
    let urr = u32::from(n);
    for (at, id) in [(0, n), (1, ALL + n)] {
        let base = &request.create_pdrs[at];
        let pdi = Pdi { application_id: Some(format!("service-{n}").into_bytes()), ..base.pdi.clone() };
        let pdr = CreatePdr {
            activate_predefined_rules: vec![],
            urr_ids: vec![urr],
            pdi,
            ..CreatePdr { pdr_id: id, precedence: Some(50), ..base.clone() }
        };
        request.create_pdrs.push(pdr);
    }
    request.create_urrs.push(CreateUrr {
        urr_id: urr,
        measurement_method: flags::METHOD_VOLUM,
        reporting_triggers: ReportingTriggers::new(ReportingTriggers::VOLTH),
        volume_threshold: Some(Volumes { total: Some(1_000_000), ..Volumes::default() }),
        ..CreateUrr::default()
    });
}

impl Carrier {
    fn new() -> Self {
        let settings = scaled(CHARGING, 1);
        let config = dataplane::Config { limits: limits(&settings), ..plane_config() };
        let mut plane = UserPlane::over(cpe::config(&settings).unwrap(), config);
        plane.engine.load(content());
        plane.settle();
        let mut carrier = Self { plane, asked: 0, session: 0, tunnel: 0 };
        carrier.ask(0, request::setup(NodeId::Ipv4(SMF), 1).into());
        let mut request = establishment(0);
        (STATIC..ALL).for_each(|n| dynamic(&mut request, n));
        let Body::SessionEstablishmentResponse(answer) = carrier.ask(0, request.into()) else {
            panic!("an answer")
        };
        assert_eq!(answer.cause, Cause::RequestAccepted, "{:?}", carrier.plane.notes);
        carrier.session = answer.up_f_seid.unwrap().seid;
        let f_teid = answer.created_pdrs.iter().find_map(|pdr| pdr.local_f_teid).unwrap();
        let FTeid::Explicit { teid, .. } = f_teid else { panic!("{f_teid:?}") };
        carrier.tunnel = teid;
        carrier
    }

    fn ask(&mut self, session: u64, body: Body) -> Body {
        self.asked += 1;
        let message = match session {
            0 if matches!(body, Body::AssociationSetupRequest(_)) => Message::node(self.asked, body),
            session => Message::session(session, self.asked, body),
        };
        let from = SocketAddr::new(SMF.into(), PORT_OF_PFCP);
        let answers = self.plane.datagram(from, &encode(&message));
        let answers = answers.iter().map(|(_, bytes)| decode(bytes).unwrap());
        answers.into_iter().find(|answer| answer.sequence == self.asked).expect("an answer").body
    }

    /// A packet of an application from the user; what leaves towards the data network.
    fn up(&mut self, n: u16) -> Vec<Vec<u8>> {
        let packet = datagram((UE, 40_000), (SERVER, PORT + n), &[7; 100]);
        self.plane.receive(N3, &g_pdu(N3, GNB, (self.tunnel, None), &packet));
        self.plane.settle();
        self.plane.sent(N6).iter().map(|frame| packet_of(frame)).collect()
    }

    /// A packet of an application to the user; what leaves towards the radio.
    fn down(&mut self, n: u16) -> Vec<Tunnelled> {
        let packet = datagram((SERVER, PORT + n), (UE, 40_000), &[7; 200]);
        self.plane.receive(N6, &from_network(N6, &packet));
        self.plane.settle();
        self.plane.sent(N3).iter().map(|frame| tunnelled(frame)).collect()
    }
}

const PORT_OF_PFCP: u16 = pfcp::PORT;
/// Bytes of these packets, with headers.
const UP: u64 = 128;
const DOWN: u64 = 228;

/// Bytes by rating group.
fn billed(plane: &UserPlane) -> BTreeMap<u32, (u64, u64)> {
    let mut bytes = BTreeMap::new();
    for container in plane.saved.cdrs.iter().flat_map(|cdr| &cdr.containers) {
        let sum: &mut (u64, u64) = bytes.entry(container.key.rating_group).or_default();
        *sum = (sum.0 + container.uplink_bytes, sum.1 + container.downlink_bytes);
    }
    bytes
}

#[test]
fn packets_go_by_each_of_the_carriers_rules_and_are_billed_by_it() {
    let mut carrier = Carrier::new();
    for n in 0..ALL {
        let (up, down) = (carrier.up(n), carrier.down(n));
        if n == CLOSED {
            assert!(up.is_empty() && down.is_empty(), "{n}: {up:x?} {down:x?}");
            continue;
        }
        let marked = (FIRST_MARKED..CLOSED).contains(&n).then(|| ((n - FIRST_MARKED + 1) as u8, false));
        let told: Vec<_> = down.iter().map(|sent| (sent.to, sent.teid, sent.flow)).collect();
        assert_eq!((up.len(), told), (1, vec![(GNB, 1, marked)]), "{n}");
    }
    let Body::SessionDeletionResponse(deleted) =
        carrier.ask(carrier.session, SessionDeletionRequest::default().into())
    else {
        panic!("an answer")
    };
    let reports = deleted.usage_reports.iter().map(|report| {
        let octets = report.volume_measurement.unwrap().octets;
        (report.urr_id, octets.uplink, octets.downlink)
    });
    let expected = (STATIC..ALL).map(|n| (u32::from(n), Some(UP), Some(DOWN)));
    assert_eq!(reports.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let billed = billed(&carrier.plane);
    let open = (0..STATIC).filter(|n| *n != CLOSED);
    for n in open {
        assert_eq!(billed.get(&n.into()), Some(&(UP, DOWN)), "rating group {n}: {billed:?}");
    }
    assert_eq!(billed.get(&CLOSED.into()).copied().unwrap_or_default(), (0, 0));
}

#[test]
fn a_rule_that_is_switched_off_by_name_holds_no_more() {
    let mut carrier = Carrier::new();
    assert!(carrier.up(CLOSED).is_empty());
    let deactivating =
        |pdr_id| UpdatePdr { deactivate_predefined_rules: vec![b"zte".to_vec()], ..UpdatePdr::new(pdr_id) };
    let update_pdrs = vec![deactivating(1), deactivating(2)];
    let change = SessionModificationRequest { update_pdrs, ..SessionModificationRequest::default() };
    let Body::SessionModificationResponse(changed) = carrier.ask(carrier.session, change.into()) else {
        panic!("an answer")
    };
    assert_eq!(changed.cause, Cause::RequestAccepted, "{:?}", carrier.plane.notes);
    assert_eq!((carrier.up(CLOSED).len(), carrier.down(CLOSED).len()), (1, 1));
    let down = carrier.down(FIRST_MARKED);
    assert_eq!(down.first().map(|sent| sent.flow), Some(None), "no rule marks it");
}
