//! What rules the operator knows by name do to packets: drop, send to a portal, reset, mark, copy; and by which FARs.

use crate::common::personas::{accepted, established, rules};
use crate::common::smf::{self, establishment};
use crate::common::{Lab, SMF};
use crate::predefined::{activating, downlink, lab, rule, update};
use n4::{Config, Predefined, PredefinedRule};
use pfcp::*;
use rules::{Rules, Seid};

#[test]
fn rules_that_drop_need_no_far() {
    let mut lab = lab();
    let mut request = activating(&["ads"]);
    request.create_pdrs[1].far_id = None;
    let (session, _) = established(&mut lab, request.clone());
    rules(&lab, session).check().unwrap();
    let [ads] = downlink(rules(&lab, session))[..] else { panic!("one") };
    assert_eq!(ads.far.0 >> 31, 1);
    // Without what decides, the PDR has nothing to go by, and its packets are dropped as well.
    accepted(&lab.modify(session, update(2, &[], &["ads"])));
    drops_downlink(&lab, session);
    request.create_pdrs[1].activate_predefined_rules.push(b"video".to_vec());
    request.cp_f_seid.seid = 78;
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 9, request)) else {
        panic!("an answer")
    };
    assert_eq!((response.cause, response.offending_ie), (Cause::ConditionalIeMissing, Some(ie::FAR_ID)));
}

/// A control plane that tells of the FAR later (some do, of a PDR that is to lead nowhere yet).
#[test]
fn packets_of_a_pdr_without_a_far_are_dropped_until_it_has_one() {
    let mut lab = lab();
    let mut request = establishment(77);
    let far = request.create_pdrs[1].far_id.take();
    let (session, _) = established(&mut lab, request);
    drops_downlink(&lab, session);
    let update_pdrs = vec![UpdatePdr { far_id: far, ..UpdatePdr::new(2) }];
    accepted(&lab.modify(session, SessionModificationRequest { update_pdrs, ..Default::default() }));
    assert_eq!(downlink(rules(&lab, session))[0].far.0, far.unwrap());
    rules(&lab, session).check().unwrap();
}

fn drops_downlink(lab: &Lab, session: Seid) {
    let rules = rules(lab, session);
    rules.check().unwrap();
    let [pdr] = downlink(rules)[..] else { panic!("one") };
    let far = rules.fars.iter().find(|far| far.id == pdr.far).unwrap();
    assert_eq!(far.apply_action, rules::ApplyAction::Drop);
}

/// Its FARs are the PDRs' own and a redirection: where those wait for the user, so do they.
#[test]
fn a_rule_may_send_users_to_a_portal() {
    let portal = rules::Redirect::new("http://portal.example/");
    let video = rule("video", "permit out ip from 203.0.113.0/24 to assigned");
    let sent = PredefinedRule { redirect: portal.clone(), ..video };
    let predefined = Predefined::new(vec![sent], &[]).unwrap();
    let mut lab = Lab::associated_with(Config { predefined, ..crate::common::config() });
    let (session, _) = established(&mut lab, activating(&["video"]));
    let made = rules(&lab, session).clone();
    made.check().unwrap();
    let far = |rules: &Rules, up: bool| {
        let pdr = rules.pdrs.iter().find(|pdr| pdr.pdi.f_teid.is_some() == up).unwrap();
        rules.fars.iter().find(|far| far.id == pdr.far).unwrap().clone()
    };
    for (up, like) in [(true, &made.fars[0]), (false, &made.fars[1])] {
        let far = far(&made, up);
        assert_eq!((far.redirect.clone(), far.id.0 >> 31), (portal.clone(), 1));
        let own = rules::Far { id: like.id, redirect: None, ..far };
        assert_eq!(own, *like);
    }
    // Nothing of it is the control plane's.
    assert!(lab.saved[&session].rules.fars.iter().all(|far| far.redirect.is_none()));
    accepted(&lab.modify(session, smf::path_switch(9)));
    let moved = rules(&lab, session).clone();
    let tunnel = far(&moved, false).forwarding.unwrap().outer_header_creation.unwrap();
    assert_eq!((tunnel.teid().unwrap().0, far(&moved, false).redirect), (9, portal));
}

/// What a FAR of the PDR says is kept, but for what the rule says.
#[test]
fn a_rule_may_reset_mark_or_copy() {
    let video = || rule("video", "permit out ip from 203.0.113.0/24 to assigned");
    let reset = PredefinedRule { resets: true, ..video() };
    let collector = rules::ForwardingParameters {
        destination_interface: rules::Interface::Core,
        instance: rules::Instance::DEFAULT,
        outer_header_creation: Some(rules::OuterHeaderCreation::gtpu(rules::Teid(7), [192, 0, 2, 9].into())),
        dscp: None,
        policy: None,
    };
    let policy = Some(rules::Policy::of(b"mec1"));
    let seen = PredefinedRule { dscp: Some(10), policy, mirror: Some(collector), ..video() };
    for (treated, resets) in [(reset, true), (seen, false)] {
        let predefined = Predefined::new(vec![treated], &[]).unwrap();
        let mut lab = Lab::associated_with(Config { predefined, ..crate::common::config() });
        let (session, _) = established(&mut lab, activating(&["video"]));
        let made = rules(&lab, session).clone();
        made.check().unwrap();
        for pdr in &made.pdrs {
            let far = made.fars.iter().find(|far| far.id == pdr.far).unwrap();
            let like = &made.fars[usize::from(pdr.pdi.f_teid.is_none())];
            assert_eq!(far.id.0 >> 31, 1);
            let mut expected = rules::Far { id: far.id, ..like.clone() };
            if resets && like.apply_action == rules::ApplyAction::Forward {
                expected.apply_action = rules::ApplyAction::Reset;
            } else if !resets {
                (expected.duplicating, expected.duplicates) = (true, vec![collector]);
                expected.forwarding.iter_mut().for_each(|to| (to.dscp, to.policy) = (Some(10), policy));
            }
            assert_eq!(*far, expected);
        }
        let own = &lab.saved[&session].rules;
        assert!(own.fars.iter().all(|far| !far.duplicating && far.apply_action != rules::ApplyAction::Reset));
    }
}
