//! Golden files, whose frames scapy built, run through the reference: the data plane's, and our own for what those do
//! not show. What a file says of nodes does not concern the reference; where each frame ends and what leaves does.

use crate::{Fate, Neighbour, Outcome, PortSetup, Reference, Route, Setup};
use ipnet::IpNet;
use rules::*;
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

const GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 1);
const PORTS: [&str; 3] = ["n3", "n6", "n9"];
/// The fixture's limit on Error Indications, and on ICMP errors, in a second.
const ANSWERS: usize = 2;

/// Golden files that say how the first data path ended, and how the full one does.
const OVERTAKEN: &[(&str, &str)] = &[
    ("plain_from_the_radio_side.golden", "drop:ip_not_for_us"),
    ("from_the_core.golden", "drop:gtpu_unknown_type"),
];

struct Step {
    port: usize,
    frame: Vec<u8>,
    end: String,
    out: Vec<(usize, Vec<u8>)>,
}

fn port(name: &str) -> usize {
    PORTS.iter().position(|port| *port == name).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let octet = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    hex.as_bytes().chunks(2).map(octet).collect()
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "in" => {
                let (port, frame) = (port(words[1]), bytes(words[2]));
                steps.push(Step { port, frame, end: String::new(), out: Vec::new() });
            }
            "path" => steps.last_mut().unwrap().end = words.last().unwrap().to_string(),
            "out" => steps.last_mut().unwrap().out.push((port(words[1]), bytes(words[2]))),
            other => panic!("unknown line {other}"),
        }
    }
    steps
}

fn setup() -> Setup {
    let port = |interface, place, ipv4: &str| PortSetup {
        interface,
        instance: Instance::DEFAULT,
        mac: [2, 0, 0, 0, place, 2],
        ipv4: ipv4.parse().unwrap(),
        ipv6: Some(format!("2001:db8:{place}::2/64").parse().unwrap()),
        mtu: 1500,
    };
    let [gnb6, router6] = ["2001:db8:3::1", "2001:db8:6::1"].map(|address| address.parse().unwrap());
    let neighbour = |port, address, place| Neighbour { port, address, mac: [2, 0, 0, 0, place, 1] };
    let route =
        |prefix: &str, via| Route { prefix: prefix.parse().unwrap(), via, instance: Instance::DEFAULT };
    Setup {
        routes: vec![route("0.0.0.0/0", ROUTER.into()), route("::/0", router6)],
        neighbours: vec![
            neighbour(0, GNB.into(), 3),
            neighbour(1, ROUTER.into(), 6),
            neighbour(0, gnb6, 3),
            neighbour(1, router6, 6),
        ],
        held_per_neighbour: 2,
        // As the data plane has it.
        one_teid_space_per_port: true,
        ..Setup::new(vec![
            port(Interface::Access, 3, "10.30.0.2/24"),
            port(Interface::Core, 6, "10.50.0.2/24"),
        ])
    }
}

/// With the session's QER.
fn limited(id: u16, far: u32, pdi: Pdi) -> Pdr {
    Pdr {
        id: PdrId(id),
        precedence: 100,
        outer_header_removal: pdi.f_teid.is_some(),
        pdi,
        far: FarId(far),
        qers: vec![QerId(1)].into(),
        urrs: vec![].into(),
    }
}

/// Session 1: 5G with QFI 9. Session 2: 4G, no QFI. Session 3: FAR DROP up, gate closed down.
fn rules(session: u32) -> Rules {
    let qfi = Qfi::new(9).filter(|_| session == 1);
    let shut = session == 3;
    let f_teid = FTeid { teid: Teid(0xff + session), address: Ipv4Addr::new(10, 30, 0, 2).into() };
    let pdi = |source_interface, f_teid| Pdi {
        source_interface,
        instance: Instance::DEFAULT,
        f_teid,
        ue_ipv4: Some(Ipv4Addr::from(0x0a3c_0000 + session)),
        ue_ipv6: None,
        framed_routes: vec![],
        qfis: qfi.filter(|_| source_interface == Interface::Access).into_iter().collect(),
        sdf_filters: vec![],
        application: None,
        ethernet: None,
    };
    let far = |id, apply_action, destination_interface, outer_header_creation| Far {
        id: FarId(id),
        apply_action,
        notify: false,
        forwarding: Some(ForwardingParameters {
            destination_interface,
            instance: Instance::DEFAULT,
            outer_header_creation,
            dscp: None,
        }),
        duplicating: false,
        duplicates: vec![],
        bar: None,
        redirect: None,
        enrichment: None,
    };
    let tunnel = OuterHeaderCreation::gtpu(Teid(0x1ff + session), IpAddr::V4(GNB));
    let up = if shut { ApplyAction::Drop } else { ApplyAction::Forward };
    Rules {
        pdrs: vec![
            limited(1, 1, pdi(Interface::Access, Some(f_teid))),
            limited(2, 2, pdi(Interface::Core, None)),
        ],
        fars: vec![
            far(1, up, Interface::Core, None),
            far(2, ApplyAction::Forward, Interface::Access, Some(tunnel)),
        ],
        qers: vec![Qer {
            id: QerId(1),
            uplink_gate: Gate::Open,
            downlink_gate: if shut { Gate::Closed } else { Gate::Open },
            mbr: None,
            packet_rates: PacketRates::default(),
            correlation: None,
            gbr: None,
            qfi,
            reflective: false,
        }],
        ..Rules::default()
    }
}

