//! Packets waiting for the Ethernet address of their next hop.

use crate::frame::{Came, NextHop};
use crate::receipt::Receipt;
use crate::state::SessionIndex;

/// A packet waits no longer: as long as three questions, a second apart, and the answer to the last take (RFC 4861 7.2.2, 10).
const PATIENCE_NS: u64 = 3_000_000_000;
/// Neighbours that may have as many packets waiting at once as one may; more have fewer.
const NEIGHBOURS: usize = 64;
/// Neighbours that may have any waiting, by sessions, ...
const QUEUES: usize = 256;
/// ... and those for which packets of one session wait: a user who sends to hosts that are not there takes no places of others.
const QUEUES_PER_SESSION: usize = 8;

/// In the order they came.
pub(crate) struct Held<B> {
    packets: Vec<Waiting<B>>,
    /// Looked at for every packet that is to wait, and so apart from the packets.
    queues: Vec<Queue>,
    per_neighbour: usize,
    /// Of the packets, those of users who have just woken.
    woken: usize,
}

/// Whom a packet is for, of which session it is, and how it came, if its user may hear that nobody is there.
pub(crate) type Awaiting = (NextHop, SessionIndex, Option<Came>);

/// Packets of one session that wait for one neighbour.
#[derive(Clone, Copy)]
struct Queue {
    next_hop: NextHop,
    /// [`SessionIndex::NONE`] for nobody's.
    session: SessionIndex,
    waiting: usize,
}

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Waiting<B> {
    next_hop: NextHop,
    pub(crate) session: SessionIndex,
    since_ns: u64,
    /// It was kept for its user, and is in no queue.
    is_woken: bool,
    pub(crate) came: Option<Came>,
    pub(crate) buffer: B,
    /// What it will be counted for.
    pub(crate) receipt: Receipt,
}

impl<B> Held<B> {
    /// With room for so many that were kept for their users, besides others.
    pub(crate) fn new(per_neighbour: usize, kept: usize) -> Self {
        let packets = Vec::with_capacity(per_neighbour * NEIGHBOURS + kept);
        Self { packets, queues: Vec::with_capacity(QUEUES), per_neighbour, woken: 0 }
    }

    /// Keeps a packet of a session, if it is of one; gives it back where too many wait.
    pub(crate) fn keep(
        &mut self,
        (next_hop, session, came): Awaiting,
        (buffer, receipt): (B, Receipt),
        now_ns: u64,
    ) -> Result<(), (B, Receipt)> {
        let most = self.per_neighbour * NEIGHBOURS;
        if self.packets.len() - self.woken >= most || !self.count(next_hop, session) {
            return Err((buffer, receipt));
        }
        let (since_ns, is_woken) = (now_ns, false);
        self.packets.push(Waiting { next_hop, session, since_ns, is_woken, came, buffer, receipt });
        Ok(())
    }

    /// Keeps a packet that was kept for its user until now, and takes no place of others. There is to be room: together with those that
    /// still are kept there are no more than may be.
    pub(crate) fn keep_woken(&mut self, next_hop: NextHop, (buffer, receipt): (B, Receipt), now_ns: u64) {
        let (session, since_ns) = (SessionIndex::NONE, now_ns);
        self.packets.push(Waiting {
            next_hop,
            session,
            since_ns,
            is_woken: true,
            came: None,
            buffer,
            receipt,
        });
        self.woken += 1;
    }

    /// How many wait that were kept for their users.
    pub(crate) const fn woken(&self) -> usize {
        self.woken
    }

    /// Counts one more for a neighbour; false, and nothing changes, where too many wait.
    fn count(&mut self, next_hop: NextHop, session: SessionIndex) -> bool {
        let (mut at_neighbour, mut of_session, mut known) = (0, 0, None);
        for queue in &mut self.queues {
            of_session += usize::from(queue.session == session);
            if queue.next_hop == next_hop {
                at_neighbour += queue.waiting;
                known = known.or(Some(queue).filter(|queue| queue.session == session));
            }
        }
        if at_neighbour >= self.per_neighbour {
            return false;
        }
        if let Some(queue) = known {
            queue.waiting += 1;
            return true;
        }
        let may_open = session == SessionIndex::NONE || of_session < QUEUES_PER_SESSION;
        if !may_open || self.queues.len() == QUEUES {
            return false;
        }
        self.queues.push(Queue { next_hop, session, waiting: 1 });
        true
    }

    /// What waits of a session is nobody's from now on.
    pub(crate) fn disown(&mut self, session: SessionIndex) {
        let queues = self.queues.iter_mut().map(|queue| &mut queue.session);
        let sessions = queues.chain(self.packets.iter_mut().map(|packet| &mut packet.session));
        sessions.filter(|known| **known == session).for_each(|known| *known = SessionIndex::NONE);
    }

    /// The packets that waited for `next_hop`, oldest first. Those that are not taken wait on, until the next time.
    pub(crate) fn release(&mut self, next_hop: NextHop) -> impl Iterator<Item = Waiting<B>> {
        let Self { packets, queues, woken, per_neighbour: _ } = self;
        queues.retain(|queue| queue.next_hop != next_hop);
        let released = packets.extract_if(.., move |packet| packet.next_hop == next_hop);
        released.inspect(|packet| *woken -= usize::from(packet.is_woken))
    }

