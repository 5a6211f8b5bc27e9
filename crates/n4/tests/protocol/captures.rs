//! What real control planes were recorded saying, each to a node of ours in the place of the one that answered: we
//! accept what it accepted, and the data plane holds what came of it.

use crate::common::{Lab, US, at, config, pcap, smf};
use ::charging::{Conditions, Policy};
use n4::{Config, GtpuAddress};
use pfcp::{Body, Cause, CreatedPdr, FTeid, Message, UsageReport};
use rules::Seid;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;

type Datagram = (Ipv4Addr, Ipv4Addr, Message);

/// What an answer says that both must say, whoever gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Answer {
    cause: Option<Cause>,
    /// Endpoints that were chosen, by PDR: which of them are one and the same, whatever its TEID.
    chosen: Vec<(u16, Option<usize>)>,
    /// Addresses that were chosen, by PDR.
    addressed: Vec<u16>,
    /// URRs with a report.
    reported: BTreeSet<u32>,
}

impl Answer {
    fn of(body: &Body) -> Self {
        let created: &[CreatedPdr] = match body {
            Body::SessionEstablishmentResponse(response) => &response.created_pdrs,
            Body::SessionModificationResponse(response) => &response.created_pdrs,
            _ => &[],
        };
        let reports: &[UsageReport] = match body {
            Body::SessionModificationResponse(response) => &response.usage_reports,
            Body::SessionDeletionResponse(response) => &response.usage_reports,
            _ => &[],
        };
        let mut created: Vec<&CreatedPdr> = created.iter().collect();
        created.sort_by_key(|pdr| pdr.pdr_id);
        let same = |f_teid: FTeid| created.iter().position(|pdr| pdr.local_f_teid == Some(f_teid));
        let chosen = created.iter().map(|pdr| (pdr.pdr_id, pdr.local_f_teid.and_then(same)));
        let addressed = created.iter().filter(|pdr| !pdr.ue_ip_addresses.is_empty());
        Self {
            cause: cause(body),
            chosen: chosen.collect(),
            addressed: addressed.map(|pdr| pdr.pdr_id).collect(),
            reported: reports.iter().map(|report| report.urr_id).collect(),
        }
    }
}

fn is_request(body: &Body) -> bool {
    matches!(body.message_type(), 1 | 5 | 9 | 50 | 52 | 54)
}

fn cause(body: &Body) -> Option<Cause> {
    match body {
        Body::AssociationSetupResponse(response) => Some(response.cause),
        Body::AssociationReleaseResponse(response) => Some(response.cause),
        Body::SessionEstablishmentResponse(response) => Some(response.cause),
        Body::SessionModificationResponse(response) => Some(response.cause),
        Body::SessionDeletionResponse(response) => Some(response.cause),
        _ => None,
    }
}

/// Requests of a type: accepted, refused, and without an answer in the recording.
type Counts = BTreeMap<u8, [usize; 3]>;

/// One of our nodes in the place of a recorded one.
struct Stand {
    lab: Lab,
    /// Our SEIDs: by the number of the request that made the session, and by the recorded one's.
    by_request: BTreeMap<(Ipv4Addr, u32), u64>,
    by_seid: BTreeMap<u64, u64>,
    /// What we answered, by request, and not heard yet what was answered then.
    answers: BTreeMap<(Ipv4Addr, u32), (u8, Answer)>,
    counts: Counts,
    /// Users send a packet before each change.
    is_used: bool,
}

impl Stand {
    fn new(config: Config) -> Self {
        let (by_request, by_seid) = (BTreeMap::new(), BTreeMap::new());
        let is_used = config.charging.is_some();
        let lab = Lab::new(config);
        Self { lab, by_request, by_seid, answers: BTreeMap::new(), counts: Counts::new(), is_used }
    }

