//! Flows of a profile's users, from their first packet to their last.

use crate::bulk::{self, Bulk, Noise, PACKET_MAX};
use crate::frame::{Endpoints, UPLINK_HEADERS, Users};
use crate::line::{Line, Sending};
use crate::opening::{CLOSING, Say, Speaker, Step, script};
use crate::origin::{Flow, Label, Origin, Tuple};
use crate::profile::{Profile, Transport};
use crate::random::{below, threshold};
use crate::segment::Payload;
use crate::table::{Draw, Draws, Table};
use arrayvec::ArrayVec;
use rand::RngCore;
use std::collections::VecDeque;
use std::hint::black_box;

/// Bytes that [`Flows::next`] asks for.
pub const FRAME_MAX: usize = UPLINK_HEADERS + PACKET_MAX;

/// As in a network where 100,000 flows begin a second and take some 40 ms.
const OPENINGS: u32 = 4_096;
/// So many open before any is open, lest a short recording is nothing but first words.
const FIRST_OPENINGS: u32 = 64;
/// Flows waiting to say goodbye. What does not fit falls silent, as users do who leave.
const CLOSINGS: usize = 256;
/// Packets drawn before they are written.
const AHEAD: usize = 32;

/// How many are opening at the same time where so many flows are open.
pub fn openings(flows: u32) -> u32 {
    (flows / 16).clamp(1, OPENINGS)
}

/// Why there are no flows.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The table does not fit.
    #[error("there is no memory for a table of {0} flows")]
    Memory(u32),
    /// A length of the profile is beyond what a frame takes.
    #[error("packets of {0} bytes do not fit: {PACKET_MAX} is the most")]
    Length(u16),
    /// The profile lacks an application mix.
    #[error("the profile \"{0}\" has no services")]
    NoServices(&'static str),
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the frame.
    pub length: usize,
    /// Towards the data network, in a tunnel.
    pub uplink: bool,
    /// The number of the user it is from or to.
    pub user: u32,
    /// Identity of the flow, not used again before four billion flows. Odd ones are lookups.
    pub flow: u64,
    /// Packets of the flow before this one, both ways.
    pub position: u32,
    /// It opens the flow: handshake, first payload either way, or a lookup.
    pub first_packets: bool,
}

/// An endless stream of frames, the same for the same profile and seed.
///
/// A share of the packets opens flows, which keeps as many new ones coming; the others belong to flows that are open,
/// chosen at random. When as many are open as the profile says, each new one takes the place of another, which ends.
pub struct Flows {
    origin: Origin,
    line: Line,
    speaker: Speaker,
    tables: Vec<Table>,
    limit: u32,
    noise: Noise,
    filled: bool,
    openings: Vec<Opening>,
    turn: usize,
    closings: VecDeque<Closing>,
    ahead: ArrayVec<Draw, AHEAD>,
    draws: Draws,
    opened: u64,
}

/// A flow whose first packets are on their way.
#[derive(Clone, Copy)]
struct Opening {
    flow: Flow,
    service: usize,
    /// Of the flow, or that of the lookup before it.
    transport: Transport,
    script: &'static [Step],
    step: usize,
}

/// A TCP connection whose last packets are on their way.
struct Closing {
    flow: Flow,
    transport: Transport,
    step: usize,
}

impl Flows {
    /// No flow is open yet, so the first packets all open some.
    ///
    /// # Errors
    /// A profile that cannot be, or a table that does not fit in memory.
    pub fn new(profile: &Profile, endpoints: Endpoints, seed: u64) -> Result<Self, Error> {
        check(profile)?;
        let noise = Noise::new();
        let origin = Origin::new(profile, seed);
        let opening = openings(profile.flows);
        let tables = Table::all(profile, &noise, profile.flows.saturating_sub(opening))?;
        let mut flows = Self {
            limit: tables.iter().map(|table| table.limit).sum(),
            origin,
            line: Line { endpoints, users: Users::default() },
            speaker: Speaker::default(),
            tables,
            noise,
            filled: true,
            openings: vec![],
            turn: 0,
            closings: VecDeque::new(),
            ahead: ArrayVec::new(),
            draws: Draws::new(profile, seed),
            opened: 0,
        };
        flows.openings = (0..opening.min(FIRST_OPENINGS)).map(|_| flows.begin()).collect();
        Ok(flows)
    }

