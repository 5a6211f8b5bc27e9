//! What real control planes were recorded saying, each to a node of ours in the place of the one that answered: we
//! accept what it accepted, and the data plane holds what came of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod common;

use common::{Lab, US, at, config, pcap, smf};
use n4::{Config, GtpuAddress};
use pfcp::{Body, Cause, FTeid, Message};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;

type Datagram = (Ipv4Addr, Ipv4Addr, Message);

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

/// One of our nodes in the place of a recorded one.
struct Stand {
    lab: Lab,
    /// Our SEIDs: by the number of the request that made the session, and by the recorded one's.
    by_request: BTreeMap<(Ipv4Addr, u32), u64>,
    by_seid: BTreeMap<u64, u64>,
    /// What we answered, by request.
    causes: BTreeMap<(Ipv4Addr, u32), Cause>,
    accepted: BTreeMap<u8, usize>,
}

impl Stand {
    fn new(config: Config) -> Self {
        let (by_request, by_seid) = (BTreeMap::new(), BTreeMap::new());
        let lab = Lab::new(config);
        Self { lab, by_request, by_seid, causes: BTreeMap::new(), accepted: BTreeMap::new() }
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
        let key = (from, message.sequence);
        self.lab.receive(at(from), &pfcp::encode(&message));
        let answer =
            self.lab.sent.iter().rposition(|(_, answer)| answer.sequence == key.1).expect("an answer");
        let (_, answer) = self.lab.sent.remove(answer);
        if let Body::SessionEstablishmentResponse(response) = &answer.body {
            self.by_request.extend(response.up_f_seid.map(|f_seid| (key, f_seid.seid)));
        }
        self.causes.extend(cause(&answer.body).map(|cause| (key, cause)));
    }

    /// What was answered then; whether we accepted what was accepted.
    fn hear(&mut self, to: Ipv4Addr, message: &Message) -> bool {
        let key = (to, message.sequence);
        if let Body::SessionEstablishmentResponse(response) = &message.body
            && let (Some(then), Some(ours)) = (response.up_f_seid, self.by_request.get(&key))
        {
            self.by_seid.insert(then.seid, *ours);
        }
        let (Some(then), Some(now)) = (cause(&message.body), self.causes.get(&key)) else { return true };
        *self.accepted.entry(message.body.message_type()).or_default() += usize::from(now.is_accepted());
        now.is_accepted() || !then.is_accepted()
    }
}

/// At the address the control planes expect GTP-U at, where they give endpoints themselves.
fn config_for(datagrams: &[Datagram], user_plane: Ipv4Addr) -> Config {
    let given = datagrams.iter().filter(|(_, to, _)| *to == user_plane).find_map(|(.., message)| {
        let Body::SessionEstablishmentRequest(request) = &message.body else { return None };
        request.create_pdrs.iter().find_map(|pdr| match pdr.pdi.f_teid {
            Some(FTeid::Explicit { ipv4, .. }) => ipv4,
            _ => None,
        })
    });
    given.map_or(config(), |given| Config { gtpu: vec![GtpuAddress::access(given)], ..config() })
}

fn replay(file: &Path) -> BTreeMap<u8, usize> {
    let datagrams = pcap::udp_datagrams(file, pfcp::PORT).into_iter();
    let decoded = datagrams.map(|(from, to, bytes)| (from, to, pfcp::decode(&bytes).unwrap()));
    let datagrams: Vec<Datagram> = decoded.collect();
    let made = datagrams.iter().filter(|(.., message)| message.body.message_type() == 50);
    let user_planes: BTreeSet<Ipv4Addr> = made.map(|(_, to, _)| *to).collect();
    let stands = user_planes.into_iter().map(|it| (it, Stand::new(config_for(&datagrams, it))));
    let mut stands: BTreeMap<Ipv4Addr, Stand> = stands.collect();
    for (from, to, message) in datagrams {
        if let Some(stand) = stands.get_mut(&to).filter(|_| is_request(&message.body)) {
            stand.ask(from, message);
        } else if let Some(stand) = stands.get_mut(&from) {
            let is_same = stand.hear(to, &message);
            assert!(is_same, "{}: {:?}\n{:?}", file.display(), message.body, stand.lab.notes.last());
        }
    }
    for stand in stands.values() {
        assert_eq!(stand.lab.in_force, stand.lab.desired(), "{}", file.display());
        assert!(stand.lab.trace.iter().any(|(from, ..)| *from == at(US)));
    }
    let all = stands.into_values().flat_map(|stand| stand.accepted);
    all.fold(BTreeMap::new(), |mut sum, (kind, count)| {
        *sum.entry(kind).or_default() += count;
        sum
    })
}

#[test]
fn every_recorded_request_is_answered_as_it_was() {
    for file in pcap::captures() {
        let accepted = replay(&file);
        println!("{}: accepted, by message type: {accepted:?}", file.display());
        assert!(accepted.get(&51).is_some_and(|count| *count > 0), "{}", file.display());
    }
}
