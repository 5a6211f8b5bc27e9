//! Which session a MAC address is behind, for sessions that carry Ethernet frames (TS 23.501 5.6.10.2): learnt from the
//! frames users send, as a bridge learns (IEEE 802.1Q 8.7), for each network by itself.
//!
//! Everything is of a fixed size. A session whose addresses have changed is noted once, until it was told.

#[cfg(test)]
mod tests;

use super::budget::Budget;
use super::session::SessionIndex;
use super::table::Table;
use crate::config::Limits;
use crate::counters::DropReason;
use arrayvec::ArrayVec;
use packet::ethernet::MacAddress;
use rules::{EthernetProgram, Instance, SeenMac};

/// MAC addresses of one session; a usage report tells of at most 255 (TS 29.244 8.2.103).
pub(crate) const MACS_PER_SESSION: usize = 64;
/// An address without frames for so long is forgotten where no URR says otherwise (IEEE 802.1Q 8.8.3).
const AGE_NS: u64 = 300_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Addresses looked at for their age at once.
const SEARCH: usize = 1_024;

/// One address.
#[derive(Clone, Copy)]
struct Station {
    mac: MacAddress,
    /// The place of its session among the members; [`NOBODY`] where the slot is free.
    member: u32,
    seen_ns: u64,
    /// VIDs of the customer's and the provider's tag, and when they were seen last.
    vlans: Vlans,
    tagged_ns: u64,
}

/// VIDs of the customer's and the provider's tag of a frame.
pub(crate) type Vlans = (Option<u16>, Option<u16>);

const NOBODY: u32 = u32::MAX;

/// A session that carries frames.
struct Member {
    session: SessionIndex,
    program: Box<EthernetProgram>,
    /// Its addresses have changed, and nobody was told.
    is_changed: bool,
    /// Places of its addresses.
    stations: ArrayVec<u32, MACS_PER_SESSION>,
}

/// All addresses and members of a worker.
pub(crate) struct Switch {
    stations: Box<[Station]>,
    free: Vec<u32>,
    by_mac: Table,
    /// A member keeps its place as long as it is one.
    members: Vec<Option<Member>>,
    free_members: Vec<u32>,
    by_session: Table,
    /// Members whose addresses have changed.
    changed: Vec<u32>,
    searched: usize,
    /// Copies of frames for many that may still be made.
    copies: Budget,
}

impl Member {
    fn age_ns(&self) -> u64 {
        self.program.inactivity_s.map_or(AGE_NS, |seconds| u64::from(seconds) * SECOND_NS)
    }
}

fn bits(mac: MacAddress) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

impl Switch {
    pub(crate) fn new(limits: &Limits) -> Self {
        let empty = Station {
            mac: MacAddress([0; 6]),
            member: NOBODY,
            seen_ns: 0,
            vlans: (None, None),
            tagged_ns: 0,
        };
        let (macs, members) = (limits.macs as u32, limits.ethernet_sessions as u32);
        Self {
            stations: (0..macs).map(|_| empty).collect(),
            free: (0..macs).rev().collect(),
            by_mac: Table::new(limits.macs),
            members: (0..members).map(|_| None).collect(),
            free_members: (0..members).rev().collect(),
            by_session: Table::new(limits.ethernet_sessions),
            changed: Vec::with_capacity(limits.ethernet_sessions),
            searched: 0,
            copies: Budget::new(limits.frame_copies_per_s),
        }
    }

    /// Whether any session carries frames.
    #[inline]
    pub(crate) const fn is_used(&self) -> bool {
        self.free_members.len() < self.members.len()
    }

    /// Whether a session carries frames.
    #[inline]
    pub(crate) fn carries(&self, session: SessionIndex) -> bool {
        self.is_used() && self.member_of(session).is_some()
    }

    /// How a session's frames find their rules.
    pub(crate) fn program(&self, session: SessionIndex) -> Option<&EthernetProgram> {
        Some(&self.member(self.member_of(session)?)?.program)
    }

