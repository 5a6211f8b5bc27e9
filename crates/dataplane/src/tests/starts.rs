//! With what packet traffic starts: told by its flow, and by the PDR of the application it is of.

use super::content::{USERS, bench, content, flows, in_service, offer, text};
use crate::fixture::Bench;
use dplink::{Notice, Start, UsageCause};
use rules::{Seid, Triggers, Urr, UrrId};
use std::collections::HashMap;
use std::net::IpAddr;
use traffic::{Flows, Tuple, catalogue};

const ALL: UrrId = UrrId(1);

/// One URR counts all services, so their PDRs lead to the same and share a step. Its start is waited for anew with each
/// revision.
fn await_starts(bench: &mut Bench, revision: u64) {
    for user in 1..=u64::from(USERS) {
        let mut rules = in_service(user);
        rules
            .pdrs
            .iter_mut()
            .filter(|pdr| pdr.pdi.application.is_some())
            .for_each(|pdr| pdr.urrs = vec![ALL].into());
        let (triggers, starts_awaited) = (Triggers::START_OF_TRAFFIC, revision as u32);
        rules.urrs.retain(|urr| rules.pdrs.iter().any(|pdr| pdr.urrs.contains(&urr.id)));
        let all = rules.urrs.iter_mut().find(|urr| urr.id == ALL).unwrap();
        *all = Urr { id: ALL, triggers, starts_awaited, ..Urr::default() };
        bench.put(user, revision, rules);
    }
}

fn key(start: &Start) -> (IpAddr, IpAddr, u8, u16, u16) {
    (start.ue, start.remote, start.protocol, start.ue_port.unwrap(), start.remote_port.unwrap())
}

/// Whose label a start has to meet.
fn note(flows: &Flows, flow: u64, labels: &mut HashMap<(IpAddr, IpAddr, u8, u16, u16), u32>) {
    let Tuple { user, server, protocol, user_port, server_port } = flows.tuple(flow);
    let label = flows.label(flow);
    if label.service != "dns" {
        let service = catalogue::service(label.application);
        labels.insert((user, server, protocol, user_port, server_port), service);
    }
}

#[test]
fn a_start_names_the_flow_and_the_pdr_of_its_application() {
    let mut bench = bench(64, 4_096);
    let rules = content(&text(), 7, &bench);
    bench.engine.load(rules);
    bench.settle();
    let mut flows = flows(3, 300);
    let mut labels = HashMap::new();
    let mut right = [0; 2];
    for revision in 2..100 {
        await_starts(&mut bench, revision);
        for _ in 0..100 {
            let written = offer(&mut bench, &mut flows);
            note(&flows, written.flow, &mut labels);
            bench.now_ns += 1_000;
            let told = bench.settle();
            let starts = told.iter().filter_map(|notice| match notice {
                Notice::Usage { session, cause: UsageCause::StartOfTraffic(start), .. } => {
                    Some((session, start))
                }
                _ => None,
            });
            for (Seid(session), start) in starts {
                let start = start.unwrap();
                let service = labels[&key(&start)] as u16;
                assert_eq!(start.ue, IpAddr::from([10, 60, 0, *session as u8]));
                let pdr = start.pdr.unwrap().0;
                assert!(pdr == 10 + service || pdr == 500 + service, "{pdr} of {service}: {start:?}");
                right[usize::from(pdr >= 500)] += 1;
            }
        }
    }
    assert!(right.iter().all(|right| *right > 20), "{right:?}");
}
