//! `[dpe]`: workers, what they do when no packet waits, peers asked whether they are there, and limits.

use super::{EXAMPLE, error};
use crate::settings::file::check;

#[test]
fn there_is_one_worker_unless_told_otherwise() {
    let crew = config::parse(EXAMPLE, check).unwrap().dpe.crew;
    assert_eq!((crew.workers, crew.distributors, crew.cpus), (1, 0, vec![]));
    let more = "idle = \"poll\"\nworkers = 3\ncpus = [2, 3, 4]\ndistributors = 1";
    let text = EXAMPLE.replace("idle = \"poll\"", more);
    let crew = config::parse(&text, check).unwrap().dpe.crew;
    assert_eq!((crew.workers, crew.distributors, crew.cpus), (3, 1, vec![2, 3, 4]));
    assert_eq!(crew.balance, dataplane::Balance::New);
    let text = EXAMPLE.replace("idle = \"poll\"", "balance = \"all\"");
    assert_eq!(config::parse(&text, check).unwrap().dpe.crew.balance, dataplane::Balance::All);
    for (to, expected) in [
        ("workers = 0", "a node has 1 to 32 workers"),
        ("workers = 2\ncpus = [1]", "one CPU for each of the 2 workers"),
        ("workers = 2\ncpus = [1, 1]", "two workers on one CPU"),
        ("workers = 2\ndistributors = 2", "has to own sessions"),
    ] {
        let message = error("idle = \"poll\"", to);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_port_s_name_is_one_that_tables_can_show() {
    for name in ["", "n 3", "n3\\n", "n\u{fc}3", &"n".repeat(33)] {
        let message = error("name = \"n3\"", &format!("name = \"{name}\""));
        assert!(
            message.contains("1 to 32 visible letters") && message.contains("name = "),
            "{name}: {message}"
        );
    }
}

#[test]
fn idle_workers_poll_unless_told_otherwise() {
    let idle =
        |text: &str| config::parse(text, check).map(|settings| (settings.dpe.idle, settings.dpe.idle_us));
    assert_eq!(idle(EXAMPLE).unwrap(), (dpdk::Idle::Poll, 50));
    for (word, expected) in [
        ("spin", dpdk::Idle::Poll),
        ("pause", dpdk::Idle::Pause),
        ("sleep", dpdk::Idle::Sleep),
        ("monitor", dpdk::Idle::Monitor),
    ] {
        let text = EXAMPLE.replace("idle = \"poll\"", &format!("idle = \"{word}\"\nidle_us = 9"));
        assert_eq!(idle(&text).unwrap(), (expected, 9));
    }
    // What a wrong word is answered with is what the example tells.
    let message = error("idle = \"poll\"", "idle = \"dance\"");
    let words: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
    assert!(words.len() > 4, "{message}");
    for word in words {
        let told = EXAMPLE
            .lines()
            .filter(|line| line.starts_with('#'))
            .any(|line| line.contains(&format!("\"{word}\"")));
        assert!(told, "{word} is not in the example");
    }
    let message = error("idle = \"poll\"", "idle_us = 0");
    assert!(message.contains("rests 1 to 10000 microseconds"), "{message}");
}

#[test]
fn what_is_used_is_told_every_half_minute_unless_told_otherwise() {
    let interval = |text: &str| config::parse(text, check).map(|settings| settings.dpe.interim_usage);
    assert_eq!(interval(EXAMPLE).unwrap().as_secs(), 30);
    for seconds in [0, 1, 3_600] {
        let text = EXAMPLE.replace("# interim_usage_s = 30", &format!("interim_usage_s = {seconds}"));
        assert_eq!(interval(&text).unwrap().as_secs(), seconds);
    }
    let message = error("# interim_usage_s = 30", "interim_usage_s = 3601");
    assert!(
        message.contains("interim_usage_s = 3601: what sessions use is told within 1 to 3600"),
        "{message}"
    );
}

#[test]
fn whose_frequency_goes_down_is_named() {
    let text = EXAMPLE.replace("idle = \"poll\"", "idle = \"scale\"\ncpus = [1]");
    assert_eq!(config::parse(&text, check).unwrap().dpe.idle, dpdk::Idle::Scale);
    let line = EXAMPLE.lines().position(|line| line == "idle = \"poll\"").unwrap() + 1;
    for (word, expected) in [
        ("scale", "idle = \"scale\": workers' CPUs are named (cpus)"),
        ("monitors", "idle = \"monitors\": unknown variant `monitors`"),
    ] {
        let message = error("idle = \"poll\"", &format!("idle = \"{word}\""));
        assert!(message.contains(expected) && message.contains(&format!("line {line}")), "{message}");
    }
}

#[test]
fn peers_are_asked_every_minute_unless_told_otherwise() {
    assert_eq!(config::parse(EXAMPLE, check).unwrap().dpe.echo, dataplane::Echo::default());
    let text = EXAMPLE.replace("period_s = 60", "period_s = 0").replace("n3 = 3", "n3 = 7");
    let echo = config::parse(&text, check).unwrap().dpe.echo;
    assert_eq!((echo.period_ns, echo.t3_ns, echo.n3), (0, 5_000_000_000, 7));
    let message = error("t3_s = 5", "t3_s = 0");
    assert!(message.contains("t3_s = 0: T3-RESPONSE is 1 to 60 seconds"), "{message}");
}

/// Those of `[dpe.limits]` that the example shows with their usual values.
const LIMITS: [&str; 11] = [
    "kept",
    "kept_per_session",
    "kept_s",
    "peers",
    "neighbours",
    "held_per_neighbour",
    "shared_meters",
    "reassembled",
    "burst_ms",
    "catch_up_ms",
    "punts_per_s",
];

#[test]
fn limits_are_the_usual_ones_unless_told_otherwise() {
    let limits = |text: &str| {
        let none = dataplane::Limits { sessions: 7, kept: 0, peers: 0, ..dataplane::Limits::default() };
        config::parse(text, check).map(|settings| settings.dpe.limits.within(none))
    };
    let usual = dataplane::Limits { sessions: 7, ..dataplane::Limits::default() };
    assert_eq!(limits(EXAMPLE).unwrap(), usual);
    // What is said of them in the example is true.
    let mut said = EXAMPLE.replace("# [dpe.limits]", "[dpe.limits]");
    for key in LIMITS {
        let commented = format!("\n# {key} = ");
        assert_eq!(said.matches(&commented).count(), 1, "{key}");
        said = said.replace(&commented, &format!("\n{key} = "));
    }
    assert_eq!(limits(&said).unwrap(), usual);
    let few = "[dpe.limits]\nkept = 100\nkept_s = 2\npeers = 16\nneighbours = 17\nheld_per_neighbour = 1\n\
               shared_meters = 18\nreassembled = 4\nredirected_flows = 512\nburst_ms = 30\ncatch_up_ms = 0\nsession_mbr_kbps = 5\npunts_per_s = 6";
    let expected = dataplane::Limits {
        kept: 100,
        // One user keeps no more than all.
        kept_per_session: 100,
        kept_ns: 2_000_000_000,
        peers: 16,
        neighbours: 17,
        held_per_neighbour: 1,
        meters_apart: 18,
        reassembled: 4,
        redirections: 512,
        burst_ns: 30_000_000,
        catch_up_ns: 0,
        session_mbr: Some(rules::BitRates { uplink_kbps: 5, downlink_kbps: 5 }),
        punts_per_s: 6,
        ..usual
    };
    assert_eq!(limits(&EXAMPLE.replace("# [dpe.limits]", few)).unwrap(), expected);
    for (wrong, why) in [
        ("kept = 15", "kept = 15: this is 16 to 1000000"),
        ("kept = 20\nkept_per_session = 21", "kept_per_session = 21: this is 1 to 20"),
        ("kept_per_session = 0", "this is 1 to 16384"),
        ("redirected_flows = 511", "this is 512 to 4194304"),
        ("kept_s = 3601", "this is 1 to 3600"),
        ("peers = 65537", "this is 16 to 65536"),
        ("neighbours = 0", "this is 16 to 65536"),
        ("held_per_neighbour = 257", "this is 1 to 256"),
        ("shared_meters = 1", "this is 16 to 1000000"),
        ("reassembled = 3", "reassembled = 3: this is 4 to 1024"),
        ("catch_up_ms = 1001", "catch_up_ms = 1001: this is 0 to 1000"),
        ("burst_ms = 2001", "burst_ms = 2001: this is 1 to 2000"),
        ("session_mbr_kbps = 0", "session_mbr_kbps = 0: this is 1 to 4294967295"),
        ("punts_per_s = 0", "punts_per_s = 0: this is 1 to 1000000"),
        ("keep = 1", "unknown field `keep`"),
    ] {
        let message = error("# [dpe.limits]", &format!("[dpe.limits]\n{wrong}"));
        assert!(message.contains(why) && message.contains("line "), "{message}");
    }
}
