//! A game: moves of control planes, of the data plane and of time, by the dice.

use crate::common::{Lab, OTHER, Obedience, SMF, at};
use crate::conversations::state::State;
use crate::conversations::{About, Step, THIRD, cause, is_request};
use dplink::Notice;
use n4::Input;
use pfcp::{Body, Message, ie};
use pfcp_mutate::{Datagram, Dice, mutate};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What was tried, and what came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub requests: u64,
    pub accepted: u64,
    pub refused: u64,
    /// Refused while nothing was under way, and so compared with before.
    pub unchanged: u64,
    /// Not to be answered, and not answered.
    pub silent: u64,
    /// Sessions deleted in the end.
    pub deleted: u64,
}

impl Tally {
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.unchanged += other.unchanged;
        self.silent += other.silent;
        self.deleted += other.deleted;
    }
}

/// Answers that a request may have, and has.
#[derive(Clone, Debug)]
struct Due {
    /// The request, for who looks for what went wrong.
    bytes: Vec<u8>,
    least: u32,
    most: u32,
    had: u32,
}

/// A message of a conversation.
#[derive(Clone)]
struct Saying {
    from: Ipv4Addr,
    about: About,
    datagram: Datagram,
}

pub struct Game {
    lab: Lab,
    dice: Dice,
    sayings: Vec<Saying>,
    /// By who asked, and the number.
    due: BTreeMap<(SocketAddr, u32), Due>,
    /// What the node asked and nobody has answered.
    asked: Vec<(SocketAddr, Message)>,
    last: Option<(Ipv4Addr, Vec<u8>)>,
    sequence: u32,
    tally: Tally,
    /// Says what happens.
    pub is_loud: bool,
}

const REQUESTS: [u8; 10] = [1, 3, 5, 7, 9, 14, 16, 50, 52, 54];

impl Game {
    pub fn new(seed: u64) -> Self {
        let mut lab = Lab::new(crate::conversations::config());
        [SMF, OTHER].into_iter().for_each(|peer| lab.associate(peer, 1));
        let (dice, sayings) = (Dice::new(seed), sayings());
        let (due, asked, last) = (BTreeMap::new(), vec![], None);
        let (sequence, tally) = (0x10_0000, Tally::default());
        Self { lab, dice, sayings, due, asked, last, sequence, tally, is_loud: false }
    }

    pub fn play(&mut self) {
        match self.dice.below(24) {
            0 => self.change_obedience(),
            1 => self.pass_some_time(),
            2 => self.again(),
            3 => self.answer(),
            4 => self.trouble(),
            _ => self.say(),
        }
        if self.is_loud {
            self.tell();
        }
        self.hear();
        State::check(&self.lab);
    }

    /// What the last move came to.
    fn tell(&mut self) {
        let sessions: Vec<u32> = self.lab.desired().keys().map(|seid| seid.0 as u32).collect();
        println!("{:x}: {:?}, sessions {sessions:?}", self.sequence, self.lab.obedience);
        self.lab.notes.drain(..).for_each(|note| println!("    {note}"));
        for (to, message) in &self.lab.sent {
            println!("  to {to}: {} {:?}", message.body.message_type(), cause(&message.body));
        }
    }

    fn pass_some_time(&mut self) {
        let seconds = [0, 1, 1, 3, 12, 40][self.dice.below(6)];
        self.pass(seconds);
    }