    /// Whether a session can be taken; one that is there always can.
    pub(crate) fn has_room(&self, session: Option<SessionIndex>) -> bool {
        session.is_some_and(|session| self.carries(session)) || !self.free_members.is_empty()
    }

    /// A session is in force, and carries frames or not. Its addresses stay, unless it is of another network now. Gives
    /// back what is no longer needed.
    pub(crate) fn enter(
        &mut self,
        session: SessionIndex,
        program: Option<Box<EthernetProgram>>,
    ) -> Option<Box<EthernetProgram>> {
        let Some(program) = program else { return self.leave(session) };
        let known = self.member_of(session);
        let before = known.and_then(|at| self.member(at)).map(|member| member.program.network);
        let old =
            if before.is_some_and(|before| before != program.network) { self.leave(session) } else { None };
        match self.member_of(session) {
            Some(at) => self.renew(at, program),
            None => {
                self.add(session, program);
                old
            }
        }
    }

    /// Other rules of a session.
    fn renew(&mut self, at: u32, program: Box<EthernetProgram>) -> Option<Box<EthernetProgram>> {
        let member = self.members.get_mut(at as usize)?.as_mut()?;
        let begins = program.reports && !member.program.reports;
        let old = std::mem::replace(&mut member.program, program);
        if begins {
            self.change(at);
        }
        Some(old)
    }

    fn add(&mut self, session: SessionIndex, program: Box<EthernetProgram>) {
        let Some(at) = self.free_members.pop() else { return };
        if let Some(member) = self.members.get_mut(at as usize) {
            *member = Some(Member { session, program, is_changed: false, stations: ArrayVec::new() });
        }
        let entered = self.by_session.insert(u64::from(session.0), at);
        debug_assert!(entered.is_ok(), "there are as many places as members");
        self.change(at);
    }

    /// A session is no longer in force, or no longer carries frames.
    pub(crate) fn leave(&mut self, session: SessionIndex) -> Option<Box<EthernetProgram>> {
        let at = self.member_of(session)?;
        let member = self.members.get_mut(at as usize)?.take()?;
        for place in member.stations {
            self.release(place, member.program.network.unwrap_or_default());
        }
        self.changed.retain(|other| *other != at);
        self.by_session.remove(u64::from(session.0));
        self.free_members.push(at);
        Some(member.program)
    }

    fn release(&mut self, place: u32, network: Instance) {
        if let Some(station) = self.stations.get_mut(place as usize) {
            self.by_mac.remove((bits(station.mac), network));
            station.member = NOBODY;
            self.free.push(place);
        }
    }

    fn member_of(&self, session: SessionIndex) -> Option<u32> {
        self.by_session.get(u64::from(session.0))
    }

    fn member(&self, at: u32) -> Option<&Member> {
        self.members.get(at as usize)?.as_ref()
    }

    /// A user's frame came from this address: whoever had it before has it no longer.
    pub(crate) fn learn(
        &mut self,
        session: SessionIndex,
        (mac, vlans): (MacAddress, Vlans),
        now_ns: u64,
    ) -> Result<(), DropReason> {
        let Some(at) = self.member_of(session) else { return Ok(()) };
        let Some(network) = self.member(at).and_then(|member| member.program.network) else { return Ok(()) };
        let known = self.by_mac.get((bits(mac), network));
        let is_own =
            |place: &u32| self.stations.get(*place as usize).is_some_and(|station| station.member == at);
        if let Some(place) = known.filter(is_own) {
            self.see(at, place, (vlans, now_ns));
            return Ok(());
        }
        // Before anything is taken from anybody.
        if self.member(at).is_none_or(|member| member.stations.is_full()) {
            return Err(DropReason::MacTableFull);
        }
        self.forget(mac, network);
        let Some(place) = self.free.pop() else { return Err(DropReason::MacTableFull) };
        let entered = self.by_mac.insert((bits(mac), network), place);
        debug_assert!(entered.is_ok(), "there is a place for each address");
        if let Some(station) = self.stations.get_mut(place as usize) {
            *station = Station { mac, member: at, seen_ns: now_ns, vlans, tagged_ns: now_ns };
        }
        if let Some(Some(member)) = self.members.get_mut(at as usize) {
            member.stations.push(place);
        }
        self.change(at);
        Ok(())
    }

