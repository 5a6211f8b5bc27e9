//! GTP-U peers and the paths to them, as a table for people.

use dplink::{PathState, PeerStatistics};
use rules::Interface;
use std::fmt::Write;

/// In the order given: where each is, and when it was last heard.
pub(super) fn text(peers: &[PeerStatistics]) -> String {
    if peers.is_empty() {
        return "no tunnel leads to any peer\n".to_owned();
    }
    let mut text = format!(
        "{:<40} {:<8} {:<10} {:>8} {:>14} {:>16}  our address\n",
        "peer", "side", "path", "tunnels", "round trip ms", "last answer s"
    );
    for peer in peers {
        let _ = writeln!(
            text,
            "{:<40} {:<8} {:<10} {:>8} {:>14} {:>16}  {}",
            peer.address.to_string(),
            side(peer.side),
            path(peer.path),
            peer.tunnels,
            peer.round_trip_us.map_or_else(none, |us| format!("{:.3}", f64::from(us) / 1_000.0)),
            peer.last_answer_age_ms.map_or_else(none, |ms| format!("{:.1} ago", ms as f64 / 1_000.0)),
            peer.ours.map_or_else(none, |ours| ours.to_string()),
        );
    }
    text
}

fn none() -> String {
    "-".to_owned()
}

const fn side(side: Interface) -> &'static str {
    match side {
        Interface::Access => "access",
        Interface::Core => "core",
        Interface::SgiLan => "sgi-lan",
    }
}

const fn path(path: PathState) -> &'static str {
    match path {
        PathState::Unknown => "unknown",
        PathState::Up => "up",
        PathState::Failed => "FAILED",
        PathState::NoRoute => "no route",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_line() {
        let peer = PeerStatistics {
            side: Interface::Access,
            address: [10, 30, 0, 1].into(),
            ours: Some([10, 30, 0, 2].into()),
            tunnels: 12,
            path: PathState::Failed,
            round_trip_us: Some(1_250),
            last_answer_age_ms: Some(75_000),
        };
        let silent =
            PeerStatistics { round_trip_us: None, last_answer_age_ms: None, ours: None, ..peer.clone() };
        let text = text(&[peer, silent]);
        let words = |line: usize| text.lines().nth(line).unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(1), ["10.30.0.1", "access", "FAILED", "12", "1.250", "75.0", "ago", "10.30.0.2"]);
        assert_eq!(words(2), ["10.30.0.1", "access", "FAILED", "12", "-", "-", "-"]);
    }

    #[test]
    fn nobody_is_said_in_words() {
        assert_eq!(text(&[]), "no tunnel leads to any peer\n");
    }
}
