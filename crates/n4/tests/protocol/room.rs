//! Where there is no room left, sessions that a control plane has not named since it associated anew leave theirs.

use crate::common::personas::established;
use crate::common::smf::{establishment, path_switch, setup};
use crate::common::{Lab, OTHER, Obedience, SMF, config};
use dplink::{Event, Notice};
use n4::{AssociationState, Config, Input, Limits, UePool};
use pfcp::*;
use rules::Seid;
use std::net::Ipv4Addr;
use std::time::Duration;

fn pool(name: &str, prefix: &str) -> UePool {
    UePool { name: name.to_owned(), prefix: prefix.parse().unwrap(), network_instance: Some(name.to_owned()) }
}

/// All of which we choose.
fn choosing(cp_seid: u64) -> SessionEstablishmentRequest {
    let mut request = establishment(cp_seid);
    let address = UeIpAddress { choose_ipv4: true, is_destination: true, ..UeIpAddress::default() };
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![address];
    request
}

fn of_network(request: SessionEstablishmentRequest, name: &str) -> SessionEstablishmentRequest {
    let mut request = request;
    let network_instance = Some(NetworkInstance::labels(name));
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.pdi.network_instance.clone_from(&network_instance));
    request
}

fn with(limits: Limits, ue_pools: Vec<UePool>) -> Lab {
    Lab::associated_with(Config { limits, ue_pools, ..config() })
}

/// Each with room for three.
fn full() -> [(Lab, Cause); 3] {
    let large = || vec![pool("internet", "10.60.0.0/24")];
    let sessions = with(Limits { sessions: 3, ..Limits::default() }, large());
    let tunnels = with(Limits { tunnels: 3, ..Limits::default() }, large());
    // Neither the first address nor the last.
    let addresses =
        with(Limits::default(), vec![pool("internet", "10.60.0.4/30"), pool("ims", "10.61.0.0/24")]);
    let none = Cause::NoResourcesAvailable;
    [(sessions, none), (tunnels, none), (addresses, Cause::AllDynamicAddressesAreOccupied)]
}

fn filled(lab: &mut Lab) -> [Seid; 3] {
    [1, 2, 3].map(|cp_seid| established(lab, choosing(cp_seid)).0)
}

fn associate_anew(lab: &mut Lab) {
    let sequence = 0x8000 + lab.trace.len() as u32;
    let answer = lab.ask(SMF, &Message::node(sequence, setup(SMF, 1)));
    assert!(matches!(answer, Body::AssociationSetupResponse(ref setup) if setup.cause.is_accepted()));
}

fn name(lab: &mut Lab, session: Seid) {
    assert_eq!(lab.modify(session, path_switch(5)).cause, Cause::RequestAccepted);
}

fn ask_by(lab: &mut Lab, from: Ipv4Addr, request: SessionEstablishmentRequest) -> Cause {
    let request = SessionEstablishmentRequest {
        node_id: NodeId::Ipv4(from),
        cp_f_seid: FSeid::new(request.cp_f_seid.seid, from.into()),
        ..request
    };
    let sequence = 0x9000 + lab.trace.len() as u32;
    match lab.ask(from, &Message::session(0, sequence, request)) {
        Body::SessionEstablishmentResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

fn ask(lab: &mut Lab, cp_seid: u64) -> Cause {
    ask_by(lab, SMF, choosing(cp_seid))
}

fn is_whole(lab: &Lab) {
    assert_eq!((&lab.in_force, lab.node.sessions()), (&lab.desired(), lab.saved.len()));
    let sessions = lab.node.sessions();
    assert_eq!((lab.node.tunnels(), lab.node.addresses()), (sessions, sessions));
}

fn are_there(lab: &Lab, sessions: &[Seid]) -> Vec<bool> {
    sessions.iter().map(|session| lab.in_force.contains_key(session)).collect()
}

/// `10.60.0.4/30` has two addresses for users; of the others there are three.
fn fill(lab: &mut Lab, refused: Cause) -> Vec<Seid> {
    let count = if refused == Cause::AllDynamicAddressesAreOccupied { 2 } else { 3 };
    let all = (1..=count).map(|cp_seid| established(lab, choosing(cp_seid)).0).collect();
    assert_eq!(ask(lab, 9), refused);
    all
}

#[test]
fn who_was_not_named_leaves_room_one_for_one_and_who_was_does_not() {
    for (mut lab, refused) in full() {
        let all = fill(&mut lab, refused);
        associate_anew(&mut lab);
        assert_eq!(are_there(&lab, &all), vec![true; all.len()], "as long as there is room");
        name(&mut lab, all[0]);
        // Whoever asks.
        lab.associate(OTHER, 1);
        let others = all.len() - 1;
        for number in 0..others {
            let from = if number == 0 { OTHER } else { SMF };
            assert_eq!(ask_by(&mut lab, from, choosing(20 + number as u64)), Cause::RequestAccepted);
            let left: Vec<bool> = (0..all.len()).map(|at| at == 0 || at > number + 1).collect();
            assert_eq!(are_there(&lab, &all), left, "the oldest first, and one each time");
            is_whole(&lab);
        }
        assert_eq!(ask(&mut lab, 30), refused, "nobody is forgotten now");
        assert_eq!(lab.node.sessions(), all.len());
        for session in lab.desired().into_keys() {
            lab.restart();
            let owner = lab.associations[&lab.saved[&session].owner].address;
            let message = Message::session(session.0, 0xA000, SessionDeletionRequest::default());
            lab.receive(owner, &encode(&message));
        }
        assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.node.addresses()), (0, 0, 0));
    }
}