    /// Numbers users in another way than [`Users::default`].
    #[must_use]
    pub fn with_users(mut self, users: Users) -> Self {
        self.line.users = users;
        self
    }

    /// Writes of bulk packets only the headers and the first bytes of the payload, and leaves the rest of the frame as
    /// it is: several times faster. Their UDP checksum is then absent; their TCP checksum is wrong.
    #[must_use]
    pub fn headers_only(mut self) -> Self {
        self.filled = false;
        self
    }

    /// Lets another share of the packets open flows than the profile says, from now on. With 1.0, the table fills as
    /// fast as it can.
    pub fn set_opening(&mut self, share: f64) {
        self.draws.opening = threshold(share);
    }

    /// Flows that are open, but for those that are opening.
    pub fn open(&self) -> u32 {
        self.tables.iter().map(|table| table.flows.len() as u32).sum()
    }

    /// Most flows that are ever open, but for those that are opening: about as many as the profile says.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Flows that were opened so far, not counting lookups.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// How users are numbered.
    pub fn users(&self) -> Users {
        self.line.users
    }

    /// What a flow is about, also when it is long over.
    pub fn label(&self, flow: u64) -> Label {
        self.origin.label(flow)
    }

    /// A flow's addresses, also when it is long over.
    pub fn tuple(&self, flow: u64) -> Tuple {
        self.origin.tuple(flow, self.line.users)
    }

    /// Writes the next frame; `None`, and nothing happens, where `frame` is shorter than [`FRAME_MAX`].
    #[inline]
    pub fn next(&mut self, frame: &mut [u8]) -> Option<Written> {
        let frame = frame.get_mut(..FRAME_MAX)?;
        if self.draws.opens() {
            return self.open_further(frame);
        }
        if !self.closings.is_empty() {
            return self.close_further(frame);
        }
        match self.draw() {
            Some(draw) => self.go_on(draw, frame),
            None => self.open_further(frame),
        }
    }

    /// A packet of a flow that is open; `None` where there is none yet.
    #[inline]
    fn draw(&mut self) -> Option<Draw> {
        if self.ahead.is_empty() {
            self.look_ahead();
        }
        self.ahead.pop()
    }

    /// Draws packets, then touches their flows in one go: memory answers them together, not one after the other.
    fn look_ahead(&mut self) {
        for _ in 0..AHEAD {
            let (draw, random) = self.draws.next();
            let open = self.tables.get(draw.service).map_or(0, |table| table.flows.len());
            // Where none of a service is open, others go on.
            if open > 0 {
                let _ = self.ahead.try_push(Draw { slot: below(open as u32, random) as usize, ..draw });
            }
        }
        let flow = |draw: &Draw| self.tables.get(draw.service)?.flows.get(draw.slot);
        black_box(self.ahead.iter().filter_map(flow).fold(0, |sum, flow| sum ^ flow.serial));
    }

    #[inline]
    fn go_on(&mut self, draw: Draw, frame: &mut [u8]) -> Option<Written> {
        let table = self.tables.get_mut(draw.service)?;
        let bulk = table.bulk(draw)?;
        let flow = table.flows.get_mut(draw.slot)?;
        let written = (flow.user, flow.identity(table.transport), flow.position());
        let way = (table.transport, draw.uplink);
        let length = send_bulk(&self.line, flow, (way, bulk, self.filled.then_some(&self.noise)), frame)?;
        Some(written_as(written, (length, draw.uplink), false))
    }

    fn open_further(&mut self, frame: &mut [u8]) -> Option<Written> {
        let place = self.turn % self.openings.len().max(1);
        self.turn = place + 1;
        let mut opening = *self.openings.get(place)?;
        let step = *opening.script.get(opening.step)?;
        let written = (opening.flow.user, opening.flow.identity(opening.transport), opening.flow.position());
        let length = match step.say {
            Say::Media => {
                let (draw, _) = self.draws.next();
                let draw = Draw { service: opening.service, uplink: step.uplink, ..draw };
                let bulk = self.tables.get(opening.service)?.bulk(draw)?;
                let way = (opening.transport, step.uplink);
                let noise = self.filled.then_some(&self.noise);
                send_bulk(&self.line, &mut opening.flow, (way, bulk, noise), frame)?
            }
            _ => {
                let payload = self.speaker.say(step.say, &opening.flow, &self.origin)?;
                send_step(&self.line, &mut opening.flow, (opening.transport, step, payload), frame)?
            }
        };
        opening.step += 1;
        *self.openings.get_mut(place)? = if opening.is_done() { self.after(opening) } else { opening };
        Some(written_as(written, (length, step.uplink), true))
    }

