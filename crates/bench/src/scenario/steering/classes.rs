//! Overload: urgent packets behind a card that sorts them into queues of their own, and behind one whose queues hold all alike; and one
//! user that sends and gets more than all others.
//!
//! One worker is offered half as much again as it carries. What comes while a queue is full is lost, as a card loses it.

use super::formation::Formation;
use super::team::Team;
use crate::dock::Dock;
use crate::meter::Rack;
use crate::nic::{Nic, Urgent};
use crate::product::NOW_NS;
use crate::report::{ClassFate, Latency};
use crate::setup::{N3, N6, TUNNEL_HEADERS, user};
use anyhow::{Context, ensure};
use dataplane::Worker;
use dpdk::{Mbuf, Mempool};
use hdrhistogram::Histogram;
use packet::Buffer;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Of what one worker carries at most.
pub(super) const OVERLOAD: f64 = 1.5;
/// Of a hundred packets, those of the user who has most.
const OF_ONE_USER: u32 = 60;
/// One user in so many is urgent.
const URGENT_USERS: u32 = 10;
/// As the card tells them apart.
const MARKS: Urgent = Urgent { qfi: 5, dscp: 46 };
/// Packets a queue holds.
const QUEUE: usize = 1_024;
/// Packets of one run.
const PACKETS: usize = 32_768;
/// Where a frame keeps its number, and where it has what marks it.
const TAIL: usize = 8;
const TOS: usize = 15;
const CHECKSUM: usize = 24;
const QFI: usize = 56;
/// Runs before any counts: flows are met in their classes, and a worker finds out in some hundred turns at a time, of which a run has
/// few, how many packets of whoever has more than its share to drop.
const SETTLING: u32 = 8;
/// At least so many count, where they come within the patience.
const COUNTED_MIN: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(5);
/// A worker that was away for longer was interrupted by other programs, and the run does not count.
const AWAY_US: u64 = 100;
/// Latencies above this count as this.
const LONGEST_S: u64 = 1;

/// What there is too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overload {
    /// Everybody's packets, and the card tells none from another.
    Unsorted,
    /// Everybody's, and it sorts them.
    Sorted,
    /// One user's.
    OneUser,
}

impl Overload {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Unsorted, Self::Sorted, Self::OneUser];

    /// In reports.
    pub(super) const fn mode(self) -> &'static str {
        match self {
            Self::Unsorted => "no-classes",
            Self::Sorted => "classes",
            Self::OneUser => "one-user",
        }
    }

    /// Whose packets are told first, and of whom the others are.
    const fn classes(self) -> [&'static str; 2] {
        match self {
            Self::Unsorted | Self::Sorted => ["urgent", "rest"],
            Self::OneUser => ["one", "rest"],
        }
    }
}

/// A packet that will come.
struct Due {
    number: usize,
    port: usize,
    is_urgent: bool,
    mbuf: Mbuf,
}

/// What became of a class.
struct Found {
    packets: u64,
    lost: u64,
    waits: Histogram<u64>,
}

/// One run, and what is left of it.
struct Run<'a> {
    docks: &'a [Dock; 2],
    hz: u64,
    start: u64,
    interval: f64,
    sorted: bool,
    due: VecDeque<Due>,
    /// By number: cycles under way; `None` of one that was lost.
    waits: Vec<Option<u64>>,
    back: Vec<Mbuf>,
}

