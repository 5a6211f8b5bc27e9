//! What is added to a session, and what is measured in it.

use crate::bench::{Bench, OTHER_RADIO, PGW, RADIO, SERVER, SERVER_PORT};
use crate::cells::Cell;
use crate::packets::assert_same;
use crate::persona::{OAI, Persona};
use matrix::N3;
use matrix::frames::g_pdu;
use ran::Tunnel;
use ran::smf::{Change, Dialect, Endpoint, Flow};
use rules::{Qfi, Teid};
use std::net::Ipv4Addr;

const QFI: u8 = 2;
const FIRST: (Ipv4Addr, u16) = (Ipv4Addr::new(203, 0, 113, 90), 5060);
const SECOND: (Ipv4Addr, u16) = (Ipv4Addr::new(203, 0, 113, 91), 5061);
/// Of 4G: the bearer's own tunnels.
const BEARER: Tunnel = Tunnel { teid: Teid(8), address: RADIO.address };
const BEARER_BEYOND: Tunnel = Tunnel { teid: Teid(0x52), address: PGW.address };

fn flow((server, port): (Ipv4Addr, u16)) -> Flow {
    Flow { server, port, qfi: Qfi::new(QFI).unwrap(), downlink: BEARER, beyond: BEARER_BEYOND }
}

/// A flow of its own, or a dedicated bearer: added, about another server, removed.
pub(crate) fn dedicated(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    let pdrs = bench.rules().pdrs.len();
    if !bench.change(Change::AddFlow(flow(FIRST))) {
        return Err("it makes no flows of their own");
    }
    bench.change(Change::ActivateFlow(flow(FIRST)));
    bench.both_ways_pass(RADIO);
    flow_passes(&mut bench, FIRST);
    if bench.change(Change::ModifyFlow(flow(SECOND))) {
        flow_passes(&mut bench, SECOND);
        is_default(&mut bench, FIRST);
    }
    assert!(bench.change(Change::RemoveFlow));
    assert_eq!(bench.rules().pdrs.len(), pdrs);
    is_default(&mut bench, FIRST);
    is_default(&mut bench, SECOND);
    bench.both_ways_pass(RADIO);
    Ok(())
}

/// Downlink in the flow's QFI, or into the bearer's tunnel; uplink where the flow's packets come in.
fn flow_passes(bench: &mut Bench<'_>, server: (Ipv4Addr, u16)) {
    let qfi = bench.persona.qfi.map(|_| QFI);
    let tunnel = if qfi.is_some() { RADIO } else { BEARER };
    let down = bench.packet_down(server);
    let sent = match bench.smf.endpoint(0, Endpoint::FlowCore) {
        Some(endpoint) => {
            let frame = g_pdu(matrix::N6, PGW.address, (endpoint.teid.0, None), &down);
            bench.plane.receive(matrix::N6, &frame);
            bench.plane.settle();
            bench.radios()
        }
        None => bench.network_sends(&down),
    };
    let [one] = &sent[..] else { panic!("{sent:x?}") };
    assert_eq!((one.to, one.teid, one.flow), (tunnel.address, tunnel.teid.0, bench.flow_of(qfi)));
    assert_same(&[one.inner.clone().unwrap()], &down);
    let up = bench.packet_up(server);
    // Flows of a PDU session share its tunnel; only bearers have their own.
    let uplink = match qfi {
        Some(_) => bench.uplink(),
        None => bench.smf.endpoint(0, Endpoint::FlowUplink).unwrap().teid.0,
    };
    let left = bench.radio_sends(RADIO.address, (uplink, qfi), &up);
    assert_same(&left, &up);
    bench.went_to(BEARER_BEYOND);
}

/// Packets of that server go as all others do.
fn is_default(bench: &mut Bench<'_>, server: (Ipv4Addr, u16)) {
    let down = bench.packet_down(server);
    let sent = bench.network_sends(&down);
    bench.is_for(&sent, RADIO, &down);
}

/// From the radio that was left to the one that took over, with the QoS flow it came in.
pub(crate) fn forwarding(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    if !bench.change(Change::Forward(OTHER_RADIO)) {
        return Err("it forwards nothing from radio to radio");
    }
    let endpoint = bench.smf.endpoint(0, Endpoint::Forwarding).unwrap();
    assert_ne!(endpoint.teid.0, bench.uplink());
    let late = bench.packet_down((SERVER, SERVER_PORT));
    bench.plane.receive(N3, &g_pdu(N3, RADIO.address, (endpoint.teid.0, persona.qfi), &late));
    bench.plane.settle();
    let sent = bench.radios();
    bench.is_for(&sent, OTHER_RADIO, &late);
    bench.both_ways_pass(RADIO);
    assert!(bench.change(Change::EndForwarding));
    bench.both_ways_pass(RADIO);
    Ok(())
}

pub(crate) fn query(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, Some(1_000_000).filter(|_| !is_online(persona)));
    bench.both_ways_pass(RADIO);
    if !bench.change(Change::QueryUsage) {
        return Err("it asks for no usage");
    }
    bench.is_billed();
    bench.both_ways_pass(RADIO);
    assert!(bench.change(Change::QueryUsage));
    bench.is_billed();
    Ok(())
}

/// What it gives are quotas.
fn is_online(persona: &Persona) -> bool {
    matches!(persona.dialect, Dialect::Open5gs | Dialect::Open5gsPgwC)
}

/// Bytes that passed and count.
fn measured(bench: &Bench<'_>) -> u64 {
    let ((up, down), passed) = (bench.persona.measures, bench.passed);
    (if up { passed.0 } else { 0 }) + (if down { passed.1 } else { 0 })
}

/// A quota is used up, and given anew; or a threshold is.
pub(crate) fn grant(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, Some(200));
    if !bench.change(Change::Grant(300)) {
        return Err("it grants nothing");
    }
    while measured(&bench) < 300 {
        bench.both_ways_pass(RADIO);
    }
    bench.pass(std::time::Duration::from_secs(2));
    assert!(bench.smf.usage(0).reports > 0, "300 bytes and more were used, and nothing was told");
    if is_online(persona) || persona.dialect == Dialect::Free5gcQuota {
        let more = bench.packet_down((SERVER, SERVER_PORT));
        assert_eq!(bench.network_sends(&more), [], "the quota is used up");
        assert!(bench.change(Change::Grant(300)));
        bench.both_ways_pass(RADIO);
    }
    Ok(())
}

/// OAI wants to hear of every 1,000 bytes: what comes within a second is told together, and none of it is lost.
#[test]
fn a_storm_of_thresholds_is_told_of_once_a_second() {
    let mut bench = Bench::up(&OAI, None);
    for _ in 0..100 {
        bench.downlink_passes(RADIO);
    }
    bench.pass(std::time::Duration::from_secs(2));
    let reports = bench.smf.usage(0).reports;
    assert!((1..=2).contains(&reports), "{reports} reports of {} bytes", bench.passed.1);
    bench.is_billed();
}
