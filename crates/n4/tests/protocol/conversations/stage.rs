//! Where conversations are played: what was said, what came back, and what changed.

use crate::common::{Lab, OTHER, SMF, at};
use n4::Config;
use pfcp::{Body, Cause, FailedRuleId, Message};
use pfcp_mutate::{Datagram, Tree};
use rules::Seid;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    Node,
    /// A session that is not yet.
    New,
    /// The session that was established as the first, second...
    Session(usize),
}

pub enum Step {
    /// A control plane asks.
    Ask(Ipv4Addr, About, Body),
    /// It answers the last thing it was asked.
    Answer(Ipv4Addr, About, Body),
    /// Something happens.
    Do(fn(&mut Stage)),
}

pub struct Conversation {
    pub name: &'static str,
    pub config: Config,
    /// Most of what is asked in it is not done.
    pub is_refused: bool,
    pub steps: Vec<Step>,
}

impl Conversation {
    /// One in which everything is done.
    pub fn new(name: &'static str, steps: Vec<Step>) -> Self {
        Self { name, config: super::config(), is_refused: false, steps }
    }

    pub fn message(&self, step: usize) -> Option<(Ipv4Addr, About, &Body)> {
        match &self.steps[step] {
            Step::Ask(from, about, body) | Step::Answer(from, about, body) => Some((*from, *about, body)),
            Step::Do(_) => None,
        }
    }

    /// The IEs of a step's message.
    pub fn body(&self, step: usize) -> Option<Vec<Tree>> {
        self.message(step).map(|(_, about, body)| read_body(about, body))
    }
}

pub fn read_body(about: About, body: &Body) -> Vec<Tree> {
    let bytes = pfcp::encode(&message(about, 0, body.clone()));
    let datagram = Datagram::read(&bytes).unwrap();
    assert!(datagram.rest.is_empty());
    datagram.body
}

fn message(about: About, seid: u64, body: Body) -> Message {
    match about {
        About::Node => Message::node(0, body),
        About::New | About::Session(_) => Message::session(seid, 0, body),
    }
}

pub struct Stage {
    pub lab: Lab,
    /// In the order in which they were established.
    pub sessions: Vec<Seid>,
    /// What the node asked and nobody has answered.
    pub asked: Vec<(SocketAddr, Message)>,
    /// All it ever sent.
    pub sent: Vec<(SocketAddr, Message)>,
    /// Who does not answer heartbeats.
    pub silent: Vec<Ipv4Addr>,
    sequence: u32,
}

impl Stage {
    pub fn new(config: Config) -> Self {
        let mut lab = Lab::new(config);
        // The stage does, but for those who are silent.
        lab.answers_heartbeats = false;
        Self { lab, sessions: vec![], asked: vec![], sent: vec![], silent: vec![], sequence: 0x10_0000 }
    }

    /// All of a conversation, where one step's message may have other IEs.
    pub fn play(conversation: &Conversation, changed: Option<(usize, &[Tree])>) -> Self {
        let mut stage = Self::new(conversation.config.clone());
        for step in 0..conversation.steps.len() {
            let other = changed.filter(|(at, _)| *at == step).map(|(_, body)| body);
            stage.step(conversation, step, other);
        }
        stage
    }

    /// What comes before a step.
    pub fn before(conversation: &Conversation, step: usize) -> Self {
        let mut stage = Self::new(conversation.config.clone());
        (0..step).for_each(|step| drop(stage.step(conversation, step, None)));
        stage
    }

    /// One step; what it was answered, if it asked.
    pub fn step(
        &mut self,
        conversation: &Conversation,
        step: usize,
        other: Option<&[Tree]>,
    ) -> Option<Message> {
        let (from, about, body) = match &conversation.steps[step] {
            Step::Do(action) => {
                action(self);
                self.collect();
                return None;
            }
            Step::Ask(from, about, body) | Step::Answer(from, about, body) => (*from, *about, body),
        };
        let mut datagram = self.datagram(about, body);
        if let Some(other) = other {
            datagram.body = other.to_vec();
        }
        let is_question = matches!(conversation.steps[step], Step::Ask(..));
        if is_question {
            self.sequence += 1;
            datagram.number(self.sequence);
        } else {
            datagram.number(self.take_question(from, datagram.message_type())?);
        }
        self.say(from, &datagram);
        if is_question { self.answer_to(self.sequence) } else { None }
    }

