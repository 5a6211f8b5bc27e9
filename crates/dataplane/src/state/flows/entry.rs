//! What is known of a flow, and what of a packet it looks at besides its key. How it lies in memory is said in [`super::packed`].

use super::said::{self, Said};
use crate::content::Detected;
use crate::state::flow_key::FlowKey;
use crate::state::step::StepIndex;
use dpi::extract::REQUEST_MIN;
use rules::Direction;

/// One flow, both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::state) struct Flow {
    pub(super) key: FlowKey,
    /// Of the rules the verdicts were reached under; 0, which is of none, where there are no verdicts.
    pub(super) generation: u32,
    /// By [`Direction`].
    pub(super) steps: [StepIndex; 2],
    /// QFI and port each verdict is for.
    pub(super) arrivals: [u16; 2],
    /// Tick of the last packet.
    pub(super) seen: u16,
    /// Traffic class each verdict is for, where the rules look at it.
    pub(super) classes: [u8; 2],
    /// What else of a packet has to be looked at: [`CLASS`], [`REQUESTS`], [`HANDSHAKES`]; mostly nothing. In its upper bits, with
    /// `host`, what its first packets said ([`Said`]).
    pub(super) looks: u8,
    pub(super) host: u8,
    /// Of what application it is.
    pub(super) detected: Detected,
}

/// The rules look at the traffic class.
pub(super) const CLASS: u8 = 1;
/// Each packet of the user may begin with a request of another application.
const REQUESTS: u8 = 2;
/// Each packet may be of a handshake, with which a connection begins anew.
const HANDSHAKES: u8 = 4;
/// All of these.
pub(super) const LOOKS: u8 = CLASS | REQUESTS | HANDSHAKES;
const _: () = assert!(LOOKS ^ said::BITS == u8::MAX, "an octet for both");

/// What may begin with a packet of a flow that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    Nothing,
    /// The user's next request.
    Request,
    /// With a handshake, the next connection between the same ports.
    Connection,
}

/// What a verdict was reached for besides the key: packets that differ in any of it that matters are classified anew. (So are
/// those of another tunnel: the step itself tells which one its packets come in.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Circumstances {
    /// QFI in the low octet, port in the high one.
    pub(crate) arrival: u16,
    pub(crate) class: u8,
    /// Bytes of the packet: no part of what the verdict is for, but they tell which may ask for another, see [`REQUESTS`].
    pub(crate) bytes: u16,
}

impl Circumstances {
    /// Whether a packet of this flow, which `looks` at so much, is the user's and long enough for a request.
    #[inline]
    pub(super) const fn may_ask(&self, looks: u8, direction: Direction, key: &FlowKey) -> bool {
        looks & REQUESTS != 0
            && matches!(direction, Direction::Uplink)
            && self.bytes as usize >= key.headers_min() + REQUEST_MIN
    }
}

impl Flow {
    /// The flow of no packets.
    pub(super) const EMPTY: Self = Self {
        key: FlowKey::NONE,
        generation: 0,
        steps: [StepIndex::NONE; 2],
        arrivals: [0; 2],
        seen: 0,
        classes: [0; 2],
        looks: 0,
        host: 0,
        detected: Detected::NOT_YET,
    };

    pub(super) fn is_known_connection(&self) -> bool {
        self.detected.is_of_some() && self.key.is_of_tcp()
    }

    /// Says what of its packets has to be looked at from now on.
    pub(super) fn look_besides(&mut self, class_matters: bool) {
        let class = if class_matters { CLASS } else { 0 };
        let requests = if self.detected.looks_again() { REQUESTS } else { 0 };
        let is_known = self.detected != Detected::NOT_YET && self.key.is_of_tcp();
        let handshakes = if is_known { HANDSHAKES } else { 0 };
        self.looks = self.looks & !LOOKS | class | requests | handshakes;
    }

    /// What its first packets said, if it is to ask the content rules by that again.
    pub(super) fn asks_anew(&self) -> Option<Said> {
        (self.generation == 0 && self.said().is_known()).then_some(self.said())
    }

    /// Its next packets find no verdict, and ask anew, if it is known what it said; whether that was so.
    pub(super) const fn ask_anew(&mut self) -> bool {
        let is_known = self.said().is_known();
        if is_known {
            (self.generation, self.steps) = (0, [StepIndex::NONE; 2]);
        }
        is_known
    }

    pub(super) const fn said(&self) -> Said {
        Said { bits: self.looks & said::BITS, host: self.host }
    }

    pub(super) const fn say(&mut self, said: Said) {
        (self.looks, self.host) = (self.looks & LOOKS | said.bits, said.host);
    }

    /// Its next packets find no verdict: it needs no more room than its key.
    pub(super) const fn without_verdicts(&self) -> Self {
        Self { steps: [StepIndex::NONE; 2], looks: self.looks & !CLASS, ..*self }
    }

    /// Nothing is known of it any more.
    pub(super) fn begin_anew(&mut self) {
        *self = Self { key: self.key, generation: self.generation, seen: self.seen, ..Self::EMPTY };
    }

    /// Whether what its verdict was reached for holds of a packet.
    pub(super) fn fits(
        &mut self,
        other: Circumstances,
        direction: Direction,
        begins: impl Fn(bool) -> Beginning,
    ) -> bool {
        self.arrivals[direction as usize] == other.arrival && self.agrees(other, direction, begins)
    }

    /// Whether what the flow looks at besides ([`Flow::looks`]) lets a packet go by its verdict.
    fn agrees(
        &mut self,
        other: Circumstances,
        direction: Direction,
        begins: impl Fn(bool) -> Beginning,
    ) -> bool {
        let is_of_class = self.looks & CLASS == 0 || self.classes[direction as usize] == other.class;
        let may_ask = other.may_ask(self.looks, direction, &self.key);
        let may_shake_hands = self.looks & HANDSHAKES != 0;
        let begins = (may_ask || may_shake_hands)
            && match begins(may_ask) {
                Beginning::Nothing => false,
                Beginning::Request => may_ask,
                Beginning::Connection => may_shake_hands,
            };
        if begins {
            // What comes behind it in the vector stays behind it, and is of what it begins.
            self.steps[direction as usize] = StepIndex::NONE;
        }
        is_of_class && !begins
    }
}