/// Session 40: 8 kbit/s up, and 100 bytes in all.
fn metered() -> Rules {
    let mut rules = rules(40);
    rules.qers[0].mbr = Some(BitRates { uplink_kbps: 8, downlink_kbps: 1_000_000 });
    let volume_quota = Some(Volume { total: Some(100), ..Volume::default() });
    rules.urrs = vec![Urr { id: UrrId(1), volume_quota, quota_grant: 1, ..Urr::default() }];
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)].into());
    rules
}

/// Session 50: downlink packets are kept.
fn asleep() -> Rules {
    let mut rules = rules(50);
    rules.fars[1].apply_action = ApplyAction::Buffer;
    rules
}

/// Session 60: a prefix, and both tunnels over IPv6.
fn six() -> Rules {
    let mut rules = rules(60);
    for pdr in &mut rules.pdrs {
        (pdr.pdi.ue_ipv4, pdr.pdi.ue_ipv6) = (None, Some("2001:db8:60::/64".parse().unwrap()));
        pdr.pdi.f_teid = pdr.pdi.f_teid.and_then(|known| f_teid(known.teid.0, "2001:db8:3::2"));
    }
    rules.fars[1].forwarding = Some(to(Interface::Access, f_teid(0x1ff + 60, "2001:db8:3::1"), None));
    rules
}

/// Session 70: copied, uplink packets in a tunnel, downlink packets plain and marked.
fn copied() -> Rules {
    let mut rules = rules(70);
    (rules.fars[0].duplicating, rules.fars[1].duplicating) = (true, true);
    rules.fars[0].duplicates = vec![to(Interface::Core, f_teid(0x999, "10.50.0.1"), None)];
    rules.fars[1].duplicates = vec![to(Interface::Core, None, Some(10))];
    rules
}

/// Sessions 140 and 141: behind a UDP header, over IPv4, and marked over IPv6.
fn behind_udp(session: u32) -> Rules {
    let mut rules = rules(session);
    let (host, dscp) = if session == 140 { ("203.0.113.99", None) } else { ("2001:db8:ffff::9", Some(46)) };
    let outer_header_creation = host.parse().ok().map(|host| OuterHeaderCreation::udp(5_000, host));
    rules.fars[0].forwarding =
        Some(ForwardingParameters { outer_header_creation, ..to(Interface::Core, None, dscp) });
    rules
}

/// Session 115: sent to another host.
fn readdressed() -> Rules {
    let mut rules = rules(115);
    rules.fars[0].redirect = rules::Redirect::new("203.0.113.99");
    rules
}

/// Session 80: marked both ways, in a reflective QoS flow.
fn marked() -> Rules {
    let mut rules = rules(80);
    (rules.qers[0].qfi, rules.qers[0].reflective) = (Qfi::new(7), true);
    for (far, dscp) in rules.fars.iter_mut().zip([46, 34]) {
        far.forwarding.as_mut().unwrap().dscp = Some(dscp);
    }
    rules
}

/// The last word of a golden's path.
fn end(outcome: &Outcome) -> String {
    match outcome.fate {
        Fate::Sent => format!("send:{}", PORTS[outcome.sent[0].0]),
        fate => fate.to_string(),
    }
}

/// Runs a file; so many of its first packets may be answered by ICMP errors.
fn run(file: &Path, mut reference: Reference, icmp_errors: usize) {
    for (number, step) in steps(&fs::read_to_string(file).unwrap()).iter().enumerate() {
        let place = format!("{} step {}", file.display(), number + 1);
        // Only two files ask for so many, and all of their steps do.
        reference.allow_error_indications(number < ANSWERS);
        reference.allow_icmp_errors(number < icmp_errors);
        let outcome = reference.process(step.port, &step.frame, 1);
        let name = file.file_name().and_then(|name| name.to_str()).unwrap();
        // The data plane says no more of packets that become several.
        let several = ["split", "duplicate"].contains(&&*step.end) && outcome.fate == Fate::Sent;
        let end = end(&outcome);
        let overtaken = OVERTAKEN.contains(&(name, &end));
        assert!(end == step.end || overtaken || several, "{place}: {end} where {} is written", step.end);
        assert_eq!(hex(&outcome.sent), hex(&step.out), "{place}: frames sent");
    }
}

