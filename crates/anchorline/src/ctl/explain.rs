//! What would happen to a packet, for people.

use super::drops::about;
use super::names;
use super::packet::{protocol_name, with_port};
use super::values::{self, End, Protocol};
use crate::settings::Settings;
use anyhow::{Context, ensure};
use charging::OWN_METERS;
use dplink::{
    ExplainedAction, ExplainedApplication, ExplainedHop, ExplainedQer, ExplainedTunnel, ExplainedUrr,
    Explanation, Outcome, Question,
};
use n4::ComesOf;
use packet::protocol;
use rules::{ApplicationId, Instance, Interface, OuterHeader, PdrId, QerId, Qfi, Teid};
use serde::Serialize;
use std::fmt::Write;
use std::net::IpAddr;

/// IDs of QERs that predefined rules have begin here.
const PREDEFINED: u32 = 1 << 31;

/// A packet.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The user's address.
    #[arg(long, value_name = "ADDRESS")]
    ue: IpAddr,
    /// The far end, whichever way the packet goes: 8.8.8.8, 8.8.8.8:53 or [2001:db8::1]:53.
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    to: End,
    /// udp, tcp, icmp, sctp, esp, ah or a number; without it, udp where --to has a port, esp with --spi, else icmp.
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<Protocol>,
    /// The port at the user's end.
    #[arg(long, value_name = "PORT", default_value_t = 49_152)]
    from_port: u16,
    /// The packet goes to the user, rather than from the user.
    #[arg(long)]
    down: bool,
    /// The QoS flow it comes in; without it, the first that some PDR takes.
    #[arg(long, value_name = "QFI", value_parser = clap::value_parser!(u8).range(0..=i64::from(Qfi::MAX)))]
    qfi: Option<u8>,
    /// The tunnel it comes in; without it, from the user the first of the session's that some PDR takes, to the user none.
    #[arg(long, value_name = "TEID", value_parser = values::teid)]
    teid: Option<Teid>,
    /// Its type of service, or traffic class: decimal, or hexadecimal after 0x.
    #[arg(long, value_name = "TOS", default_value = "0", value_parser = values::tos)]
    tos: u8,
    /// Its security parameter index, of ESP or AH: decimal, or hexadecimal after 0x.
    #[arg(long, value_name = "SPI", value_parser = values::spi)]
    spi: Option<u32>,
    /// Its flow label, of IPv6: decimal, or hexadecimal after 0x; without it, 0.
    #[arg(long, value_name = "LABEL", value_parser = values::flow_label)]
    flow_label: Option<u32>,
    /// The network instance the user's address is of, where the node has several.
    #[arg(long, value_name = "NAME")]
    network_instance: Option<String>,
    /// Also tell of each PDR that was tried in vain, and why.
    #[arg(long)]
    verbose: bool,
    /// Its flow is of this application of the content rules; without it, as the data plane knows of this flow.
    #[arg(long, value_name = "NAME", value_parser = application)]
    application: Option<ApplicationId>,
}

/// As it is told.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    explanation: Explanation,
    /// Which of the PDRs come of predefined rules, as far as the control plane is there to say.
    predefined: Vec<ComesOf>,
}

impl Args {
    /// Asks, and says what was said.
    pub(super) async fn execute(&self, settings: &Settings, json: bool) -> anyhow::Result<String> {
        let instance = names::instance(settings, self.network_instance.as_deref())?;
        let question = Question { instance, ..self.question()? };
        if let Some(application) = &self.application {
            names::check_application(&settings.control(), application).await?;
        }
        let explanation = crate::observer::explain(&settings.link(), question.clone()).await?;
        let predefined = names::come_of(&settings.control(), &explanation).await;
        super::say(&Told { explanation, predefined }, json, |told| text(&question, told))
    }

    /// As the data plane is asked, of the default network instance.
    fn question(&self) -> anyhow::Result<Question> {
        let (ue, End { address: remote, port }) = (self.ue, self.to);
        ensure!(ue.is_ipv4() == remote.is_ipv4(), "--ue and --to are of different IP versions");
        let usual = match (port, self.spi) {
            (Some(_), _) => Protocol::Number(protocol::UDP),
            (None, Some(_)) => Protocol::Number(protocol::ESP),
            (None, None) => Protocol::Icmp,
        };
        let number = self.protocol.unwrap_or(usual).number(ue.is_ipv6());
        let ports = match protocol::has_ports(number) {
            true => {
                let port = port.with_context(|| format!("{} needs a port in --to", protocol_name(number)))?;
                Some((self.from_port, port))
            }
            false => {
                ensure!(port.is_none(), "{} has no ports; leave that of --to out", protocol_name(number));
                None
            }
        };
        self.check_what_has_them(number)?;
        Ok(Question {
            is_down: self.down,
            ue,
            instance: Instance::DEFAULT,
            remote,
            protocol: number,
            ports,
            traffic_class: self.tos,
            spi: self.spi,
            flow_label: self.flow_label.unwrap_or_default(),
            qfi: self.qfi.and_then(Qfi::new),
            teid: self.teid,
            is_verbose: self.verbose,
            application: self.application.clone(),
        })
    }

