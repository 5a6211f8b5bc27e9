//! PFD management: what control planes say of applications becomes content rules.

use crate::common::personas::established;
use crate::common::smf::{self, establishment};
use crate::common::{Lab, OTHER, SMF, config};
use dpi::matching::{Facts, compile};
use n4::{Config, Limits};
use pfcp::*;
use std::net::Ipv4Addr;
use std::time::Duration;

fn flow(text: &str) -> PfdContents {
    PfdContents { flow_descriptions: vec![text.as_bytes().to_vec()], ..PfdContents::default() }
}

fn url(text: &str) -> PfdContents {
    PfdContents { urls: vec![text.as_bytes().to_vec()], ..PfdContents::default() }
}

fn host(name: &str) -> PfdContents {
    let name = DomainName { name: name.as_bytes().to_vec(), protocol: None };
    PfdContents { domain_names: vec![name], ..PfdContents::default() }
}

/// An application with a PFD of each of these.
fn application(name: &str, pfds: &[PfdContents]) -> ApplicationPfds {
    let context = |contents: &PfdContents| PfdContext { contents: vec![contents.clone()], carried: vec![] };
    let contexts = pfds.iter().map(context).collect();
    ApplicationPfds { application_id: name.as_bytes().to_vec(), contexts, carried: vec![] }
}

fn manage(lab: &mut Lab, from: Ipv4Addr, applications: &[ApplicationPfds]) -> (Cause, Option<u16>) {
    let request = PfdManagementRequest {
        applications: applications.to_vec(),
        node_id: Some(NodeId::Ipv4(from)),
        carried: vec![],
    };
    let sequence = lab.trace.len() as u32;
    match lab.ask(from, &Message::node(sequence, request)) {
        Body::PfdManagementResponse(response) => {
            assert!(response.node_id.is_some());
            (response.cause, response.offending_ie)
        }
        other => panic!("{other:?}"),
    }
}

const ACCEPTED: (Cause, Option<u16>) = (Cause::RequestAccepted, None);

/// What the content rules made of PFDs say a flow is.
fn application_of(lab: &Lab, facts: &Facts<'_>) -> Option<String> {
    let classifier = compile(&lab.node.content_rules()).unwrap();
    let place = classifier.classify(facts)?.application?;
    Some(classifier.applications()[usize::from(place)].to_string())
}

fn with_host(name: &str) -> Facts<'_> {
    Facts { host: Some(name.as_bytes()), ..Facts::default() }
}

#[test]
fn pfds_of_an_application_are_replaced_added_and_removed() {
    let mut lab = Lab::associated();
    let video =
        application("video", &[host("a.example"), flow("permit out 17 from 192.0.2.0/24 443 to assigned")]);
    let voice = application("voice", &[url("http://c.example/call")]);
    assert_eq!(manage(&mut lab, SMF, &[video, voice]), ACCEPTED);
    assert_eq!(lab.content_changes, 1);
    let server = Facts { server: [192, 0, 2, 9].into(), server_port: 443, protocol: 17, ..Facts::default() };
    let call = Facts { path: Some(b"/call/1"), ..with_host("c.example") };
    let seen = |lab: &Lab| [with_host("a.example"), server, call].map(|facts| application_of(lab, &facts));
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(seen(&lab), [name("video"), name("video"), name("voice")]);

    // Those that are named are replaced; others stay.
    assert_eq!(manage(&mut lab, SMF, &[application("video", &[host("a.example")])]), ACCEPTED);
    assert_eq!(seen(&lab), [name("video"), None, name("voice")]);
    // Without PFDs, an application has none any more.
    assert_eq!(manage(&mut lab, SMF, &[application("video", &[])]), ACCEPTED);
    assert_eq!(seen(&lab), [None, None, name("voice")]);
    // Without applications, none has.
    assert_eq!(manage(&mut lab, SMF, &[]), ACCEPTED);
    assert_eq!((seen(&lab), lab.pfds.len(), lab.content_changes), ([None, None, None], 0, 4));
    assert_eq!(manage(&mut lab, SMF, &[]), ACCEPTED);
    assert_eq!(lab.content_changes, 4, "nothing changed");
}

