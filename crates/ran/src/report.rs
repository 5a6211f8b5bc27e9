//! What is told to whoever started us: results on stdout, trouble on stderr; with JSON all on stdout.

use crate::Config;
use crate::gnb::{Gnb, GnbCounts, TunnelRefused, UeCounts};
use crate::smf::{Event, Smf, Usage};
use packet::ethernet::MacAddress;
use pfcp::{EthernetTrafficInformation, MacAddressList};
use serde_json::{Value, json};
use std::io::Write;
use std::net::Ipv4Addr;

/// Says it as text or as JSON.
#[derive(Debug)]
pub(crate) struct Reporter {
    json: bool,
    ues: Vec<Ipv4Addr>,
}

impl Reporter {
    pub(crate) fn new(config: &Config, json: bool) -> Self {
        Self { json, ues: config.ues.iter().map(|ue| ue.address).collect() }
    }

    /// Their addresses, by index.
    pub(crate) fn ues(&self) -> &[Ipv4Addr] {
        &self.ues
    }

    pub(crate) fn event(&self, event: &Event) {
        if *event == Event::Ready {
            return self.ready();
        }
        let (name, sentence) = self.describe(event);
        match event {
            Event::Asleep(_) | Event::Paged(_) | Event::Awake(_) | Event::Macs(..) | Event::ReleaseAsked => {
                self.result(name, &sentence);
            }
            Event::Associated(_) | Event::SessionUp(..) | Event::SessionDeleted(_) | Event::Stopped => {
                tracing::debug!("{sentence}");
            }
            _ => self.trouble(name, &sentence),
        }
    }

    fn ready(&self) {
        let sessions = self.ues.len();
        match self.json {
            true => out(&json!({"event": "ready", "sessions": sessions}).to_string()),
            false => out(&format!("ran: ready, {sessions} sessions")),
        }
    }

    fn result(&self, name: &str, sentence: &str) {
        match self.json {
            true => out(&json!({"event": name, "message": sentence}).to_string()),
            false => out(&format!("ran: {sentence}")),
        }
    }

    pub(crate) fn trouble(&self, name: &str, sentence: &str) {
        match self.json {
            true => out(&json!({"event": name, "message": sentence}).to_string()),
            // Like stdout's: a closed stderr is no reason to end.
            false => drop(writeln!(std::io::stderr(), "ran: {sentence}")),
        }
    }

    fn describe(&self, event: &Event) -> (&'static str, String) {
        match event {
            Event::Associated(node) => ("associated", format!("associated with {node}")),
            Event::SessionUp(ue, uplink) => ("session_up", format!("{}: uplink {uplink}", self.ue(*ue))),
            Event::SessionLost(ue) => (
                "session_lost",
                format!("the UPF lost the session of {}; establishing it again", self.ue(*ue)),
            ),
            Event::SessionDeleted(ue) => ("session_deleted", format!("{}: session deleted", self.ue(*ue))),
            Event::Macs(ue, told) => ("macs", format!("{}: {}", self.ue(*ue), macs(told))),
            Event::Asleep(ue) => ("asleep", format!("{} sleeps", self.ue(*ue))),
            Event::Paged(ue) => ("paged", format!("{} is paged: packets came for it", self.ue(*ue))),
            Event::Awake(ue) => ("awake", format!("{} is awake", self.ue(*ue))),
            Event::Changed(ue, change) => ("changed", format!("{}: {change:?} is done", self.ue(*ue))),
            Event::Ready => ("ready", "all sessions are up".to_owned()),
            Event::Restarted => (
                "restarted",
                "the UPF restarted or lost the association; establishing all sessions again".to_owned(),
            ),
            Event::Silent => {
                ("silent", "the UPF does not answer heartbeats; its sessions are kept".to_owned())
            }
            Event::Answering => ("answering", "the UPF answers heartbeats again".to_owned()),
            Event::ErrorIndicationReport(ue) => (
                "error_indication_report",
                format!("the UPF says that the gNB refused the downlink of {}", self.ue(*ue)),
            ),
            Event::Inactive(ue) => ("inactive", format!("{} has been silent", self.ue(*ue))),
            Event::PeerRestarted(peer) => ("peer_restarted", format!("{peer} was restarted")),
            Event::Path(peer, true) => ("path_up", format!("the UPF hears of {peer} again")),
            Event::Path(peer, false) => ("path_down", format!("{peer} does not answer the UPF")),
            Event::Malformed(kind) => {
                ("malformed", format!("a PFCP message of the UPF cannot be read: {kind}"))
            }
            Event::Failed(failure) => ("failed", failure.to_string()),
            Event::Unreachable(upf) => ("unreachable", format!("UPF {upf} does not answer")),
            Event::ReleaseAsked => {
                ("release_asked", "the UPF asks to be released; its sessions are being deleted".to_owned())
            }
            Event::Stopped => ("stopped", "the association is released".to_owned()),
        }
    }