/// In any order.
fn hex(frames: &[(usize, Vec<u8>)]) -> BTreeSet<String> {
    let hex = |frame: &[u8]| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    frames.iter().map(|(port, frame)| format!("{} {}", PORTS[*port], hex(frame))).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn goldens(folders: &[PathBuf]) -> Vec<PathBuf> {
    let is_golden = |path: &PathBuf| path.extension().is_some_and(|end| end == "golden");
    folders.iter().flat_map(|folder| entries(folder)).filter(is_golden).collect()
}

/// What the reference leaves out: folders, and how files begin.
const LEFT_OUT: &[&str] =
    &["router_solicitation", "mss_lowered", "inspect", "redirect", "enrich", "frame_", "looped", "punt"];

fn left_out(file: &Path) -> bool {
    let is_out = |name: &str| LEFT_OUT.iter().any(|begin| name.starts_with(begin));
    file.iter().filter_map(|name| name.to_str()).any(is_out)
}

#[test]
fn every_golden_file_of_the_data_plane_ends_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/golden");
    let folders: Vec<PathBuf> = entries(&folder).into_iter().filter(|path| path.is_dir()).collect();
    let files = goldens(&folders);
    assert!(files.len() > 40, "only {} golden files found", files.len());
    for file in files.into_iter().filter(|file| !left_out(file)) {
        let mut reference = Reference::new(setup()).unwrap();
        (1..=3).for_each(|session| reference.put(Seid(session.into()), rules(session)));
        reference.put(Seid(40), metered());
        reference.put(Seid(50), asleep());
        reference.put(Seid(60), six());
        reference.put(Seid(70), copied());
        reference.put(Seid(80), marked());
        reference.put(Seid(115), readdressed());
        [140, 141].iter().for_each(|session| reference.put(Seid(*session), behind_udp(*session as u32)));
        run(&file, reference, ANSWERS);
    }
}

