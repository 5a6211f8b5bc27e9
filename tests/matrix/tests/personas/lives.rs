//! How sessions end, and how they are had again.

use crate::bench::{Bench, RADIO, SERVER, SERVER_PORT};
use crate::cells::Cell;
use crate::persona::Persona;
use matrix::frames::{from_network, g_pdu};
use matrix::{N3, N6};
use ran::smf::{Event, Input};
use std::time::Duration;

/// The user plane lost everything, and says so.
pub(crate) fn restoration(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    bench.both_ways_pass(RADIO);
    let uplink = bench.uplink();
    bench.plane.lose_everything();
    // Until the next heartbeat.
    bench.pass(Duration::from_secs(12));
    assert!(bench.saw(&Event::Restarted) && bench.saw(&Event::Ready), "{:?}", bench.events);
    bench.both_ways_pass(RADIO);
    // The radio goes on where it sent before, or has to be told of another endpoint.
    assert_eq!(bench.uplink() == uplink, persona.keeps_endpoint);
    Ok(())
}

/// Everything that was used is told, nothing passes, and nothing is left.
pub(crate) fn deletion(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, Some(1_000_000));
    for _ in 0..4 {
        bench.both_ways_pass(RADIO);
    }
    let (uplink, up) = (bench.uplink(), bench.packet_up((SERVER, SERVER_PORT)));
    bench.feed(Input::Stop);
    assert!(bench.saw(&Event::SessionDeleted(0)) && bench.saw(&Event::Stopped), "{:?}", bench.events);
    bench.is_billed();
    let down = bench.packet_down((SERVER, SERVER_PORT));
    bench.plane.receive(N3, &g_pdu(N3, RADIO.address, (uplink, persona.qfi), &up));
    bench.plane.receive(N6, &from_network(N6, &down));
    bench.plane.settle();
    assert_eq!(bench.plane.sent(N6), Vec::<Vec<u8>>::new());
    // An Error Indication to the radio, and no more.
    assert_eq!(bench.plane.sent(N3).len(), 1);
    let left =
        (bench.plane.node.sessions(), bench.plane.node.tunnels(), bench.plane.saved.associations.len());
    assert_eq!(left, (0, 0, 0));
    assert!(bench.plane.worker.books().balanced());
    bench.pass(Duration::from_secs(60));
    assert_eq!(bench.plane.saved.sessions.len(), 0, "the last answer is kept for so long");
    Ok(())
}
