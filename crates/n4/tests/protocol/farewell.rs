//! What comes while a control plane that did not release us in time is told what its sessions used.

use crate::common::{Lab, SMF, config};
use crate::ending_amid::metered_lab;
use n4::{Config, Limits};
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