/// Overload for so long; what became of both classes, and runs that did not count and did.
///
/// # Errors
/// Packets that are missing; no run that counts.
pub(super) fn measure(
    team: &Team<'_>,
    formation: &mut Formation,
    (rack, pool): (&mut Rack, &Mempool),
    (pps, overload, duration): (f64, Overload, Duration),
) -> anyhow::Result<(Vec<ClassFate>, [u32; 2])> {
    let nic = formation.grounds.nic.clone().sorting(MARKS);
    let docks = formation.grounds.docks.first().context("no worker")?.clone();
    let worker = formation.workers.first_mut().context("no worker")?;
    let (mut found, mut runs, start) = ([Found::new(team.hz)?, Found::new(team.hz)?], [0, 0], Instant::now());
    let (mut settling, longest) = (SETTLING, duration.max(PATIENCE));
    while start.elapsed() < duration || (runs[1] < COUNTED_MIN && start.elapsed() < longest) {
        let (due, first) = lay(overload, &nic, rack)?;
        let before = dropped(worker);
        let mut run = Run {
            docks: &docks,
            hz: team.hz,
            start: dpdk::tsc(),
            interval: team.hz as f64 / pps,
            sorted: overload == Overload::Sorted,
            due,
            waits: vec![None; PACKETS],
            back: Vec::with_capacity(PACKETS),
        };
        let was_away = run.work(worker)?;
        let (back, dropped) = (run.back.len(), dropped(worker) - before);
        ensure!(
            back + dropped == PACKETS,
            "{PACKETS} packets went in, {back} came out, {dropped} were dropped"
        );
        run.back.into_iter().for_each(|mbuf| rack.put(mbuf));
        rack.replace(pool, dropped)?;
        if settling > 0 {
            settling -= 1;
            continue;
        }
        runs[usize::from(!was_away)] += 1;
        if !was_away {
            first.iter().zip(run.waits).for_each(|(is_first, wait)| found[usize::from(!is_first)].take(wait));
        }
    }
    ensure!(found.iter().all(|found| !found.waits.is_empty()), "other programs took the CPU in all runs");
    let ([first, rest], [name, others]) = (found, overload.classes());
    Ok((vec![first.told(name, team.hz), rest.told(others, team.hz)], runs))
}

/// Packets that the worker has dropped so far.
fn dropped(worker: &Worker<Dock>) -> usize {
    worker.counters().drops.iter().sum::<u64>() as usize
}

/// Packets of all users, those of some marked as the card sorts them; and which are of the class that is told first.
fn lay(overload: Overload, nic: &Nic, rack: &mut Rack) -> anyhow::Result<(VecDeque<Due>, Vec<bool>)> {
    let (mut due, mut first) = (VecDeque::with_capacity(PACKETS), Vec::with_capacity(PACKETS));
    let is_one_users = overload == Overload::OneUser;
    rack.set_share_of_first(if is_one_users { OF_ONE_USER } else { 0 });
    for number in 0..PACKETS {
        let (mut mbuf, up) = rack.next()?;
        if !is_one_users {
            mark(mbuf.data_mut(), up).context("a frame is too short")?;
        }
        let tail = mbuf.data_mut().last_chunk_mut::<TAIL>().context("a frame is too short")?;
        *tail = (number as u64).to_le_bytes();
        let is_urgent = nic.is_urgent(mbuf.data(), up);
        first.push(if is_one_users { user_of(mbuf.data(), up) == Some(user(0).address) } else { is_urgent });
        due.push_back(Due { number, port: if up { N3 } else { N6 }, is_urgent, mbuf });
    }
    rack.set_share_of_first(0);
    Ok((due, first))
}

fn user_of(frame: &[u8], up: bool) -> Option<Ipv4Addr> {
    let address = if up { TUNNEL_HEADERS + 26 } else { 30 };
    Some(Ipv4Addr::from(*frame.get(address..)?.first_chunk::<4>()?))
}

/// Makes a frame of an urgent user what the card goes by.
fn mark(frame: &mut [u8], up: bool) -> Option<()> {
    if u32::from(user_of(frame, up)?) % URGENT_USERS > 0 {
        return Some(());
    }
    if up {
        *frame.get_mut(QFI)? = MARKS.qfi;
        return Some(());
    }
    let class = frame.get_mut(TOS)?;
    let word = |class: u8| 0x4500 | u16::from(class);
    let (old, new) = (word(*class), word(MARKS.dscp << 2));
    *class = MARKS.dscp << 2;
    let checksum: &mut [u8; 2] = frame.get_mut(CHECKSUM..)?.first_chunk_mut()?;
    // RFC 1624: of a field that changes, the complement is added, and what it becomes.
    let sum = u32::from(!u16::from_be_bytes(*checksum)) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    *checksum = (!((sum & 0xffff) as u16 + (sum >> 16) as u16)).to_be_bytes();
    Some(())
}

