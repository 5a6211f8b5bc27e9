//! Processes that end and begin anew, on either side.

use crate::bench::{Bench, OTHER_RADIO, RADIO, SERVER, SERVER_PORT};
use crate::cells::Cell;
use crate::field::{HEARTBEAT, LONG};
use crate::persona::Persona;
use matrix::{N3, N6};
use ran::smf::{Change, Event, Input};

/// Sessions, tunnels and users' addresses of the user plane's.
fn held(bench: &Bench<'_>) -> (usize, usize, usize) {
    let node = &bench.plane.node;
    (node.sessions(), node.tunnels(), node.addresses())
}

/// The control plane begins anew with its users, whom it may give the tunnels and addresses they had: nothing of before is in the
/// way. Or without them: then nothing of theirs is left.
pub(crate) fn control_plane_restart(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    bench.both_ways_pass(RADIO);
    let had = held(&bench);
    for _ in 0..3 {
        bench.restart_control_plane(true);
        assert!(bench.saw(&Event::Ready), "{:?} {:?}", bench.events, bench.plane.notes);
        assert_eq!(held(&bench), had);
        bench.both_ways_pass(RADIO);
    }
    let tunnel = (bench.uplink(), persona.qfi);
    let (up, down) = (bench.packet_up((SERVER, SERVER_PORT)), bench.packet_down((SERVER, SERVER_PORT)));
    bench.restart_control_plane(false);
    assert_eq!(held(&bench), (0, 0, 0), "{:?}", bench.plane.notes);
    assert_eq!(bench.radio_sends(RADIO.address, tunnel, &up), Vec::<Vec<u8>>::new());
    assert_eq!(bench.plane.sent(N3).len(), 1, "an Error Indication");
    assert_eq!(bench.network_sends(&down), []);
    // Where the next gateway's packets have a tunnel, it hears of that one, too.
    assert_eq!(bench.plane.sent(N6).len(), usize::from(persona.core_teid.is_some()));
    bench.restart_control_plane(true);
    assert_eq!(held(&bench), had);
    bench.both_ways_pass(RADIO);
    Ok(())
}

/// The control process ends and begins again after a while, then the data path: packets pass whenever there is a data path, who
/// sleeps is woken, and all that passed is told of.
pub(crate) fn processes_end(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, Some(1_000_000));
    bench.both_ways_pass(RADIO);
    let had = held(&bench);
    bench.plane.end_node();
    bench.both_ways_pass(RADIO);
    bench.pass(LONG);
    assert!(bench.saw(&Event::Silent), "{:?}", bench.events);
    bench.both_ways_pass(RADIO);
    bench.plane.restart_node();
    assert_eq!(held(&bench), had);
    bench.both_ways_pass(RADIO);
    bench.pass(HEARTBEAT);
    bench.plane.restart_data_path();
    bench.both_ways_pass(RADIO);
    bench.pass(HEARTBEAT);
    assert!(bench.saw(&Event::Answering), "{:?}", bench.events);
    wakes_after_an_absence(&mut bench);
    assert!(bench.change(Change::Handover(OTHER_RADIO)));
    bench.radios();
    bench.both_ways_pass(OTHER_RADIO);
    assert!(!bench.saw(&Event::Restarted) && !bench.saw(&Event::SessionLost(0)), "{:?}", bench.events);
    bench.feed(Input::Stop);
    bench.is_billed();
    Ok(())
}

/// Of a packet for a user who sleeps the control process hears once it is back.
fn wakes_after_an_absence(bench: &mut Bench<'_>) {
    bench.feed(Input::Sleep(0));
    bench.plane.end_node();
    let packet = bench.packet_down((SERVER, SERVER_PORT));
    assert_eq!(bench.network_sends(&packet), []);
    assert!(!bench.saw(&Event::Paged(0)));
    bench.plane.restart_node();
    bench.feed(Input::Tick);
    assert!(bench.saw(&Event::Paged(0)) && bench.saw(&Event::Awake(0)), "{:?}", bench.events);
    let sent = bench.radios();
    bench.is_for(&sent, RADIO, &packet);
    bench.passed.1 += packet.len() as u64;
}
