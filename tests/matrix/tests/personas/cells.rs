//! What becomes of a session of one user, step by step.

use crate::bench::{
    Bench, CP, OTHER_RADIO, RADIO, SERVER, SERVER_PORT, asking_plane, plane_with_way, plane6,
};
use crate::persona::{Early, Persona};
use matrix::N3;
use matrix::frames::{g_pdu, tunnelled};
use packet::ndp::{Message, RouterAdvertisement};
use pfcp::UpFeature;
use ran::smf::{Change, Dialect, Endpoint, Event, Input};
use std::net::Ipv6Addr;
use std::time::Duration;

/// Done, or why there is nothing to do.
pub(crate) type Cell = Result<(), &'static str>;

const EVERYTHING: (std::net::Ipv4Addr, u16) = (SERVER, SERVER_PORT);

pub(crate) fn association(persona: &Persona) -> Cell {
    let mut bench = Bench::new(persona, None);
    bench.feed(Input::Start);
    assert!(matches!(bench.events.first(), Some(Event::Associated(_))), "{:?}", bench.events);
    assert_eq!(bench.plane.saved.associations.len(), 1);
    // Who leaves addresses to the user plane looks for this.
    let said = bench.features.as_ref().unwrap();
    assert_eq!(said.contains(UpFeature::Ueip), persona.has_pool);
    assert!(said.contains(UpFeature::Ftup));
    Ok(())
}

/// We associate with it, having been told to; it asks for nothing. So again once it has begun anew.
pub(crate) fn association_by_us(persona: &Persona) -> Cell {
    if !persona.dialect.takes_setup() {
        return Err("an association is one to it only where it asked for it itself");
    }
    let mut bench = Bench::over(persona, asking_plane(persona), |_| ());
    bench.set(|settings| settings.awaits_setup = true);
    bench.feed(Input::Start);
    assert_eq!(bench.events, []);
    bench.pass(Duration::from_secs(1));
    assert!(matches!(bench.events.first(), Some(Event::Associated(_))), "{:?}", bench.events);
    assert!(bench.saw(&Event::Ready), "{:?} {:?}", bench.events, bench.plane.notes);
    bench.both_ways_pass(RADIO);
    bench.restart_control_plane(true);
    bench.pass(Duration::from_secs(60));
    assert!(bench.saw(&Event::Ready), "{:?} {:?}", bench.events, bench.plane.notes);
    assert_eq!(bench.plane.node.sessions(), 1);
    bench.both_ways_pass(RADIO);
    assert!(bench.features.is_none(), "it did not ask");
    bench.feed(Input::Stop);
    assert!(bench.saw(&Event::SessionDeleted(0)) && bench.saw(&Event::Stopped), "{:?}", bench.events);
    assert_eq!((bench.plane.node.sessions(), bench.plane.saved.associations.len()), (0, 0));
    Ok(())
}

/// Before the radio is known.
pub(crate) fn establishment(persona: &Persona) -> Cell {
    let mut bench = Bench::new(persona, None);
    bench.hold();
    bench.feed(Input::Start);
    assert_eq!(bench.plane.node.sessions(), 1, "{:?}", bench.plane.notes);
    // The answer tells of what was chosen, and of nothing that was given.
    let picks = persona.dialect.picks_endpoints() == Some(true);
    assert_eq!(bench.smf.endpoint(0, Endpoint::Uplink).is_none(), picks);
    match persona.early_uplink {
        Early::Sent => bench.uplink_passes(RADIO.address),
        Early::Dropped => {
            let (uplink, packet) = (bench.uplink(), bench.packet_up(EVERYTHING));
            let left = bench.radio_sends(RADIO.address, (uplink, persona.qfi), &packet);
            assert_eq!(left, Vec::<Vec<u8>>::new());
        }
        Early::Kept => {}
    }
    let early = bench.packet_down(EVERYTHING);
    let sent = bench.network_sends(&early);
    match persona.early {
        Early::Sent => bench.is_for(&sent, RADIO, &early),
        Early::Dropped | Early::Kept => assert_eq!(sent, []),
    }
    assert_eq!(bench.saw(&Event::Paged(0)), persona.early == Early::Kept);
    assert!(bench.release() > 0);
    let drained = bench.radios();
    match persona.early {
        Early::Kept => bench.is_for(&drained, RADIO, &early),
        Early::Dropped | Early::Sent => assert_eq!(drained, []),
    }
    Ok(())
}

pub(crate) fn activation(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    for _ in 0..3 {
        bench.both_ways_pass(RADIO);
    }
    Ok(())
}

