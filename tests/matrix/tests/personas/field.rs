//! What befalls sessions in the field: lines that repeat or are cut, radios that forget.

use crate::bench::{Bench, Line, OTHER_RADIO, RADIO, SERVER, SERVER_PORT, plane};
use crate::cells::Cell;
use crate::persona::Persona;
use dataplane::Echo;
use matrix::frames::{echo_request, echo_response, error_indication};
use matrix::{N3, N6};
use pfcp::request::{far_action, updates};
use pfcp::{ApplyAction, Body, Cause, Gate, SessionModificationRequest};
use ran::smf::{Change, Event, Input};
use rules::BitRates;
use std::net::IpAddr;
use std::time::Duration;

/// Longer than anybody waits for an answer.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// Until the next heartbeat has been answered.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(12);
/// No control plane here gives a FAR this ID.
const NO_FAR: u32 = 0x7fff_fff0;

/// Every request arrives twice: nothing is done twice.
pub(crate) fn repeated(persona: &Persona) -> Cell {
    let mut bench = Bench::new(persona, None);
    bench.line = Line::Twice;
    let mut bench = bench.started();
    assert_eq!(bench.plane.node.sessions(), 1);
    bench.both_ways_pass(RADIO);
    assert!(bench.change(Change::Handover(OTHER_RADIO)));
    assert_eq!(bench.radios().len(), usize::from(persona.ends_paths), "End Markers");
    bench.feed(Input::Sleep(0));
    bench.feed(Input::Wake(0));
    bench.both_ways_pass(OTHER_RADIO);
    bench.feed(Input::Stop);
    assert!(bench.saw(&Event::Stopped), "{:?}", bench.events);
    assert_eq!((bench.plane.node.sessions(), bench.plane.node.tunnels()), (0, 0));
    Ok(())
}

/// The first answer to every request is lost: it is asked again, and what was done is not done again.
pub(crate) fn lost_answers(persona: &Persona) -> Cell {
    let mut bench = Bench::new(persona, None);
    bench.line = Line::Lossy;
    bench.feed(Input::Start);
    bench.pass(LONG);
    assert!(bench.saw(&Event::Ready), "{:?}", bench.events);
    assert_eq!(bench.plane.node.sessions(), 1);
    bench.both_ways_pass(RADIO);
    bench.feed(Input::Change(0, Change::Handover(OTHER_RADIO)));
    bench.pass(HEARTBEAT);
    assert!(bench.saw(&Event::Changed(0, Change::Handover(OTHER_RADIO))), "{:?}", bench.events);
    assert_eq!(bench.radios().len(), usize::from(persona.ends_paths), "End Markers");
    bench.both_ways_pass(OTHER_RADIO);
    bench.feed(Input::Stop);
    bench.pass(LONG);
    assert!(bench.saw(&Event::Stopped), "{:?}", bench.events);
    assert_eq!((bench.plane.node.sessions(), bench.plane.node.tunnels()), (0, 0));
    Ok(())
}

/// For a minute neither hears of the other; packets pass, nothing is forgotten, and what was to be told meanwhile is told after.
pub(crate) fn silence(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    bench.both_ways_pass(RADIO);
    bench.line = Line::Cut;
    bench.pass(LONG);
    assert!(bench.saw(&Event::Silent), "{:?}", bench.events);
    bench.both_ways_pass(RADIO);
    bench.line = Line::Whole;
    bench.pass(HEARTBEAT);
    assert!(bench.saw(&Event::Answering) && !bench.saw(&Event::Restarted), "{:?}", bench.events);
    bench.both_ways_pass(RADIO);
    bench.feed(Input::Sleep(0));
    bench.line = Line::Cut;
    let packet = bench.packet_down((SERVER, SERVER_PORT));
    assert_eq!(bench.network_sends(&packet), []);
    bench.pass(LONG / 2);
    assert!(!bench.saw(&Event::Paged(0)));
    bench.line = Line::Whole;
    bench.pass(HEARTBEAT);
    assert!(bench.saw(&Event::Paged(0)) && bench.saw(&Event::Awake(0)), "{:?}", bench.events);
    let kept = bench.radios();
    bench.is_for(&kept, RADIO, &packet);
    bench.feed(Input::Sleep(0));
    bench.feed(Input::Wake(0));
    bench.both_ways_pass(RADIO);
    Ok(())
}