    fn ue(&self, index: usize) -> String {
        self.ues.get(index).map_or_else(|| "a UE".to_owned(), |address| format!("UE {address}"))
    }

    pub(crate) fn tunnel_refused(&self, refused: TunnelRefused) {
        let whose = refused.ue.map_or_else(String::new, |ue| format!(", the uplink of {}", self.ue(ue)));
        let sentence = format!("the UPF sent an Error Indication for {}{whose}", refused.tunnel);
        self.trouble("error_indication", &sentence);
    }

    pub(crate) fn left_early(&self) {
        self.trouble("left", "left without the UPF's answer to deletion or release");
    }

    pub(crate) fn counters(&self, gnb: &Gnb, smf: &Smf) {
        let usages: Vec<Usage> = (0..self.ues.len()).map(|ue| smf.usage(ue)).collect();
        match self.json {
            true => out(&counters_json(gnb, &usages).to_string()),
            false => counters_text(gnb, &usages).iter().for_each(|line| out(line)),
        }
    }
}

/// Which MAC addresses are in use now, and which no longer.
fn macs(told: &EthernetTrafficInformation) -> String {
    let list = |lists: &[MacAddressList]| {
        let all = lists.iter().flat_map(|list| &list.addresses);
        all.map(|mac| MacAddress(*mac).to_string()).collect::<Vec<_>>().join(" ")
    };
    let (detected, removed) = (list(&told.mac_addresses_detected), list(&told.mac_addresses_removed));
    format!("MAC addresses detected [{detected}], removed [{removed}]")
}

/// A reader that went away is no reason to end.
fn out(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

fn counters_json(gnb: &Gnb, usages: &[Usage]) -> Value {
    let ue = |((address, counts), usage): ((Ipv4Addr, UeCounts), &Usage)| {
        let Usage { reports, uplink_bytes, downlink_bytes } = usage;
        let usage =
            json!({"reports": reports, "uplink_bytes": uplink_bytes, "downlink_bytes": downlink_bytes});
        json!({"address": address, "counters": counts, "usage": usage})
    };
    let ues: Vec<Value> = gnb.ue_counts().into_iter().zip(usages).map(ue).collect();
    json!({"event": "counters", "ues": ues, "gnb": gnb.counts()})
}

fn counters_text(gnb: &Gnb, usages: &[Usage]) -> Vec<String> {
    let title = format!(
        "{:<15} {:>14} {:>16} {:>14} {:>16}  other",
        "UE", "up packets", "up bytes", "down packets", "down bytes"
    );
    let ue_counts = gnb.ue_counts();
    let ues = ue_counts.iter().map(|(address, counts)| ue_line(*address, counts));
    let gnb = std::iter::once(gnb_line(&gnb.counts()));
    let addresses = ue_counts.iter().map(|(address, _)| address);
    let reported = addresses.zip(usages).filter(|(_, usage)| usage.reports > 0).map(usage_line);
    std::iter::once(title).chain(ues).chain(reported).chain(gnb).collect()
}

fn usage_line((address, usage): (&Ipv4Addr, &Usage)) -> String {
    let Usage { reports, uplink_bytes, downlink_bytes } = usage;
    format!(
        "UE {address} as the UPF reports: up bytes {uplink_bytes}, down bytes {downlink_bytes}, in {reports} reports"
    )
}

fn gnb_line(counts: &GnbCounts) -> String {
    let GnbCounts { echo_requests, error_indications_received, error_indications_sent, .. } = counts;
    let malformed: u64 =
        counts.named().iter().filter(|(name, _)| name.starts_with("malformed")).map(|(_, n)| n).sum();
    let shown = ["echo_requests", "error_indications_received", "error_indications_sent"];
    let other: Vec<_> = counts.named().into_iter().filter(|(name, _)| !shown.contains(name)).collect();
    format!(
        "gNB: echo requests {echo_requests}, error indications received {error_indications_received}, \
         sent {error_indications_sent}, malformed {malformed}; other: {}",
        list(&other)
    )
}

fn ue_line(address: Ipv4Addr, counts: &UeCounts) -> String {
    let UeCounts { up_packets, up_bytes, down_packets, down_bytes, .. } = counts;
    let columns = ["up_packets", "up_bytes", "down_packets", "down_bytes"];
    let other: Vec<_> = counts.named().into_iter().filter(|(name, _)| !columns.contains(name)).collect();
    // Padding is lost on an address that is not text yet.
    let address = address.to_string();
    format!(
        "{address:<15} {up_packets:>14} {up_bytes:>16} {down_packets:>14} {down_bytes:>16}  {}",
        list(&other)
    )
}

/// Counters that are not zero.
fn list(named: &[(&str, u64)]) -> String {
    let counted = named.iter().filter(|(_, count)| *count > 0);
    let shown: Vec<String> = counted.map(|(name, count)| format!("{name} {count}")).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }
}
