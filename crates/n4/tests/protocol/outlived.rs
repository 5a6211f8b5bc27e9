//! What is told of a session ends with it: its name may be another's soon, for whom what comes again would be taken.

use crate::common::billing::{metered, seconds, total, urr};
use crate::common::smf::{self, GNB, path_switch};
use crate::common::{Lab, Obedience, SMF};
use dplink::{Event, Notice};
use n4::Input;
use pfcp::*;
use rules::{PdrId, Seid, Teid};

const VOLTH: u32 = 1 << 1;

/// A session whose control plane has been told of usage, of packets kept, of an error and of silence, and has not answered.
fn outspoken() -> (Lab, Seid) {
    let mut lab = Lab::associated();
    let mut request = metered(77, vec![CreateUrr { volume_threshold: total(1_000), ..urr(1, VOLTH) }]);
    request.create_fars[1].apply_action = ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
    request.user_plane_inactivity_timer = Some(5);
    let session = lab.establish(request);
    seconds(&mut lab, 7);
    lab.traffic(session, (400, 600), false);
    let pdr = PdrId(2);
    let kept = Event::DownlinkData { session, pdr, qfi: None, traffic_class: 0 };
    lab.handle(Input::DataPath(&Notice::Event(kept)));
    (lab, session)
}

fn told(lab: &mut Lab) -> Vec<u8> {
    let reports = lab.reports().into_iter().map(|(_, message)| match message.body {
        Body::SessionReportRequest(request) => request.report_type.0,
        other => panic!("{other:?}"),
    });
    reports.collect()
}

#[test]
fn nothing_is_told_of_a_session_that_is_over() {
    let ends: [fn(&mut Lab, Seid); 4] = [
        |lab, session| drop(lab.delete(session)),
        |lab, _| {
            lab.establish(smf::establishment(77));
        },
        |lab, _| drop(lab.ask(SMF, &Message::node(0x1_0000, smf::setup(SMF, 2)))),
        |lab, _| {
            let request = AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] };
            lab.ask(SMF, &Message::node(0x1_0000, request));
        },
    ];
    for (case, end) in ends.into_iter().enumerate() {
        let (mut lab, session) = outspoken();
        let first = told(&mut lab);
        assert!([ReportType::USAR, ReportType::DLDR, ReportType::UPIR].iter().all(|it| first.contains(it)));
        match case {
            // Its answer waits for that of the report of usage.
            0 => {
                lab.tell(SMF, &Message::session(session.0, 900, SessionDeletionRequest::default()));
                lab.pass(lab.config.apply_timeout);
                assert!(matches!(lab.answer(900).body, Body::SessionDeletionResponse(_)));
                told(&mut lab);
            }
            _ => end(&mut lab, session),
        }
        seconds(&mut lab, 60);
        assert!(told(&mut lab).is_empty(), "{case}");
    }
}

/// Nor of one that gives way to another of its name, unless it comes back.
#[test]
fn nothing_is_told_of_a_session_while_another_asks_for_its_name() {
    let told_meanwhile = |is_asked: bool| {
        let (mut lab, _) = outspoken();
        // They have come again once, and will in a second; until then the data plane need not have answered.
        seconds(&mut lab, 5);
        told(&mut lab);
        lab.obedience = Obedience::Waits;
        if is_asked {
            lab.tell(SMF, &Message::session(0, 901, smf::establishment(77)));
        }
        seconds(&mut lab, 1);
        assert!(!is_asked || lab.sent.iter().all(|sent| sent.1.sequence != 901), "it is not answered yet");
        told(&mut lab)
    };
    assert!(!told_meanwhile(false).is_empty());
    assert!(told_meanwhile(true).is_empty());
}

/// Errors are told once in a while.
#[test]
fn an_error_of_a_session_that_is_over_is_not_told_again() {
    let mut lab = Lab::associated();
    let session = lab.establish(smf::establishment(77));
    lab.modify(session, path_switch(5));
    let error = Event::ErrorIndication { teid: Teid(5), peer: GNB.into(), towards: None };
    lab.handle(Input::DataPath(&Notice::Event(error)));
    assert_eq!(told(&mut lab), [ReportType::ERIR]);
    lab.establish(smf::establishment(77));
    seconds(&mut lab, 60);
    assert!(told(&mut lab).is_empty());
}

/// What the answer to a deletion was too early for is told after it, as long as nobody else has the name.
#[test]
fn the_rest_of_a_session_is_told_until_its_name_is_given_anew() {
    for is_given_anew in [false, true] {
        let mut lab = Lab::new(crate::common::config());
        let mut setup = smf::setup(SMF, 1);
        setup.cp_function_features = Some(CpFunctionFeatures::of(&[CpFeature::Ardr]));
        lab.ask(SMF, &Message::node(0xFFF0, setup));
        let session = lab.establish(metered(77, vec![urr(1, 0)]));
        lab.traffic(session, (7, 0), true);
        lab.obedience = Obedience::Waits;
        lab.tell(SMF, &Message::session(session.0, 900, SessionDeletionRequest::default()));
        lab.pass(lab.config.apply_timeout);
        lab.obedience = Obedience::Obeys;
        lab.obey();
        assert_eq!(told(&mut lab), [ReportType::USAR]);
        if is_given_anew {
            lab.establish(smf::establishment(77));
        }
        seconds(&mut lab, 60);
        assert_eq!(told(&mut lab).is_empty(), is_given_anew);
    }
}

/// Nor is it told once the name is another's before the last counts come.
#[test]
fn last_counts_that_come_late_are_not_another_sessions() {
    let mut lab = Lab::associated();
    let session = lab.establish(metered(77, vec![urr(1, 0)]));
    lab.traffic(session, (7, 0), true);
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(session.0, 900, SessionDeletionRequest::default()));
    lab.pass(lab.config.apply_timeout);
    let late = std::mem::take(&mut lab.orders);
    lab.obedience = Obedience::Obeys;
    lab.establish(smf::establishment(77));
    lab.orders = late;
    lab.obey();
    seconds(&mut lab, 60);
    assert!(told(&mut lab).is_empty());
}