#[test]
fn every_golden_file_of_our_own_ends_as_written() {
    let files = goldens(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")]);
    assert!(files.len() > 20, "only {} golden files found", files.len());
    for file in files {
        let mut reference = Reference::new(wide_setup()).unwrap();
        wide_rules().into_iter().for_each(|(seid, rules)| reference.put(seid, rules));
        // What ICMP errors look like, the data plane's files show.
        run(&file, reference, 0);
    }
}

/// Both versions of IP on N3, N6 and N9.
fn wide_setup() -> Setup {
    let subnets = [(30, 3, Interface::Access), (50, 6, Interface::Core), (40, 9, Interface::Core)];
    let port = |(net, place, interface): (u8, u8, Interface)| PortSetup {
        interface,
        instance: Instance::DEFAULT,
        mac: [2, 0, 0, 0, place, 2],
        ipv4: format!("10.{net}.0.2/24").parse().unwrap(),
        ipv6: Some(format!("fd00:{net}::2/64").parse().unwrap()),
        mtu: 1500,
    };
    let mut setup = Setup::new(subnets.map(port).to_vec());
    for (port, (net, place, _)) in subnets.into_iter().enumerate() {
        for address in [format!("10.{net}.0.1"), format!("fd00:{net}::1")] {
            let address = address.parse().unwrap();
            setup.neighbours.push(Neighbour { port, address, mac: [2, 0, 0, 0, place, 1] });
        }
    }
    let route = |prefix: &str, via: &str| Route {
        prefix: prefix.parse().unwrap(),
        via: via.parse().unwrap(),
        instance: Instance::DEFAULT,
    };
    setup.routes = vec![route("0.0.0.0/0", "10.50.0.1"), route("::/0", "fd00:50::1")];
    setup
}

fn wide_rules() -> [(Seid, Rules); 3] {
    [(Seid(1), dual_stack()), (Seid(2), relay()), (Seid(3), filtered())]
}

fn f_teid(teid: u32, address: &str) -> Option<FTeid> {
    Some(FTeid { teid: Teid(teid), address: address.parse().unwrap() })
}

fn pdr(id: u16, source_interface: Interface, f_teid: Option<FTeid>, user: Option<u16>) -> Pdr {
    let user_ipv6 = |user: u16| format!("2001:db8:60:{user}::/64").parse().unwrap();
    Pdr {
        id: PdrId(id),
        precedence: id.into(),
        pdi: Pdi {
            source_interface,
            instance: Instance::DEFAULT,
            f_teid,
            ue_ipv4: user.map(|user| Ipv4Addr::new(10, 60, 0, user as u8)),
            ue_ipv6: user.map(user_ipv6),
            framed_routes: vec![],
            qfis: vec![],
            sdf_filters: vec![],
            application: None,
            ethernet: None,
        },
        outer_header_removal: f_teid.is_some(),
        far: FarId(id.into()),
        qers: vec![].into(),
        urrs: vec![].into(),
    }
}

fn to(destination_interface: Interface, tunnel: Option<FTeid>, dscp: Option<u8>) -> ForwardingParameters {
    let outer = |tunnel: FTeid| OuterHeaderCreation::gtpu(tunnel.teid, tunnel.address);
    let instance = Instance::DEFAULT;
    ForwardingParameters { destination_interface, instance, outer_header_creation: tunnel.map(outer), dscp }
}

fn far(id: u32, forwarding: Option<ForwardingParameters>) -> Far {
    let apply_action = if forwarding.is_some() { ApplyAction::Forward } else { ApplyAction::Drop };
    Far {
        id: FarId(id),
        apply_action,
        notify: false,
        forwarding,
        duplicating: false,
        duplicates: vec![],
        bar: None,
        redirect: None,
        enrichment: None,
    }
}

fn marking(id: u32, qfi: u8) -> Qer {
    let open = Gate::Open;
    let qfi = Qfi::new(qfi);
    Qer {
        id: QerId(id),
        uplink_gate: open,
        downlink_gate: open,
        mbr: None,
        packet_rates: PacketRates::default(),
        correlation: None,
        gbr: None,
        qfi,
        reflective: true,
    }
}

/// Over IPv6, QFI 9 with reflective QoS, marked both ways.
fn dual_stack() -> Rules {
    let mut up = pdr(1, Interface::Access, f_teid(0x100, "fd00:30::2"), Some(1));
    up.pdi.qfis = Qfi::new(9).into_iter().collect();
    let mut down = pdr(2, Interface::Core, None, Some(1));
    (up.qers, down.qers) = (vec![QerId(1)].into(), vec![QerId(1)].into());
    let access = to(Interface::Access, f_teid(0x200, "fd00:30::1"), Some(46));
    Rules {
        pdrs: vec![up, down],
        fars: vec![far(1, Some(to(Interface::Core, None, Some(10)))), far(2, Some(access))],
        qers: vec![marking(1, 9)],
        ..Rules::default()
    }
}

/// From tunnel to tunnel.
fn relay() -> Rules {
    let mut up = pdr(1, Interface::Access, f_teid(0x101, "10.30.0.2"), None);
    up.qers = vec![QerId(1)].into();
    let mut back = far(2, Some(to(Interface::Access, f_teid(0x201, "10.30.0.1"), None)));
    back.duplicating = true;
    back.duplicates = vec![to(Interface::Core, f_teid(0x999, "10.40.0.1"), Some(63))];
    Rules {
        pdrs: vec![up, pdr(2, Interface::Core, f_teid(0x401, "10.40.0.2"), None)],
        fars: vec![far(1, Some(to(Interface::Core, f_teid(0x300, "fd00:40::1"), None))), back],
        qers: vec![marking(1, 5)],
        ..Rules::default()
    }
}

/// DNS with two servers is dropped: both ways with the first, uplink only with the second.
fn filtered() -> Rules {
    let dns = |server: &str, id| SdfFilter {
        flow: Some(FlowDescription {
            protocol: Some(17),
            remote: FlowEnd {
                addresses: Some(server.parse::<IpNet>().unwrap().into()),
                ports: vec![PortRange { first: 53, last: 53 }],
            },
            user: FlowEnd::default(),
        }),
        id,
        ..SdfFilter::default()
    };
    let tunnel = f_teid(0x102, "10.30.0.2");
    let mut up = pdr(1, Interface::Access, tunnel, Some(3));
    up.pdi.sdf_filters = vec![dns("203.0.113.80/32", Some(7)), dns("2001:db8:ff::/48", None)];
    let mut down = pdr(2, Interface::Core, None, Some(3));
    down.pdi.sdf_filters = vec![SdfFilter { id: Some(7), ..SdfFilter::default() }];
    let access = to(Interface::Access, f_teid(0x202, "10.30.0.1"), None);
    Rules {
        pdrs: vec![
            up,
            down,
            pdr(3, Interface::Access, tunnel, Some(3)),
            pdr(4, Interface::Core, None, Some(3)),
        ],
        fars: vec![
            far(1, None),
            far(2, None),
            far(3, Some(to(Interface::Core, None, None))),
            far(4, Some(access)),
        ],
        ..Rules::default()
    }
}
