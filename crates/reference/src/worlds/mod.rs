//! Random worlds for differential tests: an environment, sessions, packets that nearly always concern them, and
//! changes of their rules. Everything follows from a seed.
//!
//! Packets are aimed: one PDR of one session is chosen, and a packet is made to match it; then, often enough, one
//! thing about it is made wrong. Uniformly random packets would never get past the first header.

mod aim;
mod content;
mod damage;
mod environment;
mod filters;
mod frames;
mod hello;
mod lookup;
mod media;
mod quotes;
mod random;
mod sessions;
mod signals;
mod stations;
mod tweaks;
mod user_packets;

pub use random::Random;

use crate::ContentRule;
use crate::setup::Setup;
use rand::{Rng, SeedableRng};
use random::{chance, pick};
use rules::{Rules, Seid};

/// What a world may hold, so that a data plane can be compared that does not do everything yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Users with IPv6 prefixes.
    pub ipv6_users: bool,
    /// IPv6 addresses of ours, and tunnels over IPv6.
    pub ipv6_transport: bool,
    /// Tunnels of ours on the core side: SGW-U, intermediate UPF, branching.
    pub core_tunnels: bool,
    /// With them, a second network behind a port of its own, whose users have the addresses of those of the first.
    pub instances: bool,
    /// Networks behind users, of which some are within others.
    pub framed_routes: bool,
    /// One TEID at both addresses of a port: in two sessions, and twice in one ([`Setup::one_teid_space_per_port`]).
    pub twin_tunnels: bool,
    /// PDRs with SDF filters.
    pub sdf_filters: bool,
    /// QERs that limit rates.
    pub rates: bool,
    /// URRs, some with quotas.
    pub usage: bool,
    /// With them, FARs for the time after a quota.
    pub quota_fars: bool,
    /// Ports of VLANs.
    pub vlans: bool,
    /// Ports that TCP connections are to fit into.
    pub clamping: bool,
    /// FARs that buffer, some with BARs.
    pub buffering: bool,
    /// FARs that duplicate.
    pub duplicates: bool,
    /// FARs that redirect to other addresses.
    pub redirects: bool,
    /// FARs that answer: those that send users to a portal, and those that reset connections.
    pub answers: bool,
    /// PDRs for applications, and content rules.
    pub applications: bool,
    /// Packets that seem to be of other sessions' users, where rules take those: of what application flows are is known by their
    /// addresses, whichever session they are of.
    pub strangers: bool,
    /// Sessions that are gone and come back.
    pub returns: bool,
    /// DSCP marking.
    pub dscp: bool,
    /// Reflective QoS.
    pub reflective: bool,
    /// Ethernet PDU sessions.
    pub frames: bool,
    /// Frames of other stations, of unknown protocols, ARP, pings, GTP-U signalling.
    pub signals: bool,
    /// Damaged packets.
    pub damage: bool,
    /// Fragments of one packet, which tell of each other.
    pub parts: bool,
}

impl Scope {
    /// Everything.
    pub const ALL: Self = Self {
        ipv6_users: true,
        ipv6_transport: true,
        core_tunnels: true,
        instances: true,
        framed_routes: true,
        twin_tunnels: true,
        sdf_filters: true,
        rates: true,
        usage: true,
        quota_fars: true,
        vlans: true,
        clamping: true,
        buffering: true,
        duplicates: true,
        redirects: true,
        answers: true,
        applications: true,
        strangers: true,
        returns: true,
        dscp: true,
        reflective: true,
        frames: true,
        signals: true,
        damage: true,
        parts: true,
    };

    /// IPv4, gates, FARs that forward or drop, QFIs: nothing that was not in the first data path.
    pub const BASIC: Self = Self {
        ipv6_users: false,
        ipv6_transport: false,
        core_tunnels: false,
        instances: false,
        framed_routes: false,
        twin_tunnels: false,
        sdf_filters: false,
        rates: false,
        usage: false,
        quota_fars: false,
        vlans: false,
        clamping: false,
        buffering: false,
        duplicates: false,
        redirects: false,
        answers: false,
        applications: false,
        strangers: true,
        returns: true,
        dscp: false,
        reflective: false,
        frames: false,
        signals: true,
        damage: true,
        parts: false,
    };
}