    fn ask(&mut self, from: Ipv4Addr, mut message: Message) {
        if let Body::SessionEstablishmentRequest(request) = &message.body
            && !self.lab.associations.contains_key(&request.node_id.to_string())
        {
            // The recording began after they had associated.
            let setup =
                pfcp::AssociationSetupRequest { node_id: request.node_id.clone(), ..smf::setup(from, 1) };
            self.lab.ask(from, &Message::node(0xFF_FFFF, setup));
        }
        let recorded = message.seid.unwrap_or(0);
        message.seid = message.seid.map(|_| self.by_seid.get(&recorded).copied().unwrap_or(recorded));
        if let (Some(seid), true) = (message.seid, self.is_used) {
            self.lab.traffic(Seid(seid), (1, 0), true);
        }
        let key = (from, message.sequence);
        self.lab.receive(at(from), &pfcp::encode(&message));
        let answer =
            self.lab.sent.iter().rposition(|(_, answer)| answer.sequence == key.1).expect("an answer");
        let (_, answer) = self.lab.sent.remove(answer);
        if let Body::SessionEstablishmentResponse(response) = &answer.body {
            self.by_request.extend(response.up_f_seid.map(|f_seid| (key, f_seid.seid)));
        }
        self.answers.insert(key, (message.body.message_type(), Answer::of(&answer.body)));
    }

    /// What was answered then, and what we answered where we were asked.
    fn hear(&mut self, to: Ipv4Addr, message: &Message) -> Option<(Answer, Answer)> {
        let key = (to, message.sequence);
        if let Body::SessionEstablishmentResponse(response) = &message.body
            && let (Some(then), Some(ours)) = (response.up_f_seid, self.by_request.get(&key))
        {
            self.by_seid.insert(then.seid, *ours);
        }
        let (kind, ours) =
            self.answers.remove(&key).filter(|(kind, _)| message.body.message_type() == kind + 1)?;
        let is_refused = ours.cause.is_some_and(|cause| !cause.is_accepted());
        self.counts.entry(kind).or_default()[usize::from(is_refused)] += 1;
        Some((Answer::of(&message.body), ours))
    }

    /// With those nobody was recorded answering.
    fn counts(mut self) -> Counts {
        for (kind, _) in self.answers.values() {
            self.counts.entry(*kind).or_default()[2] += 1;
        }
        self.counts
    }
}

/// At the address the control planes expect GTP-U at, where they give endpoints themselves.
fn config_for(config: Config, datagrams: &[Datagram], user_plane: Ipv4Addr) -> Config {
    let given = datagrams.iter().filter(|(_, to, _)| *to == user_plane).find_map(|(.., message)| {
        let Body::SessionEstablishmentRequest(request) = &message.body else { return None };
        request.create_pdrs.iter().find_map(|pdr| match pdr.pdi.f_teid {
            Some(FTeid::Explicit { ipv4, .. }) => ipv4,
            _ => None,
        })
    });
    let gtpu = given.map_or(config.gtpu.clone(), |given| vec![GtpuAddress::access(given)]);
    Config { gtpu, ..config }
}

fn replay(file: &Path, config: &Config) -> Vec<Stand> {
    let datagrams = pcap::udp_datagrams(file, pfcp::PORT).into_iter();
    let decoded = datagrams.map(|(from, to, bytes)| (from, to, pfcp::decode(&bytes).unwrap()));
    let datagrams: Vec<Datagram> = decoded.collect();
    let made = datagrams.iter().filter(|(.., message)| message.body.message_type() == 50);
    let user_planes: BTreeSet<Ipv4Addr> = made.map(|(_, to, _)| *to).collect();
    let stand = |it| Stand::new(config_for(config.clone(), &datagrams, it));
    let stands = user_planes.into_iter().map(|it| (it, stand(it)));
    let mut stands: BTreeMap<Ipv4Addr, Stand> = stands.collect();
    for (from, to, message) in datagrams {
        if let Some(stand) = stands.get_mut(&to).filter(|_| is_request(&message.body)) {
            stand.ask(from, message);
        } else if let Some(stand) = stands.get_mut(&from)
            && let Some((then, ours)) = stand.hear(to, &message)
        {
            assert_eq!(ours, then, "{}: {:?}\n{:?}", file.display(), message, stand.lab.notes.last());
        }
    }
    for stand in stands.values() {
        assert_eq!(stand.lab.in_force, stand.lab.desired(), "{}", file.display());
        assert!(stand.lab.trace.iter().any(|(from, ..)| *from == at(US)));
    }
    stands.into_values().collect()
}

