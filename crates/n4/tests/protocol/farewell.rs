//! What comes while a control plane that did not release us in time is told what its sessions used.

use crate::common::smf::{establishment, setup};
use crate::common::{Lab, Obedience, SMF, config};
use crate::ending_amid::metered_lab;
use n4::{Config, Input, Limits};
use pfcp::*;
use std::time::Duration;

fn leave(lab: &mut Lab, within: Duration) {
    let outputs = lab.node.leave_one(&SMF.to_string(), within, lab.time());
    lab.carry_out_all(outputs);
}

/// It has no more time for that, nor is anything due for ever.
#[test]
fn who_is_released_once_more_when_its_time_is_up_is_left_all_the_same() {
    let limits = Limits { requests: 10, ..Limits::default() };
    let (mut lab, _) = metered_lab(Config { limits, ..config() });
    leave(&mut lab, Duration::ZERO);
    lab.pass(Duration::from_secs(5));
    assert_eq!(lab.node.leaving(), ["10.40.0.9"], "it has yet to be told of some");
    leave(&mut lab, Duration::from_secs(3_600));
    lab.pass(Duration::from_secs(20));
    assert_eq!(lab.associations.len(), 1);
    lab.pass(Duration::from_secs(20));
    assert!(lab.node.leaving().is_empty() && lab.associations.is_empty());
}

/// The order that is taken back was to part with all of them: what was stale before it is over as before.
#[test]
fn stale_sessions_end_though_an_order_to_leave_is_taken_back_meanwhile() {
    let patience = Duration::from_secs(3_600);
    let limits = Limits { portion: 2, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { stale_max: Some(patience), limits, ..config() });
    let establish = |lab: &mut Lab, cp_seid| {
        let mut request = establishment(cp_seid);
        request.create_pdrs.truncate(1);
        lab.establish(request)
    };
    for cp_seid in 1..=9 {
        establish(&mut lab, cp_seid);
    }
    lab.ask(SMF, &Message::node(0x8000, setup(SMF, 1)));
    let new = establish(&mut lab, 20);
    lab.pass(patience - Duration::from_secs(1));
    lab.obedience = Obedience::Waits;
    while lab.node.sessions() == 10 {
        lab.pass(Duration::from_millis(10));
    }
    leave(&mut lab, Duration::ZERO);
    lab.handle(Input::Tick);
    assert!(lab.node.sessions() > 3, "not all at once");
    let outputs = lab.node.stay_with(&SMF.to_string(), lab.time());
    lab.carry_out_all(outputs);
    lab.obedience = Obedience::Obeys;
    lab.obey();
    lab.pass(Duration::from_secs(2));
    assert_eq!(lab.in_force.keys().copied().collect::<Vec<_>>(), [new]);
    assert_eq!((lab.node.sessions(), lab.associations.len()), (1, 1));
}
