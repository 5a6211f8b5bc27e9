//! Whether there is the room that configurations promise: a node in one thread, without packets.

use super::limits;
use crate::cpe;
use crate::settings::Settings;
use dataplane::{Engine, PortConfig, Worker};
use dplink::Command;
use machine::Time;
use n4::{Input, Node, Output, Start};
use packet::HeapBuffer;
use packet::ethernet::MacAddress;
use pfcp::*;
use rules::Instance;
use session::NodeRecord;
use std::net::{Ipv4Addr, SocketAddr};

const ZTE: &str = include_str!("../../../../config/zte.toml");
/// Of the sessions and the PDRs of the file, one in so many.
const SCALE: usize = 1_000;
pub(super) const SMF: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 1);
pub(super) const GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);

/// Nothing comes, and nothing goes.
pub(super) struct Silence;

impl dataplane::Port for Silence {
    type Buffer = HeapBuffer;

    fn receive(&mut self, _: &mut Vec<HeapBuffer>, _: usize) -> usize {
        0
    }

    fn send(&mut self, from: &mut Vec<HeapBuffer>) -> usize {
        from.drain(..).count()
    }

    fn allocate(&mut self) -> Option<HeapBuffer> {
        None
    }
}

struct Lab {
    node: Node,
    engine: Engine,
    worker: Worker<Silence>,
    asked: u32,
}

fn ports(settings: &Settings) -> Vec<PortConfig> {
    let port = |port: &crate::settings::PortSettings| PortConfig {
        name: port.name.clone(),
        device: port.device.clone(),
        interface: port.interface,
        instance: Instance::DEFAULT,
        mac: MacAddress([2, 0, 0, 0, 0, 1]),
        address: port.address,
        address6: port.address6,
        mtu: port.mtu,
        vlan: port.vlan,
        mss_clamp: port.mss_clamp,
        ethernet: port.ethernet,
        punt: port.punt.clone(),
    };
    settings.dpe.ports.iter().map(port).collect()
}

impl Lab {
    fn new(settings: &Settings) -> Self {
        let config =
            dataplane::Config { ports: ports(settings), limits: limits(settings), ..Default::default() };
        let silence = config.ports.iter().map(|_| Silence).collect();
        let (engine, worker) = dataplane::connect(&config, silence, || 0).unwrap();
        let start = Start::new(NodeRecord::new(1), 4_000_000_000_000);
        let node = Node::new(cpe::config(settings).unwrap(), start);
        let mut lab = Self { node, engine, worker, asked: 0 };
        lab.command(Command::Hello { version: dplink::VERSION, role: dplink::Role::Control });
        let setup = lab.ask(request::setup(NodeId::Ipv4(SMF), 1).into());
        assert!(matches!(setup, Body::AssociationSetupResponse(setup) if setup.cause.is_accepted()));
        lab
    }

    /// Asks the node, and does what it says until it answers.
    fn ask(&mut self, body: Body) -> Body {
        self.asked += 1;
        let bytes = pfcp::encode(&Message::node(self.asked, body));
        let from = SocketAddr::new(SMF.into(), pfcp::PORT);
        let outputs = self.node.handle(Input::Datagram { from, bytes: &bytes }, Time::ZERO);
        let answers = self.carry_out(outputs);
        answers.into_iter().find(|answer| answer.sequence == self.asked).expect("an answer").body
    }

    fn command(&mut self, command: Command) -> Vec<Message> {
        let at_once = self.engine.handle(command).unwrap();
        self.worker.turn(1);
        let notices: Vec<_> = at_once.into_iter().chain(self.engine.poll(0)).collect();
        let told = |notice| self.node.handle(Input::DataPath(notice), Time::ZERO);
        let outputs: Vec<Output> = notices.iter().flat_map(told).collect();
        self.carry_out(outputs)
    }

