//! With whom we would like to be associated and are not, and whether leave is taken of all.

use super::{Association, Peers};
use crate::wanted::Wanted;
use machine::Time;
use std::net::{IpAddr, SocketAddr};

impl Peers {
    /// Leave is taken: nobody is asked to associate any more.
    pub(crate) const fn leave(&mut self, until: Time) {
        self.leaves = Some(until);
    }

    /// No leave is taken any more; whether it was.
    pub(crate) fn stay(&mut self) -> bool {
        self.wanted.iter_mut().for_each(|wanted| wanted.is_left = false);
        self.leaves.take().is_some()
    }

    /// Until when the control planes have time, if leave is taken of them. It goes on afterwards.
    pub(crate) const fn leaves(&self) -> Option<Time> {
        self.leaves
    }

    /// Who was asked to associate and has not answered.
    pub(crate) fn asked_to_associate(&self) -> impl Iterator<Item = SocketAddr> {
        self.wanted.iter().filter(|wanted| wanted.is_asked).map(|wanted| wanted.address)
    }

    pub(crate) fn wanted_mut(&mut self, address: SocketAddr) -> Option<&mut Wanted> {
        self.wanted.iter_mut().find(|wanted| wanted.address == address)
    }

    /// Where requests to a peer go: to the port of PFCP (TS 29.244 6.1), unless the configuration names another.
    pub(crate) fn request_address(&self, peer: IpAddr) -> SocketAddr {
        let configured = self.wanted.iter().map(|wanted| wanted.address).find(|wanted| wanted.ip() == peer);
        configured.unwrap_or(SocketAddr::new(peer, pfcp::PORT))
    }

    /// Addresses that know of us as we were before a crash, and are told of it now.
    pub(crate) fn tell_of_crash(&mut self) -> Vec<SocketAddr> {
        let untold = self.wanted.iter_mut().filter(|wanted| !wanted.is_told);
        let tell = |wanted: &mut Wanted| {
            wanted.is_told = true;
            wanted.address
        };
        untold.map(tell).collect()
    }

    /// Addresses to send an association request to.
    pub(crate) fn wanted_now(&mut self, now: Time) -> Vec<SocketAddr> {
        self.wanted.retain(|wanted| wanted.until.is_none_or(|until| until > now));
        self.unassociated().filter(|wanted| wanted.next <= now).map(|wanted| wanted.address).collect()
    }

    pub(super) fn unassociated(&self) -> impl Iterator<Item = &Wanted> {
        self.wanted_but_for(|peer| !peer.is_forgotten).filter(|wanted| !wanted.is_asked)
    }

    /// Control planes of the configuration that are not associated, and are asked to be.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &Wanted> {
        self.wanted_but_for(|_| true)
    }

    /// Control planes of the configuration but those with such an association.
    fn wanted_but_for(&self, is_there: fn(&Association) -> bool) -> impl Iterator<Item = &Wanted> {
        let is_missing =
            move |wanted: &&Wanted| !wanted.is_left && !self.at(wanted.address.ip()).any(is_there);
        self.wanted.iter().filter(|_| self.leaves.is_none()).filter(is_missing)
    }
}