    fn change_obedience(&mut self) {
        let youngest = self.lab.desired().keys().last().copied().unwrap_or(rules::Seid(0));
        let refuses = [Obedience::Refuses, Obedience::RefusesAfter(youngest)];
        let all = [Obedience::Obeys, Obedience::Obeys, refuses[0], refuses[1], Obedience::Waits];
        self.lab.obedience = all[self.dice.below(all.len())];
        if self.lab.obedience != Obedience::Waits {
            self.lab.obey();
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.lab.pass(Duration::from_secs(seconds));
    }

    /// The last datagram comes again: what was answered may be so once more.
    fn again(&mut self) {
        let Some((from, bytes)) = self.last.clone() else { return };
        let sequence = Datagram::read(&bytes).map_or(0, |datagram| datagram.sequence());
        if let Some(due) = self.due.get_mut(&(at(from), sequence)) {
            due.most += 1;
        }
        self.lab.receive(at(from), &bytes);
    }

    /// One of the node's requests is answered, in whatever words.
    fn answer(&mut self) {
        if self.asked.is_empty() {
            return;
        }
        let (to, message) = self.asked.remove(self.dice.below(self.asked.len()));
        let kind = message.body.message_type() + 1;
        let of_kind: Vec<Saying> =
            self.sayings.iter().filter(|saying| saying.datagram.message_type() == kind).cloned().collect();
        let Some(saying) = self.dice.one_of(&of_kind).cloned() else { return };
        let mut datagram = self.mutated(saying);
        datagram.number(message.sequence);
        let bytes = datagram.write();
        // What was to be an answer may have become a question.
        expected(&bytes, &mut self.due, to);
        self.lab.receive(to, &bytes);
    }

    fn trouble(&mut self) {
        match self.dice.below(4) {
            0 => self.restart_plane(),
            // A new process has forgotten what it was asked.
            1 => {
                self.due.values_mut().for_each(|due| due.least = 0);
                self.lab.orders.clear();
                self.lab.restart();
            }
            _ => self.traffic(),
        }
    }

    /// It takes back everything, and says so.
    fn restart_plane(&mut self) {
        self.lab.restart_plane();
        for desired in self.lab.in_force.values().cloned().collect::<Vec<_>>() {
            let (session, revision) = (desired.session, desired.revision);
            self.lab.handle(Input::DataPath(&Notice::Applied { session, revision, removed: vec![] }));
        }
    }

    fn traffic(&mut self) {
        let all: Vec<_> = self.lab.in_force.keys().copied().collect();
        if let Some(session) = self.dice.one_of(&all).copied() {
            let bytes = (self.dice.number() % 2_000, self.dice.number() % 2_000);
            self.lab.traffic(session, bytes, self.dice.once_in(4));
        }
    }

    fn say(&mut self) {
        let saying = self.dice.one_of(&self.sayings).cloned().unwrap();
        let is_stranger = self.dice.once_in(10);
        let from = if is_stranger { [SMF, OTHER, THIRD][self.dice.below(3)] } else { saying.from };
        let mut datagram = self.mutated(saying);
        self.sequence += 1;
        datagram.number(self.sequence);
        let bytes = datagram.write();
        let before = self.is_idle().then(|| State::of(&self.lab));
        let is_due = expected(&bytes, &mut self.due, at(from));
        self.tally.requests += u64::from(is_due);
        self.lab.receive(at(from), &bytes);
        self.last = Some((from, bytes));
        if let Some(before) = before.filter(|_| self.is_refused_whole()) {
            before.assert_same(&State::of(&self.lab), &self.lab.sent);
            self.tally.unchanged += 1;
        }
        if !is_due {
            let said = |message: &Message| message.sequence == self.sequence && !is_request(message);
            self.tally.silent += u64::from(!self.lab.sent.iter().any(|(_, message)| said(message)));
        }
    }

    /// The last request is refused, and nothing need have changed. A data plane that refuses everything does not take back
    /// what had to give way either.
    fn is_refused_whole(&self) -> bool {
        let takes_back = self.lab.obedience != Obedience::Refuses;
        self.lab.sent.iter().filter(|(_, message)| message.sequence == self.sequence).any(|(_, message)| {
            let is_new = matches!(message.body, Body::SessionEstablishmentResponse(_));
            let cause = cause(&message.body).filter(|cause| !cause.is_accepted());
            cause.is_some_and(|cause| takes_back || !is_new || cause != pfcp::Cause::SystemFailure)
        })
    }

    /// With another session to speak of, and so many things changed.
    fn mutated(&mut self, saying: Saying) -> Datagram {
        let mut datagram = saying.datagram;
        self.name(saying.about, &mut datagram);
        for _ in 0..[0, 0, 1, 1, 2, 4][self.dice.below(6)] {
            let donor = self.dice.one_of(&self.sayings).cloned().unwrap().datagram;
            mutate(&mut datagram, &donor, &mut self.dice);
        }
        datagram
    }

    /// Whose session it is, or what a new one is called.
    fn name(&mut self, about: About, datagram: &mut Datagram) {
        let all: Vec<u64> = self.lab.saved.keys().map(|seid| seid.0).collect();
        match about {
            About::Session(_) => datagram.seid = self.dice.one_of(&all).copied().or(Some(1)),
            About::New => {
                let named = datagram.body.iter_mut().find(|tree| tree.ie == ie::F_SEID);
                let name = self.dice.below(6) as u8;
                named.and_then(|tree| tree.value.get_mut(8)).into_iter().for_each(|octet| *octet = name);
            }
            About::Node => {}
        }
    }

    /// Nothing is under way that may end by itself.
    fn is_idle(&self) -> bool {
        let nothing_due = self.due.values().all(|due| due.had >= due.least);
        self.lab.obedience != Obedience::Waits && nothing_due
    }

    /// Reads what was sent.
    fn hear(&mut self) {
        for (to, message) in std::mem::take(&mut self.lab.sent) {
            if is_request(&message) {
                self.asked.push((to, message));
                self.asked.truncate(16);
                continue;
            }
            self.forgive(to, &message);
            let key = (to, message.sequence);
            let due = self.due.get_mut(&key).unwrap_or_else(|| panic!("nobody asked for {message:?}"));
            due.had += 1;
            assert!(due.had <= due.most, "{due:?} {message:?}");
            match cause(&message.body) {
                Some(cause) if cause.is_accepted() => self.tally.accepted += 1,
                Some(_) => self.tally.refused += 1,
                None => {}
            }
        }
    }

    /// Who says that it is new, or leaves, has forgotten what it asked before.
    fn forgive(&mut self, peer: SocketAddr, answer: &Message) {
        let ends = match &answer.body {
            Body::AssociationSetupResponse(response) => response.cause.is_accepted(),
            Body::AssociationReleaseResponse(response) => response.cause.is_accepted(),
            Body::HeartbeatResponse(_) => true,
            _ => false,
        };
        if ends {
            let of_peer = self.due.iter_mut().filter(|((from, _), _)| *from == peer);
            of_peer.for_each(|(_, due)| due.least = 0);
        }
    }

    /// Everything is answered, every session can be deleted by its owner, and nothing is left.
    pub fn end(mut self) -> Tally {
        self.lab.obedience = Obedience::Obeys;
        self.lab.obey();
        self.pass(10);
        self.hear();
        for ((from, _), due) in &self.due {
            assert!(due.had >= due.least, "no answer: {from} {:?}", pfcp::decode(&due.bytes));
        }
        for seid in self.lab.saved.keys().copied().collect::<Vec<_>>() {
            let owner = self.lab.associations.get(&self.lab.saved[&seid].owner);
            let owner = owner.unwrap_or_else(|| panic!("{seid} is nobody's")).address;
            self.sequence += 1;
            let delete = Message::session(seid.0, self.sequence, pfcp::SessionDeletionRequest::default());
            self.lab.receive(owner, &pfcp::encode(&delete));
            // For as long as a report of it is on its way.
            self.lab.pass(self.lab.config.apply_timeout);
            let answer = self.lab.answer(self.sequence).body;
            assert_eq!(cause(&answer), Some(pfcp::Cause::RequestAccepted), "{seid}: {answer:?}");
            self.tally.deleted += 1;
        }
        self.pass(120);
        State::assert_empty(&self.lab);
        self.tally
    }
}

/// Notes whether and how often a datagram is answered; whether it is a request that can be read. What its header says is
/// not always what it was made of.
fn expected(bytes: &[u8], due: &mut BTreeMap<(SocketAddr, u32), Due>, from: SocketAddr) -> bool {
    let Some(datagram) = Datagram::read(bytes) else { return false };
    let is_request = REQUESTS.contains(&datagram.message_type());
    let is_due = Datagram::is_sound(bytes) && is_request && has_right_header(&datagram);
    let is_due = is_due && (datagram.message_type() != 1 || has_stamp(bytes));
    // Other versions are told ours.
    let may_be = is_due || datagram.first[0] >> 5 != 1 || !has_right_header(&datagram);
    let known = due.entry((from, datagram.sequence())).or_insert(Due {
        bytes: bytes.to_vec(),
        least: 0,
        most: 0,
        had: 0,
    });
    (known.least, known.most) = (known.least + u32::from(is_due), known.most + u32::from(may_be));
    is_due
}

/// The answer to a heartbeat has no cause: one that cannot be read is not answered.
fn has_stamp(bytes: &[u8]) -> bool {
    let told = 4 + usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
    let Some(heartbeat) = bytes.get(..told).and_then(Datagram::read) else { return false };
    let stamp = heartbeat.body.iter().find(|tree| tree.ie == ie::RECOVERY_TIME_STAMP);
    heartbeat.rest.is_empty() && stamp.is_some_and(|tree| tree.value.len() >= 4)
}

/// Messages about sessions have a SEID, others have none (TS 29.244 7.2.2.1).
const fn has_right_header(datagram: &Datagram) -> bool {
    datagram.seid.is_some() == (datagram.message_type() >= 50)
}

/// Everything that is said in conversations.
fn sayings() -> Vec<Saying> {
    let mut all = vec![];
    for conversation in crate::conversations::with_refusals() {
        for step in &conversation.steps {
            let (Step::Ask(from, about, body) | Step::Answer(from, about, body)) = step else { continue };
            let message = match about {
                About::Node => Message::node(0, body.clone()),
                About::New | About::Session(_) => Message::session(0, 0, body.clone()),
            };
            let datagram = Datagram::read(&pfcp::encode(&message)).unwrap();
            all.push(Saying { from: *from, about: *about, datagram });
        }
    }
    all
}