    /// What follows an opening that is done: the flow after its lookup, or another flow.
    fn after(&mut self, opening: Opening) -> Opening {
        if opening.transport == Transport::Dns {
            return Opening::new(&self.origin, opening.flow.serial);
        }
        self.admit(opening);
        if self.openings.len() < openings(self.open()) as usize {
            let another = self.begin();
            self.openings.push(another);
        }
        self.begin()
    }

    fn begin(&mut self) -> Opening {
        let serial = self.opened as u32;
        self.opened += 1;
        let opening = Opening::new(&self.origin, serial);
        if !self.origin.looks_up(serial) {
            return opening;
        }
        let transport = Transport::Dns;
        Opening { transport, script: script(transport, &opening.flow), ..opening }
    }

    /// A flow that was opened joins the others, if need be in the place of one of them.
    fn admit(&mut self, opening: Opening) {
        let Some(table) = self.tables.get_mut(opening.service) else { return };
        if (table.flows.len() as u32) < table.limit {
            table.flows.push(opening.flow);
            return;
        }
        let slot = below(table.limit, self.draws.random.next_u32()) as usize;
        let Some(place) = table.flows.get_mut(slot) else { return };
        let flow = std::mem::replace(place, opening.flow);
        if table.transport.is_tcp() && self.closings.len() < CLOSINGS {
            self.closings.push_back(Closing { flow, transport: table.transport, step: 0 });
        }
    }

    fn close_further(&mut self, frame: &mut [u8]) -> Option<Written> {
        let closing = self.closings.front_mut()?;
        let step = *CLOSING.get(closing.step)?;
        let written = (closing.flow.user, closing.flow.identity(closing.transport), closing.flow.position());
        let length = send_step(&self.line, &mut closing.flow, (closing.transport, step, &[]), frame)?;
        closing.step += 1;
        if closing.step == CLOSING.len() {
            self.closings.pop_front();
        }
        Some(written_as(written, (length, step.uplink), false))
    }
}

fn check(profile: &Profile) -> Result<(), Error> {
    if profile.services.is_empty() {
        return Err(Error::NoServices(profile.name));
    }
    let mut lengths = profile.uplink_lengths.iter().chain(profile.downlink_lengths);
    match lengths.find(|length| usize::from(length.bytes) > PACKET_MAX) {
        Some(length) => Err(Error::Length(length.bytes)),
        None => Ok(()),
    }
}

#[inline]
fn written_as(
    (user, flow, position): (u32, u64, u32),
    (length, uplink): (usize, bool),
    first_packets: bool,
) -> Written {
    Written { length, uplink, user, flow, position, first_packets }
}

type Way = (Transport, bool);

#[inline]
fn send_bulk(
    line: &Line,
    flow: &mut Flow,
    (way, bulk, noise): (Way, Bulk, Option<&Noise>),
    frame: &mut [u8],
) -> Option<usize> {
    let head = bulk::head(way, flow, bulk);
    let (transport, uplink) = way;
    let sending = Sending {
        transport,
        uplink,
        flags: Say::Media.flags(),
        options: &[],
        payload: bulk.payload(&head, noise.is_some()),
        head: &head,
        rest: noise.map_or(Some(&[][..]), |noise| noise.behind(head.len(), bulk))?,
    };
    line.write(flow, &sending, frame)
}

fn send_step(
    line: &Line,
    flow: &mut Flow,
    (transport, step, payload): (Transport, Step, &[u8]),
    frame: &mut [u8],
) -> Option<usize> {
    let sending = Sending {
        transport,
        uplink: step.uplink,
        flags: step.say.flags(),
        options: step.say.options(),
        payload: Payload::of(payload),
        head: payload,
        rest: &[],
    };
    line.write(flow, &sending, frame)
}

impl Opening {
    fn new(origin: &Origin, serial: u32) -> Self {
        let (service, transport) = (origin.service(serial), origin.transport(serial));
        let flow = origin.flow(serial);
        Self { flow, service, transport, script: script(transport, &flow), step: 0 }
    }

    fn is_done(&self) -> bool {
        self.step == self.script.len()
    }
}