/// The radio knows its tunnel no more: the control plane hears of it once, lets the user sleep, and wakes it.
pub(crate) fn forgetful_radio(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    bench.both_ways_pass(RADIO);
    bench.plane.receive(N3, &error_indication(N3, RADIO.address, RADIO.teid.0));
    bench.plane.settle();
    bench.feed(Input::Tick);
    assert!(bench.saw(&Event::ErrorIndicationReport(0)), "{:?}", bench.events);
    assert!(!bench.saw(&Event::ErrorIndicationReport(0)), "told once");
    bench.feed(Input::Sleep(0));
    let packet = bench.packet_down((SERVER, SERVER_PORT));
    bench.hold();
    assert_eq!(bench.network_sends(&packet), []);
    assert!(bench.saw(&Event::Paged(0)));
    bench.release();
    let sent = bench.radios();
    bench.is_for(&sent, RADIO, &packet);
    bench.both_ways_pass(RADIO);
    Ok(())
}

/// A change that cannot be is refused with the rule that is missing, and changes nothing: neither what is kept nor what passes.
pub(crate) fn refused_change(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    bench.both_ways_pass(RADIO);
    let saved = bench.plane.saved.sessions.clone();
    let drop = |far_id| far_action(far_id, ApplyAction::new(ApplyAction::DROP));
    // What could be done of it stands before what cannot be.
    let known = bench.rules().fars.into_iter().map(|far| drop(far.id.0));
    let answer = bench.ask(updates(known.chain([drop(NO_FAR)]).collect()));
    let Body::SessionModificationResponse(answer) = answer else { panic!("{answer:?}") };
    assert_eq!(answer.cause, Cause::RuleCreationModificationFailure);
    assert!(answer.failed_rule_id.is_some());
    assert_eq!(bench.plane.saved.sessions, saved);
    bench.both_ways_pass(RADIO);
    bench.feed(Input::Sleep(0));
    bench.feed(Input::Wake(0));
    bench.both_ways_pass(RADIO);
    Ok(())
}

/// Nothing passes a closed gate, whichever of its QERs has it, and no Error Indication is sent for it.
pub(crate) fn gates(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    let qers = bench.rules().qers;
    if qers.is_empty() {
        return Err("its sessions have no QER");
    }
    for qer in qers {
        bench.both_ways_pass(RADIO);
        bench.gate(qer.id.0, Gate::Closed);
        let passed = [burst_up(&mut bench), burst_down(&mut bench)];
        bench.gate(qer.id.0, Gate::Open);
        assert_eq!((passed, bench.radios()), ([0; 2], vec![]), "{qer:?}");
    }
    bench.both_ways_pass(RADIO);
    Ok(())
}

/// A user who is silent for as long as was asked about is told of, once, and one who speaks is not.
pub(crate) fn inactivity(persona: &Persona) -> Cell {
    let mut bench = Bench::up(persona, None);
    let silence = Duration::from_secs(10);
    let timer = Some(silence.as_secs() as u32);
    let asked = SessionModificationRequest { user_plane_inactivity_timer: timer, ..Default::default() };
    let Body::SessionModificationResponse(answer) = bench.ask(asked) else { panic!("another answer") };
    assert_eq!(answer.cause, Cause::RequestAccepted);
    for _ in 0..8 {
        bench.pass(silence / 2);
        bench.both_ways_pass(RADIO);
    }
    assert!(!bench.saw(&Event::Inactive(0)), "it spoke");
    bench.pass(silence * 3);
    assert!(bench.saw(&Event::Inactive(0)) && !bench.saw(&Event::Inactive(0)), "told once");
    bench.both_ways_pass(RADIO);
    Ok(())
}

/// A radio that answers no echo is told of, once, and that it is back; its users' sessions stay.
pub(crate) fn path_failure(persona: &Persona) -> Cell {
    let minute = Duration::from_secs(60);
    let echo = Echo { period_ns: minute.as_nanos() as u64, ..Echo::default() };
    let mut bench = Bench::over(persona, plane(persona, echo), |_| ()).started();
    let radio = IpAddr::V4(RADIO.address);
    bench.pass(minute * 3);
    assert!(bench.saw(&Event::Path(radio, false)), "{:?} {:?}", bench.events, bench.plane.notes);
    assert!(!bench.saw(&Event::Path(radio, false)), "told once");
    radio_answers(&mut bench, None);
    assert!(
        bench.saw(&Event::Path(radio, true)) && !bench.saw(&Event::Path(radio, true)),
        "{:?}",
        bench.events
    );
    bench.both_ways_pass(RADIO);
    Ok(())
}

