//! Random sequences of good, bad and mangled messages: no panic, no leak, no lost answer.

use crate::common::billing::{metered, total, urr};
use crate::common::smf::{self, establishment, path_switch, setup};
use crate::common::{Lab, OTHER, Obedience, SMF, at};
use dplink::{Event, Notice};
use n4::{Config, Input, Limits, Predefined, PredefinedRule, UePool};
use pfcp::{
    ApplyAction, AssociationReleaseRequest, Body, CreateTrafficEndpoint, CreateUrr, FqCsid, HeartbeatRequest,
    Message, NodeId, RemovePdr, RemoveTrafficEndpoint, SessionDeletionRequest, SessionEstablishmentRequest,
    SessionModificationRequest, SessionSetDeletionRequest, UeIpAddress, UpdatePdr, UpdateTrafficEndpoint,
};
use proptest::prelude::*;
use proptest::sample::Index;
use rules::{PdrId, Seid, Urr};
use session::SessionRecord;
use std::net::Ipv4Addr;
use std::time::Duration;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Establish {
        cp_seid: u64,
        explicit: Option<u32>,
    },
    Modify {
        session: Index,
        teid: u32,
        adds: bool,
    },
    RemovePdr {
        session: Index,
        pdr: u16,
    },
    Delete {
        session: Index,
    },
    Setup {
        stamp: u32,
    },
    /// The last datagram again, with an octet changed.
    Mangle {
        octet: Index,
        to: u8,
    },
    /// The last datagram again.
    Again,
    Noise(Vec<u8>),
    Obedience(Obedience),
    Pass(u64),
    DataPathLost,
    /// Packets, whose notice may be lost.
    Traffic {
        session: Index,
        is_lost: bool,
    },
    /// Packets come for a user who may sleep.
    Paging {
        session: Index,
    },
    /// The process starts anew with what it saved; the data plane learns anew how things should be.
    Restart,
    FromStranger {
        session: Index,
    },
    /// Traffic endpoints, an address and a predefined rule.
    EstablishShort {
        cp_seid: u64,
    },
    Endpoint {
        session: Index,
        id: u8,
        how: u8,
    },
    Predefined {
        session: Index,
        is_on: bool,
    },
    DeleteSet,
    /// The control plane leaves, and mostly associates again at once.
    Release {
        stamp: Option<u32>,
    },
    Heartbeat {
        stamp: u32,
    },
    Path(bool),
}

fn step() -> impl Strategy<Value = Step> {
    use Step::*;
    let obedience = prop_oneof![
        Just(self::Obedience::Obeys),
        Just(self::Obedience::Refuses),
        Just(self::Obedience::Waits)
    ];
    prop_oneof![
        6 => (1u64..8, prop::option::of(1u32..6))
            .prop_map(|(cp_seid, explicit)| Establish { cp_seid, explicit }),
        6 => (any::<Index>(), 0u32..9, any::<bool>())
            .prop_map(|(session, teid, adds)| Modify { session, teid, adds }),
        2 => (any::<Index>(), 0u16..12).prop_map(|(session, pdr)| RemovePdr { session, pdr }),
        3 => any::<Index>().prop_map(|session| Delete { session }),
        1 => (1u32..4).prop_map(|stamp| Setup { stamp }),
        4 => (any::<Index>(), any::<u8>()).prop_map(|(octet, to)| Mangle { octet, to }),
        2 => Just(Again),
        1 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Noise),
        2 => obedience.prop_map(Obedience),
        2 => (0u64..4_000).prop_map(Pass),
        1 => Just(DataPathLost),
        4 => (any::<Index>(), any::<bool>()).prop_map(|(session, is_lost)| Traffic { session, is_lost }),
        1 => any::<Index>().prop_map(|session| Paging { session }),
        1 => Just(Restart),
        1 => any::<Index>().prop_map(|session| FromStranger { session }),
        4 => (1u64..8).prop_map(|cp_seid| EstablishShort { cp_seid }),
        4 => (any::<Index>(), 1u8..4, 0u8..4).prop_map(|(session, id, how)| Endpoint { session, id, how }),
        2 => (any::<Index>(), any::<bool>()).prop_map(|(session, is_on)| Predefined { session, is_on }),
        1 => Just(DeleteSet),
        1 => prop::option::weighted(0.8, 1u32..4).prop_map(|stamp| Release { stamp }),
        1 => (1u32..4).prop_map(|stamp| Heartbeat { stamp }),
        1 => any::<bool>().prop_map(Path),
    ]
}