/// Of users with both, IPv6 goes where IPv4 goes: at once, after sleep, which it ends as well, and after a handover.
pub(crate) fn ipv6(persona: &Persona) -> Cell {
    if persona.has_pool {
        return Err("its users have no prefix");
    }
    let mut bench = Bench::over(persona, plane6(persona), |_| ()).started();
    bench.both_ways_pass(RADIO);
    bench.both_ways_pass6(RADIO);
    bench.feed(Input::Sleep(0));
    bench.hold();
    let packet = bench.packet6(false);
    assert_eq!(bench.network_sends(&packet), []);
    assert!(bench.saw(&Event::Paged(0)));
    bench.release();
    let drained = bench.radios();
    bench.is_for(&drained, RADIO, &packet);
    assert!(bench.change(Change::Handover(OTHER_RADIO)));
    bench.radios();
    bench.both_ways_pass6(OTHER_RADIO);
    bench.both_ways_pass(OTHER_RADIO);
    Ok(())
}

pub(crate) fn idle(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    bench.both_ways_pass(RADIO);
    bench.feed(Input::Sleep(0));
    assert!(bench.saw(&Event::Asleep(0)), "{:?}", bench.events);
    // The radio takes its time.
    bench.hold();
    let packets: Vec<_> = (0..3).map(|_| bench.packet_down(EVERYTHING)).collect();
    for packet in &packets {
        assert_eq!(bench.network_sends(packet), []);
    }
    assert!(bench.saw(&Event::Paged(0)) && !bench.saw(&Event::Paged(0)), "told once");
    assert_eq!(bench.release(), 1);
    assert!(bench.saw(&Event::Awake(0)));
    let drained = bench.radios();
    assert_eq!(drained.len(), packets.len());
    for (sent, packet) in drained.iter().zip(&packets) {
        bench.is_for(std::slice::from_ref(sent), RADIO, packet);
    }
    bench.both_ways_pass(RADIO);
    Ok(())
}

pub(crate) fn handover(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    bench.both_ways_pass(RADIO);
    assert!(bench.change(Change::Handover(OTHER_RADIO)));
    let ends = bench.radios();
    assert_eq!(ends.len(), usize::from(persona.ends_paths), "{ends:x?}");
    for end in ends {
        assert_eq!((end.to, end.teid, end.inner), (RADIO.address, RADIO.teid.0, None));
    }
    bench.both_ways_pass(OTHER_RADIO);
    // And it stays there.
    bench.feed(Input::Sleep(0));
    bench.feed(Input::Wake(0));
    assert_eq!(bench.radios(), []);
    bench.both_ways_pass(OTHER_RADIO);
    Ok(())
}

/// To the control plane and back, where it wants to see them and a way leads there; else the user plane answers.
pub(crate) fn solicitation(persona: &Persona) -> Cell {
    if persona.is_between {
        return Err("the gateway beyond sees to it");
    }
    if persona.has_pool {
        return Err("its users have no prefix");
    }
    let wants = matches!(persona.dialect, Dialect::Open5gs | Dialect::Open5gsPgwC);
    for (mut bench, hears) in [
        (Bench::up(persona, None), false),
        (Bench::over(persona, plane_with_way(persona), |_| ()).started(), wants),
    ] {
        let solicitation = written(&Message::RouterSolicitation { source_link: None }, HOST, ROUTERS);
        let tunnel = (bench.uplink(), persona.qfi);
        assert_eq!(bench.radio_sends(RADIO.address, tunnel, &solicitation), Vec::<Vec<u8>>::new());
        let [sent] = &bench.radios()[..] else { panic!("a router solicitation goes nowhere") };
        if hears {
            assert_eq!((sent.to, sent.inner.as_deref()), (CP, Some(&solicitation[..])));
            advertised_by_control_plane(&mut bench);
        } else {
            assert_eq!((sent.to, sent.teid), (RADIO.address, RADIO.teid.0));
            assert_eq!(sent.flow, bench.flow_of(persona.qfi));
        }
    }
    Ok(())
}

/// A user's link-local address, and all routers of its link.
const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

fn advertised_by_control_plane(bench: &mut Bench<'_>) {
    let advertisement = Message::RouterAdvertisement(RouterAdvertisement::default());
    let advertisement = written(&advertisement, Ipv6Addr::from_bits(0xfe80 << 112 | 9), HOST);
    let endpoint = bench.smf.endpoint(0, Endpoint::ControlPlane).unwrap();
    bench.plane.receive(N3, &g_pdu(N3, CP, (endpoint.teid.0, None), &advertisement));
    bench.plane.settle();
    let sent: Vec<_> = bench.plane.sent(N3).iter().map(|frame| tunnelled(frame)).collect();
    let [sent] = &sent[..] else { panic!("a router advertisement goes nowhere") };
    assert_eq!((sent.to, sent.teid), (RADIO.address, RADIO.teid.0));
    // Without a QFI, the radio does not know what to do with it (open5gs #4804).
    assert_eq!(sent.flow, bench.flow_of(bench.persona.qfi));
    assert_eq!(sent.inner.as_deref(), Some(&advertisement[..]));
}

fn written(message: &Message<'_>, from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    let length = message.write(from, to, &mut bytes).unwrap();
    bytes.truncate(length);
    bytes
}