/// The radio begins anew, as its echo responses tell: who understands that (RPGUR) hears of it, once; nobody else hears a word of it.
/// Its users' sessions are left to the control plane.
pub(crate) fn radio_restart(persona: &Persona) -> Cell {
    let echo = Echo { period_ns: Duration::from_secs(60).as_nanos() as u64, ..Echo::default() };
    let mut bench = Bench::over(persona, plane(persona, echo), |_| ()).started();
    let radio = IpAddr::V4(RADIO.address);
    let restart = Event::PeerRestarted(radio);
    radio_answers(&mut bench, Some(BORN));
    assert!(!bench.saw(&restart), "it is known since when it is there");
    radio_answers(&mut bench, Some(BORN + 60));
    let is_told = bench.saw(&restart);
    assert!(!bench.saw(&restart) && !bench.saw(&Event::Path(radio, false)), "{:?}", bench.events);
    assert_eq!(is_told, persona.dialect.hears_of_restarts(), "{:?}", bench.plane.notes);
    bench.both_ways_pass(RADIO);
    if is_told { Ok(()) } else { Err("it does not say that it understands reports of it") }
}

/// When the radio began, in seconds since 1900.
const BORN: u32 = 3_900_000_000;

/// For some minutes the radio answers echo requests, and says when it began.
fn radio_answers(bench: &mut Bench<'_>, began: Option<u32>) {
    for _ in 0..20 {
        let asked: Vec<_> = bench.plane.sent(N3).iter().filter_map(|frame| echo_request(frame)).collect();
        let ours = asked.into_iter().filter(|(to, _)| *to == RADIO.address);
        ours.for_each(|(to, number)| bench.plane.receive(N3, &echo_response(N3, to, (number, began))));
        bench.pass(Duration::from_secs(10));
    }
    // Questions are no packets of the user's.
    [N3, N6].into_iter().for_each(|port| drop(bench.plane.sent(port)));
}

/// No more passes than the session's rates allow, either way, and again once time has passed.
pub(crate) fn rates(persona: &Persona) -> Cell {
    let slow = BitRates { uplink_kbps: SLOW, downlink_kbps: SLOW };
    let mut bench =
        Bench::over(persona, plane(persona, Echo::OFF), |session| session.mbr = Some(slow)).started();
    let qers = bench.rules().qers;
    if qers.is_empty() {
        return Err("its sessions have no QER");
    }
    is_slow(&mut bench);
    // Of several QERs each holds packets back by itself.
    for qer in &qers {
        qers.iter().for_each(|other| bench.rate(other.id.0, if other.id == qer.id { SLOW } else { FAST }));
        bench.pass(Duration::from_secs(2));
        is_slow(&mut bench);
    }
    qers.iter().for_each(|qer| bench.rate(qer.id.0, FAST));
    bench.pass(Duration::from_secs(2));
    assert_eq!([burst_up(&mut bench), burst_down(&mut bench)], [PACKETS; 2]);
    assert!(bench.plane.worker.books().balanced());
    Ok(())
}

/// Some of a burst pass each way, and some again when time has passed.
fn is_slow(bench: &mut Bench<'_>) {
    for _ in 0..2 {
        let passed = [burst_up(bench), burst_down(bench)];
        assert!(passed.iter().all(|passed| (1..=AHEAD).contains(passed)), "{passed:?}");
        bench.pass(Duration::from_secs(2));
    }
}

/// In kbit/s: 80 bytes in the 10 ms by which packets may be ahead, which the second packet of a burst is.
const SLOW: u64 = 64;
const AHEAD: usize = 2;
const FAST: u64 = 1_000_000;

/// Of a burst.
const PACKETS: usize = 40;

fn burst_up(bench: &mut Bench<'_>) -> usize {
    let tunnel = (bench.uplink(), bench.persona.qfi);
    let packets: Vec<_> = (0..PACKETS).map(|_| bench.packet_up((SERVER, SERVER_PORT))).collect();
    packets.iter().map(|packet| bench.radio_sends(RADIO.address, tunnel, packet).len()).sum()
}

fn burst_down(bench: &mut Bench<'_>) -> usize {
    let packets: Vec<_> = (0..PACKETS).map(|_| bench.packet_down((SERVER, SERVER_PORT))).collect();
    packets.iter().map(|packet| bench.network_sends(packet).len()).sum()
}