fn sum(stands: Vec<Stand>) -> Counts {
    let mut sum = Counts::new();
    for (kind, counts) in stands.into_iter().flat_map(Stand::counts) {
        let all = sum.entry(kind).or_default();
        all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    sum
}

type Fact = (u8, [usize; 3]);

/// Facts of the recordings, by file: of each type of message so many were accepted, refused, and not answered then. That
/// nobody was refused is one; eUPF did not answer the release of an association.
const RECORDED: [(&str, &[Fact]); 6] = [
    (
        "o5-attach.pcap",
        &[(1, [4, 0, 0]), (5, [2, 0, 0]), (50, [74, 0, 0]), (52, [104, 0, 0]), (54, [66, 0, 0])],
    ),
    (
        "o5-volte.pcap",
        &[(1, [4, 0, 0]), (5, [2, 0, 0]), (50, [66, 0, 0]), (52, [276, 0, 0]), (54, [66, 0, 0])],
    ),
    ("packetrusher-open5gs.pcap", &[(1, [1, 0, 0]), (50, [3, 0, 0]), (52, [6, 0, 0])]),
    (
        "pfcpsim-eupf.pcap",
        &[(1, [1, 0, 0]), (5, [1, 0, 0]), (9, [0, 0, 1]), (50, [3, 0, 0]), (52, [3, 0, 0]), (54, [3, 0, 0])],
    ),
    (
        "srsran-open5gs-epc.pcap",
        &[(1, [16, 0, 0]), (5, [2, 0, 0]), (50, [2, 0, 0]), (52, [4, 0, 0]), (54, [2, 0, 0])],
    ),
    (
        "ueransim-open5gs.pcap",
        &[(1, [2, 0, 0]), (5, [1, 0, 0]), (50, [1, 0, 0]), (52, [1, 0, 0]), (54, [1, 0, 0])],
    ),
];

#[test]
fn every_recorded_request_is_answered_as_it_was() {
    for file in pcap::captures() {
        let counts = sum(replay(&file, &config()));
        let name = file.file_name().unwrap().to_string_lossy();
        match RECORDED.iter().find(|(known, _)| *known == name) {
            Some((_, recorded)) => assert_eq!(counts, recorded.iter().copied().collect(), "{name}"),
            // Another conversation, whose facts nobody has written down.
            None => assert!(counts.get(&50).is_some_and(|count| count[0] > 0), "{name}: {counts:?}"),
        }
    }
}

/// What closed containers: how many, but for those that were closed by the end of a session.
fn closed(stands: Vec<Stand>) -> BTreeMap<Vec<&'static str>, usize> {
    let mut all = BTreeMap::new();
    for mut stand in stands {
        let open: Vec<Seid> = stand.lab.in_force.keys().copied().collect();
        open.into_iter().for_each(|session| drop(stand.lab.delete(session)));
        let containers = stand.lab.cdrs.iter().flat_map(|cdr| &cdr.containers);
        for one in containers.filter(|one| one.conditions != Conditions::SESSION_END) {
            *all.entry(one.conditions.names().collect()).or_default() += 1;
        }
    }
    all
}

/// What real control planes do of themselves is no change of what is charged, but where it is: filters of dedicated bearers come
/// and go with calls, each with its rates or without.
#[test]
fn recorded_changes_split_what_is_charged_where_it_is_another_service() {
    let config = crate::charging::charging(Policy::default());
    for file in pcap::captures() {
        let closed = closed(replay(&file, &config));
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        println!("{name}: {closed:?}");
        if RECORDED.iter().any(|(known, _)| *known == name) {
            let of_rules = closed.iter().filter(|(why, _)| why.contains(&"rule_change"));
            let expected = if name == "o5-volte.pcap" { 3 } else { 0 };
            assert_eq!(of_rules.map(|(_, count)| count).sum::<usize>(), expected, "{name}: {closed:?}");
        }
    }
}