/// Whom the owner has not named for two eras goes before whom it has not named for one.
#[test]
fn who_was_not_named_for_longest_goes_first() {
    for (mut lab, refused) in full() {
        let all = fill(&mut lab, refused);
        associate_anew(&mut lab);
        name(&mut lab, all[0]);
        lab.restart();
        associate_anew(&mut lab);
        let mut gone: Vec<Seid> = vec![];
        for number in 0..all.len() as u64 {
            assert_eq!(ask(&mut lab, 20 + number), Cause::RequestAccepted);
            let is_new = |it: &&Seid| !lab.in_force.contains_key(it) && !gone.contains(it);
            let new: Vec<Seid> = all.iter().filter(is_new).copied().collect();
            gone.extend(new);
        }
        let expected: Vec<Seid> = all[1..].iter().chain(&all[..1]).copied().collect();
        assert_eq!(gone, expected);
        is_whole(&lab);
    }
}

/// None is given away twice, and none in vain: while the data plane is asked, many may ask.
#[test]
fn each_of_many_who_ask_at_once_takes_the_place_of_one() {
    for obeys in [true, false] {
        let pools = || vec![pool("internet", "10.60.0.0/24")];
        let addresses = vec![pool("internet", "10.60.0.0/28")];
        let labs = [
            with(Limits { sessions: 14, ..Limits::default() }, pools()),
            with(Limits { tunnels: 14, ..Limits::default() }, pools()),
            with(Limits::default(), addresses),
        ];
        for mut lab in labs {
            let all: Vec<Seid> = (1..=14).map(|cp_seid| established(&mut lab, choosing(cp_seid)).0).collect();
            associate_anew(&mut lab);
            lab.obedience = Obedience::Waits;
            (0..5).for_each(|number| {
                lab.tell(SMF, &Message::session(0, 900 + number, choosing(u64::from(30 + number))))
            });
            lab.obedience = if obeys { Obedience::Obeys } else { Obedience::RefusesAfter(all[13]) };
            lab.obey();
            let causes = [0, 1, 2, 3, 4].map(|number| match lab.answer(900 + number).body {
                Body::SessionEstablishmentResponse(response) => response.cause,
                other => panic!("{other:?}"),
            });
            let expected = if obeys { Cause::RequestAccepted } else { Cause::SystemFailure };
            assert_eq!(causes, [expected; 5]);
            let left: Vec<bool> = (0..14).map(|at| !obeys || at >= 5).collect();
            assert_eq!(are_there(&lab, &all), left);
            assert_eq!(lab.node.sessions(), 14);
            is_whole(&lab);
            // They come back as they were: forgotten.
            lab.obedience = Obedience::Obeys;
            assert_eq!(ask(&mut lab, 50), Cause::RequestAccepted);
            let gone = are_there(&lab, &all).into_iter().filter(|is_there| !is_there).count();
            assert_eq!((gone, lab.node.sessions()), (if obeys { 6 } else { 1 }, 14));
            is_whole(&lab);
        }
    }
}