/// A change of what is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The session is as these rules say from now on.
    Put(Seid, Rules),
    /// The session is gone.
    Remove(Seid),
}

/// An environment and its sessions.
#[derive(Clone, Debug)]
pub struct World {
    /// The environment; all its neighbours are known.
    pub setup: Setup,
    /// What is in force: no two share a tunnel or an address, and all pass [`Rules::check`].
    pub sessions: Vec<(Seid, Rules)>,
    /// Content rules in force, if there are any.
    pub content: Option<Vec<ContentRule>>,
    /// Sessions that do not come back, fewer than there may be.
    gone: Vec<Seid>,
    /// What users say over TLS follows from this number, and with whom they speak.
    hellos: u64,
    scope: Scope,
}

impl World {
    /// Sessions of a world at most.
    pub const SESSIONS_MAX: u32 = 10;

    /// A world with everything in it.
    pub fn random(seed: u64) -> Self {
        Self::within(seed, Scope::ALL)
    }

    /// A world with nothing in it that is out of scope.
    pub fn within(seed: u64, scope: Scope) -> Self {
        let random = &mut Random::seed_from_u64(seed);
        let setup = environment::setup(random, scope);
        let content = scope.applications.then(|| content::rules(random));
        let count = random.random_range(1..=Self::SESSIONS_MAX);
        let sessions =
            (1..=count).map(|number| (Seid(number.into()), sessions::rules(random, scope, number)));
        let sessions = sessions.collect();
        Self { sessions, setup, content, gone: Vec::new(), hellos: random.random(), scope }
    }

    /// A frame, and the port it comes in on by its place in [`Setup::ports`].
    pub fn packet(&self, random: &mut Random) -> (usize, Vec<u8>) {
        let signal = self.scope.signals && chance(random, 40);
        let packet = if signal { None } else { aim::packet(self, random) };
        let (mut port, mut frame) = match packet {
            Some(packet) => packet,
            None if self.scope.signals => signals::frame(self, random),
            None => signals::stray(self, random),
        };
        if self.scope.damage && chance(random, 20) {
            damage::spoil(random, &mut frame);
        }
        if self.scope.frames && stations::are_like_packet(self, &frame) {
            (port, frame) = signals::stray(self, random);
        }
        if let Some(vlan) = self.setup.ports.get(port).and_then(|port| port.vlan) {
            frames::tag(random, &mut frame, vlan);
        }
        (port, frame)
    }

    /// Nanoseconds until the next packet: mostly none or few, now and then enough for a meter to recover. A thousand
    /// packets take about a tenth of a second.
    pub fn gap_ns(random: &mut Random) -> u64 {
        let longest = pick(random, [1, 1, 2_000, 2_000, 2_000, 100_000, 100_000, 1_000_000]);
        random.random_range(0..longest)
    }

    /// Changes a session, takes it out or brings it back; [`World::sessions`] follows.
    pub fn change(&mut self, random: &mut Random) -> Change {
        let number = loop {
            let number = random.random_range(1..=Self::SESSIONS_MAX);
            if !self.gone.contains(&Seid(number.into())) {
                break number;
            }
        };
        let seid = Seid(number.into());
        let place = self.sessions.iter().position(|(known, _)| *known == seid);
        let may_go = self.scope.returns || self.gone.len() + 1 < Self::SESSIONS_MAX as usize;
        if place.is_some() && chance(random, 50) && may_go {
            if !self.scope.returns {
                self.gone.push(seid);
            }
            self.sessions.retain(|(known, _)| *known != seid);
            return Change::Remove(seid);
        }
        let old = place.and_then(|place| self.sessions.get_mut(place));
        let rules = match &old {
            Some((_, rules)) if chance(random, 700) => tweaks::tweaked(random, rules),
            _ => sessions::rules(random, self.scope, number),
        };
        match old {
            Some((_, old)) => *old = rules.clone(),
            None => self.sessions.push((seid, rules.clone())),
        }
        Change::Put(seid, rules)
    }
}

#[cfg(test)]
mod tests;