    /// A session's name; none's where it never came to be.
    pub fn session(&self, at: usize) -> Seid {
        self.sessions.get(at).copied().unwrap_or(Seid(0))
    }

    fn datagram(&self, about: About, body: &Body) -> Datagram {
        let seid = match about {
            About::Session(at) => self.session(at).0,
            About::Node | About::New => 0,
        };
        Datagram::read(&pfcp::encode(&message(about, seid, body.clone()))).unwrap()
    }

    /// The number of the last question to this peer that a message of this type answers.
    fn take_question(&mut self, peer: Ipv4Addr, message_type: u8) -> Option<u32> {
        let is_it = |(to, message): &(SocketAddr, Message)| {
            *to == at(peer) && message.body.message_type() + 1 == message_type
        };
        let place = self.asked.iter().rposition(is_it)?;
        Some(self.asked.remove(place).1.sequence)
    }

    pub fn say(&mut self, from: Ipv4Addr, datagram: &Datagram) {
        self.lab.receive(at(from), &datagram.write());
        self.collect();
    }

    /// What the node has sent meanwhile. Of sessions that come to be the names are noted.
    fn collect(&mut self) {
        for (to, message) in std::mem::take(&mut self.lab.sent) {
            if let Body::SessionEstablishmentResponse(response) = &message.body {
                self.sessions.extend(response.up_f_seid.map(|f_seid| Seid(f_seid.seid)));
            }
            if is_request(&message) {
                // What is sent again is the same question.
                self.asked.retain(|(_, asked)| asked.sequence != message.sequence);
                self.asked.push((to, message.clone()));
            }
            self.sent.push((to, message));
        }
    }

    /// The answer to a question, which has come once.
    pub fn answer_to(&self, sequence: u32) -> Option<Message> {
        let mut answers =
            self.sent.iter().filter(|(_, message)| message.sequence == sequence && !is_request(message));
        let answer = answers.next().map(|(_, message)| message.clone());
        assert!(answers.next().is_none(), "two answers to {sequence}");
        answer
    }

    /// Time passes, and control planes that are there answer heartbeats.
    pub fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.lab.pass(Duration::from_secs(1));
            self.collect();
            for peer in [SMF, OTHER, super::THIRD] {
                if !self.silent.contains(&peer) {
                    self.answer_heartbeats(peer);
                }
            }
        }
    }

    fn answer_heartbeats(&mut self, peer: Ipv4Addr) {
        while let Some(sequence) = self.take_question(peer, 2) {
            let known = self.lab.associations.values().find(|known| known.address == at(peer));
            let recovery_time_stamp = known.map_or(1, |known| known.recovery_time_stamp);
            let answer = pfcp::HeartbeatResponse { recovery_time_stamp, carried: vec![] };
            self.lab.tell(peer, &Message::node(sequence, answer));
            self.collect();
        }
    }
}

pub fn is_request(message: &Message) -> bool {
    matches!(message.body.message_type(), 1 | 3 | 5 | 7 | 9 | 12 | 14 | 16 | 50 | 52 | 54 | 56)
}

/// How a request ended, where its answer says so.
pub fn cause(answer: &Body) -> Option<Cause> {
    Some(match answer {
        Body::PfdManagementResponse(response) => response.cause,
        Body::AssociationSetupResponse(response) => response.cause,
        Body::AssociationUpdateResponse(response) => response.cause,
        Body::AssociationReleaseResponse(response) => response.cause,
        Body::SessionSetDeletionResponse(response) => response.cause,
        Body::SessionSetModificationResponse(response) => response.cause,
        Body::SessionEstablishmentResponse(response) => response.cause,
        Body::SessionModificationResponse(response) => response.cause,
        Body::SessionDeletionResponse(response) => response.cause,
        _ => return None,
    })
}

/// The IE and the rule a refusal names.
pub fn blamed(answer: &Body) -> (Option<u16>, Option<FailedRuleId>) {
    match answer {
        Body::PfdManagementResponse(response) => (response.offending_ie, None),
        Body::SessionSetDeletionResponse(response) => (response.offending_ie, None),
        Body::SessionSetModificationResponse(response) => (response.offending_ie, None),
        Body::SessionEstablishmentResponse(response) => (response.offending_ie, response.failed_rule_id),
        Body::SessionModificationResponse(response) => (response.offending_ie, response.failed_rule_id),
        Body::SessionDeletionResponse(response) => (response.offending_ie, None),
        _ => (None, None),
    }
}
