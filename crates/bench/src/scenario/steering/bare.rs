//! The bare hand-over: the same packets between the same threads on the same CPUs, of which only the headers are read, and a
//! line of each written by the owner. What goes over is a pointer. What that adds is what it takes to bring packets from one
//! core's cache to another's, which no data path saves; what the product's hand-off adds beyond is its own.

use super::formation::{Case, Grounds, Mode};
use super::rounds::{Hand, Keeper, Round, Tools, stretch};
use super::team::Team;
use crate::dock::Dock;
use crate::setup::{N3, TUNNEL_HEADERS};
use anyhow::ensure;
use dataplane::Port;
use dpdk::{Mbuf, Mempool};
use packet::{Buffer, ethernet};
use rtrb::{Consumer, Producer, RingBuffer};
use std::hint::black_box;
use std::time::Duration;

/// Packets of a vector, and those taken from one port or worker at once, as workers have them.
const VECTOR: usize = 256;
const BURST: usize = VECTOR / 2;
/// Slots of a ring: more than packets may be under way.
const DEPTH: usize = 1_024;
/// Packets ahead of the one at hand whose headers are asked for.
const AHEAD: usize = 12;
/// Last octet of the user's address, behind the tunnel's headers on the way up: source; down: destination.
const USER_UP: usize = ethernet::LENGTH + TUNNEL_HEADERS + 15;
const USER_DOWN: usize = ethernet::LENGTH + 19;

/// A packet, and the port it came in by.
type Handed = (Mbuf, usize);

/// Stands where a worker does.
struct Hands {
    me: usize,
    /// The first worker that owns packets, and how many do; `None` where the card brings each its own.
    owners: Option<(usize, usize)>,
    docks: [Dock; 2],
    rings: Vec<Rings>,
    received: Vec<Mbuf>,
    vector: Vec<Handed>,
    sent: [Vec<Mbuf>; 2],
    done: usize,
}

/// To and from one worker; to itself unused.
struct Rings {
    to: Producer<Handed>,
    from: Consumer<Handed>,
    waiting: Vec<Handed>,
}

/// As many as workers in a case, behind the same card.
pub(super) struct BareTeam {
    hands: Vec<Hands>,
    grounds: Grounds,
}

impl BareTeam {
    pub(super) fn new(case: Case, pool: &Mempool) -> Self {
        let grounds = Grounds::new(case, pool);
        let workers = grounds.docks.len();
        let distributors = usize::from(case.mode == Mode::Distributor);
        let owners = (!case.mode.leads()).then_some((distributors, workers - distributors));
        let mut to: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
        let mut from: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
        for (giver, taker) in (0..workers).flat_map(|one| (0..workers).map(move |other| (one, other))) {
            let (producer, consumer) = RingBuffer::new(DEPTH);
            to[giver].push(producer);
            from[taker].push(consumer);
        }
        let rings = to.into_iter().zip(from).map(|(to, from)| {
            let rings = to.into_iter().zip(from);
            rings.map(|(to, from)| Rings { to, from, waiting: Vec::with_capacity(VECTOR) }).collect()
        });
        let hands = (grounds.docks.iter().cloned().zip(rings).enumerate())
            .map(|(me, (docks, rings))| Hands::new((me, owners), docks, rings))
            .collect();
        Self { hands, grounds }
    }

    /// Rounds, as the product's.
    ///
    /// # Errors
    /// Packets that are missing.
    pub(super) fn run(
        &mut self,
        team: &Team<'_>,
        tools: &mut Tools,
        duration: Duration,
    ) -> anyhow::Result<Vec<Round>> {
        let Self { hands, grounds } = self;
        let mut keeper = Keeper { grounds, tools, is_sampled: false };
        let rounds = stretch(team, hands, &mut keeper, duration)?;
        ensure!(hands.iter().all(|hands| hands.vector.is_empty()), "packets were left behind");
        Ok(rounds)
    }
}

impl Hands {
    fn new((me, owners): (usize, Option<(usize, usize)>), docks: [Dock; 2], rings: Vec<Rings>) -> Self {
        let (received, vector) = (Vec::with_capacity(VECTOR), Vec::with_capacity(VECTOR));
        Self { me, owners, docks, rings, received, vector, sent: Default::default(), done: 0 }
    }

    /// Takes what others handed over, and writes to it.
    fn take(&mut self) -> usize {
        let Self { rings, vector, .. } = self;
        for rings in rings {
            let count = rings.from.slots().min(BURST);
            if let Ok(chunk) = rings.from.read_chunk(count) {
                vector.extend(chunk);
            }
        }
        self.vector.iter().for_each(|(mbuf, _)| mbuf.prefetch());
        self.vector.iter().for_each(|(mbuf, _)| mbuf.prefetch_data());
        let taken = self.vector.len();
        let mut vector = std::mem::take(&mut self.vector);
        vector.drain(..).for_each(|handed| self.process(handed));
        self.vector = vector;
        taken
    }

    /// Takes what the card brought: its own and others'.
    fn receive(&mut self) -> usize {
        let (mut received, mut taken) = (std::mem::take(&mut self.received), 0);
        for port in 0..self.docks.len() {
            taken += self.docks[port].receive(&mut received, BURST);
            received.iter().for_each(Buffer::prefetch);
            received.iter().take(AHEAD).for_each(Buffer::prefetch_data);
            self.vector.extend(received.drain(..).map(|mbuf| (mbuf, port)));
        }
        self.received = received;
        let mut vector = std::mem::take(&mut self.vector);
        for at in 0..vector.len() {
            if let Some((later, _)) = vector.get(at + AHEAD) {
                later.prefetch_data();
            }
            black_box(self.owner(&vector[at]));
        }
        for handed in vector.drain(..) {
            match self.owner(&handed) {
                owner if owner == self.me => self.process(handed),
                owner => self.rings[owner].waiting.push(handed),
            }
        }
        self.vector = vector;
        taken
    }

    fn owner(&self, (mbuf, port): &Handed) -> usize {
        let user = mbuf.data().get(if *port == N3 { USER_UP } else { USER_DOWN }).copied();
        let user = usize::from(user.unwrap_or_default());
        self.owners.map_or(self.me, |(first, count)| first + user % count)
    }

    /// Reads both lines of headers, writes the first, as whoever forwards it has to.
    fn process(&mut self, (mut mbuf, port): Handed) {
        black_box(mbuf.data().get(USER_UP));
        if let Some(header) = mbuf.data_mut().first_chunk_mut::<{ ethernet::LENGTH }>() {
            *header = [2; ethernet::LENGTH];
        }
        self.sent[1 - port].push(mbuf);
    }

    fn hand_over(&mut self) {
        for Rings { to, waiting, .. } in &mut self.rings {
            if let Ok(chunk) = to.write_chunk_uninit(waiting.len()) {
                chunk.fill_from_iter(waiting.drain(..));
            }
        }
    }
}

impl Hand for Hands {
    fn turn(&mut self) -> usize {
        let taken = self.take() + self.receive();
        self.hand_over();
        for (dock, sent) in self.docks.iter_mut().zip(&mut self.sent) {
            if !sent.is_empty() {
                self.done += dock.send(sent);
            }
        }
        taken
    }

    fn done(&self) -> usize {
        self.done
    }
}