    /// What is sent.
    fn carry_out(&mut self, outputs: Vec<Output>) -> Vec<Message> {
        let mut sent = vec![];
        for output in outputs {
            match output {
                Output::Send { bytes, .. } => sent.push(pfcp::decode(&bytes).unwrap()),
                Output::Put(desired) => sent.extend(self.command(Command::Put(desired))),
                _ => {}
            }
        }
        sent
    }

    fn establish(&mut self, number: u32) -> Cause {
        match self.ask(establishment(number).into()) {
            Body::SessionEstablishmentResponse(response) => response.cause,
            other => panic!("{other:?}"),
        }
    }

    /// How many sessions there come to be with all rules, and why there is not one more.
    fn fill(&mut self, most: usize) -> (usize, Cause) {
        for number in 0..=most {
            let cause = self.establish(number as u32);
            if !cause.is_accepted() {
                return (number, cause);
            }
        }
        panic!("there are more than {most} sessions");
    }
}

/// PDRs up and down that activate all rules, and two for what none of them matches.
pub(super) fn establishment(number: u32) -> SessionEstablishmentRequest {
    let address = Ipv4Addr::from(0x0a40_0000 + number);
    let activating = |id, far, pdi: Pdi| CreatePdr {
        activate_predefined_rules: vec![b"zte".to_vec()],
        ..request::pdr((id, far), 255, pdi)
    };
    let ue_ip_addresses =
        vec![UeIpAddress { ipv4: Some(address), is_destination: true, ..UeIpAddress::default() }];
    let up = Pdi { f_teid: Some(FTeid::choose(Some(1))), ..Pdi::new(SourceInterface::Access) };
    let down = Pdi { ue_ip_addresses, ..Pdi::new(SourceInterface::Core) };
    let decapsulated = |pdr: CreatePdr| CreatePdr {
        outer_header_removal: Some(OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IP)),
        ..pdr
    };
    let pdrs = vec![
        decapsulated(activating(1, 1, up.clone())),
        activating(2, 2, down.clone()),
        decapsulated(request::pdr((3, 1), 500, up)),
        request::pdr((4, 2), 500, down),
    ];
    let forward = ApplyAction::new(ApplyAction::FORW);
    let to_core = ForwardingParameters::new(DestinationInterface::Core);
    let tunnel = OuterHeaderCreation::GtpuIpv4 { teid: number + 1, address: GNB };
    let to_access = ForwardingParameters {
        outer_header_creation: Some(tunnel),
        ..ForwardingParameters::new(DestinationInterface::Access)
    };
    let fars = vec![request::far(1, forward, Some(to_core)), request::far(2, forward, Some(to_access))];
    let f_seid = FSeid::new(u64::from(number) + 1, SMF.into());
    SessionEstablishmentRequest {
        pdn_type: Some(PdnType::Ipv4),
        ..SessionEstablishmentRequest::new(NodeId::Ipv4(SMF), f_seid, pdrs, fars)
    }
}

/// The node of the file, scaled down, with other lines besides; its room for PDRs divided once more.
pub(super) fn scaled(more: &str, division: usize) -> Settings {
    let mut settings = Settings::parse(&format!("{ZTE}\n{more}")).unwrap();
    settings.dpe.sessions /= SCALE;
    settings.dpe.pdrs /= SCALE * division;
    settings
}

pub(super) const CHARGING: &str =
    "[charging]\ndirectory = \"/tmp\"\nformats = [\"json\"]\ndefault_rating_group = 99\n";

#[test]
fn all_sessions_of_the_carriers_node_have_all_their_rules() {
    for charging in ["", CHARGING] {
        let settings = scaled(charging, 1);
        let mut lab = Lab::new(&settings);
        let (held, cause) = lab.fill(settings.dpe.sessions);
        assert_eq!((held, cause), (600, Cause::NoResourcesAvailable), "{charging}");
    }
}

#[test]
fn where_there_is_no_room_for_rules_the_control_plane_is_told() {
    let settings = scaled(CHARGING, 4);
    let mut lab = Lab::new(&settings);
    let (held, cause) = lab.fill(settings.dpe.sessions);
    assert_eq!((held, cause), (150, Cause::NoResourcesAvailable));
}
