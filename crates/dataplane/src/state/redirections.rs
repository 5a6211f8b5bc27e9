//! Flows of users who are sent to another address (TS 29.244 8.2.20): what comes back from there has to seem to come from where
//! the user sent it. Known by what comes back: the flow of the user with the address it was sent to.
//!
//! A session has a group of places, whoever its packets come from, so that who opens very many such flows crowds out few others';
//! where there is none left the flow that has been silent longest gives way. The next packet of its user enters it again.

use super::ends::Ends;
use super::{FlowKey, NoMemory, State};
use crate::lasting::{Part, Section, Table, seal};
use packet::tcp::flag;
use rules::{Direction, Seid};
use std::net::IpAddr;
use std::ops::Range;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Flows looked at for one.
const WAYS: usize = 8;
/// Of them, a session's flows are in so many rows.
const ROWS: usize = 64;
/// Flows of one session at most.
pub(super) const REDIRECTIONS_OF_SESSION: usize = ROWS * WAYS;
/// Connections over TCP that say nothing are over, in nanoseconds (RFC 5382 REQ-5: 2 h 4 min), others before (RFC 4787
/// REQ-5: 5 min).
const CONNECTION_NS: u64 = 7_440_000_000_000;
const FLOW_NS: u64 = 300_000_000_000;
/// The same of a connection that both ends have closed (4 min).
const ENDED_NS: u64 = 240_000_000_000;

/// What a packet says of its connection, where it is a segment of TCP.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Control {
    pub(crate) flags: u8,
    /// What acknowledges it, of a SYN.
    pub(crate) begins: Option<u32>,
}

impl Control {
    /// Of these control bits alone.
    pub(crate) const fn of(flags: u8) -> Self {
        Self { flags, begins: None }
    }

    /// Whether it begins a connection.
    pub(crate) const fn is_syn(self) -> bool {
        self.flags & (flag::SYN | flag::ACK) == flag::SYN
    }
}

/// One flow, as it lies in memory that outlives the process.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Redirection {
    /// Whose: nothing that was known of another session holds for this one, even if the user has the same address.
    session: u64,
    /// As what comes back has it, by [`FlowKey::of_session`].
    key: FlowKey,
    /// Where the user sends it; of an IPv4 address the first four.
    server: [u8; 16],
    /// What is above never changes once it is written, and this says so.
    seal: u32,
    /// What acknowledges the SYN that began it, if `has_begun` is not 0.
    begun: u32,
    seen_ns: u64,
    has_begun: u8,
    ends: Ends,
    _unused: [u8; 6],
}

/// The octets that [`Redirection::seal`] is of.
const SEALED: usize = std::mem::offset_of!(Redirection, seal);

impl Redirection {
    const NONE: Self = Self {
        session: 0,
        key: FlowKey::NONE,
        server: [0; 16],
        seal: 0,
        begun: 0,
        seen_ns: 0,
        has_begun: 0,
        ends: Ends::NONE,
        _unused: [0; 6],
    };

