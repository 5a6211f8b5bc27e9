//! Packets on their way through the graph, for people.

use super::drops::about;
use super::packet;
use super::progress;
use super::values;
use dplink::{
    TRACE_PACKETS_MAX, TRACE_SECONDS_MAX, Trace, TraceEnd, TraceFilter, TracePartEnd, TracedPacket,
    TracedParts,
};
use rules::Teid;
use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// Which packets, and how long to wait for them.
#[derive(clap::Args)]
pub(super) struct Args {
    /// End after so many packets.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=i64::from(TRACE_PACKETS_MAX)))]
    packets: u16,
    /// End after so many seconds, whatever came.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=i64::from(TRACE_SECONDS_MAX)))]
    seconds: u16,
    /// Only packets that come in on this port.
    #[arg(long, value_name = "NAME")]
    port: Option<String>,
    /// Only packets from or to this user; of IPv6, any address of the same 64-bit prefix.
    #[arg(long, value_name = "ADDRESS")]
    ue: Option<IpAddr>,
    /// Only packets that come in or leave in this tunnel: decimal, or hexadecimal after 0x.
    #[arg(long, value_name = "TEID", value_parser = values::teid)]
    teid: Option<Teid>,
}

impl Args {
    /// Waits for the packets.
    pub(super) async fn trace(&self, link: &Path) -> anyhow::Result<Trace> {
        let most = Duration::from_secs(self.seconds.into());
        progress::during("packets are waited for", most, crate::observer::trace(link, self.filter())).await
    }

    fn filter(&self) -> TraceFilter {
        let Self { packets, seconds, ref port, ue, teid } = *self;
        TraceFilter { packets, seconds, port: port.clone(), ue, teid }
    }
}

/// Each packet with its nodes and their decisions.
pub(super) fn text(trace: &Trace) -> String {
    let mut text = String::new();
    for (number, packet) in (1..).zip(&trace.packets) {
        tell(number, packet, &mut text);
    }
    let _ = writeln!(
        text,
        "{} packets traced of {} that came in within {:.3} s",
        trace.packets.len(),
        trace.looked_at,
        trace.lasted_ms as f64 / 1_000.0
    );
    text
}

fn tell(number: usize, traced: &TracedPacket, text: &mut String) {
    let after_ms = traced.after_us as f64 / 1_000.0;
    let arrived = packet::line(&traced.arrived);
    let _ = writeln!(text, "packet {number}, after {after_ms:.3} ms, in by {}: {arrived}", traced.port);
    let _ = match (traced.session, traced.pdr) {
        (Some(session), Some(pdr)) => writeln!(text, "  session {session}, {pdr}"),
        (Some(session), None) => writeln!(text, "  session {session}, no PDR"),
        _ => writeln!(text, "  no session"),
    };
    if let Some(policy) = &traced.policy {
        let _ = writeln!(text, "  forwarding policy {policy:?}");
    }
    let decisions = traced.nodes.iter().skip(1).map(|next| format!("to {next}"));
    let decisions = decisions.chain(std::iter::once(end(&traced.end)));
    for (node, decision) in traced.nodes.iter().zip(decisions) {
        let _ = writeln!(text, "  {node:<24} {decision}");
    }
    text.push('\n');
}

fn end(end: &TraceEnd) -> String {
    match end {
        TraceEnd::Sent { port, packet } => format!("sent by {port}: {}", packet::line(packet)),
        TraceEnd::Dropped { reason } => {
            format!("dropped: {reason} ({})", about(reason).trim_end_matches('.'))
        }
        TraceEnd::Gathered => "kept until the other fragments of its datagram come".to_owned(),
        TraceEnd::Consumed => "taken: it was for this node".to_owned(),
        TraceEnd::Punted => "given to the kernel: it is for the port, and not spoken here".to_owned(),
        TraceEnd::Held => "held until the next hop's Ethernet address is known".to_owned(),
        TraceEnd::Awaits => "kept until its session, which is being moved to this worker, is here".to_owned(),
        TraceEnd::Kept => "kept for its user, who sleeps".to_owned(),
        TraceEnd::Parted { parts } => format!("split or copied: {}", in_parts(parts)),
        TraceEnd::HandedOff { worker } => format!("handed to worker {worker}"),
        TraceEnd::Looped { port } => {
            format!("in again by {port}: the tunnel's other end is this node's, too")
        }
    }
}

fn in_parts(parts: &[TracedParts]) -> String {
    let told = |TracedParts { count, end }: &TracedParts| match end {
        TracePartEnd::Sent { port } => format!("{count} sent by {port}"),
        TracePartEnd::Dropped { reason } => format!("{count} dropped: {reason}"),
        TracePartEnd::Kept => format!("{count} kept for its user, who sleeps"),
        TracePartEnd::Held => format!("{count} held"),
    };
    match parts {
        [] => "none of its parts went on".to_owned(),
        _ => parts.iter().map(told).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::tunnelled;
    use super::*;
    use rules::{PdrId, Seid};

    fn traced(end: TraceEnd) -> TracedPacket {
        TracedPacket {
            after_us: 1_500,
            port: "n3".to_owned(),
            arrived: tunnelled(),
            nodes: ["usual_input", "flow", "verdict"].map(str::to_owned).into(),
            end,
            session: Some(Seid(1)),
            pdr: Some(PdrId(2)),
            policy: Some("mec1".to_owned()),
        }
    }

    #[test]
    fn every_node_stands_with_its_decision() {
        let dropped = traced(TraceEnd::Dropped { reason: "rate_exceeded".to_owned() });
        let text = text(&Trace { packets: vec![dropped], looked_at: 5, lasted_ms: 2_000 });
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("packet 1, after 1.500 ms, in by n3: 86 bytes, GTP-U 10.30.0.1 >"),
            "{text}"
        );
        assert_eq!(lines[1], "  session 0x0000000000000001, PDR 2");
        assert_eq!(lines[2], "  forwarding policy \"mec1\"");
        assert_eq!(lines[3], format!("  {:<24} to flow", "usual_input"));
        assert_eq!(lines[4], format!("  {:<24} to verdict", "flow"));
        assert_eq!(lines[5], format!("  {:<24} dropped: rate_exceeded (A QER's rate is used up)", "verdict"));
        assert_eq!(lines[7], "1 packets traced of 5 that came in within 2.000 s");
    }

    #[test]
    fn ends_are_told_in_words() {
        let sent = TraceEnd::Sent { port: "n6".to_owned(), packet: tunnelled() };
        assert!(end(&sent).starts_with("sent by n6: 86 bytes"));
        assert!(end(&TraceEnd::Held).contains("Ethernet address"));
        let by = |count, port: &str| TracedParts { count, end: TracePartEnd::Sent { port: port.to_owned() } };
        let lost = TracedParts { count: 1, end: TracePartEnd::Dropped { reason: "no_route".to_owned() } };
        let parted = TraceEnd::Parted { parts: vec![by(2, "n6"), by(1, "n3"), lost] };
        assert_eq!(end(&parted), "split or copied: 2 sent by n6, 1 sent by n3, 1 dropped: no_route");
    }
}
