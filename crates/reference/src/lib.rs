//! The whole user-plane path in the most obvious way: what the data plane must agree with, byte by byte.
//!
//! It is written from the specifications and from the documentation of [`rules`], not from the data plane, and shares no
//! code with it but the type [`Rules`]: headers are read octet by octet, sessions and rules are searched from one end to
//! the other for every packet, every header is written anew. There is no cache, no compilation and no flow table, so
//! there is none that can be wrong. It is a yardstick for tests and benchmarks, never part of the product.
//!
//! # What it decides where specifications leave room
//!
//! * A user's packet is checked down to the ports (or the SPI) before its PDR is sought; what ends before them, and is no
//!   later fragment, is malformed. Later fragments show neither ports nor SPI; they are taken to have what the first one of their
//!   packet had, if that came before, by a second at most, in the same tunnel (but not where an authentication header of
//!   IPv6 stands before ports).
//! * No more than 8 extension headers in a row, of IPv6 as of GTP-U, and no more than 255 octets of headers in front of
//!   a user's packet in a tunnel.
//! * Fragments to us are put together: 64 datagrams of UDP at once of each side, 16 of them of one sender, of 2,000 octets,
//!   for a second. Where there is no place for one more, the sender's oldest gives way.
//! * UDP checksums of received packets matter over IPv6 and in fragments, and only where there is one (TS 29.281 4.4.2.0,
//!   RFC 6935);
//!   sent ones are 0 over IPv4 and computed over IPv6.
//! * The order in which a session's rules act, and what is charged and counted: see `enforcement.rs`. A packet that is
//!   dropped by a FAR, kept, out of hops, addressed to us or too long for its way costs nothing; one that has no route
//!   was counted before that was known, and so was one from tunnel to tunnel that exceeds the MTU.
//! * A packet too long for its way out of a tunnel, or into one, is split where its sender allows it; each fragment is
//!   charged and counted by itself. Senders of others, and of those out of hops, are told: servers on the wire, users by
//!   the tunnel that their session's rules would choose, at no charge.
//! * A tunnel header that we put on has 64 hops, identification 0, "don't fragment" over IPv4 and flow label 0 over IPv6,
//!   source port 2152, and a DSCP only where the FAR asks for one; ECN is not copied to it (RFC 6040 4.3,
//!   compatibility mode): the other end may not pass on what routers say there. What they say to us in a tunnel's header is passed on.
//! * A copy (DUPL) is made of the packet as it came, once its FAR forwards, drops or buffers and before anything else: whatever
//!   becomes of the packet then. A copy that is not put into a tunnel is routed, and takes a hop. Copies cost nothing.
//! * Of what application flows are, when that is known, and who is billed for what came before: see `applications.rs`.
//!
//! # What it leaves out
//!
//! What happens without a packet: reports, end markers, peers asked whether they are there, packets kept for a sleeping user
//! leaving later, fragments to us that time has given up, ageing of neighbours and of stations, router advertisements for users, the limits on sessions, flows, buffers, Error Indications and ICMP errors (for the last two see
//! [`Reference::allow_error_indications`] and [`Reference::allow_icmp_errors`]). Extension headers of GTP-U are not relayed
//! from tunnel to tunnel. Of applications: QUIC, HTTP/2 and STUN, lookups over TCP, what lookups teach, regular expressions, content rules that are
//! loaded while there are flows, flows that give way to others or to silence, and fields put into requests.
//!
//! # How to compare
//!
//! Give both the same [`worlds::World`] and, packet by packet, the same frames at the same times. A packet that is sent
//! may be accompanied by copies, or release others, so frames are compared per port without regard to order. Keep these
//! in mind:
//!
//! * one packet at a time; in a vector, packets meet meters, quotas and fragments in the order of the graph's nodes, so compare
//!   whole vectors only with [`Scope`](worlds::Scope)s without `signals` and `parts`, and end a vector before the packet with which
//!   some limit is reached ([`Reference::standing`]), which goes alone;
//! * make the neighbours of [`Setup`] known beforehand, and allow any number of Error Indications, ICMP errors, kept packets and so
//!   many per session;
//! * a portal's handshakes have a number that nobody knows but the other implementation: leave it out, and tell the reference
//!   ([`Reference::hear_first_number`]);
//! * put changes with `drop_buffered`, so that no kept packet leaves because of one;
//! * where workers share nothing, leave packets that seem to be of other sessions' users out ([`Scope::strangers`](worlds::Scope)): by
//!   which session a flow came to be known may matter to others;
//! * start anew after some thousand packets: a world's second is the time after which waiting packets expire.
//!
//! ```
//! use anchorline_reference::worlds::{Change, Random, Scope, World};
//! use anchorline_reference::{Outcome, Reference, SetupError, UsageCounts};
//! use rand::SeedableRng;
//! use rules::{Rules, Seid};
//!
//! /// The other implementation: here a second reference, in the data plane's tests a worker and its engine.
//! struct Other(Reference);
//!
//! impl Other {
//!     fn put(&mut self, session: Seid, rules: Rules) {
//!         // engine.handle(Command::Put(Desired { drop_buffered: true, ..Desired::new(session, revision, rules) }));
//!         self.0.put(session, rules);
//!     }
//!     fn remove(&mut self, session: Seid) {
//!         // engine.handle(Command::Delete { session });
//!         self.0.remove(session);
//!     }
//!     fn process(&mut self, port: usize, frame: &[u8], now_ns: u64) -> Outcome {
//!         // Onto the wire of that port; worker.turn(now_ns); frames off all wires; counters before and after.
//!         self.0.process(port, frame, now_ns)
//!     }
//!     fn usage(&mut self, session: Seid) -> Vec<UsageCounts> {
//!         // engine.handle(Command::QueryUsage { .. }), and the notice that answers it.
//!         self.0.usage(session)
//!     }
//! }
//!
//! for seed in 0..5 {
//!     let mut world = World::within(seed, Scope { twin_tunnels: false, ..Scope::ALL });
//!     let mut reference = Reference::new(world.setup.clone())?;
//!     let mut other = Other(Reference::new(world.setup.clone())?);
//!     if let Some(content) = &world.content {
//!         // Each rule is a line of a rule file.
//!         reference.load(content.clone());
//!         other.0.load(content.clone());
//!     }
//!     for (session, rules) in &world.sessions {
//!         reference.put(*session, rules.clone());
//!         other.put(*session, rules.clone());
//!     }
//!     let random = &mut Random::seed_from_u64(seed);
//!     let mut now_ns = 1;
//!     for number in 0..2_000 {
//!         if number % 200 == 199 {
//!             match world.change(random) {
//!                 Change::Put(session, rules) => {
//!                     reference.put(session, rules.clone());
//!                     other.put(session, rules);
//!                 }
//!                 Change::Remove(session) => {
//!                     reference.remove(session);
//!                     other.remove(session);
//!                 }
//!             }
//!         }
//!         now_ns += World::gap_ns(random);
//!         let (port, frame) = world.packet(random);
//!         let (mut expected, mut seen) =
//!             (reference.process(port, &frame, now_ns), other.process(port, &frame, now_ns));
//!         expected.sent.sort();
//!         seen.sent.sort();
//!         assert_eq!(expected, seen, "seed {seed} packet {number} on port {port}: {frame:02x?}");
//!     }
//!     for (session, _) in &world.sessions {
//!         assert_eq!(reference.usage(*session), other.usage(*session), "seed {seed} {session}");
//!     }
//! }
//! # Ok::<(), SetupError>(())
//! ```

