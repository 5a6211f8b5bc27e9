//! `drops`: what packets cost that are not forwarded, beside those that are. Who floods a node must not cost it more than who uses
//! it.
//!
//! Rounds of packets that are all dropped for one reason take turns with rounds of the same ones as they should be, in one direction.

use super::forward::{PACKETS, Runnable, stage};
use crate::contest::{Worker, progress};
use crate::interrupt;
use crate::meter::{Laid, ROUND, Rack, seal, timed, user_bytes};
use crate::plan::{Direction, Plan};
use crate::product::Memory;
use crate::report::{Dropped, Drops, Report};
use crate::setup::{ENDPOINTS, N3, N6, TUNNEL_HEADERS};
use crate::spread::{Spread, rounded};
use anyhow::{Context, bail};
use dataplane::DropReason;
use dpdk::{Mbuf, Mempool};
use packet::{Buffer, ethernet, ipv4, udp};
use std::time::Instant;
use traffic::Profile;

/// Octets before the user's own packet on the way up, and before GTP-U's TEID.
const USER: usize = ethernet::LENGTH + TUNNEL_HEADERS;
const TEID: usize = ethernet::LENGTH + ipv4::LENGTH + udp::LENGTH + 4;
/// Where headers of IPv4 have these.
const LENGTH: usize = 2;
const HOPS: usize = 8;
const CHECKSUM: usize = 10;
const SOURCE: usize = 12;
const DESTINATION: usize = 16;
/// Rounds that are not counted: what the node may say in answer to a flood in a second is said.
const WARM_UP: usize = 4;
/// Share of packets that may be answered instead of being dropped.
const ANSWERED_MAX: f64 = 0.1;

/// What is wrong with all packets of a round.
#[derive(Clone, Copy)]
struct Fault {
    /// In words.
    what: &'static str,
    reason: DropReason,
    up: bool,
    /// Makes it so.
    spoil: fn(&mut [u8]) -> Option<()>,
}

/// Stations, tunnels and addresses that are wrong, and packets that are unsound. What users' own rules drop, as what is beyond a rate, is
/// not among them: it is known as late as a packet that is forwarded, and in the same nodes.
const FAULTS: [Fault; 9] = [
    Fault {
        what: "for another station",
        reason: DropReason::NotOurMac,
        up: true,
        spoil: |frame| set(frame, 5, 0xee),
    },
    Fault {
        what: "with a wrong checksum of the tunnel's header",
        reason: DropReason::Ip4Checksum,
        up: true,
        spoil: |frame| frame.get_mut(ethernet::LENGTH + CHECKSUM).map(|octet| *octet ^= 1),
    },
    Fault {
        what: "in a tunnel that is not there",
        reason: DropReason::NoTunnel,
        up: true,
        spoil: |frame| set(frame, TEID, 0xee),
    },
    Fault {
        what: "of a user, and cut short",
        reason: DropReason::UserPacketMalformed,
        up: true,
        spoil: |frame| set(frame, USER + LENGTH, 0xee),
    },
    Fault {
        what: "from an address that is not the user's",
        reason: DropReason::NoPdr,
        up: true,
        spoil: |frame| resealed(frame, USER, (SOURCE, &[0xee])),
    },
    Fault {
        what: "to the node itself, in a tunnel",
        reason: DropReason::ToOurselves,
        up: true,
        spoil: |frame| resealed(frame, USER, (DESTINATION, &ENDPOINTS.n3.1.octets())),
    },
    Fault {
        what: "to an address that no user has",
        reason: DropReason::NoSession,
        up: false,
        spoil: |frame| resealed(frame, ethernet::LENGTH, (DESTINATION, &[0xee])),
    },
    Fault {
        what: "from the data network, and cut short",
        reason: DropReason::Ip4Truncated,
        up: false,
        spoil: |frame| resealed(frame, ethernet::LENGTH, (LENGTH, &[0xee])),
    },
    Fault {
        what: "from the data network, at their last hop",
        reason: DropReason::TtlExpired,
        up: false,
        spoil: |frame| resealed(frame, ethernet::LENGTH, (HOPS, &[1])),
    },
];

fn set(frame: &mut [u8], at: usize, octet: u8) -> Option<()> {
    *frame.get_mut(at)? = octet;
    Some(())
}

/// Octets of the IPv4 header that begins `at`, whose checksum is right again.
fn resealed(frame: &mut [u8], at: usize, (field, octets): (usize, &[u8])) -> Option<()> {
    let header = frame.get_mut(at..)?;
    header.get_mut(field..field + octets.len())?.copy_from_slice(octets);
    seal(header)
}

/// Measures.
///
/// # Errors
/// Sessions that are not taken; packets that end otherwise than they should.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let memory = Memory::new(1, PACKETS)?;
    let _thread = memory.eal.register_thread()?;
    let (mut report, mut runnable) = stage((&memory, memory.pool()?), plan, "drops")?;
    let faults: Vec<Fault> = FAULTS.into_iter().filter(|fault| goes(plan.direction, fault.up)).collect();
    let part = plan.for_one_of(faults.len());
    let bar = progress(plan.duration, "packets that are dropped, and the same ones forwarded, in turns");
    let (mut dropped, start) = (vec![], Instant::now());
    for fault in faults {
        if interrupt::asked() {
            break;
        }
        let is_first = dropped.is_empty();
        let mut field = Field::new(memory.pool()?, &part, (fault, &mut runnable))?;
        if is_first {
            field.meet()?;
        }
        dropped.push(field.measure(&part, memory.eal.tsc_hz())?);
        field.give_back();
        bar.set_position(start.elapsed().as_millis() as u64);
    }
    bar.finish_and_clear();
    report.has_no_rate();
    report.balanced = runnable.product.worker.books().balanced();
    report.interrupted = interrupt::asked();
    report.mean_bytes = rounded(plan.profile.mean_bytes());
    report.notes.push(
        "what a worker does to be rid of a packet is counted, its memory given back to the pool; of those that are forwarded, the port \
         takes them"
            .to_owned(),
    );
    report.drops = Some(Drops { dropped });
    Ok(report)
}