    /// A station whose session is known is still there. One that uses several VLANs is told with one of them, until it is silent
    /// there: or each of its frames would be news.
    fn see(&mut self, at: u32, place: u32, (vlans, now_ns): (Vlans, u64)) {
        let age_ns = self.member(at).map_or(AGE_NS, Member::age_ns);
        let Some(station) = self.stations.get_mut(place as usize) else { return };
        station.seen_ns = now_ns;
        if station.vlans == vlans {
            station.tagged_ns = now_ns;
        } else if station.tagged_ns + age_ns <= now_ns {
            (station.vlans, station.tagged_ns) = (vlans, now_ns);
            self.change(at);
        }
    }

    /// An address is no user's any more: it was seen elsewhere.
    pub(crate) fn forget(&mut self, mac: MacAddress, network: Instance) {
        let Some(place) = self.by_mac.get((bits(mac), network)) else { return };
        let Some(at) = self.stations.get(place as usize).map(|station| station.member) else { return };
        if let Some(Some(member)) = self.members.get_mut(at as usize) {
            member.stations.retain(|other| *other != place);
        }
        self.release(place, network);
        self.change(at);
    }

    /// The session an address is behind.
    pub(crate) fn find(&self, mac: MacAddress, network: Instance) -> Option<SessionIndex> {
        let place = self.by_mac.get((bits(mac), network))?;
        let station = self.stations.get(place as usize)?;
        self.member(station.member).map(|member| member.session)
    }

    /// The next member of a network from a place on, and its place.
    pub(crate) fn next_member(&self, from: usize, network: Instance) -> Option<(usize, SessionIndex)> {
        let members = self.members.iter().enumerate().skip(from);
        let mut of_it = members
            .filter_map(|(at, member)| Some((at, member.as_ref()?)))
            .filter(|(_, member)| member.program.network == Some(network));
        of_it.next().map(|(at, member)| (at, member.session))
    }

    /// Whether one more copy may be made now.
    pub(crate) fn may_copy(&mut self, now_ns: u64) -> bool {
        self.copies.take(now_ns)
    }

    /// Forgets some of the addresses that were silent for too long.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        for _ in 0..SEARCH.min(self.stations.len()) {
            self.searched = (self.searched + 1) % self.stations.len();
            let Some(station) = self.stations.get(self.searched).copied() else { return };
            let Some(member) = self.member(station.member) else { continue };
            if station.seen_ns + member.age_ns() <= now_ns {
                let network = member.program.network.unwrap_or_default();
                self.forget(station.mac, network);
            }
        }
    }

    fn change(&mut self, at: u32) {
        let Some(Some(member)) = self.members.get_mut(at as usize) else { return };
        if member.program.reports && !member.is_changed {
            member.is_changed = true;
            self.changed.push(at);
        }
    }

    /// A session whose addresses have changed, once.
    pub(crate) fn next_changed(&mut self) -> Option<SessionIndex> {
        let at = self.changed.pop()?;
        let member = self.members.get_mut(at as usize)?.as_mut()?;
        member.is_changed = false;
        Some(member.session)
    }

    /// All have to be told anew.
    pub(crate) fn change_all(&mut self) {
        (0..self.members.len() as u32).for_each(|at| self.change(at));
    }

    /// The addresses of a session, as far as `macs` has room.
    pub(crate) fn list(&self, session: SessionIndex, macs: &mut Vec<SeenMac>) {
        let member = self.member_of(session).and_then(|at| self.member(at));
        let places = member.iter().flat_map(|member| &member.stations);
        let stations = places.filter_map(|place| self.stations.get(*place as usize));
        let room = macs.capacity() - macs.len();
        let seen = |station: &Station| {
            let (c_vlan, s_vlan) = station.vlans;
            SeenMac { mac: station.mac.0, c_vlan, s_vlan }
        };
        macs.extend(stations.take(room).map(seen));
    }
}