/// Reports by volume and by time.
fn rule(id: u32) -> CreateUrr {
    let mut rule = urr(id, 0b1011);
    (rule.measurement_period, rule.volume_threshold) = (Some(3), total(2_000));
    rule.quota_holding_time = Some(2);
    rule
}

fn config() -> Config {
    let prefix = "10.70.0.0/29".parse().unwrap();
    let ue_pools = vec![UePool { name: "users".to_owned(), prefix, network_instance: None }];
    let video = PredefinedRule { qfi: rules::Qfi::new(7), ..PredefinedRule::new("video".to_owned()) };
    let predefined = Predefined::new(vec![video], &[]).unwrap();
    let limits = Limits { portion: 2, ..Limits::default() };
    Config { ue_pools, predefined, limits, ..crate::common::config() }
}

fn set() -> FqCsid {
    FqCsid { node_id_type: 0, node: vec![10, 0, 0, 7], csids: vec![1], node_type: None }
}

fn endpoint(id: u8) -> CreateTrafficEndpoint {
    CreateTrafficEndpoint {
        traffic_endpoint_id: id,
        local_f_teid: Some(smf::choose(Some(1))),
        ..CreateTrafficEndpoint::default()
    }
}

/// Uplink at endpoint 1; the user's address is ours to choose.
fn short(cp_seid: u64) -> SessionEstablishmentRequest {
    let mut request = establishment(cp_seid);
    request.create_traffic_endpoints = vec![endpoint(1)];
    request.create_pdrs[0].pdi.f_teid = None;
    request.create_pdrs[0].pdi.traffic_endpoint_id = Some(1);
    let choose = UeIpAddress { choose_ipv4: true, ..UeIpAddress::default() };
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![choose];
    request.create_pdrs[1].activate_predefined_rules = vec![b"video".to_vec()];
    request.fq_csids = vec![set()];
    request
}

fn change_endpoint(id: u8, how: u8) -> SessionModificationRequest {
    let mut request = SessionModificationRequest::default();
    let local_f_teid = Some(if how == 1 { smf::given(77) } else { smf::choose(None) });
    match how {
        0 => request.create_traffic_endpoints = vec![endpoint(id)],
        3 => {
            request.remove_traffic_endpoints =
                vec![RemoveTrafficEndpoint { traffic_endpoint_id: id, carried: vec![] }];
        }
        _ => {
            let update =
                UpdateTrafficEndpoint { traffic_endpoint_id: id, local_f_teid, ..Default::default() };
            request.update_traffic_endpoints = vec![update];
        }
    }
    request
}

struct Chaos {
    lab: Lab,
    sequence: u32,
    last: Vec<u8>,
    /// Well-formed requests of the owner that must be answered in the end.
    owed: Vec<u32>,
}

impl Chaos {
    fn tell(&mut self, from: Ipv4Addr, seid: Option<u64>, body: impl Into<Body>) {
        self.sequence += 1;
        let message = Message { seid, sequence: self.sequence, priority: None, body: body.into() };
        self.last = pfcp::encode(&message);
        self.owed.push(self.sequence);
        self.lab.tell(from, &message);
    }