    /// Not every packet has a security parameter index, or a flow label.
    fn check_what_has_them(&self, number: u8) -> anyhow::Result<()> {
        // Over IPv6, AH is an extension header in front of whatever the packet carries.
        let may_have_spi = self.ue.is_ipv6() || matches!(number, protocol::ESP | protocol::AH);
        ensure!(self.spi.is_none() || may_have_spi, "{} has no SPI; leave --spi out", protocol_name(number));
        ensure!(
            self.flow_label.is_none() || self.ue.is_ipv6(),
            "only IPv6 has flow labels; leave --flow-label out"
        );
        Ok(())
    }
}

/// Rule by rule, then the outcome.
fn text(question: &Question, Told { explanation, predefined }: &Told) -> String {
    let comes_of = |pdr: PdrId| predefined.iter().find(|it| it.pdr == pdr);
    let taken = explanation.pdr.and_then(comes_of);
    let named = |pdr: PdrId| match comes_of(pdr) {
        Some(ComesOf { rule, .. }) => format!("{pdr} (predefined rule \"{rule}\")"),
        None => pdr.to_string(),
    };
    let mut text = format!("packet:   {}\n", packet(question, explanation));
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{:<9} {value}", format!("{name}:"));
    };
    match explanation.session {
        Some(session) => line("session", format!("{session}, {} PDRs", explanation.pdrs)),
        None => line("session", no_session(question).to_owned()),
    }
    if let Some(taken_as) = &explanation.application {
        line("of", of_application(question, taken_as));
    }
    for (pdr, why) in &explanation.tried {
        line("tried", format!("{} {why}", named(*pdr)));
    }
    match explanation.pdr {
        Some(pdr) => line("rule", format!("{} matches", named(pdr))),
        None if explanation.session.is_some() => line("rule", "no PDR matches".to_owned()),
        None => {}
    }
    if let Some(explained) = &explanation.action {
        line("action", action(explained, question.is_down, taken.is_some_and(|it| it.drops)));
    }
    let rule = taken.map(|it| &*it.rule);
    explanation.qers.iter().for_each(|qer| line("QER", rate(qer, question.is_down, rule)));
    explanation.urrs.iter().for_each(|urr| line("URR", usage(urr)));
    if let Some(name) = &explanation.policy {
        line("policy", format!("{name:?} says by which next hop it leaves, and not the routes"));
    }
    if let Some(hop) = &explanation.next_hop {
        line("next hop", next_hop(hop));
    }
    line("outcome", outcome(&explanation.outcome));
    text
}

fn application(name: &str) -> Result<ApplicationId, &'static str> {
    ApplicationId::new(name).ok_or("an application's name has 1 to 255 octets")
}

/// Where a user's address leads, the data plane knows of PDRs for packets to users alone.
const fn no_session(question: &Question) -> &'static str {
    match (question.teid, question.is_down) {
        (None, false) => {
            "none by this address; one whose PDRs are all for packets from its user is found by --teid alone"
        }
        _ => "none",
    }
}

fn of_application(question: &Question, taken_as: &ExplainedApplication) -> String {
    match (taken_as, &question.application) {
        (ExplainedApplication::Asked, Some(application)) => format!("application {application}, as asked"),
        (ExplainedApplication::Known(name), _) => format!("application {name}, as its first packets said"),
        (ExplainedApplication::None, _) => "no application, as its first packets said".to_owned(),
        (ExplainedApplication::ByAddress(name), _) => {
            let name =
                name.as_ref().map_or("no application".to_owned(), |name| format!("application {name}"));
            format!("{name}, by its addresses, ports and protocol, unless its first packet says more")
        }
        (ExplainedApplication::Asked | ExplainedApplication::Unknown, _) => {
            "an application not known yet: first packets are looked at, and go so meanwhile".to_owned()
        }
    }
}

