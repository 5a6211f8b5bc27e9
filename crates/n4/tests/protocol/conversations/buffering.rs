//! Users who sleep: packets are kept, and the answer to a report says how to go on.

use super::sessions::{delete, establish, setup};
use super::{About, Conversation, Stage, Step};
use crate::common::smf::establishment;
use crate::common::{SMF, smf};
use dplink::{Event, Notice};
use n4::Input;
use pfcp::*;
use rules::{PdrId, Qfi};

fn packet(stage: &mut Stage, pdr: u16) {
    let session = stage.session(0);
    let event = Event::DownlinkData { session, pdr: PdrId(pdr), qfi: Qfi::new(9), traffic_class: 46 << 2 };
    stage.lab.handle(Input::DataPath(&Notice::Event(event)));
    stage.pass(2);
}

fn established() -> SessionEstablishmentRequest {
    let mut request = establishment(77);
    let bar_id = Some(1);
    let action = ApplyAction::BUFF | ApplyAction::NOCP;
    request.create_fars[1] = CreateFar { bar_id, ..smf::far(2, action, None) };
    request.create_pdrs.push(smf::downlink(3, Some(smf::UE)));
    request.create_bar =
        Some(CreateBar { bar_id: 1, downlink_data_notification_delay: Some(10), ..CreateBar::default() });
    request
}

fn answer(update_bar: UpdateBarInReport, flags: Option<u8>) -> Step {
    let response = SessionReportResponse {
        offending_ie: Some(ie::CAUSE),
        update_bar: Some(update_bar),
        pfcpsrrsp_flags: flags,
        cp_f_seid: Some(FSeid::new(99, SMF.into())),
        ..SessionReportResponse::of(Cause::RequestAccepted)
    };
    Step::Answer(SMF, About::Session(0), response.into())
}

pub fn whole() -> Conversation {
    let first = UpdateBarInReport {
        bar_id: 1,
        downlink_data_notification_delay: Some(20),
        dl_buffering_duration: Some(10),
        dl_buffering_suggested_packet_count: Some(PacketCount(300)),
        ..UpdateBarInReport::default()
    };
    let second =
        UpdateBarInReport { bar_id: 1, suggested_buffering_packets_count: Some(4), ..Default::default() };
    let steps = vec![
        setup(),
        establish(established()),
        Step::Do(|stage| packet(stage, 2)),
        answer(first, Some(flags::PFCPSRRSP_DROBU)),
        Step::Do(|stage| stage.pass(20)),
        Step::Do(|stage| packet(stage, 3)),
        answer(second, None),
        Step::Do(|stage| stage.pass(20)),
        delete(),
    ];
    Conversation::new("a user who sleeps", steps)
}
