//! What tests of the views share.

use dplink::{Books, NodeStatistics, PathStatistics, PortStatistics, Statistics, WorkerStatistics};

pub(super) fn statistics() -> Statistics {
    let node = |name: &str, vectors, packets, cycles| NodeStatistics {
        name: name.to_owned(),
        vectors,
        packets,
        cycles,
    };
    let port = PortStatistics {
        name: "n3".to_owned(),
        device: "net_null0".to_owned(),
        received: 10,
        received_bytes: 640,
        sent: 0,
        sent_bytes: 0,
        missed: 0,
        unsent: 0,
        link: dplink::PortLink::Up,
        punting: None,
        spread: dplink::Spread::OneWorker,
        steering: dplink::PortSteering::default(),
        classes: vec![],
    };
    let worker = WorkerStatistics {
        sessions: 2,
        busy_permille: 125,
        flows: 3,
        pdrs: 8,
        pdrs_most: 64,
        paths: PathStatistics::default(),
        content: dplink::ContentStatistics::default(),
        books: Books { received: 10, dropped: 10, ..Books::default() },
        nodes: vec![node("classify", 4, 10, 250), node("urr", 0, 0, 0), node("far", 4, 10, 750)],
        drops: vec![("no_pdr".to_owned(), 3), ("no_session".to_owned(), 7)],
        gave_way: vec![],
    };
    Statistics { uptime_ms: 2_000, sessions: 2, ports: vec![port], workers: vec![worker], idle: vec![] }
}