fn packet(question: &Question, explanation: &Explanation) -> String {
    let Question { ue, remote, .. } = *question;
    let (ue, remote) = match question.ports {
        Some((at_ue, at_remote)) => (with_port(ue, at_ue), with_port(remote, at_remote)),
        None => (ue.to_string(), remote.to_string()),
    };
    let (from, to, way) =
        if question.is_down { (remote, ue, "to the user") } else { (ue, remote, "from the user") };
    let mut text = format!(
        "{} {from} > {to}, {way}, tos {:#04x}",
        protocol_name(question.protocol),
        question.traffic_class
    );
    if let Some(spi) = question.spi {
        let _ = write!(text, ", SPI {spi:#010x}");
    }
    if question.flow_label != 0 {
        let _ = write!(text, ", flow label {:#07x}", question.flow_label);
    }
    let taken = |is_asked: bool| if is_asked { "" } else { " (the first a PDR takes)" };
    if let Some(teid) = explanation.teid {
        let _ = write!(text, ", in tunnel {teid}{}", taken(question.teid.is_some()));
    }
    if let Some(qfi) = explanation.qfi {
        let _ = write!(text, ", QFI {}{}", qfi.value(), taken(question.qfi.is_some()));
    }
    text
}

/// What is done; `drops`: a predefined rule says so if it is dropped.
fn action(action: &ExplainedAction, is_down: bool, drops: bool) -> String {
    match action {
        ExplainedAction::Drop if drops => "the predefined rule's FAR says drop".to_owned(),
        ExplainedAction::Drop => "the FAR says drop".to_owned(),
        ExplainedAction::GateClosed => "none: the gate of a QER is closed".to_owned(),
        ExplainedAction::Buffer { notify: true } => {
            "the FAR says keep it, and tell the control plane of the first".to_owned()
        }
        ExplainedAction::Buffer { notify: false } => "the FAR says keep it".to_owned(),
        ExplainedAction::Reset => "the rule resets connections; gates are open".to_owned(),
        ExplainedAction::Redirect => "the FAR redirects the user; gates are open".to_owned(),
        ExplainedAction::Forward { to, tunnel, dscp, duplicates, redirect } => {
            let redirected = if is_down { "as from" } else { "redirected to" };
            let elsewhere = redirect.map(|other| format!(", {redirected} {other}")).unwrap_or_default();
            let dscp = dscp.map(|dscp| format!(", marked DSCP {dscp}")).unwrap_or_default();
            let copies = if *duplicates { ", with copies elsewhere" } else { "" };
            let how = tunnel.as_ref().map_or_else(|| "as it is".to_owned(), in_tunnel);
            format!("the FAR says forward to {}, {how}{elsewhere}{dscp}{copies}; gates are open", side(*to))
        }
    }
}

fn in_tunnel(tunnel: &ExplainedTunnel) -> String {
    let ends = match tunnel.ends {
        Some((ours, peer)) => format!("from {ours} to {peer}"),
        None => "to a peer no route leads to".to_owned(),
    };
    let qfi = tunnel.qfi.map(|qfi| format!(", QFI {qfi}")).unwrap_or_default();
    let reflective = if tunnel.reflective { ", reflective QoS" } else { "" };
    match tunnel.header {
        OuterHeader::Gtpu(teid) => format!("in tunnel {teid} {ends}{qfi}{reflective}"),
        OuterHeader::Udp(port) => format!("behind a UDP header {ends}, port {port}"),
    }
}

const fn side(side: Interface) -> &'static str {
    match side {
        Interface::Access => "the access side",
        Interface::Core => "the core side",
        Interface::SgiLan => "the SGi-LAN",
    }
}

/// Of the predefined rule of this name, if it is known that the PDR comes of one.
fn rate(qer: &ExplainedQer, is_down: bool, rule: Option<&str>) -> String {
    let way = if is_down { "downlink" } else { "uplink" };
    let now = if qer.admits { "has room now" } else { "is used up now" };
    let name = match qer.qer {
        QerId::OWN => "the node's own limit (session_mbr_kbps)".to_owned(),
        // Control planes leave the highest bit 0 (TS 29.244 8.2.75).
        QerId(PREDEFINED..) => match rule {
            Some(rule) => format!("the QER of predefined rule \"{rule}\""),
            None => "a predefined rule's QER".to_owned(),
        },
        other => other.to_string(),
    };
    match qer.limit_kbps {
        Some(kbps) => format!("{name} limits {way} to {kbps} kbit/s (MBR), and {now}"),
        None => format!("{name} limits {way} to so many packets in a time, and {now}"),
    }
}

