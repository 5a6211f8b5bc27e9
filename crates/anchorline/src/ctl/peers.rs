//! GTP-U peers and the paths to them, as a table for people.

use dplink::{PathState, PeerStatistics};
use rules::Interface;
use std::fmt::Write;

/// In the order given: where each is, when it was last heard, and when it began, as it says; `now_s` is seconds since 1900.
pub(super) fn text(peers: &[PeerStatistics], now_s: u32) -> String {
    if peers.is_empty() {
        return "no tunnel leads to any peer\n".to_owned();
    }
    let mut text = format!(
        "{:<40} {:<8} {:<10} {:>8} {:>14} {:>16} {:>16} {:>8} {:>8}  our address\n",
        "peer",
        "side",
        "path",
        "tunnels",
        "round trip ms",
        "last answer s",
        "started s",
        "restarts",
        "path MTU"
    );
    for peer in peers {
        let _ = writeln!(
            text,
            "{:<40} {:<8} {:<10} {:>8} {:>14} {:>16} {:>16} {:>8} {:>8}  {}",
            peer.address.to_string(),
            side(peer.side),
            path(peer.path),
            peer.tunnels,
            peer.round_trip_us.map_or_else(none, |us| format!("{:.3}", f64::from(us) / 1_000.0)),
            peer.last_answer_age_ms.map_or_else(none, |ms| format!("{:.1} ago", ms as f64 / 1_000.0)),
            peer.recovery_time_stamp.map_or_else(none, |stamp| started(stamp, now_s)),
            peer.restarts,
            peer.path_mtu.map_or_else(none, |mtu| mtu.to_string()),
            peer.ours.map_or_else(none, |ours| ours.to_string()),
        );
    }
    text
}

/// A peer's clock may be ahead of ours.
fn started(stamp: u32, now_s: u32) -> String {
    match now_s.wrapping_sub(stamp).cast_signed() {
        ago @ 0.. => format!("{ago} ago"),
        ahead => format!("in {}", ahead.unsigned_abs()),
    }
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
            recovery_time_stamp: Some(3_900_000_000),
            restarts: 2,
            path_mtu: Some(1_300),
        };
        let ahead = PeerStatistics { recovery_time_stamp: Some(3_900_000_300), ..peer.clone() };
        let silent = PeerStatistics {
            round_trip_us: None,
            last_answer_age_ms: None,
            ours: None,
            recovery_time_stamp: None,
            restarts: 0,
            path_mtu: None,
            ..peer.clone()
        };
        let text = text(&[peer, silent, ahead], 3_900_000_060);
        let words = |line: usize| text.lines().nth(line).unwrap().split_whitespace().collect::<Vec<_>>();
        let told = "10.30.0.1 access FAILED 12 1.250 75.0 ago 60 ago 2 1300 10.30.0.2";
        assert_eq!(words(1).join(" "), told);
        assert_eq!(words(2).join(" "), "10.30.0.1 access FAILED 12 - - - 0 - -");
        assert_eq!(words(3)[7..9], ["in", "240"]);
    }

    #[test]
    fn nobody_is_said_in_words() {
        assert_eq!(text(&[], 0), "no tunnel leads to any peer\n");
    }
}