fn goes(direction: Direction, up: bool) -> bool {
    match direction {
        Direction::Both => true,
        Direction::Up => up,
        Direction::Down => !up,
    }
}

/// Packets of one direction, and the worker that has them.
struct Field<'a> {
    rack: Rack,
    pool: Mempool,
    fault: Fault,
    runnable: &'a mut Runnable,
}

/// Nanoseconds a packet, by trial: of those that are spoiled, and of those that are not.
type Times = [Vec<f64>; 2];

impl<'a> Field<'a> {
    fn new(
        pool: &Mempool,
        plan: &Plan,
        (fault, runnable): (Fault, &'a mut Runnable),
    ) -> anyhow::Result<Self> {
        let uplink = if fault.up { 1.0 } else { 0.0 };
        let plan = Plan { profile: Profile { uplink, ..plan.profile }, ..plan.clone() };
        Ok(Self { rack: Rack::new(pool, &plan)?, pool: pool.clone(), fault, runnable })
    }

    /// Every flow has a packet each way, so that those that are forwarded go the usual way.
    fn meet(&mut self) -> anyhow::Result<()> {
        self.rack.meet();
        while self.rack.is_meeting() && !interrupt::asked() {
            self.round(false)?;
        }
        Ok(())
    }

    fn measure(&mut self, plan: &Plan, hz: u64) -> anyhow::Result<Dropped> {
        for _ in 0..WARM_UP {
            self.round(true)?;
            self.round(false)?;
        }
        let (mut times, mut answered, mut packets) = (Times::default(), 0, 0);
        for _ in 0..plan.trials {
            let (mut rounds, start): ([Vec<f64>; 2], _) = (Default::default(), Instant::now());
            while start.elapsed() < plan.trial() || rounds[1].is_empty() {
                for (spoiled, rounds) in [true, false].into_iter().zip(&mut rounds) {
                    let (laid, sent, ns) = self.round(spoiled)?;
                    rounds.push(ns);
                    if spoiled {
                        (answered, packets) = (answered + sent, packets + laid.packets);
                    }
                }
            }
            for (all, rounds) in times.iter_mut().zip(&rounds) {
                all.extend(Spread::of(rounds).map(|spread| spread.median));
            }
        }
        self.dropped(&times, (answered, packets), hz).context("nothing was measured")
    }

    fn dropped(&self, times: &Times, (answered, packets): (usize, usize), hz: u64) -> Option<Dropped> {
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
            answered_share: rounded(answered as f64 / packets.max(1) as f64 * 100.0) / 100.0,
        })
    }

    /// Lays packets before the worker and has it run; what was laid, how many came out of it all the same, and nanoseconds a packet.
    fn round(&mut self, spoiled: bool) -> anyhow::Result<(Laid, usize, f64)> {
        let laid = self.lay(spoiled)?;
        let before = self.ended();
        let took = timed(|| self.runnable.run());
        let after = self.ended();
        self.take_back(laid)?;
        self.runnable.keep_company(&self.pool)?;
        let sent = (after.0 - before.0) as usize;
        let drops = DropReason::ALL
            .iter()
            .zip(after.1.iter().zip(&before.1))
            .map(|(reason, (after, before))| (*reason, after - before));
        let drops: Vec<_> = drops.filter(|(_, packets)| *packets > 0).collect();
        let most = (laid.packets as f64 * ANSWERED_MAX) as usize;
        let is_right = match (spoiled, &*drops) {
            (true, [(reason, dropped)]) => {
                *reason == self.fault.reason && sent + *dropped as usize == laid.packets && sent <= most
            }
            (false, []) => sent == laid.packets,
            _ => false,
        };
        if !is_right {
            let (fault, packets) = (self.fault.what, laid.packets);
            bail!("of {packets} packets {fault} {sent} were sent, and these dropped: {drops:?}");
        }
        Ok((laid, sent, took.cpu.as_nanos() as f64 / laid.packets.max(1) as f64))
    }

    /// Packets that were sent, and those dropped, by reason.
    fn ended(&self) -> (u64, [u64; DropReason::ALL.len()]) {
        let counters = self.runnable.product.worker.counters();
        (counters.books().sent, counters.drops)
    }

    fn lay(&mut self, spoiled: bool) -> anyhow::Result<Laid> {
        let mut laid = Laid::default();
        for _ in 0..ROUND {
            let (mut mbuf, up) = self.rack.next()?;
            if spoiled {
                (self.fault.spoil)(mbuf.data_mut()).context("a packet is too short to be spoiled")?;
            }
            laid = laid.and(Laid { packets: 1, bytes: user_bytes(mbuf.data().len(), up) });
            self.runnable.ports[if up { N3 } else { N6 }].wire.borrow_mut().inbox.push(mbuf);
        }
        Ok(laid)
    }

    /// Packets that were dropped are in the pool already; those that left go there, too, and as many are taken from it again.
    fn take_back(&mut self, laid: Laid) -> anyhow::Result<()> {
        self.runnable.ports.iter().for_each(|port| Mbuf::free_all(&mut port.wire.borrow_mut().outbox));
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