    fn seid(&self, at: &Index) -> u64 {
        let sessions: Vec<Seid> = self.lab.desired().into_keys().collect();
        if sessions.is_empty() { 4711 } else { at.get(&sessions).0 }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Establish { cp_seid, explicit } => {
                let mut request = match cp_seid % 3 {
                    0 => establishment(cp_seid),
                    _ => metered(cp_seid, vec![rule(1), rule(2)]),
                };
                if cp_seid % 3 == 2 {
                    request.create_fars[1].apply_action =
                        ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
                    request.user_plane_inactivity_timer = Some(5);
                }
                request.create_pdrs.extend(explicit.map(|teid| smf::uplink(3, smf::given(teid))));
                self.tell(SMF, Some(0), request);
            }
            Step::Modify { session, teid, adds } => {
                let mut request = path_switch(teid);
                request.create_pdrs.extend(adds.then(|| smf::uplink(teid as u16 + 3, smf::choose(Some(1)))));
                self.tell(SMF, Some(self.seid(&session)), request);
            }
            Step::RemovePdr { session, pdr } => {
                let remove_pdrs = vec![RemovePdr { pdr_id: pdr, carried: vec![] }];
                let request = SessionModificationRequest { remove_pdrs, ..Default::default() };
                self.tell(SMF, Some(self.seid(&session)), request);
            }
            Step::Delete { session } => {
                self.tell(SMF, Some(self.seid(&session)), SessionDeletionRequest::default());
            }
            Step::FromStranger { session } => self.tell(OTHER, Some(self.seid(&session)), path_switch(1)),
            Step::Setup { stamp } => self.tell(SMF, None, setup(SMF, stamp)),
            Step::Mangle { octet, to } => self.mangle(&octet, to),
            Step::Again => self.lab.receive(at(SMF), &self.last.clone()),
            Step::Noise(bytes) => self.lab.receive(at(SMF), &bytes),
            Step::Obedience(obedience) => self.obedience(obedience),
            Step::Pass(millis) => self.lab.pass(Duration::from_millis(millis)),
            Step::DataPathLost => {
                self.lab.orders.clear();
                self.lab.handle(Input::DataPathLost);
            }
            Step::Traffic { session, is_lost } => {
                self.lab.traffic(Seid(self.seid(&session)), (700, 900), is_lost);
            }
            Step::Paging { session } => {
                let session = Seid(self.seid(&session));
                let event = Event::DownlinkData { session, pdr: PdrId(2), qfi: None, traffic_class: 0 };
                self.lab.handle(Input::DataPath(&Notice::Event(event)));
            }
            Step::Restart => self.restart(),
            other => self.run_short(other),
        }
    }

    /// What control planes leave to us.
    fn run_short(&mut self, step: Step) {
        match step {
            Step::EstablishShort { cp_seid } => self.tell(SMF, Some(0), short(cp_seid)),
            Step::Endpoint { session, id, how } => {
                self.tell(SMF, Some(self.seid(&session)), change_endpoint(id, how));
            }
            Step::Predefined { session, is_on } => {
                let mut update = UpdatePdr { pdr_id: 2, ..UpdatePdr::default() };
                let names = vec![b"video".to_vec()];
                match is_on {
                    true => update.activate_predefined_rules = names,
                    false => update.deactivate_predefined_rules = names,
                }
                let request = SessionModificationRequest { update_pdrs: vec![update], ..Default::default() };
                self.tell(SMF, Some(self.seid(&session)), request);
            }
            Step::DeleteSet => {
                let node_id = NodeId::Ipv4(SMF);
                let request = SessionSetDeletionRequest { node_id, fq_csids: vec![set()], carried: vec![] };
                self.tell(SMF, None, request);
            }
            Step::Release { stamp } => {
                let node_id = NodeId::Ipv4(SMF);
                self.tell(SMF, None, AssociationReleaseRequest { node_id, carried: vec![] });
                stamp.into_iter().for_each(|stamp| self.tell(SMF, None, setup(SMF, stamp)));
            }
            Step::Heartbeat { stamp } => {
                self.tell(SMF, None, HeartbeatRequest { recovery_time_stamp: stamp, carried: vec![] });
                self.lab.answers_with(SMF, stamp);
            }
            Step::Path(is_up) => {
                let (side, peer) = (rules::Interface::Access, [10, 30, 0, 7].into());
                self.lab.handle(Input::UserPlanePath { side, peer, is_up });
            }
            other => panic!("{other:?}"),
        }
    }

    /// Requests under way are forgotten: the control plane repeats them or gives up.
    fn restart(&mut self) {
        let answered: Vec<u32> = self.lab.sent.iter().map(|(_, message)| message.sequence).collect();
        self.owed.retain(|sequence| answered.contains(sequence));
        self.lab.orders.clear();
        self.lab.restart();
        self.lab.in_force = self.lab.desired();
    }

    fn mangle(&mut self, octet: &Index, to: u8) {
        let mut bytes = self.last.clone();
        if !bytes.is_empty() {
            let at = octet.index(bytes.len());
            bytes[at] = to;
        }
        self.lab.receive(at(SMF), &bytes);
    }

    fn obedience(&mut self, obedience: Obedience) {
        self.lab.obedience = obedience;
        if obedience != Obedience::Waits {
            self.lab.obey();
        }
    }

    /// Everything calms down, and the data plane learns anew how things should be.
    fn settle(&mut self) {
        self.obedience(Obedience::Obeys);
        self.lab.pass(Duration::from_secs(5));
        self.lab.in_force = self.lab.desired();
        self.lab.obey();
    }
}

