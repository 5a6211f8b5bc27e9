//! How a step is made of the rules of a session, and what else is said of it before it is in force.

use super::{
    BEFORE_QOS, COUNTED, DUPLICATES, HotStep, Kind, LONG, METERED, MINDS_DROPS, NONE, POLICY_SHIFT, Patience,
    PolicyIndex, READDRESSED, REFLECTIVE, SIMPLE, STANDS_IN, TO_ACCESS, TO_LAN, UDP, YIELDS,
};
use crate::config::{PortConfig, least_mtu, side_of_peer};
use crate::side::Side;
use crate::state::lists::Lists;
use packet::{gtpu, ipv4, ipv6, udp, udp_ip};
use rules::{Action, Encapsulation, Forward, Interface, OuterHeader, Qfi, Step};
use std::net::IpAddr;

/// Bytes of a tunnel's headers without a container.
const fn outer(peer: IpAddr) -> usize {
    let ip = if peer.is_ipv4() { ipv4::LENGTH } else { ipv6::LENGTH };
    ip + udp::LENGTH + gtpu::encapsulated_length(None)
}

impl HotStep {
    /// Into a tunnel.
    #[cfg(test)]
    pub(in crate::state) fn tunnel(pdr: rules::PdrId, teid: rules::Teid) -> Self {
        Self { pdr, kind: Kind::Tunnel, teid: teid.0, ..Self::EMPTY }
    }

    /// Of a FAR that forwards.
    #[cfg(test)]
    pub(crate) fn forwarding(to: Forward) -> Self {
        let mut hot = Self::EMPTY;
        hot.forward(to);
        hot
    }

    /// A step of the rules; where it belongs is filled in when it is put in force.
    pub(in crate::state) fn new(step: &Step) -> Self {
        let mut hot = Self {
            pdr: step.pdr,
            arrives_in: step.teid.map_or(0, |teid| teid.0),
            flags: if step.duplicates.is_empty() { 0 } else { DUPLICATES },
            ..Self::EMPTY
        };
        match step.action {
            Action::Drop { notify, .. } => hot.kind = if notify { Kind::DropAndNotify } else { Kind::Drop },
            Action::GateClosed => hot.kind = Kind::GateClosed,
            Action::Buffer { notify, most, extended, .. } => {
                hot.teid = extended.map_or(0, |(bar, lasts_s)| Patience::new(bar, lasts_s).bits());
                hot.kind = if notify { Kind::KeepAndNotify } else { Kind::Keep };
                hot.fits = most.unwrap_or(u16::MAX);
            }
            Action::Forward(to) => hot.forward(to),
        }
        if let Action::Buffer { qfi, .. } | Action::Drop { qfi, .. } = step.action {
            hot.qfi = qfi.map_or(NONE, Qfi::value);
        }
        hot
    }

    fn forward(&mut self, forward: Forward) {
        self.flags |= match forward.to {
            Interface::Access => TO_ACCESS,
            Interface::Core => 0,
            Interface::SgiLan => TO_LAN,
        };
        self.dscp = forward.dscp.unwrap_or(NONE);
        (self.kind, self.teid) = (Kind::Plain, forward.instance.digest().into());
        if let Some(Encapsulation { header, qfi, reflective, .. }) = forward.encapsulation {
            self.kind = Kind::Tunnel;
            (self.teid, self.needs) = match header {
                OuterHeader::Gtpu(teid) => (teid.0, self.needs),
                OuterHeader::Udp(port) => (port.into(), self.needs | UDP),
            };
            self.qfi = qfi.map_or(NONE, Qfi::value);
            self.flags |= if reflective { REFLECTIVE } else { 0 };
        }
    }

    /// Notes what fits for sure, over whichever port of its side a packet leaves.
    pub(in crate::state) fn fit(&mut self, ports: &[PortConfig], step: &Step) {
        let Action::Forward(forward) = step.action else { return };
        let side = Side::new(forward.to, forward.instance);
        let side = forward.encapsulation.map_or(side, |tunnel| side_of_peer(ports, side, tunnel.peer));
        let headers = forward.encapsulation.map_or(0, |tunnel| match tunnel.header {
            OuterHeader::Gtpu(_) => self.container_length() + outer(tunnel.peer),
            OuterHeader::Udp(_) => udp_ip::length(tunnel.peer),
        });
        self.fits = least_mtu(ports, side).saturating_sub(headers as u16);
    }

    /// A policy says the way of its packets, if they leave outside of tunnels: where no more than `mtu` fits.
    pub(crate) fn steer(&mut self, policy: PolicyIndex, (mtu, dscp): (Option<u16>, Option<u8>)) {
        if self.kind == Kind::Plain {
            self.teid |= u32::from(policy.bits()) << POLICY_SHIFT;
            self.fits = mtu.unwrap_or(self.fits);
            self.dscp = if self.dscp == NONE { dscp.unwrap_or(NONE) } else { self.dscp };
        }
    }

    /// Its packets go to a node of their own, which knows whether there is a tunnel.
    pub(crate) const fn redirects(&mut self) {
        self.kind = Kind::Redirect;
    }

    /// The same of connections that are reset.
    pub(crate) const fn resets(&mut self) {
        self.kind = Kind::Reset;
    }

    /// The numbers of its connections may have to be changed, if it forwards.
    pub(crate) const fn enriches(&mut self) {
        if matches!(self.kind, Kind::Plain | Kind::Tunnel) {
            self.kind = Kind::Enrich;
        }
    }

    /// Addresses of its packets may have to be replaced, if it forwards.
    pub(crate) const fn readdresses(&mut self) {
        self.needs |= READDRESSED;
    }

    /// Marks a step that forwards and needs at most a rate in its session's first account, which is in place, and one
    /// count.
    pub(crate) fn simplify(&mut self, has_rates_in_place: bool) {
        let simple = has_rates_in_place
            && matches!(self.kind, Kind::Plain | Kind::Tunnel)
            && !self.has_duplicates()
            && self.policy().is_none()
            && self.needs & (READDRESSED | UDP | LONG) == 0;
        self.flags = self.flags & !SIMPLE | if simple { SIMPLE } else { 0 };
    }

    /// Notes what of its lists has room in it.
    pub(in crate::state) fn note(&mut self, lists: &Lists) {
        let (metered, counted) = (!lists.meters().is_empty(), !lists.usages().is_empty());
        let counted_at = match lists.usages() {
            [] => Some(0),
            [place] => u8::try_from(*place).ok(),
            _ => None,
        };
        let is_short = matches!(lists.meters(), [] | [0]) && counted_at.is_some();
        self.counted_at = counted_at.unwrap_or_default();
        self.needs = [
            (metered, METERED),
            (counted, COUNTED),
            (lists.are_any_before_qos(), BEFORE_QOS),
            (!is_short, LONG),
        ]
        .into_iter()
        .fold(self.needs & (READDRESSED | UDP), |needs, (does, need)| needs | if does { need } else { 0 });
    }

    /// Another step stands in for it once a quota is used up.
    pub(crate) fn yields(&mut self) {
        self.flags |= YIELDS;
    }

    /// It stands in for another step beyond a quota.
    pub(crate) const fn stand_in(&mut self) {
        self.flags |= STANDS_IN;
    }

    /// Somebody wants to hear of its packets that are dropped.
    pub(in crate::state) const fn minds(&mut self) {
        self.flags |= MINDS_DROPS;
    }
}
