//! Flows of the traffic crate, each of which knows what it is about.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests speak plainly")]

mod labelled;

use anchorline_dpi::extract::dns::Message;
use anchorline_dpi::extract::{Pool, Seen, Ticket, Unknown, Verdict};
use anchorline_dpi::learn::{Asker, Config, Learner, Lookup};
use anchorline_dpi::matching::{Classifier, Facts, compile};
use std::collections::HashMap;
use traffic::{Endpoints, FRAME_MAX, Flows, Label, Profile, Transport, profile};

/// A flow while it is looked at.
struct Open {
    ticket: Ticket,
    done: bool,
}

/// What the first packets of a flow said, against its label.
fn check(classifier: &Classifier, label: &Label, (taken, verdict): (&labelled::Taken<'_>, &Verdict<'_>)) {
    let facts = match verdict {
        Verdict::Seen(seen) => taken.facts().with(seen),
        _ => taken.facts(),
    };
    match (label.transport, verdict) {
        (Transport::Dns, Verdict::Seen(Seen::Dns(message))) => {
            assert_eq!(message.name().as_slice(), label.host.as_ref().unwrap().as_bytes());
            assert_eq!(classifier.classify(&facts), None);
            return;
        }
        (Transport::Http, Verdict::Seen(seen @ Seen::Http(_))) => {
            assert_eq!(seen.path(), label.path.as_ref().map(String::as_bytes));
        }
        (Transport::Tls, Verdict::Seen(Seen::Tls(hello))) => {
            assert!(hello.is_whole && hello.protocols.eq([&b"h2"[..], b"http/1.1"]));
        }
        (Transport::Quic, Verdict::Seen(Seen::Quic { hello: Some(hello), .. })) => {
            assert!(hello.is_whole && hello.protocols.eq([&b"h3"[..]]));
        }
        (Transport::Udp, Verdict::Seen(Seen::Rtp(_))) => {}
        other => panic!("{label:?}: {other:?}"),
    }
    assert_eq!(facts.host, label.host.as_ref().map(String::as_bytes));
    assert_eq!(classifier.classify(&facts).map(|found| found.id), Some(label.application), "{label:?}");
}

/// Flows by transport that were classified, and all that came to a verdict or should have.
fn run(name: &str, packets: u32) -> HashMap<Transport, u32> {
    let classifier = compile(&labelled::rules()).unwrap();
    let busy = Profile { opening: 0.6, flows: 2_000, ..*profile(name).unwrap() };
    let mut flows = Flows::new(&busy, Endpoints::EXAMPLE, 11).unwrap();
    let mut pool = Pool::new(4_096);
    let mut open: HashMap<u64, Open> = HashMap::new();
    let mut classified: HashMap<Transport, u32> = HashMap::new();
    let mut frame = vec![0; FRAME_MAX];
    for _ in 0..packets {
        let written = flows.next(&mut frame).unwrap();
        let flow = open.entry(written.flow).or_insert_with(|| Open { ticket: pool.take(), done: false });
        if flow.done {
            continue;
        }
        let taken = labelled::take(&frame[..written.length], written.uplink);
        let verdict = taken.look(pool.get(flow.ticket).unwrap(), written.uplink);
        assert!(!matches!(verdict, Verdict::Unknown(Unknown::Bounds)));
        if verdict == Verdict::More {
            // All but media say it in their opening.
            let label = flows.label(written.flow);
            assert!(written.first_packets || label.transport == Transport::Udp, "{label:?}");
            continue;
        }
        let label = flows.label(written.flow);
        check(&classifier, &label, (&taken, &verdict));
        *classified.entry(label.transport).or_default() += 1;
        flow.done = true;
        let ticket = flow.ticket;
        pool.put(ticket);
    }
    classified
}

#[test]
fn every_flow_of_the_zte_profile_is_what_its_label_says() {
    let classified = run("zte", 60_000);
    for transport in [Transport::Http, Transport::Tls, Transport::Quic, Transport::Udp, Transport::Dns] {
        assert!(classified[&transport] > 100, "{classified:?}");
    }
}

#[test]
fn every_flow_of_the_epc_profile_is_what_its_label_says() {
    let classified = run("epc-us", 60_000);
    assert!(classified.values().sum::<u32>() > 5_000, "{classified:?}");
}

/// A flow to a server whose name was looked up before is with that host, whatever its first packets say.
#[test]
fn servers_of_flows_are_known_by_the_lookups_before_them() {
    let busy = Profile { opening: 0.6, flows: 2_000, lookups: 1.0, ..*profile("epc-us").unwrap() };
    let mut flows = Flows::new(&busy, Endpoints::EXAMPLE, 12).unwrap();
    let classifier = compile(&labelled::rules()).unwrap();
    let mut learner = Learner::new(Config { seed: 3, ..Config::default() });
    let mut frame = vec![0; FRAME_MAX];
    let (mut known, mut unknown) = (0, 0);
    for now_ms in 0..40_000 {
        let written = flows.next(&mut frame).unwrap();
        let taken = labelled::take(&frame[..written.length], written.uplink);
        let label = flows.label(written.flow);
        let server = taken.tuple.destination_address();
        let user = Asker { address: taken.tuple.source_address(), holder: 1 };
        if label.transport == Transport::Dns {
            let lookup = Lookup { instance: 1, user, user_port: taken.tuple.source_port, resolver: server };
            let message = Message::parse(taken.payload).unwrap();
            if written.uplink {
                learner.query(&lookup, &message, now_ms);
            } else {
                assert!(learner.answer(&lookup, &message, now_ms).unwrap().names > 0);
            }
        } else if written.position == 0 && label.transport != Transport::Udp {
            match learner.name((1, user), server, now_ms) {
                Some(name) => {
                    // Hosts of one domain share servers, and rules tell domains.
                    let rule = |host| classifier.classify(&Facts { host, ..taken.facts() });
                    let expected = rule(label.host.as_deref().map(str::as_bytes));
                    assert!(expected.is_some() && rule(Some(name)) == expected, "{label:?}");
                    known += 1;
                }
                None => unknown += 1,
            }
        }
    }
    assert!(known > 1_000 && unknown == 0, "{known} {unknown}");
}