    fn new((session, key): (Seid, &FlowKey), server: IpAddr) -> Self {
        let mut octets = [0; 16];
        match server {
            IpAddr::V4(address) => octets[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => octets = address.octets(),
        }
        Self { session: session.0, key: *key, server: octets, ..Self::NONE }
    }

    /// As it may be found when this process is gone.
    fn sealed(self) -> Self {
        Self { seal: self.right_seal(), ..self }
    }

    fn right_seal(&self) -> u32 {
        seal(self.as_bytes().get(..SEALED).unwrap_or_default())
    }

    /// Whose it is, if it is one that is not over, and was written whole.
    pub(crate) fn session(&self, now_ns: u64) -> Option<Seid> {
        let is_whole = !self.is_over(now_ns) && self.seal == self.right_seal();
        is_whole.then_some(Seid(self.session))
    }

    fn server(&self) -> IpAddr {
        let [a, b, c, d, ..] = self.server;
        if self.key.is_ipv6() { self.server.into() } else { [a, b, c, d].into() }
    }

    fn begun(&self) -> Option<u32> {
        (self.has_begun != 0).then_some(self.begun)
    }

    fn is(&self, session: Seid, key: &FlowKey) -> bool {
        self.session == session.0 && self.key.is(key)
    }

    fn is_over(&self, now_ns: u64) -> bool {
        let patience = match (self.ends.are_both(), self.key.is_of_tcp()) {
            (true, _) => ENDED_NS,
            (false, true) => CONNECTION_NS,
            (false, false) => FLOW_NS,
        };
        self.key == FlowKey::NONE || now_ns.saturating_sub(self.seen_ns) > patience
    }

    /// It has had a packet. What comes in the server's name may be anybody's.
    fn hear(&mut self, from: Direction, control: Control, now_ns: u64) {
        self.seen_ns = now_ns;
        match from == Direction::Uplink && control.is_syn() {
            true => {
                self.ends = Ends::NONE;
                (self.has_begun, self.begun) =
                    (control.begins.is_some().into(), control.begins.unwrap_or_default());
            }
            false => self.ends.hear((from, control.flags), false),
        }
    }
}

/// Places for `limit` flows: as many groups as fit it, one at least.
pub(crate) fn redirection_places(limit: usize) -> usize {
    (limit / REDIRECTIONS_OF_SESSION).max(1) * REDIRECTIONS_OF_SESSION
}

/// Those of a worker, in memory of fixed size.
pub(crate) struct Redirections {
    /// By group, row and way.
    all: Table<Redirection>,
}

impl Redirections {
    /// Room for `limit` flows, in a section of a file if there is one.
    pub(crate) fn new(limit: usize, section: Option<&Section>) -> Result<Self, NoMemory> {
        let places = redirection_places(limit);
        let mut all = Table::new(places, section.and_then(|section| section.place(Part::Redirections)))?;
        match all.grow(places, Redirection::NONE) {
            true => Ok(Self { all }),
            false => Err(NoMemory { bytes: places * size_of::<Redirection>() }),
        }
    }

    /// The places of a session's flows.
    fn group(&self, session: Seid) -> Range<usize> {
        let groups = self.all.len() / REDIRECTIONS_OF_SESSION;
        let from = (session.0 % groups as u64) as usize * REDIRECTIONS_OF_SESSION;
        from..from + REDIRECTIONS_OF_SESSION
    }

    /// Where a flow is, if it is: by its session, and its hash.
    fn places(&self, session: Seid, hash: u64) -> Range<usize> {
        let from = self.group(session).start + hash as usize % ROWS * WAYS;
        from..from + WAYS
    }

    /// Forgets those of a session.
    pub(super) fn forget(&mut self, session: Seid) {
        self.of_session(session).for_each(|it| *it = Redirection::NONE);
    }

    fn of_session(&mut self, session: Seid) -> impl Iterator<Item = &mut Redirection> {
        let group = self.group(session);
        let all = self.all.get_mut(group).unwrap_or_default().iter_mut();
        all.filter(move |it| it.session == session.0 && it.key != FlowKey::NONE)
    }

    fn row(&mut self, session: Seid, hash: u64) -> &mut [Redirection] {
        let places = self.places(session, hash);
        self.all.get_mut(places).unwrap_or_default()
    }

    /// Puts one in the place of one that is not needed any more, or is least likely to be.
    fn put(&mut self, hash: u64, new: Redirection) {
        let now_ns = new.seen_ns;
        let row = self.row(Seid(new.session), hash).iter_mut();
        let first = row.min_by_key(|old| (!old.is_over(now_ns), !old.ends.is_any(), old.seen_ns));
        if let Some(place) = first {
            *place = new.sealed();
        }
    }

