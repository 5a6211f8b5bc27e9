//! `drops`: what packets cost that are not forwarded, beside those that are. Who floods a node must not cost it more than who uses
//! it.
//!
//! Rounds of packets that are all dropped for one reason take turns with rounds of the same ones as they should be, in one direction.
//! Where users' rules drop them, a second worker has the same users with such rules, and both are given the same packets.

mod faults;

use super::forward::{PACKETS, Runnable, population, stage, worker};
use crate::contest::{Worker, progress};
use crate::interrupt;
use crate::meter::{Laid, ROUND, Rack, timed, user_bytes};
use crate::plan::{Direction, Plan};
use crate::product::{Memory, Population};
use crate::report::{Dropped, Drops, Report};
use crate::setup::{N3, N6, Refusal};
use crate::spread::{Spread, rounded};
use anyhow::{Context, bail};
use dataplane::DropReason;
use dpdk::{Mbuf, Mempool};
use faults::{Cause, FLOODING, Fault, IN_FRAMES, IN_RULES};
use packet::Buffer;
use std::time::{Duration, Instant};
use traffic::{Length, Profile};

/// Rounds that are not counted: what the node may say in answer to a flood in a second is said.
const WARM_UP: usize = 4;
/// Share of packets that may be answered instead of being dropped, or be within their rate.
const SENT_MAX: f64 = 0.1;
/// Rounds of a flood that are not counted, and the time between two: together some seconds, in which users have caught up on what
/// they had not used of their rates before. The worker's own clock would take as long as that.
const FLOOD_ROUNDS: usize = 100;
const FLOOD_APART: Duration = Duration::from_millis(25);
/// Bytes of what takes the most of a rate, and is not too long for a tunnel.
const LONG: &[Length] = &[Length { bytes: 1_400, share: 1.0 }];

/// Measures.
///
/// # Errors
/// Sessions that are not taken; packets that end otherwise than they should.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let memory = Memory::new(1, PACKETS)?;
    let _thread = memory.eal.register_thread()?;
    let (mut report, forwarding) = stage((&memory, memory.pool()?), plan, "drops")?;
    let mut workers = Workers::new(&memory, plan, forwarding)?;
    let faults: Vec<Fault> =
        IN_FRAMES.into_iter().chain(IN_RULES).filter(|fault| goes(plan.direction, fault.up)).collect();
    let part = plan.for_one_of(faults.len());
    let bar = progress(plan.duration, "packets that are dropped, and the same ones forwarded, in turns");
    let (mut dropped, start) = (vec![], Instant::now());
    for fault in faults {
        if interrupt::asked() {
            break;
        }
        let mut field = Field::new(memory.pool()?, &part, (fault, &mut workers))?;
        match field.prepare() {
            _ if interrupt::asked() && !dropped.is_empty() => break,
            prepared => prepared?,
        }
        dropped.push(field.measure(&part, memory.eal.tsc_hz())?);
        field.give_back();
        bar.set_position(start.elapsed().as_millis() as u64);
    }
    bar.finish_and_clear();
    report.has_no_rate();
    report.balanced = workers.balanced();
    report.interrupted = interrupt::asked();
    report.mean_bytes = rounded(plan.profile.mean_bytes());
    report.notes = notes();
    report.drops = Some(Drops { dropped });
    Ok(report)
}

/// What a reader must know of the figures.
fn notes() -> Vec<String> {
    vec![
        "what a worker does to be rid of a packet is counted, its memory given back to the pool; of those that are forwarded, the port \
         takes them"
            .to_owned(),
        "what users' rules drop has nothing wrong with it: a second worker, whose users have such rules, is given the same packets"
            .to_owned(),
    ]
}

fn goes(direction: Direction, up: bool) -> bool {
    match direction {
        Direction::Both => true,
        Direction::Up => up,
        Direction::Down => !up,
    }
}