/// Whoever has an address of another pool, or no tunnel, leaves nothing that helps.
#[test]
fn only_who_has_what_is_scarce_goes() {
    let pools = vec![pool("internet", "10.60.0.4/30"), pool("ims", "10.61.0.0/24")];
    let instances = vec!["internet".to_owned(), "ims".to_owned()];
    let mut lab = Lab::associated_with(Config { ue_pools: pools, network_instances: instances, ..config() });
    let ims = established(&mut lab, of_network(choosing(1), "ims")).0;
    let internet = [2, 3].map(|cp_seid| established(&mut lab, choosing(cp_seid)).0);
    associate_anew(&mut lab);
    assert_eq!([4, 5].map(|cp_seid| ask(&mut lab, cp_seid)), [Cause::RequestAccepted; 2]);
    assert_eq!(ask(&mut lab, 6), Cause::AllDynamicAddressesAreOccupied);
    assert!(lab.in_force.contains_key(&ims) && internet.iter().all(|gone| !lab.in_force.contains_key(gone)));
    is_whole(&lab);
    // Nor does one go for what is refused for another reason.
    let mut wrong = of_network(choosing(7), "ims");
    wrong.create_pdrs[1].far_id = Some(99);
    assert_ne!(ask_by(&mut lab, SMF, wrong), Cause::RequestAccepted);
    assert!(lab.in_force.contains_key(&ims));
}

/// A change may want more, too; whoever wants it does not go for itself.
#[test]
fn a_change_finds_room() {
    let mut lab = with(Limits { tunnels: 3, ..Limits::default() }, vec![pool("internet", "10.60.0.0/24")]);
    let [first, second, third] = filled(&mut lab);
    let more = || {
        let mut request = choosing(1);
        request.create_pdrs.truncate(1);
        request.create_pdrs[0].pdr_id = 7;
        SessionModificationRequest {
            create_pdrs: request.create_pdrs,
            ..SessionModificationRequest::default()
        }
    };
    assert_eq!(lab.modify(first, more()).cause, Cause::NoResourcesAvailable);
    associate_anew(&mut lab);
    assert_eq!(lab.modify(first, more()).cause, Cause::RequestAccepted, "{:?}", lab.notes);
    assert_eq!(are_there(&lab, &[first, second, third]), [true, false, true]);
    assert_eq!((lab.node.tunnels(), lab.node.addresses()), (3, 2));
    name(&mut lab, third);
    let mut again = more();
    again.create_pdrs[0].pdr_id = 8;
    assert_eq!(lab.modify(first, again).cause, Cause::NoResourcesAvailable);
    assert_eq!((&lab.in_force, lab.node.sessions()), (&lab.desired(), 2));
    lab.pass(Duration::from_secs(1));
}

const PATIENCE: Duration = Duration::from_secs(3_600);

fn forgetful(stale_max: Option<Duration>) -> (Lab, [Seid; 3]) {
    let mut lab = Lab::associated_with(Config {
        ue_pools: vec![pool("internet", "10.60.0.0/24")],
        stale_max,
        ..config()
    });
    lab.pass(PATIENCE * 2);
    let all = filled(&mut lab);
    lab.pass(PATIENCE * 2);
    (lab, all)
}

/// Which of all are there just before the time is up, and afterwards.
fn before_and_after(lab: &mut Lab, all: [Seid; 3], rest: Duration) -> [Vec<bool>; 2] {
    lab.pass(rest - Duration::from_secs(1));
    let before = are_there(lab, &all);
    lab.pass(Duration::from_secs(2));
    is_whole(lab);
    [before, are_there(lab, &all)]
}

#[test]
fn who_was_not_named_for_long_ends_where_the_operator_wants_that() {
    for restarts in [false, true] {
        let (mut lab, all) = forgetful(Some(PATIENCE));
        associate_anew(&mut lab);
        name(&mut lab, all[1]);
        lab.pass(PATIENCE / 2);
        if restarts {
            lab.restart();
        }
        let [before, after] = before_and_after(&mut lab, all, PATIENCE / 2);
        assert_eq!((before, after), (vec![true; 3], vec![false, true, false]));
        assert!(lab.notes.iter().any(|note| note.contains("2 sessions that 10.40.0.9 has not named")));
        // And the one that was named for ever.
        lab.restart();
        lab.pass(PATIENCE * 50);
        assert_eq!(are_there(&lab, &all), [false, true, false]);
    }
    let (mut lab, all) = forgetful(None);
    associate_anew(&mut lab);
    lab.pass(PATIENCE * 50);
    assert_eq!(are_there(&lab, &all), [true; 3]);
}

/// What is put off each time would never come.
#[test]
fn who_associates_anew_again_and_again_puts_nothing_off() {
    let (mut lab, all) = forgetful(Some(PATIENCE));
    associate_anew(&mut lab);
    lab.pass(PATIENCE / 2);
    // Named once more between two.
    name(&mut lab, all[0]);
    associate_anew(&mut lab);
    let [before, after] = before_and_after(&mut lab, all, PATIENCE / 2);
    assert_eq!((before, after), (vec![true; 3], vec![true, false, false]));
    let [before, after] = before_and_after(&mut lab, all, PATIENCE / 2 - Duration::from_secs(1));
    assert_eq!((before, after), (vec![true, false, false], vec![false; 3]));
}

