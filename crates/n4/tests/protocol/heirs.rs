//! Who has a session that another control plane looks after, or asks for (TS 29.244 5.22.3, 7.4.7).

use crate::common::personas::{accepted, established};
use crate::common::smf::{establishment, setup};
use crate::common::{Lab, OTHER, SMF, config};
use n4::Config;
use pfcp::*;
use rules::Seid;
use std::net::Ipv4Addr;
use std::time::Duration;

/// How long stale sessions stay.
const PATIENCE: Duration = Duration::from_secs(3_600);
const OWNER: &str = "10.40.0.9";
const HEIR: &str = "10.40.0.8";

fn set_up(lab: &mut Lab, peer: Ipv4Addr) {
    let sequence = 0x8000 + lab.trace.len() as u32;
    let request = AssociationSetupRequest { smf_set_id: Some(b"\0\x04set1".to_vec()), ..setup(peer, 1) };
    let answer = lab.ask(peer, &Message::node(sequence, request));
    assert!(matches!(answer, Body::AssociationSetupResponse(ref setup) if setup.cause.is_accepted()));
}

/// Two of a set. Of one's sessions, by numbers, the other looks after some.
fn lab(config: Config, sessions: u8, looked_after: &[u8]) -> (Lab, Vec<Seid>) {
    let mut lab = Lab::new(config);
    [SMF, OTHER].into_iter().for_each(|peer| set_up(&mut lab, peer));
    let establish = |number: u8| {
        let mut request = establishment(number.into());
        request.group_id = Some(vec![number]);
        request.create_pdrs.truncate(1);
        established(&mut lab, request).0
    };
    let all = (1..=sessions).map(establish).collect();
    let change = SessionChangeInfo {
        fq_csids: vec![],
        group_ids: looked_after.iter().map(|number| vec![*number]).collect(),
        cp_ip_addresses: vec![],
        alternative: CpIpAddress::new(OTHER.into()),
        carried: vec![],
    };
    let request =
        SessionSetModificationRequest { node_id: NodeId::Ipv4(SMF), changes: vec![change], carried: vec![] };
    let answer = lab.ask(SMF, &Message::node(0x7000, request));
    assert!(matches!(answer, Body::SessionSetModificationResponse(it) if it.cause.is_accepted()));
    (lab, all)
}

fn owners(lab: &Lab, sessions: &[Seid]) -> Vec<Option<String>> {
    sessions.iter().map(|session| Some(lab.saved.get(session)?.owner.clone())).collect()
}

/// What it has named since is its own, whoever looks after it; what it has forgotten is another's.
#[test]
fn stale_sessions_end_and_their_owner_loses_no_others_to_who_looks_after_them() {
    let (mut lab, all) = lab(Config { stale_max: Some(PATIENCE), ..config() }, 4, &[1, 2]);
    set_up(&mut lab, SMF);
    for named in [all[0], all[2]] {
        accepted(&lab.modify(named, SessionModificationRequest::default()));
    }
    lab.pass(PATIENCE * 2);
    let expected = [Some(OWNER), Some(HEIR), Some(OWNER), None].map(|owner| owner.map(str::to_owned));
    assert_eq!(owners(&lab, &all), expected);
    let extras = lab.saved[&all[0]].extras.as_ref().unwrap();
    assert_eq!(extras.alternative, Some(OTHER.into()), "and is looked after as before");
}
