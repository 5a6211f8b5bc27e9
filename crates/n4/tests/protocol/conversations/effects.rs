//! Whether an IE matters: what is different when a conversation leaves it out, or says something else.

use super::stage::{Conversation, Stage, Step, cause, is_request};
use super::tables::MESSAGES;
use crate::common::{US, at};
use n4::Output;
use pfcp::{Cause, Message, ie};
use pfcp_mutate::{Datagram, Tree, around, places};
use session::{AssociationRecord, PfdRecord, SessionRecord};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Octets of a value that are changed in turn, and how.
const OCTETS: usize = 20;
const FLIPS: [u8; 5] = [1, 2, 4, 0x10, 0x80];

/// Why messages are refused that are not understood.
const OF_OCTETS: &[Cause] = &[
    Cause::MandatoryIeMissing,
    Cause::ConditionalIeMissing,
    Cause::InvalidLength,
    Cause::MandatoryIeIncorrect,
];

/// Groups of one table that have several numbers.
const ALIASES: &[(&str, &[u16])] = &[
    (
        "Usage Report",
        &[ie::USAGE_REPORT_IN_MODIFICATION, ie::USAGE_REPORT_IN_DELETION, ie::USAGE_REPORT_IN_REPORT],
    ),
    (
        "User Plane Path Failure, Recovery or Peer UP Restart Report",
        &[
            ie::USER_PLANE_PATH_FAILURE_REPORT,
            ie::USER_PLANE_PATH_RECOVERY_REPORT,
            ie::PEER_UP_RESTART_REPORT,
        ],
    ),
];

/// What a node did in a conversation, as others see it, and what it keeps.
#[derive(PartialEq)]
struct Outcome {
    orders: Vec<Output>,
    asked: Vec<(SocketAddr, Message)>,
    answered: Vec<(SocketAddr, Message)>,
    records: Vec<charging::Cdr>,
    content_rules: String,
    saved: BTreeMap<rules::Seid, SessionRecord>,
    associations: BTreeMap<String, AssociationRecord>,
    pfds: BTreeMap<String, PfdRecord>,
}

impl Outcome {
    fn of(stage: Stage) -> Self {
        let (asked, answered) = stage.sent.into_iter().partition(|(_, message)| is_request(message));
        let lab = stage.lab;
        Self {
            orders: lab.told,
            asked,
            answered,
            records: lab.cdrs,
            content_rules: format!("{:?}", lab.node.content_rules()),
            saved: lab.saved,
            associations: lab.associations,
            pfds: lab.pfds,
        }
    }

    /// What is different, the most telling thing first.
    fn differs(&self, other: &Self) -> Option<Difference> {
        let all = [
            (self.orders == other.orders, Difference::Orders),
            (self.asked == other.asked, Difference::Reports),
            (self.answered == other.answered, Difference::Answers),
            (self.content_rules == other.content_rules, Difference::ContentRules),
            (self.records == other.records, Difference::Records),
            (self == other, Difference::Kept),
        ];
        all.into_iter().find(|(is_same, _)| !is_same).map(|(_, difference)| difference)
    }
}

/// Where it shows that an IE is obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    Orders,
    Reports,
    Answers,
    ContentRules,
    Records,
    Refusals,
    Kept,
}

impl Difference {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Orders => "orders to the data plane",
            Self::Reports => "requests of ours",
            Self::Answers => "answers",
            Self::ContentRules => "content rules",
            Self::Records => "charging records",
            Self::Refusals => "refused",
            Self::Kept => "what is kept",
        }
    }
}

/// How it is shown that an IE matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown {
    pub difference: Difference,
    pub is_left_out: bool,
    pub conversation: &'static str,
}

/// Conversations, and what becomes of them when nothing is changed.
pub struct Effects(Vec<(Conversation, Outcome)>);

impl Effects {
    pub fn new() -> Self {
        let played = |conversation: Conversation| {
            let outcome = Outcome::of(Stage::play(&conversation, None));
            (conversation, outcome)
        };
        Self(super::with_refusals().into_iter().map(played).collect())
    }

    /// The best there is to show that an IE matters in a group.
    pub fn of(&self, group: &str, ie: u16) -> Option<Shown> {
        let mut best: Option<Shown> = None;
        for (conversation, before) in self.0.iter().filter(|(conversation, _)| !conversation.is_refused) {
            for (step, body, way) in occurrences(conversation, group, ie) {
                let shown = shown((conversation, before), (step, &body), &way);
                best = best.into_iter().chain(shown).min();
                if best.is_some_and(|best| best.difference < Difference::Refusals) {
                    return best;
                }
            }
        }
        best
    }