mod applications;
mod billing;
mod bytes;
mod congestion;
mod detection;
mod enforcement;
mod errors;
mod ethernet;
mod forwarding;
mod fragments;
mod frame_detection;
mod frames;
#[cfg(test)]
mod golden;
mod gtpu;
mod heads;
mod icmp;
mod input;
mod ip;
mod meters;
mod outcome;
mod portal;
mod quote;
mod reason;
mod reassembly;
mod recent;
mod redirection;
mod segments;
mod setup;
mod standing;
pub mod worlds;

pub use applications::content::{ContentRule, Layer};
pub use enforcement::UsageCounts;
pub use outcome::{Fate, Outcome};
pub use reason::DropReason;
pub use setup::{FramePort, Mac, Neighbour, PortSetup, Route, Setup, SetupError};
pub use standing::Standing;

use enforcement::Session;
use ethernet::{Asked, Waiting};
use meters::Meter;
use rules::{Rules, Seid};

/// The reference: an environment, sessions, and what they remember.
#[derive(Clone, Debug)]
pub struct Reference {
    setup: Setup,
    now_ns: u64,
    sessions: Vec<Session>,
    waiting: Vec<Waiting>,
    datagrams: Vec<reassembly::Datagram>,
    heads: Vec<heads::Head>,
    asked: Vec<Asked>,
    error_indications: bool,
    icmp_errors: bool,
    stations: Vec<frames::Station>,
    /// Content rules; `None` before there are any.
    content: Option<Vec<ContentRule>>,
    flows: Vec<applications::Flow>,
    /// Numbers with which users' handshakes with the node began.
    first_numbers: Vec<(redirection::Flow, u32)>,
    /// The last user's packet that found its session, and the place of that.
    #[cfg(test)]
    seen: Option<(usize, detection::Arrival)>,
}