/// PDRs that name a traffic endpoint have its tunnel.
fn agrees_with_endpoints(record: &SessionRecord) -> bool {
    let extras = record.extras.clone().unwrap_or_default();
    extras.at_endpoint.iter().all(|(pdr, id)| {
        let endpoint = extras.endpoints.iter().find(|endpoint| endpoint.id == *id).unwrap();
        let pdr = record.rules.pdrs.iter().find(|rule| rule.id == *pdr).unwrap();
        pdr.pdi.f_teid == endpoint.f_teid
    })
}

/// The data plane measures all that the control plane asked for, in its order, and may tell more: who waits for the
/// end of traffic is told of its start, too.
fn measures_all(desired: &[Urr], saved: &[Urr]) -> bool {
    let covers = |(desired, saved): (&Urr, &Urr)| {
        desired.id == saved.id
            && desired.methods == saved.methods
            && desired.triggers.contains(saved.triggers)
    };
    desired.len() >= saved.len() && desired.iter().zip(saved).all(covers)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_comes_the_node_stays_whole(steps in prop::collection::vec(step(), 1..60)) {
        let mut chaos = Chaos { lab: Lab::associated_with(config()), sequence: 0, last: vec![], owed: vec![] };
        steps.into_iter().for_each(|step| chaos.run(step));
        chaos.settle();
        let answered: Vec<u32> = chaos.lab.sent.iter().map(|(_, message)| message.sequence).collect();
        for sequence in &chaos.owed {
            prop_assert!(answered.contains(sequence), "request {} has no answer", sequence);
        }
        prop_assert_eq!(chaos.lab.saved.len(), chaos.lab.node.sessions());
        for desired in chaos.lab.desired().into_values() {
            prop_assert_eq!(desired.rules.check(), Ok(()));
            // Beside a URR of our own that listens for silence.
            let record = &chaos.lab.saved[&desired.session];
            let saved = &record.rules;
            // Each activates one rule at most, which stands in its place.
            prop_assert_eq!(saved.pdrs.len(), desired.rules.pdrs.len());
            prop_assert_eq!(&saved.fars, &desired.rules.fars);
            prop_assert!(agrees_with_endpoints(record));
            prop_assert!(measures_all(&desired.rules.urrs, &saved.urrs));
            prop_assert_eq!(chaos.lab.saved[&desired.session].revision, desired.revision);
        }
        release_all(&mut chaos);
        prop_assert_eq!((chaos.lab.node.sessions(), chaos.lab.node.tunnels()), (0, 0));
        prop_assert_eq!(chaos.lab.node.addresses(), 0);
        prop_assert!(chaos.lab.saved.is_empty() && chaos.lab.in_force.is_empty());
    }
}

/// The control plane deletes all its sessions. A mangled message may have made an association of its own, which
/// goes by its release.
fn release_all(chaos: &mut Chaos) {
    chaos.tell(SMF, None, setup(SMF, 1));
    for session in chaos.lab.desired().into_keys() {
        chaos.tell(SMF, Some(session.0), SessionDeletionRequest::default());
    }
    // Answers of which wait for those of reports on their way.
    chaos.lab.pass(Duration::from_secs(2));
    let others: Vec<_> = chaos.lab.associations.values().cloned().collect();
    for association in others.into_iter().filter(|association| association.node_id != SMF.to_string()) {
        let node_id = match association.node_id.parse() {
            Ok(std::net::IpAddr::V4(address)) => pfcp::NodeId::Ipv4(address),
            Ok(std::net::IpAddr::V6(address)) => pfcp::NodeId::Ipv6(address),
            Err(_) => pfcp::NodeId::Fqdn(association.node_id),
        };
        chaos.tell(SMF, None, pfcp::AssociationReleaseRequest { node_id, carried: vec![] });
    }
}