    /// Those that have waited too long.
    pub(crate) fn late(&mut self, now_ns: u64) -> impl Iterator<Item = Waiting<B>> {
        let is_late = |packet: &Waiting<B>| now_ns.saturating_sub(packet.since_ns) >= PATIENCE_NS;
        let late = self.packets.partition_point(is_late);
        for packet in &self.packets[..late] {
            if packet.is_woken {
                self.woken -= 1;
                continue;
            }
            let is_of = |queue: &&mut Queue| {
                (queue.next_hop, queue.session) == (packet.next_hop, packet.session) && queue.waiting > 0
            };
            if let Some(queue) = self.queues.iter_mut().find(is_of) {
                queue.waiting -= 1;
            }
        }
        self.queues.retain(|queue| queue.waiting > 0);
        self.packets.drain(..late)
    }

    /// Who is waited for; some more than once.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = NextHop> {
        let runs = self.packets.chunk_by(|packet, next| packet.next_hop == next.next_hop);
        runs.filter_map(|run| run.first()).map(|packet| packet.next_hop)
    }

    /// What they will be counted for.
    pub(crate) fn receipts(&mut self) -> impl Iterator<Item = &mut Receipt> {
        self.packets.iter_mut().map(|packet| &mut packet.receipt)
    }

    /// Those that wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &B> {
        self.packets.iter().map(|packet| &packet.buffer)
    }

    /// How many may wait without more memory for it.
    #[cfg(test)]
    pub(crate) const fn room(&self) -> usize {
        self.packets.capacity()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn hop(last: u8) -> NextHop {
        NextHop::new(0, Ipv4Addr::new(10, 0, 0, last))
    }

    /// Of no session.
    fn to(last: u8) -> Awaiting {
        (hop(last), SessionIndex::NONE, None)
    }

    fn packet(name: char) -> (char, Receipt) {
        (name, Receipt::NONE)
    }

    #[test]
    fn packets_leave_in_the_order_they_came() {
        let mut held = Held::new(2, 2);
        assert_eq!(held.keep(to(1), packet('a'), 0), Ok(()));
        assert_eq!(held.keep(to(2), packet('b'), 0), Ok(()));
        assert_eq!(held.keep(to(1), packet('c'), 0), Ok(()));
        assert_eq!(held.keep(to(1), packet('d'), 0), Err(packet('d')));
        assert_eq!(held.release(hop(1)).map(|packet| packet.buffer).collect::<String>(), "ac");
        assert_eq!(held.len(), 1);
    }

    #[test]
    fn no_packet_waits_for_ever() {
        let mut held = Held::new(2, 2);
        held.keep(to(1), packet('a'), 0).unwrap();
        held.keep(to(1), packet('b'), 10).unwrap();
        let late: String = held.late(PATIENCE_NS).map(|packet| packet.buffer).collect();
        assert_eq!((&*late, held.len()), ("a", 1));
        // Its place is free.
        assert_eq!(held.keep(to(1), packet('c'), 20), Ok(()));
        assert_eq!(held.keep(to(1), packet('d'), 20), Err(packet('d')));
    }

    /// In order with others, whose places they do not take.
    #[test]
    fn those_that_were_kept_have_places_of_their_own() {
        let mut held = Held::new(1, 3);
        held.keep(to(1), packet('a'), 0).unwrap();
        "bc".chars().for_each(|name| held.keep_woken(hop(1), packet(name), 0));
        held.keep_woken(hop(2), packet('d'), 0);
        assert_eq!((held.keep(to(1), packet('e'), 1), held.woken()), (Err(packet('e')), 3));
        held.keep(to(2), packet('f'), 1).unwrap();
        let mut some = held.release(hop(1)).take(2).map(|packet| packet.buffer).collect::<String>();
        assert_eq!((&*some, held.woken()), ("ab", 2));
        some.extend(held.release(hop(1)).map(|packet| packet.buffer));
        assert_eq!((&*some, held.woken()), ("abc", 1));
        assert_eq!(held.late(PATIENCE_NS).map(|packet| packet.buffer).collect::<String>(), "d");
        assert_eq!((held.woken(), held.len()), (0, 1));
    }

    #[test]
    fn neighbours_that_have_packets_waiting_are_limited() {
        let mut held = Held::new(8, 0);
        for session in 0..=(QUEUES / QUEUES_PER_SESSION) as u32 {
            for last in 0..=QUEUES_PER_SESSION as u8 {
                let at = NextHop::new(session as u8, Ipv4Addr::new(10, 0, 0, last));
                let is_kept = held.keep((at, SessionIndex(session), None), packet('a'), 0).is_ok();
                let may_be = usize::from(last) < QUEUES_PER_SESSION && session < 32;
                assert_eq!(is_kept, may_be, "{session} {last}");
            }
        }
        assert_eq!(
            held.keep((hop(1), SessionIndex(0), None), packet('b'), 0),
            Ok(()),
            "where its others wait"
        );
        assert_eq!((held.queues.len(), held.len()), (QUEUES, QUEUES + 1));
        held.release(hop(1)).for_each(drop);
        assert_eq!((held.queues.len(), held.len()), (QUEUES - 1, QUEUES - 1));
    }
}
