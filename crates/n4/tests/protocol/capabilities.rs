//! What we can do changes while associations last: features, pools, addresses.

use crate::common::smf::setup;
use crate::common::{Lab, OTHER, SMF, at, config};
use n4::UePool;
use pfcp::*;
use std::net::Ipv4Addr;
use std::time::Duration;

const PUBLIC: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);

/// Two control planes.
fn lab() -> Lab {
    let mut lab = Lab::associated_with(config());
    lab.associate(OTHER, 1);
    lab
}

/// The operator has given us something new.
fn change(lab: &mut Lab) {
    let prefix = "10.60.0.0/24".parse().unwrap();
    lab.config.ue_pools = vec![UePool { name: "all".to_owned(), prefix, network_instance: None }];
    lab.config.gtpu[0].advertise = Some(PUBLIC);
}

/// A new process; what it says within the first second.
fn restart(lab: &mut Lab) {
    lab.restart();
    lab.sent.clear();
    lab.pass(Duration::from_secs(1));
}

/// Updates that were sent to a control plane since this was last asked, repeated ones, too.
fn updates(lab: &mut Lab, to: Ipv4Addr) -> Vec<(u32, AssociationUpdateRequest)> {
    let update = |(peer, message): &(_, Message)| match &message.body {
        Body::AssociationUpdateRequest(request) if *peer == at(to) => {
            Some((message.sequence, request.clone()))
        }
        _ => None,
    };
    let all = lab.sent.iter().filter_map(update).collect();
    lab.sent.retain(|sent| update(sent).is_none());
    all
}

fn answer(lab: &mut Lab, from: Ipv4Addr, sequence: u32, cause: Cause) {
    let (node_id, carried) = (NodeId::Ipv4(from), vec![]);
    let response = AssociationUpdateResponse {
        node_id,
        cause,
        up_function_features: None,
        cp_function_features: None,
        carried,
    };
    lab.tell(from, &Message::node(sequence, response));
}

#[test]
fn what_we_can_do_anew_is_told_once_to_each() {
    let mut lab = lab();
    restart(&mut lab);
    assert_eq!([SMF, OTHER].map(|to| updates(&mut lab, to).len()), [0, 0], "nothing has changed");
    change(&mut lab);
    restart(&mut lab);
    let [(first, told)] = &updates(&mut lab, SMF)[..] else { panic!("one update") };
    let features = told.up_function_features.as_ref().unwrap();
    assert!(features.contains(UpFeature::Ueip) && features.contains(UpFeature::Ftup));
    assert_eq!(told.association_release_request, None);
    assert_eq!(told.pools[0].identity.0, b"all");
    let resources = told.carried.iter().filter(|raw| raw.ie == ie::USER_PLANE_IP_RESOURCE_INFORMATION);
    assert!(resources.map(|raw| raw.value[1..5].to_vec()).eq([PUBLIC.octets().to_vec()]));
    assert_eq!(updates(&mut lab, OTHER).len(), 1);
    answer(&mut lab, SMF, *first, Cause::RequestAccepted);
    lab.pass(Duration::from_secs(9));
    assert_eq!(
        [SMF, OTHER].map(|to| updates(&mut lab, to).len()),
        [0, 2],
        "who has not answered is told again"
    );
    // Who has answered knows it, whatever becomes of us.
    restart(&mut lab);
    assert_eq!(updates(&mut lab, SMF), []);
    let (again, _) = updates(&mut lab, OTHER).remove(0);
    answer(&mut lab, OTHER, again, Cause::RequestAccepted);
    restart(&mut lab);
    lab.pass(Duration::from_secs(600));
    assert_eq!([SMF, OTHER].map(|to| updates(&mut lab, to).len()), [0, 0]);
    // And that it is gone again, too.
    lab.config = config();
    restart(&mut lab);
    assert_eq!([SMF, OTHER].map(|to| updates(&mut lab, to).len()), [1, 1]);
}

/// Who refuses has heard it, and so has who associates anew meanwhile.
#[test]
fn who_has_heard_of_it_otherwise_is_not_told() {
    let mut lab = lab();
    change(&mut lab);
    restart(&mut lab);
    let (sequence, _) = updates(&mut lab, SMF).remove(0);
    answer(&mut lab, SMF, sequence, Cause::RequestRejected);
    assert!(lab.notes.iter().any(|note| note.contains("refuses to hear")), "{:?}", lab.notes);
    lab.ask(OTHER, &Message::node(77, setup(OTHER, 1)));
    updates(&mut lab, OTHER);
    lab.restart();
    lab.sent.clear();
    lab.pass(Duration::from_secs(100));
    assert_eq!([SMF, OTHER].map(|to| updates(&mut lab, to).len()), [0, 0]);
}

/// A silent control plane hears of it when it is back. One that answers everything else and never this is asked ever more rarely.
#[test]
fn who_does_not_answer_is_told_ever_more_rarely() {
    let mut lab = lab();
    change(&mut lab);
    lab.silent = vec![OTHER];
    // It has answered heartbeats before: its silence means something.
    lab.silent.clear();
    lab.pass(Duration::from_secs(20));
    lab.silent = vec![OTHER];
    restart(&mut lab);
    updates(&mut lab, OTHER);
    lab.pass(Duration::from_secs(60));
    updates(&mut lab, OTHER);
    updates(&mut lab, SMF);
    lab.pass(Duration::from_secs(3_600));
    assert_eq!(updates(&mut lab, OTHER), [], "it is silent");
    let often = updates(&mut lab, SMF).len();
    assert!((9..=24).contains(&often), "{often}");
    lab.silent.clear();
    lab.pass(Duration::from_secs(60));
    assert_ne!(updates(&mut lab, OTHER), []);
}

/// Who is to release us hears of nothing else.
#[test]
fn who_is_to_release_us_is_not_told() {
    let mut lab = lab();
    let now = lab.time();
    let outputs = lab.node.leave_one(&SMF.to_string(), Duration::from_secs(100), now);
    lab.carry_out_all(outputs);
    change(&mut lab);
    restart(&mut lab);
    let asked = updates(&mut lab, SMF);
    assert!(asked.iter().all(|(_, update)| update.association_release_request.is_some()), "{asked:?}");
    assert_eq!(updates(&mut lab, OTHER).len(), 1);
}