#[test]
fn several_values_of_one_pfd_and_all_its_kinds_count() {
    let mut lab = Lab::associated();
    let contents = PfdContents {
        flow_descriptions: vec![
            b"permit out 6 from any 443 to any".to_vec(),
            b"permit out 17 from any 443 to any".to_vec(),
        ],
        domain_names: vec![
            DomainName { name: b"*.a.example".to_vec(), protocol: None },
            DomainName { name: b"^cdn[0-9]+\\.".to_vec(), protocol: Some(b"TLS_SNI".to_vec()) },
        ],
        ..PfdContents::default()
    };
    assert_eq!(manage(&mut lab, SMF, &[application("video", &[contents])]), ACCEPTED);
    let facts = |host, protocol, layer| Facts { protocol, server_port: 443, layer, ..with_host(host) };
    let is_video = |facts| application_of(&lab, &facts).is_some();
    let tls = Some(dpi::matching::Layer::Tls);
    assert!(is_video(facts("b.a.example", 6, None)) && is_video(facts("cdn7.b", 17, tls)));
    assert!(!is_video(facts("cdn7.b", 6, None)), "not by TLS");
    assert!(!is_video(facts("b.a.example", 132, None)), "not that protocol");
    assert!(!is_video(facts("a.example", 6, tls)));
}

/// Lookups are what is told apart by DNS_QNAME: not the traffic that follows them, nor lookups by other names.
#[test]
fn lookups_are_an_application_s_by_the_name_asked_for() {
    let mut lab = Lab::associated();
    let name = DomainName { name: b"*.a.example".to_vec(), protocol: Some(b"DNS_QNAME".to_vec()) };
    let lookups = PfdContents { domain_names: vec![name], ..PfdContents::default() };
    let pfds = [application("lookups", &[lookups]), application("web", &[host("*.a.example")])];
    assert_eq!(manage(&mut lab, SMF, &pfds), ACCEPTED);
    let of = |name, layer| application_of(&lab, &Facts { layer: Some(layer), ..with_host(name) });
    use dpi::matching::Layer;
    assert_eq!(of("www.a.example", Layer::Dns).as_deref(), Some("lookups"));
    assert_eq!(of("www.a.example", Layer::Tls).as_deref(), Some("web"));
    assert_eq!(of("www.b.example", Layer::Dns), None);
}

#[test]
fn what_is_wrong_changes_nothing() {
    let mut lab = Lab::associated();
    let good = application("video", &[host("a.example")]);
    assert_eq!(manage(&mut lab, SMF, std::slice::from_ref(&good)), ACCEPTED);
    let (before, changes) = (lab.node.content_rules(), lab.content_changes);
    let incorrect = |ie| (Cause::MandatoryIeIncorrect, Some(ie));
    let custom = PfdContents { custom: Some(vec![1]), ..PfdContents::default() };
    let other = application("other", &[host("b.example")]);
    let cases = [
        (application("x", &[flow("deny out ip from any to any")]), incorrect(ie::PFD_CONTENTS)),
        (application("x", &[host("((")]), incorrect(ie::PFD_CONTENTS)),
        (application("x", &[host("(a|b)*a(a|b){20}")]), incorrect(ie::PFD_CONTENTS)),
        (application("x", &[PfdContents::default()]), incorrect(ie::PFD_CONTENTS)),
        // Rules of which the data plane would take no file.
        (application("x", &[url("http://a.example/b#c")]), incorrect(ie::PFD_CONTENTS)),
        (application("x", &[url("http://a.example/../b")]), incorrect(ie::PFD_CONTENTS)),
        (application("x", &[custom]), (Cause::ServiceNotSupported, Some(ie::PFD_CONTENTS))),
        (application("", &[host("b.example")]), incorrect(ie::APPLICATION_ID)),
        (application("a\nid=1", &[host("b.example")]), incorrect(ie::APPLICATION_ID)),
        (other.clone(), incorrect(ie::APPLICATION_IDS_PFDS)),
        (
            ApplicationPfds {
                contexts: vec![PfdContext { contents: vec![], carried: vec![] }],
                ..other.clone()
            },
            (Cause::MandatoryIeMissing, Some(ie::PFD_CONTENTS)),
        ),
    ];
    for (wrong, told) in cases {
        let replaced = application("video", &[host("c.example")]);
        assert_eq!(manage(&mut lab, SMF, &[other.clone(), replaced, wrong.clone()]), told, "{wrong:?}");
        assert_eq!((lab.node.content_rules(), lab.content_changes), (before.clone(), changes));
    }
    assert_eq!(manage(&mut lab, OTHER, &[good]), (Cause::NoEstablishedPfcpAssociation, None));
    assert_eq!(lab.pfds.keys().collect::<Vec<_>>(), ["video"]);
}

