//! Any frame on either port of a worker with a session: the books balance afterwards.

#![no_main]

use dataplane::{Config, Limits, Port, PortConfig, Route};
use dplink::{Command, Desired};
use packet::{Buffer, HeapBuffer, ethernet::MacAddress};
use rules::*;
use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;

#[derive(Clone, Default)]
struct Wire(Rc<RefCell<Vec<HeapBuffer>>>);

impl Port for Wire {
    type Buffer = HeapBuffer;

    fn receive(&mut self, into: &mut Vec<HeapBuffer>, limit: usize) -> usize {
        let mut wire = self.0.borrow_mut();
        let count = limit.min(wire.len());
        into.extend(wire.drain(..count));
        count
    }

    fn send(&mut self, from: &mut Vec<HeapBuffer>) -> usize {
        let count = from.len();
        assert!(from.drain(..).all(|packet| packet.data().len() <= 1514 + 44));
        count
    }

    fn allocate(&mut self) -> Option<HeapBuffer> {
        Some(HeapBuffer::new(&[]))
    }
}

fn config() -> Config {
    let port = |name: &str, interface, address: &str| PortConfig {
        name: name.to_owned(),
        device: name.to_owned(),
        interface,
        instance: rules::Instance::DEFAULT,
        mac: MacAddress([2, 0, 0, 0, 0, 2]),
        address: address.parse().unwrap(),
        address6: None,
        mtu: 1500,
        vlan: None,
        mss_clamp: false,
        ethernet: false,
        punt: (interface == Interface::Core).then(|| "n6-host".to_owned()),
    };
    Config {
        ports: vec![
            port("n3", Interface::Access, "10.30.0.2/24"),
            port("n6", Interface::Core, "10.50.0.2/24"),
        ],
        routes: vec![Route { prefix: "0.0.0.0/0".parse().unwrap(), via: Ipv4Addr::new(10, 50, 0, 1).into(), instance: None }],
        limits: Limits {
            sessions: 4,
            pdrs: 8,
            flows: 64,
            peers: 4,
            kept: 4,
            neighbours: 4,
            held_per_neighbour: 2,
            error_indications_per_s: 2,
            ..Limits::default()
        },
        resolvers: vec![],
        echo: dataplane::Echo::default(),
        epoch: 1,
        awaits_sessions: false,
        seed: 1,
    }
}

fn rules() -> Rules {
    let ue_ipv4 = Some(Ipv4Addr::new(10, 60, 0, 1));
    let f_teid = FTeid { teid: Teid(0x100), address: Ipv4Addr::new(10, 30, 0, 2).into() };
    let tunnel = OuterHeaderCreation::gtpu(Teid(0x200), Ipv4Addr::new(10, 30, 0, 1).into() );
    let pdr = |id, source_interface, f_teid: Option<FTeid>| Pdr {
        id: PdrId(id),
        precedence: 1,
        outer_header_removal: f_teid.is_some(),
        pdi: Pdi {
            source_interface,
            instance: rules::Instance::DEFAULT,
            f_teid,
            ue_ipv4,
            ue_ipv6: None,
            framed_routes: vec![],
            qfis: vec![],
            sdf_filters: vec![],
            application: None,
            ethernet: None,
        },
        far: FarId(id.into()),
        qers: vec![QerId(1)].into(),
        urrs: vec![UrrId(1)].into(),
    };
    let far = |id, destination_interface, outer_header_creation| Far {
        id: FarId(id),
        apply_action: ApplyAction::Forward,
        forwarding: Some(ForwardingParameters {
            destination_interface,
            instance: rules::Instance::DEFAULT,
            outer_header_creation,
            dscp: None,
        }),
        notify: false,
        duplicating: false,
        duplicates: vec![],
        bar: None,
        redirect: None,
        enrichment: None,
    };
    let rates = BitRates { uplink_kbps: 8, downlink_kbps: 1_000 };
    let qer = Qer {
        id: QerId(1),
        uplink_gate: Gate::Open,
        downlink_gate: Gate::Open,
        mbr: Some(rates),
        packet_rates: PacketRates::default(),
        correlation: None,
        gbr: None,
        qfi: None,
        reflective: false,
    };
    Rules {
        pdrs: vec![pdr(1, Interface::Access, Some(f_teid)), pdr(2, Interface::Core, None)],
        fars: vec![far(1, Interface::Core, None), far(2, Interface::Access, Some(tunnel))],
        qers: vec![qer],
        urrs: vec![Urr { id: UrrId(1), ..Urr::default() }],
        bars: vec![],
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((port, frame)) = bytes.split_first() else { return };
    let wires = [Wire::default(), Wire::default()];
    let (mut engine, mut worker) = dataplane::connect(&config(), wires.to_vec(), || 0).unwrap();
    let desired = Desired::new(Seid(1), 1, rules());
    engine.handle(Command::Put(desired)).unwrap();
    worker.turn(1);
    wires[usize::from(port & 1)].0.borrow_mut().push(HeapBuffer::new(frame));
    for now_ns in [2, 3, 2_000_000_000] {
        worker.turn(now_ns);
        assert!(worker.books().balanced());
    }
});
