//! Applications whose traffic has started or stopped (TS 29.244 5.4.11 and 7.5.8.3, Application Detection Information). A
//! URR has one start at a time: that of the first packet it counted, until all it counts has stopped.

use super::wanted;
use crate::config::Config;
use dplink::Start;
use pfcp::{
    ApplicationDetectionInformation, FlowInformation, NetworkInstance, UeIpAddress, UsageReport,
    UsageReportTrigger as Trigger,
};
use rules::{Instance, Pdr, Rules, Triggers, UrrId};
use session::{SessionRecord, StartRecord, UrrUsage};
use std::net::IpAddr;

/// The data plane says with what packet a URR's traffic has started.
pub(crate) fn hear_start(record: &mut SessionRecord, urr: UrrId, start: Option<&Start>, config: &Config) {
    let asks = |urr: &rules::Urr| {
        urr.triggers.contains(Triggers::START_OF_TRAFFIC) || urr.triggers.contains(Triggers::STOP_OF_TRAFFIC)
    };
    let mut pairs = record.usage.urrs.iter().zip(&record.rules.urrs);
    let Some((usage, _)) = pairs.find(|(usage, rule)| usage.urr == urr && asks(rule)) else { return };
    let number = usage.stops;
    // A data plane that has lost its memory tells again of what has never stopped.
    if record.usage.starts.iter().any(|known| known.urr == urr && known.number == number) {
        return;
    }
    record.usage.starts.retain(|known| known.urr != urr);
    let Some(start) = start else { return };
    let rules = wanted(record, config);
    let Some(pdr) = found_by(&rules, urr, start) else { return };
    let Some(application) = application(pdr) else { return };
    let says_user = pdr.pdi.ue_ipv4.is_some() || pdr.pdi.ue_ipv6.is_some();
    let ue = (!says_user).then_some(start.ue);
    record.usage.starts.push(StartRecord {
        urr,
        number,
        application: application.to_owned(),
        flow: flow(start),
        ue,
        network: ue.and_then(|_| network(&rules, config)),
        is_told: false,
    });
}

/// URRs that tell of starts.
pub(crate) fn telling_starts(rules: &Rules) -> impl Iterator<Item = UrrId> + '_ {
    let tells = |urr: &&rules::Urr| urr.triggers.contains(Triggers::START_OF_TRAFFIC);
    rules.urrs.iter().filter(tells).map(|urr| urr.id)
}

/// The PDR whose traffic it is. Where the data plane is not certain, one will do if all that the URR counts is of one
/// application.
fn found_by<'a>(rules: &'a Rules, urr: UrrId, start: &Start) -> Option<&'a Pdr> {
    if let Some(id) = start.pdr {
        return rules.pdrs.iter().find(|pdr| pdr.id == id);
    }
    let mut of_it = rules.pdrs.iter().filter(|pdr| pdr.urrs.contains(&urr));
    let first = of_it.next()?;
    of_it.all(|other| other.pdi.application == first.pdi.application).then_some(first)
}

/// Not what only stands for content that is charged apart, which no control plane knows of.
fn application(pdr: &Pdr) -> Option<&str> {
    let name = pdr.pdi.application.as_ref()?.name();
    (!name.starts_with('\0')).then_some(name)
}

/// The network of plain packets to the user, if the operator has named any.
fn network(rules: &Rules, config: &Config) -> Option<String> {
    let plain = rules.pdrs.iter().find(|pdr| pdr.pdi.f_teid.is_none())?.pdi.instance;
    config.network_instances.iter().find(|name| Instance::of(name) == plain).cloned()
}

/// An IPFilterRule of the flow, as SDF filters are: from the other end to the user (TS 29.212 5.4.2).
fn flow(start: &Start) -> String {
    let Start { ue, remote, protocol, ue_port, remote_port, .. } = start;
    let port = |port: &Option<u16>| port.map_or(String::new(), |port| format!(" {port}"));
    format!("permit out {protocol} from {remote}{} to {ue}{}", port(remote_port), port(ue_port))
}

/// Tells in the last of a URR's reports what has started or stopped.
pub(super) fn tell(starts: &mut [StartRecord], usage: &UrrUsage, reports: &mut [UsageReport]) {
    let Some(start) = starts.iter_mut().find(|start| start.urr == usage.urr) else { return };
    let Some(report) = reports.last_mut() else { return };
    let triggers = report.usage_report_trigger.0;
    if triggers & Trigger::START != 0 {
        start.is_told = !usage.names_only;
        let flow = start.is_told.then(|| both_ways(&start.flow));
        report.application_detection_information = Some(ApplicationDetectionInformation {
            flow_information: flow.into_iter().collect(),
            ..information(start)
        });
        report.ue_ip_address = start.ue.map(address);
        report.network_instance = start.network.as_deref().map(NetworkInstance::labels);
    } else if triggers & Trigger::STOPT != 0 {
        report.application_detection_information = Some(information(start));
    }
}

/// Without its flow: the same whether it starts or stops.
fn information(start: &StartRecord) -> ApplicationDetectionInformation {
    ApplicationDetectionInformation {
        application_id: start.application.as_bytes().to_vec(),
        application_instance_id: start.is_told.then(|| instance(start)),
        flow_information: vec![],
        carried: vec![],
    }
}

/// Unlike all others of the session.
fn instance(start: &StartRecord) -> Vec<u8> {
    format!("{}-{}", start.urr.0, start.number).into_bytes()
}

fn both_ways(flow: &str) -> FlowInformation {
    FlowInformation { direction: FlowInformation::BIDIRECTIONAL, description: flow.as_bytes().to_vec() }
}

fn address(ue: IpAddr) -> UeIpAddress {
    match ue {
        IpAddr::V4(ipv4) => UeIpAddress { ipv4: Some(ipv4), ..UeIpAddress::default() },
        IpAddr::V6(ipv6) => UeIpAddress { ipv6: Some(ipv6), ..UeIpAddress::default() },
    }
}
