//! Events that a control plane measures (TS 29.244 8.2.40): uses of a service, by the packets of a user.

use crate::Test;
use crate::gateways::{ControlPlane, ENB_TEID, Radio, endpoint, far, pdi, pdr};
use anyhow::{Result, bail, ensure};
use lab::address::{GNB_N3, SMF_N4, UE};
use lab::anchorline::Node;
use lab::config::Driver;
use lab::{Core, Lab};
use pfcp::{
    Body, Cause, CreatePdr, CreateUrr, CreatedPdr, DestinationInterface, FSeid, FTeid, Message, NodeId, Pdi,
    PdnType, ReportingTriggers, SessionDeletionRequest, SessionEstablishmentRequest,
    SessionModificationRequest, SourceInterface, UeIpAddress, UpdateUrr, UsageReport, UsageReportTrigger,
    flags,
};
use std::thread;
use std::time::Duration;

pub(crate) const TESTS: &[Test] =
    &[("uses_are_counted_told_and_stopped_by_their_quota", Core::Engine, counted)];

/// A use is over after so long without a packet.
const SILENCE_S: u32 = 2;
/// By then it has been found out.
const OVER: Duration = Duration::from_secs(4);

fn counted(lab: &Lab) -> Result<()> {
    let node = Node::start(lab, Driver::AfPacket)?;
    let mut control = ControlPlane::associate(lab)?;
    let (seid, created) = establish(&mut control)?;
    node.wait_sessions(1)?;
    let radio = Radio::open(lab, endpoint(&created, 1)?.0)?;

    uses(&radio)?;
    is_told(&control.listen(OVER)?, None)?;
    uses(&radio)?;
    is_told(&control.listen(OVER)?, Some((UsageReportTrigger::EVETH, 2)))?;
    // The third spends the quota, and goes on.
    uses(&radio)?;
    is_told(&control.listen(Duration::from_secs(1))?, Some((UsageReportTrigger::EVEQU, 1)))?;
    uses(&radio)?;
    is_told(&control.listen(OVER)?, None)?;
    ensure!(radio.ping(9).is_err(), "a packet passes without a quota");

    give(&mut control, seid)?;
    uses(&radio)?;
    is_told(&control.listen(Duration::from_secs(1))?, None)?;
    is_told(&delete(&mut control, seid)?, Some((UsageReportTrigger::TERMR, 1)))?;
    node.wait_balance()?;
    node.stop()
}

/// Packets with less than a silence between them.
fn uses(radio: &Radio) -> Result<()> {
    for number in 0..4 {
        radio.ping(number)?;
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

fn is_told(reports: &[UsageReport], expected: Option<(u32, usize)>) -> Result<()> {
    let told: Vec<(u32, usize)> = reports
        .iter()
        .map(|report| (report.usage_report_trigger.0, report.event_time_stamps.len()))
        .collect();
    ensure!(told == expected.into_iter().collect::<Vec<_>>(), "told are {reports:?}, not {expected:?}");
    Ok(())
}

fn establish(control: &mut ControlPlane) -> Result<(u64, Vec<CreatedPdr>)> {
    let ue = UeIpAddress { ipv4: Some(UE), is_destination: true, ..UeIpAddress::default() };
    let downlink = Pdi { ue_ip_addresses: vec![ue], ..pdi(SourceInterface::Core, None) };
    let uplink = pdi(SourceInterface::Access, Some(FTeid::choose(None)));
    let measured = |number, pdi| CreatePdr { urr_ids: vec![1], ..pdr(number, pdi) };
    let to_radio = (DestinationInterface::Access, Some((ENB_TEID, GNB_N3)));
    let fars = vec![far(1, (DestinationInterface::Core, None)), far(2, to_radio)];
    let triggers = ReportingTriggers::new(ReportingTriggers::EVETH | ReportingTriggers::EVEQU);
    let urr = CreateUrr {
        event_threshold: Some(2),
        event_quota: Some(3),
        inactivity_detection_time: Some(SILENCE_S),
        ..CreateUrr::new(1, flags::METHOD_EVENT, triggers)
    };
    let (node_id, f_seid) = (NodeId::Ipv4(SMF_N4), FSeid::new(1, SMF_N4.into()));
    let request = SessionEstablishmentRequest {
        pdn_type: Some(PdnType::Ipv4),
        create_urrs: vec![urr],
        ..SessionEstablishmentRequest::new(
            node_id,
            f_seid,
            vec![measured(1, uplink), measured(2, downlink)],
            fars,
        )
    };
    let number = control.number();
    match control.ask(&Message::session(0, number, request))? {
        Body::SessionEstablishmentResponse(response) if response.cause.is_accepted() => {
            let seid = response.up_f_seid.map_or(0, |f_seid| f_seid.seid);
            Ok((seid, response.created_pdrs))
        }
        other => bail!("no session: {other:?}"),
    }
}

/// More events.
fn give(control: &mut ControlPlane, seid: u64) -> Result<()> {
    let update = UpdateUrr { event_quota: Some(2), ..UpdateUrr::new(1) };
    let request =
        SessionModificationRequest { update_urrs: vec![update], ..SessionModificationRequest::default() };
    let number = control.number();
    match control.ask(&Message::session(seid, number, request))? {
        Body::SessionModificationResponse(response) if response.cause == Cause::RequestAccepted => Ok(()),
        other => bail!("no quota: {other:?}"),
    }
}

fn delete(control: &mut ControlPlane, seid: u64) -> Result<Vec<UsageReport>> {
    let number = control.number();
    match control.ask(&Message::session(seid, number, SessionDeletionRequest::default()))? {
        Body::SessionDeletionResponse(response) => Ok(response.usage_reports),
        other => bail!("not deleted: {other:?}"),
    }
}