fn usage(urr: &ExplainedUrr) -> String {
    let quota = if urr.is_used_up { "; its quota is used up" } else { "" };
    // Control planes leave the highest bit 0 (TS 29.244 8.2.54).
    let whose = if urr.urr.0 >= OWN_METERS { "a meter of this node, " } else { "" };
    format!(
        "{whose}{} has counted {} bytes up and {} bytes down{quota}",
        urr.urr, urr.uplink_bytes, urr.downlink_bytes
    )
}

fn next_hop(hop: &ExplainedHop) -> String {
    let known = if hop.is_resolved { "known" } else { "not known yet: the packet would wait for it" };
    format!("{} by port {}, Ethernet address {known}", hop.address, hop.port)
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Sent => "it would be sent".to_owned(),
        Outcome::Kept => "it would be kept for its user, who sleeps".to_owned(),
        Outcome::KeptBeyondQuota => "it would be kept until there is a quota again".to_owned(),
        Outcome::Answered => "its user would be sent elsewhere, or the connection reset".to_owned(),
        Outcome::Dropped { reason } => {
            format!("it would be dropped: {reason} ({})", about(reason).trim_end_matches('.'))
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clap::Parser;
    use rules::{FilterMismatch, Mismatch, PdrId, QerId, Seid, UrrId};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn question(line: &str) -> anyhow::Result<Question> {
        let words = std::iter::once("explain").chain(line.split_whitespace());
        Line::try_parse_from(words)?.args.question()
    }

    pub(in super::super) fn explanation() -> Explanation {
        let tunnel = ExplainedTunnel {
            header: OuterHeader::Gtpu(Teid(0x200)),
            ends: Some(([10, 30, 0, 2].into(), [10, 30, 0, 1].into())),
            qfi: Some(9),
            reflective: false,
        };
        let action = ExplainedAction::Forward {
            to: Interface::Access,
            tunnel: Some(tunnel),
            dscp: Some(46),
            duplicates: false,
            redirect: Some([192, 0, 2, 7].into()),
        };
        let hop = ExplainedHop { port: "n3".to_owned(), address: [10, 30, 0, 1].into(), is_resolved: true };
        let urr = ExplainedUrr { urr: UrrId(3), uplink_bytes: 1, downlink_bytes: 2, is_used_up: true };
        Explanation {
            session: Some(Seid(1)),
            teid: None,
            qfi: None,
            pdr: Some(PdrId(2)),
            pdrs: 4,
            application: Some(ExplainedApplication::Known("video".to_owned())),
            action: Some(action),
            qers: vec![ExplainedQer { qer: QerId(1), limit_kbps: Some(8), admits: true }],
            urrs: vec![urr],
            policy: None,
            next_hop: Some(hop),
            outcome: Outcome::Dropped { reason: "quota_exhausted".to_owned() },
            tried: vec![(PdrId(1), Mismatch::Filters(1, FilterMismatch::Protocol(6)))],
        }
    }

    #[test]
    fn every_rule_stands_in_words() {
        let question = question("--ue 10.60.0.1 --to 8.8.8.8:53 --down --tos 0xb8").unwrap();
        assert_eq!(
            text(&question, &told(vec![])),
            "packet:   UDP 8.8.8.8:53 > 10.60.0.1:49152, to the user, tos 0xb8\n\
             session:  0x0000000000000001, 4 PDRs\n\
             of:       application video, as its first packets said\n\
             tried:    PDR 1 its SDF filter wants protocol 6\n\
             rule:     PDR 2 matches\n\
             action:   the FAR says forward to the access side, in tunnel 0x00000200 from 10.30.0.2 to 10.30.0.1, \
             QFI 9, as from 192.0.2.7, marked DSCP 46; gates are open\n\
             QER:      QER 1 limits downlink to 8 kbit/s (MBR), and has room now\n\
             URR:      URR 3 has counted 1 bytes up and 2 bytes down; its quota is used up\n\
             next hop: 10.30.0.1 by port n3, Ethernet address known\n\
             outcome:  it would be dropped: quota_exhausted (A URR's quota is used up)\n"
        );
    }

    #[test]
    fn a_session_that_no_address_leads_to_is_to_be_asked_for_by_its_tunnel() {
        let nothing =
            Told { explanation: Explanation { session: None, ..explanation() }, predefined: vec![] };
        for (line, is_told) in [("", true), (" --teid 0x10", false), (" --down", false)] {
            let question = question(&format!("--ue 10.60.0.1 --to 8.8.8.8:53{line}")).unwrap();
            assert_eq!(text(&question, &nothing).contains("found by --teid"), is_told, "{line}");
        }
    }

    fn told(predefined: Vec<ComesOf>) -> Told {
        Told { explanation: explanation(), predefined }
    }

    #[test]
    fn what_comes_of_a_predefined_rule_has_its_name() {
        let question = question("--ue 10.60.0.1 --to 8.8.8.8:53").unwrap();
        let of = |pdr, rule: &str| ComesOf { pdr: PdrId(pdr), rule: rule.to_owned(), drops: rule == "ads" };
        let mut told = told(vec![of(1, "video"), of(2, "ads")]);
        told.explanation.action = Some(ExplainedAction::Drop);
        told.explanation.qers[0].qer = QerId(1 << 31 | 3 << 8);
        let without_engine = Told { explanation: told.explanation.clone(), predefined: vec![] };
        assert!(text(&question, &without_engine).contains("QER:      a predefined rule's QER limits uplink"));
        let text = text(&question, &told);
        for line in [
            "tried:    PDR 1 (predefined rule \"video\") its SDF filter",
            "rule:     PDR 2 (predefined rule \"ads\") matches\n",
            "action:   the predefined rule's FAR says drop\n",
            "QER:      the QER of predefined rule \"ads\" limits uplink to 8 kbit/s",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        let json = serde_json::to_value(&told).unwrap();
        assert_eq!((&json["pdr"], &json["predefined"][1]["rule"]), (&2.into(), &"ads".into()));
    }

    #[test]
    fn what_is_kept_for_want_of_a_quota_is_not_for_who_sleeps() {
        assert_eq!(outcome(&Outcome::KeptBeyondQuota), "it would be kept until there is a quota again");
        assert_eq!(outcome(&Outcome::Kept), "it would be kept for its user, who sleeps");
    }

    #[test]
    fn a_limit_of_the_nodes_own_is_told_as_such() {
        let own = ExplainedQer { qer: QerId::OWN, limit_kbps: Some(8), admits: false };
        let told = rate(&own, false, None);
        assert_eq!(
            told,
            "the node's own limit (session_mbr_kbps) limits uplink to 8 kbit/s (MBR), and is used up now"
        );
    }

    #[test]
    fn a_packet_is_asked_for_as_people_write_it() {
        let udp = question("--ue 10.60.0.1 --to 8.8.8.8:53").unwrap();
        assert_eq!((udp.protocol, udp.ports, udp.is_down), (17, Some((49_152, 53)), false));
        let ping = question("--ue 2001:db8::1 --to 2001:db8:1::1").unwrap();
        assert_eq!((ping.protocol, ping.ports), (58, None));
        let tcp =
            question("--ue 10.60.0.1 --to 8.8.8.8:443 --protocol tcp --from-port 7 --qfi 9 --teid 0x10")
                .unwrap();
        assert_eq!(
            (tcp.protocol, tcp.ports, tcp.qfi, tcp.teid),
            (6, Some((7, 443)), Qfi::new(9), Some(Teid(16)))
        );
        let esp = question("--ue 2001:db8::1 --to 2001:db8:1::1 --spi 0x10 --flow-label 7").unwrap();
        assert_eq!((esp.protocol, esp.ports, esp.spi, esp.flow_label), (50, None, Some(16), 7));
        assert!(text(&esp, &told(vec![])).contains("tos 0x00, SPI 0x00000010, flow label 0x00007\n"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_a_sentence() {
        for (line, complaint) in [
            ("--ue 10.60.0.1 --to 2001:db8::1", "different IP versions"),
            ("--ue 10.60.0.1 --to 8.8.8.8 --protocol tcp", "TCP needs a port"),
            ("--ue 10.60.0.1 --to 8.8.8.8:53 --protocol icmp", "ICMP has no ports"),
            ("--ue 10.60.0.1 --to 8.8.8.8 --qfi 64", "64"),
            ("--ue 10.60.0.1 --to 8.8.8.8:53 --spi 1", "UDP has no SPI"),
            ("--ue 10.60.0.1 --to 8.8.8.8 --flow-label 1", "only IPv6 has flow labels"),
        ] {
            let error = question(line).unwrap_err().to_string();
            assert!(error.contains(complaint), "{line}: {error}");
        }
    }
}