/// Very many end by portions, with others in between; and of one that restarted nothing is left to end.
#[test]
fn very_many_end_by_portions() {
    let limits = Limits { portion: 2, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { stale_max: Some(PATIENCE), limits, ..config() });
    let all: Vec<Seid> = (1..=9).map(|cp_seid| established(&mut lab, choosing_tunnel(cp_seid)).0).collect();
    associate_anew(&mut lab);
    let new = established(&mut lab, choosing_tunnel(20)).0;
    lab.pass(PATIENCE + Duration::from_secs(1));
    assert_eq!(lab.in_force.keys().copied().collect::<Vec<_>>(), [new]);
    assert_eq!((lab.node.sessions(), all.len()), (1, 9));
    lab.associate(SMF, 2);
    lab.pass(PATIENCE * 2);
    assert_eq!(lab.node.sessions(), 0);
}

/// An association whose stale sessions end is as any other: what is named stays, whoever sets it up once more.
#[test]
fn while_stale_ones_end_the_others_stay() {
    let limits = Limits { portion: 2, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { stale_max: Some(PATIENCE), limits, ..config() });
    (1..=9).for_each(|cp_seid| drop(established(&mut lab, choosing_tunnel(cp_seid))));
    associate_anew(&mut lab);
    let new = established(&mut lab, choosing_tunnel(20)).0;
    lab.pass(PATIENCE - Duration::from_secs(1));
    lab.obedience = Obedience::Waits;
    while lab.node.sessions() == 10 {
        lab.pass(Duration::from_millis(10));
    }
    assert!(lab.node.sessions() > 3, "not all at once");
    assert!(lab.node.overview(lab.time()).iter().all(|it| it.state != AssociationState::Ending));
    associate_anew(&mut lab);
    lab.obedience = Obedience::Obeys;
    lab.obey();
    lab.pass(Duration::from_secs(2));
    assert_eq!(lab.in_force.keys().copied().collect::<Vec<_>>(), [new]);
}

fn choosing_tunnel(cp_seid: u64) -> SessionEstablishmentRequest {
    let mut request = establishment(cp_seid);
    request.create_pdrs.truncate(1);
    request
}

/// Who accepts what is reported of a session has not forgotten it, whether it ever says more of it.
#[test]
fn who_is_spoken_of_in_accepted_reports_stays() {
    for (cause, stays) in [(Cause::RequestAccepted, true), (Cause::RequestRejected, false)] {
        let [(mut lab, refused), ..] = full();
        let all = fill(&mut lab, refused);
        assert_eq!(lab.modify(all[0], path_switch(0x5005)).cause, Cause::RequestAccepted);
        associate_anew(&mut lab);
        let tunnel = lab.in_force[&all[0]].rules.fars[1].forwarding.unwrap().outer_header_creation.unwrap();
        let event =
            Event::ErrorIndication { teid: tunnel.teid().unwrap(), peer: tunnel.address, towards: None };
        lab.handle(Input::DataPath(&Notice::Event(event)));
        let reports = lab.reports();
        let [(_, report)] = &reports[..] else { panic!("{reports:?}") };
        lab.tell(SMF, &Message::session(all[0].0, report.sequence, SessionReportResponse::of(cause)));
        // What is known of that outlives the process.
        lab.restart();
        assert_eq!(ask(&mut lab, 20), Cause::RequestAccepted);
        assert_eq!(are_there(&lab, &all), [stays, !stays, true]);
        is_whole(&lab);
    }
}

/// All sessions of a control plane may be very many: one that associates anew again and again does not have them looked through as often.
#[test]
fn stale_sessions_are_not_looked_for_again_at_once() {
    for (mut lab, refused) in full() {
        let all = fill(&mut lab, refused);
        associate_anew(&mut lab);
        for number in 0..all.len() as u64 {
            assert_eq!(ask(&mut lab, 20 + number), Cause::RequestAccepted);
        }
        assert_eq!(ask(&mut lab, 30), refused);
        associate_anew(&mut lab);
        assert_eq!(ask(&mut lab, 31), refused, "they were looked for just now");
        lab.pass(Duration::from_secs(2));
        assert_eq!(ask(&mut lab, 32), Cause::RequestAccepted);
        is_whole(&lab);
    }
}