/// Two workers with the same users: rules of one forward their packets, those of the other refuse them.
struct Workers {
    forwarding: Runnable,
    refusing: Runnable,
    population: Population,
    /// What the rules of the other refuse packets for; they forward, too, while there is nothing.
    refusal: Option<Refusal>,
    /// Of the rules of the other.
    revision: u64,
}

impl Workers {
    fn new(memory: &Memory, plan: &Plan, forwarding: Runnable) -> anyhow::Result<Self> {
        let population = population(plan);
        let refusing = worker((memory, memory.pool()?), &population)?;
        Ok(Self { forwarding, refusing, population, refusal: None, revision: 1 })
    }

    /// Rules refuse packets for this from now on.
    fn refuse(&mut self, refusal: Refusal) -> anyhow::Result<()> {
        if self.refusal != Some(refusal) {
            self.revision += 1;
            self.refusing.refuse(refusal, (&self.population, self.revision))?;
            self.refusal = Some(refusal);
        }
        Ok(())
    }

    fn balanced(&self) -> bool {
        [&self.forwarding, &self.refusing].iter().all(|one| one.product.worker.books().balanced())
    }
}

/// Packets of one direction, and the workers that have them.
struct Field<'a> {
    rack: Rack,
    pool: Mempool,
    profile: Profile,
    fault: Fault,
    workers: &'a mut Workers,
}

/// Nanoseconds a packet, by trial: of those that are spoiled, and of those that are not.
type Times = [Vec<f64>; 2];