    /// Takes out those of a session, into a list that has the room.
    pub(super) fn carry_off(&mut self, session: Seid, into: &mut Vec<Redirection>) {
        for place in self.of_session(session) {
            if into.len() < into.capacity() {
                into.push(std::mem::replace(place, Redirection::NONE));
            }
        }
    }
}

impl State {
    /// A packet of the user's goes elsewhere than to `server`, as one of the flow `key`. `false` where that flow is the
    /// user's with another server, and not over: what comes back could not be told apart.
    pub(crate) fn redirect(
        &mut self,
        (session, key): (Seid, &FlowKey),
        server: IpAddr,
        control: Control,
    ) -> bool {
        let (hash, now_ns) = (self.flows.hash(key), self.now_ns);
        let known = self.redirections.row(session, hash).iter_mut().find(|it| it.is(session, key));
        let mut fresh = Redirection::new((session, key), server);
        fresh.hear(Direction::Uplink, control, now_ns);
        match known {
            Some(known) if known.server == fresh.server && !known.is_over(now_ns) => {
                known.hear(Direction::Uplink, control, now_ns);
            }
            Some(known) if known.ends.is_any() || known.is_over(now_ns) => *known = fresh.sealed(),
            Some(_) => return false,
            None => self.redirections.put(hash, fresh),
        }
        true
    }

    /// Where the user sent what a packet answers that comes back as one of the flow `key`, if it was sent elsewhere.
    pub(crate) fn redirected(
        &mut self,
        (session, key): (Seid, &FlowKey),
        control: Control,
    ) -> Option<IpAddr> {
        let (hash, now_ns) = (self.flows.hash(key), self.now_ns);
        let known = self.redirections.row(session, hash).iter_mut().find(|it| it.is(session, key))?;
        if known.is_over(now_ns) {
            return None;
        }
        known.hear(Direction::Downlink, control, now_ns);
        Some(known.server())
    }

    /// The user begins a connection with an address itself, between the ports of one that was sent there: that is over for its user, and
    /// what comes back is of the new one.
    pub(crate) fn send_straight(&mut self, (session, key): (Seid, &FlowKey)) {
        let hash = self.flows.hash(key);
        if let Some(known) = self.redirections.row(session, hash).iter_mut().find(|it| it.is(session, key)) {
            *known = Redirection::NONE;
        }
    }

    /// Whether what a server acknowledges is the SYN of a connection that was sent to it.
    pub(crate) fn is_answer_to_redirected(&self, flow: (Seid, &FlowKey), acknowledgement: u32) -> bool {
        self.redirection(flow).is_some_and(|known| known.begun() == Some(acknowledgement))
    }

    /// As [`State::redirected`], without a packet.
    pub(crate) fn server_of(&self, flow: (Seid, &FlowKey)) -> Option<IpAddr> {
        self.redirection(flow).map(Redirection::server)
    }

    /// As [`State::redirect`], without a packet: whether that flow is the user's with another server.
    pub(crate) fn is_taken(&self, flow: (Seid, &FlowKey), server: IpAddr) -> bool {
        self.redirection(flow).is_some_and(|known| known.server() != server && !known.ends.is_any())
    }

    fn redirection(&self, (session, key): (Seid, &FlowKey)) -> Option<&Redirection> {
        let row = self.redirections.all.get(self.redirections.places(session, self.flows.hash(key)))?;
        row.iter().find(|it| it.is(session, key) && !it.is_over(self.now_ns))
    }

    /// Takes in one that was known elsewhere.
    pub(super) fn adopt_redirection(&mut self, redirection: Redirection) {
        let hash = self.flows.hash(&redirection.key);
        self.redirections.put(hash, redirection);
    }

    /// Takes in one that a former life of the engine knew, by another clock.
    pub(super) fn inherit_redirection(&mut self, redirection: Redirection) {
        self.adopt_redirection(Redirection { seen_ns: self.now_ns, ..redirection });
    }
}