    /// The conversation in which we say an IE in a group.
    pub fn sent(&self, group: &str, ie: u16) -> Option<&'static str> {
        let says = |(conversation, _): &&(Conversation, Outcome)| {
            let trace = Stage::play(conversation, None).lab.trace;
            let ours = trace.iter().filter(|(from, ..)| *from == at(US));
            let mut ours = ours.filter_map(|(_, _, bytes)| Datagram::read(bytes));
            ours.any(|message| !ways(message.message_type(), &message.body, (group, ie)).is_empty())
        };
        self.0.iter().find(says).map(|(conversation, _)| conversation.name)
    }
}

/// Where an IE stands in a group: the step, its message and the way down.
pub fn occurrences(conversation: &Conversation, group: &str, ie: u16) -> Vec<(usize, Vec<Tree>, Vec<usize>)> {
    let mut all = vec![];
    for step in 0..conversation.steps.len() {
        let Some((_, _, body)) = conversation.message(step) else { continue };
        let trees = conversation.body(step).unwrap();
        let ways = ways(body.message_type(), &trees, (group, ie));
        all.extend(ways.into_iter().map(|way| (step, trees.clone(), way)));
    }
    all
}

fn ways(message_type: u8, trees: &[Tree], (group, ie): (&str, u16)) -> Vec<Vec<usize>> {
    let alias = ALIASES.iter().find(|(name, _)| *name == group).map_or(&[][..], |(_, numbers)| numbers);
    let is_message = MESSAGES.contains(&(group, message_type));
    let mut trees = trees.to_vec();
    let mut all = places(&trees);
    all.retain(|way| {
        let (parent, list, at) = around(&mut trees, way).unwrap();
        let is_there = match parent {
            0 => is_message,
            parent => alias.contains(&parent) || ie::name(parent) == Some(group),
        };
        is_there && list[at].ie == ie
    });
    all
}

/// Leaves an IE out; if that says nothing, says something else in its place, or in that of what is in it.
fn shown(played: (&Conversation, &Outcome), (step, body): (usize, &[Tree]), way: &[usize]) -> Option<Shown> {
    let conversation = played.0.name;
    let mut changed = body.to_vec();
    let (_, list, at) = around(&mut changed, way)?;
    let gone = list.remove(at);
    let left_out = difference(played, (step, &changed));
    let left_out = left_out.map(|difference| Shown { difference, is_left_out: true, conversation });
    if left_out.is_some_and(|shown| shown.difference < Difference::Refusals) {
        return left_out;
    }
    let others = others(&gone).into_iter().filter_map(|other| {
        let mut changed = body.to_vec();
        let (_, list, at) = around(&mut changed, way)?;
        list[at] = other;
        let difference = difference(played, (step, &changed))?;
        Some(Shown { difference, is_left_out: false, conversation })
    });
    let mut best = left_out;
    for shown in others {
        best = best.into_iter().chain([shown]).min();
        if shown.difference < Difference::Refusals {
            break;
        }
    }
    best
}

/// The same IE with another value.
fn others(tree: &Tree) -> Vec<Tree> {
    let mut all = vec![];
    for (at, child) in tree.children.iter().enumerate() {
        all.extend(others(child).into_iter().map(|other| {
            let mut changed = tree.clone();
            changed.children[at] = other;
            changed
        }));
    }
    for (at, flip) in (0..tree.value.len().min(OCTETS)).flat_map(|at| FLIPS.map(|flip| (at, flip))) {
        let mut changed = tree.clone();
        changed.value[at] ^= flip;
        all.push(changed);
    }
    all
}

/// What is different though the message is accepted as it was; or that it is refused, but not because it is incomplete or
/// its octets are wrong: that would be so of what is only read.
fn difference(
    (conversation, before): (&Conversation, &Outcome),
    changed: (usize, &[Tree]),
) -> Option<Difference> {
    let (at, body) = changed;
    let mut stage = Stage::before(conversation, at);
    let answer = stage.step(conversation, at, Some(body));
    if matches!(conversation.steps[at], Step::Ask(..)) {
        let answer = answer?;
        if let Some(cause) = cause(&answer.body).filter(|cause| !cause.is_accepted()) {
            return (!OF_OCTETS.contains(&cause)).then_some(Difference::Refusals);
        }
    }
    for step in at + 1..conversation.steps.len() {
        stage.step(conversation, step, None);
    }
    before.differs(&Outcome::of(stage))
}