impl Found {
    fn new(hz: u64) -> anyhow::Result<Self> {
        Ok(Self { packets: 0, lost: 0, waits: Histogram::new_with_bounds(1, hz * LONGEST_S, 3)? })
    }

    fn take(&mut self, wait: Option<u64>) {
        self.packets += 1;
        match wait {
            Some(wait) => self.waits.saturating_record(wait),
            None => self.lost += 1,
        }
    }

    fn told(&self, class: &str, hz: u64) -> ClassFate {
        ClassFate {
            class: class.to_owned(),
            packets: self.packets,
            loss: self.lost as f64 / self.packets.max(1) as f64,
            latency_us: Latency::of(&self.waits, hz as f64 / 1e6),
        }
    }
}

impl Run<'_> {
    /// All of it; whether another program had the CPU for too long.
    fn work(&mut self, worker: &mut Worker<Dock>) -> anyhow::Result<bool> {
        let away = self.hz / 1_000_000 * AWAY_US;
        let (mut before, mut was_away) = (dpdk::tsc(), false);
        loop {
            let now = dpdk::tsc();
            was_away |= now.wrapping_sub(before) > away;
            before = now;
            self.release(now);
            let received = worker.turn(NOW_NS);
            self.collect()?;
            if received == 0 && self.due.is_empty() {
                return Ok(was_away);
            }
        }
    }

    fn time_of(&self, number: usize) -> u64 {
        self.start + (number as f64 * self.interval) as u64
    }

    /// What is due comes to its queue, or is lost.
    fn release(&mut self, now: u64) {
        while self.due.front().is_some_and(|due| self.time_of(due.number) <= now) {
            let Some(due) = self.due.pop_front() else { return };
            let Some(dock) = self.docks.get(due.port) else { return };
            let mut quay = dock.quay();
            let queue = if self.sorted && due.is_urgent { &mut quay.urgent } else { &mut quay.inbox };
            if queue.len() < QUEUE {
                queue.push_back(due.mbuf);
            } else {
                self.back.push(due.mbuf);
            }
        }
    }

    fn collect(&mut self) -> anyhow::Result<()> {
        let now = dpdk::tsc();
        for dock in self.docks {
            for mbuf in dock.quay().outbox.drain(..) {
                let tail = mbuf.data().last_chunk::<TAIL>().context("a packet came out cut short")?;
                let number = u64::from_le_bytes(*tail) as usize;
                let wait = now.saturating_sub(self.time_of(number));
                *self.waits.get_mut(number).context("a packet nobody sent")? = Some(wait);
                self.back.push(mbuf);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::Hash;
    use crate::setup::ENDPOINTS;
    use traffic::{PROFILES, Packets};

    #[test]
    fn the_card_finds_the_urgent_users_packets_and_no_others() {
        let nic = Nic::new(Hash::Inner, 1).sorting(MARKS);
        let mut packets = Packets::new(PROFILES[0], ENDPOINTS, 1);
        let mut frame = vec![0; 2_000];
        for number in 0..100 {
            for up in [true, false] {
                let length = packets.write_way(user(number), (number, up), &mut frame).unwrap();
                mark(&mut frame[..length], up).unwrap();
                let is_urgent = u32::from(user(number).address) % URGENT_USERS == 0;
                assert_eq!(nic.is_urgent(&frame[..length], up), is_urgent, "user {number}, up: {up}");
                let sum: u32 =
                    frame[14..34].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
                assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the header's checksum");
            }
        }
    }
}