impl<'a> Field<'a> {
    fn new(pool: &Mempool, plan: &Plan, (fault, workers): (Fault, &'a mut Workers)) -> anyhow::Result<Self> {
        let profile = Profile { uplink: if fault.up { 1.0 } else { 0.0 }, ..plan.profile };
        let profile = if fault.is_flood { among(profile, FLOODING) } else { profile };
        let plan = Plan { profile, ..plan.clone() };
        Ok(Self { rack: Rack::new(pool, &plan)?, pool: pool.clone(), profile, fault, workers })
    }

    /// Every flow has a packet each way, so that those that are forwarded go the usual way: each time, as flows that had a fault may
    /// have pushed others out. Before a worker that refuses packets, it uses up what their users have.
    fn prepare(&mut self) -> anyhow::Result<()> {
        self.meet(false)?;
        if let Cause::Rules(refusal) = self.fault.cause {
            self.workers.refuse(refusal)?;
            self.rack.set_lengths(&Profile { uplink_lengths: LONG, downlink_lengths: LONG, ..self.profile });
            self.meet(true)?;
            self.rack.set_lengths(&self.profile);
        }
        if self.fault.is_flood {
            for _ in (0..FLOOD_ROUNDS).take_while(|_| !interrupt::asked()) {
                self.worker(true).wait(FLOOD_APART);
                self.unmeasured(true)?;
            }
        }
        Ok(())
    }

    fn meet(&mut self, spoiled: bool) -> anyhow::Result<()> {
        self.rack.meet();
        while self.rack.is_meeting() && !interrupt::asked() {
            self.unmeasured(spoiled)?;
        }
        Ok(())
    }

    /// A round of which any number may be answered, or within its users' rates and quotas, which it uses up.
    fn unmeasured(&mut self, spoiled: bool) -> anyhow::Result<()> {
        self.round(spoiled)?.check(&self.fault, (spoiled, 1.0))
    }

    fn measure(&mut self, plan: &Plan, hz: u64) -> anyhow::Result<Dropped> {
        for _ in 0..WARM_UP {
            self.unmeasured(true)?;
            self.unmeasured(false)?;
        }
        let (mut times, mut sent, mut packets) = (Times::default(), 0, 0);
        for _ in 0..plan.trials {
            let (mut rounds, start): ([Vec<f64>; 2], _) = (Default::default(), Instant::now());
            while start.elapsed() < plan.trial() || rounds[1].is_empty() {
                for (spoiled, rounds) in [true, false].into_iter().zip(&mut rounds) {
                    let round = self.measured(spoiled)?;
                    rounds.push(round.ns);
                    if spoiled {
                        (sent, packets) = (sent + round.sent, packets + round.packets);
                    }
                }
            }
            for (all, rounds) in times.iter_mut().zip(&rounds) {
                all.extend(Spread::of(rounds).map(|spread| spread.median));
            }
        }
        if sent as f64 > packets as f64 * SENT_MAX {
            bail!("of {packets} packets {} {sent} were sent", self.fault.what);
        }
        self.dropped(&times, (sent, packets), hz).context("nothing was measured")
    }

    fn dropped(&self, times: &Times, (sent, packets): (usize, usize), hz: u64) -> Option<Dropped> {
        let [spoiled, sound] = times;
        let cycles =
            |times: &[f64]| Spread::of(&times.iter().map(|ns| ns * hz as f64 / 1e9).collect::<Vec<_>>());
        let ratios: Vec<f64> = spoiled.iter().zip(sound).map(|(spoiled, sound)| spoiled / sound).collect();
        Some(Dropped {
            what: self.fault.what.to_owned(),
            reason: self.fault.reason.name().to_owned(),
            cycles_per_packet: cycles(spoiled)?,
            forwarded_cycles_per_packet: cycles(sound)?,
            of_forwarded: Spread::of(&ratios)?,
            // As it is read again: to three places of a percentage.
            answered_share: (sent as f64 / packets.max(1) as f64 * 1e5).round() / 1e5,
        })
    }

    /// A round whose packets end as they should.
    fn measured(&mut self, spoiled: bool) -> anyhow::Result<Round> {
        let round = self.round(spoiled)?;
        // A worker that the machine lets wait in a round finds its users within their rates again: of rates, the sum counts.
        let most = if self.fault.reason == DropReason::RateExceeded { 1.0 } else { SENT_MAX };
        round.check(&self.fault, (spoiled, most))?;
        Ok(round)
    }

    /// Lays packets before a worker and has it run.
    fn round(&mut self, spoiled: bool) -> anyhow::Result<Round> {
        let laid = self.lay(spoiled)?;
        let worker = self.worker(spoiled);
        let before = ended(worker);
        let took = timed(|| worker.run());
        let after = ended(worker);
        self.take_back(spoiled, laid)?;
        let pool = self.pool.clone();
        self.worker(spoiled).keep_company(&pool)?;
        self.worker(spoiled).hear_out();
        let drops = DropReason::ALL
            .iter()
            .zip(after.1.iter().zip(&before.1))
            .map(|(reason, (after, before))| (*reason, after - before));
        Ok(Round {
            packets: laid.packets,
            sent: (after.0 - before.0) as usize,
            drops: drops.filter(|(_, packets)| *packets > 0).collect(),
            ns: took.cpu.as_nanos() as f64 / laid.packets.max(1) as f64,
        })
    }

    /// Whose packets they are.
    fn worker(&mut self, spoiled: bool) -> &mut Runnable {
        match (spoiled, self.fault.cause) {
            (true, Cause::Rules(_)) => &mut self.workers.refusing,
            _ => &mut self.workers.forwarding,
        }
    }

    fn lay(&mut self, spoiled: bool) -> anyhow::Result<Laid> {
        let mut laid = Laid::default();
        for _ in 0..ROUND {
            let (mut mbuf, up) = self.rack.next()?;
            if spoiled && let Cause::Frame(spoil) = self.fault.cause {
                spoil(mbuf.data_mut()).context("a packet is too short to be spoiled")?;
            }
            laid = laid.and(Laid { packets: 1, bytes: user_bytes(mbuf.data().len(), up) });
            self.worker(spoiled).ports[if up { N3 } else { N6 }].wire.borrow_mut().inbox.push(mbuf);
        }
        Ok(laid)
    }

    /// Packets that were dropped are in the pool already; those that left go there, too, and as many are taken from it again.
    fn take_back(&mut self, spoiled: bool, laid: Laid) -> anyhow::Result<()> {
        let ports = &self.worker(spoiled).ports;
        ports.iter().for_each(|port| Mbuf::free_all(&mut port.wire.borrow_mut().outbox));
        let mut fresh = Vec::with_capacity(laid.packets);
        self.pool.alloc_bulk(&mut fresh, laid.packets).context("packets are missing from the pool")?;
        fresh.into_iter().for_each(|mbuf| self.rack.put(mbuf));
        Ok(())
    }

    /// The next one takes all packets of the pool.
    fn give_back(self) {
        drop(self.rack);
    }
}

/// At most so many of a profile's users, with the flows they have in it.
fn among(profile: Profile, users_max: u32) -> Profile {
    let flows_per_user = (profile.flows / profile.active.max(1)).max(1);
    let active = profile.active.min(users_max);
    Profile { active, flows: active * flows_per_user, ..profile }
}

/// Packets that a worker has sent, and those dropped, by reason.
fn ended(worker: &Runnable) -> (u64, [u64; DropReason::ALL.len()]) {
    let counters = worker.product.worker.counters();
    (counters.books().sent, counters.drops)
}

/// How packets ended that were laid before a worker.
struct Round {
    packets: usize,
    sent: usize,
    /// By reason; of those there were.
    drops: Vec<(DropReason, u64)>,
    /// Nanoseconds a packet.
    ns: f64,
}

impl Round {
    /// All were sent; of those that are spoiled all were dropped for the reason of their fault, but such a share.
    fn check(&self, fault: &Fault, (spoiled, share): (bool, f64)) -> anyhow::Result<()> {
        let Self { packets, sent, drops, .. } = self;
        let most = (*packets as f64 * share) as usize;
        let is_right = match (spoiled, drops.as_slice()) {
            (true, [(reason, dropped)]) => {
                *reason == fault.reason && sent + *dropped as usize == *packets && *sent <= most
            }
            (_, []) => sent == packets && (!spoiled || most == *packets),
            _ => false,
        };
        if !is_right {
            bail!("of {packets} packets {} {sent} were sent, and these dropped: {drops:?}", fault.what);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::PROFILES;

    fn round(sent: usize, drops: &[(DropReason, u64)]) -> Round {
        Round { packets: 1_000, sent, drops: drops.to_vec(), ns: 0.0 }
    }

    #[test]
    fn packets_that_end_otherwise_than_their_fault_has_it_are_an_error() {
        let all = |reason| [(reason, 1_000)];
        for fault in IN_FRAMES.iter().chain(&IN_RULES) {
            let is_right = |round: Round| round.check(fault, (true, SENT_MAX)).is_ok();
            assert!(is_right(round(0, &all(fault.reason))), "{}", fault.what);
            assert!(is_right(round(100, &[(fault.reason, 900)])), "{}", fault.what);
            assert!(!is_right(round(101, &[(fault.reason, 899)])), "too many were sent");
            assert!(!is_right(round(0, &[(fault.reason, 999)])), "one is missing");
            assert!(!is_right(round(1_000, &[])), "none was dropped");
            let others = DropReason::ALL.iter().filter(|reason| **reason != fault.reason);
            others.for_each(|reason| assert!(!is_right(round(0, &all(*reason))), "{reason:?}"));
            let two = [(fault.reason, 999), (DropReason::Unfinished, 1)];
            assert!(!is_right(round(0, &two)));
            let is_sound = |round: Round| round.check(fault, (false, SENT_MAX)).is_ok();
            assert!(is_sound(round(1_000, &[])) && !is_sound(round(0, &all(fault.reason))));
        }
    }

    #[test]
    fn a_few_users_have_the_flows_they_have_among_all() {
        let of = |active, flows, users_max| {
            let few = among(Profile { active, flows, ..PROFILES[0] }, users_max);
            (few.active, few.flows)
        };
        assert_eq!(of(300_000, 1_000_000, 1_000), (1_000, 3_000));
        assert_eq!(of(200, 1_000, 1_000), (200, 1_000));
        assert_eq!(of(10, 3, 5), (5, 5));
    }
}