#[test]
fn there_is_an_end_to_them() {
    let limits = Limits { pfd_applications: 2, pfd_rules: 4, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { limits, ..config() });
    let full = (Cause::NoResourcesAvailable, Some(ie::APPLICATION_IDS_PFDS));
    let hosts = |count: usize| (0..count).map(|at| host(&format!("h{at}.example"))).collect::<Vec<_>>();
    assert_eq!(manage(&mut lab, SMF, &[application("a", &hosts(5))]), full);
    assert_eq!(manage(&mut lab, SMF, &[application("a", &hosts(3)), application("b", &hosts(1))]), ACCEPTED);
    assert_eq!(manage(&mut lab, SMF, &[application("b", &hosts(2))]), full);
    assert_eq!(manage(&mut lab, SMF, &[application("c", &hosts(1))]), full);
    // What is replaced counts no more.
    assert_eq!(manage(&mut lab, SMF, &[application("a", &[]), application("c", &hosts(3))]), ACCEPTED);
    // Expressions that every flow would be searched for.
    let mut lab = Lab::associated();
    let loose = |at: usize| host(&format!("^[a-z]{{{at},{}}}[0-9]+$", at + 20));
    let many: Vec<_> = (1..200).map(loose).collect();
    assert_eq!(manage(&mut lab, SMF, &[application("a", &many)]), full);
}

#[test]
fn they_outlive_a_restart_of_ours_and_go_with_who_told_them() {
    let mut lab = Lab::associated();
    lab.associate(OTHER, 1);
    assert_eq!(manage(&mut lab, SMF, &[application("video", &[host("a.example")])]), ACCEPTED);
    assert_eq!(manage(&mut lab, SMF, &[application("voice", &[host("v.example")])]), ACCEPTED);
    // The last to tell of an application has told it.
    assert_eq!(manage(&mut lab, OTHER, &[application("voice", &[host("w.example")])]), ACCEPTED);
    let rules = lab.node.content_rules();
    lab.restart();
    assert_eq!(lab.node.content_rules(), rules);
    assert_eq!(application_of(&lab, &with_host("w.example")).as_deref(), Some("voice"));
    // A control plane that has restarted has forgotten what it told.
    lab.associate(OTHER, 2);
    assert_eq!(lab.pfds.keys().collect::<Vec<_>>(), ["video"]);
    assert_eq!(application_of(&lab, &with_host("w.example")), None);
    let release = AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] };
    lab.ask(SMF, &Message::node(0xFFFF, release));
    assert!(lab.pfds.is_empty() && lab.node.content_rules().is_empty());
}

#[test]
fn a_session_asks_for_an_application_of_pfds() {
    let mut lab = Lab::associated();
    let Body::AssociationSetupResponse(setup) = lab.ask(SMF, &Message::node(0xFFF2, smf::setup(SMF, 1)))
    else {
        panic!("an answer")
    };
    let features = setup.up_function_features.unwrap();
    assert!(features.contains(UpFeature::Pfdm) && features.contains(UpFeature::Pfde));
    // A session may come before what its application looks like: until then no packet is of it.
    let mut request = establishment(1);
    request.create_pdrs[1].pdi.application_id = Some(b"video".to_vec());
    let (session, _) = established(&mut lab, request);
    let asked = lab.in_force[&session].rules.pdrs[1].pdi.application.clone().unwrap();
    assert!(lab.node.content_rules().is_empty());
    // Without a Node ID, as before Release 16.
    let applications = vec![application("video", &[host("a.example")])];
    let request = PfdManagementRequest { applications, ..PfdManagementRequest::default() };
    let answer = lab.ask(SMF, &Message::node(7, request.clone()));
    assert!(
        matches!(answer, Body::PfdManagementResponse(ref told) if told.cause.is_accepted()),
        "{answer:?}"
    );
    assert_eq!(application_of(&lab, &with_host("a.example")).as_deref(), Some(asked.name()));
    // The same once more is answered, and done once.
    let changes = lab.content_changes;
    lab.pass(Duration::from_secs(1));
    lab.tell(SMF, &Message::node(7, request));
    assert_eq!(lab.content_changes, changes);
}