impl Reference {
    /// No sessions yet; Error Indications and ICMP errors are sent.
    ///
    /// # Errors
    /// A setup that makes no sense.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        setup.check()?;
        let (waiting, asked) = (Vec::new(), Vec::new());
        Ok(Self {
            setup,
            now_ns: 0,
            sessions: Vec::new(),
            waiting,
            datagrams: Vec::new(),
            heads: Vec::new(),
            asked,
            error_indications: true,
            icmp_errors: true,
            stations: Vec::new(),
            content: None,
            flows: Vec::new(),
            first_numbers: Vec::new(),
            #[cfg(test)]
            seen: None,
        })
    }

    /// Puts a session in force, or gives it new rules: those pass [`Rules::check`], and lead no tunnel or address
    /// here that another session has. Meters and counts go on where their QERs and URRs stay.
    pub fn put(&mut self, session: Seid, mut rules: Rules) {
        for pdr in &mut rules.pdrs {
            pdr.pdi.f_teid = pdr.pdi.f_teid.map(|f_teid| self.setup.canonical(f_teid));
        }
        self.setup.lan_at_core(&mut rules);
        self.settle(session);
        self.count_deferred_of(session);
        self.keep_stations(session, Some(&rules));
        let shared: Vec<Meter> = self.sessions.iter().flat_map(Session::shared_meters).collect();
        match self.sessions.iter_mut().find(|known| known.seid == session) {
            Some(known) => known.replace(rules, &shared, self.now_ns),
            None => self.sessions.push(Session::new(session, rules, &shared, self.now_ns)),
        }
        let known = self.sessions.iter().find(|known| known.seid == session);
        let shared = known.map(Session::shared_meters).unwrap_or_default();
        self.sessions.iter_mut().for_each(|other| other.adopt(&shared));
    }

    /// Puts content rules in force, before any flow has begun.
    pub fn load(&mut self, rules: Vec<ContentRule>) {
        self.content = Some(rules);
    }

    /// Takes a session out of force, if it was in.
    pub fn remove(&mut self, session: Seid) {
        self.settle(session);
        self.forget_waiting_of(session);
        self.keep_stations(session, None);
        if let Some(place) = self.place(session) {
            self.sessions.remove(place);
            self.move_up(place);
        }
    }

    /// Whether the next packet to an unknown tunnel is answered; the limit on how often is the caller's.
    pub fn allow_error_indications(&mut self, allowed: bool) {
        self.error_indications = allowed;
    }

    /// Whether the sender of the next packet that goes no further is told; the limit on how often is the caller's.
    pub fn allow_icmp_errors(&mut self, allowed: bool) {
        self.icmp_errors = allowed;
    }

    /// Takes one frame, from the Ethernet header on, that came in on a port, by its place in [`Setup::ports`], or behind these in
    /// [`Setup::frame_ports`]. Time
    /// never goes back.
    pub fn process(&mut self, port: usize, frame: &[u8], now_ns: u64) -> Outcome {
        self.now_ns = now_ns;
        self.expire();
        let outcome = match port >= self.setup.ports.len() {
            true => self.receive_frame(port, frame),
            false => self.take_off(port, frame).and_then(|frame| self.receive(port, &frame)),
        };
        self.tagged(outcome.into())
    }

    /// What each URR of a session has counted, in the order of its rules; empty without such a session. What waits to be of an
    /// application counts as of none.
    pub fn usage(&mut self, session: Seid) -> Vec<UsageCounts> {
        self.count_deferred_of(session);
        let known = self.sessions.iter().find(|known| known.seid == session);
        known.map(Session::counts).unwrap_or_default()
    }

    fn port(&self, port: usize) -> Result<&PortSetup, DropReason> {
        self.setup.ports.get(port).ok_or(DropReason::Unfinished)
    }
}
