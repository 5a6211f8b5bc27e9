//! What routers on the way to peers said would pass (RFC 1191, RFC 8201): our datagrams are not to be fragmented by others, so who
//! does not listen loses all that are longer.

use std::collections::HashMap;
use std::net::IpAddr;

/// How long it is remembered: then more may pass (RFC 1191 6.3, RFC 8201 4).
const MEMORY_NS: u64 = 600_000_000_000;
/// Less is not believed. All IPv4 hosts take so much (RFC 791 3.1), and who says less would have us send crumbs.
const LEAST4: u16 = 576;
/// All IPv6 links take so much (RFC 8200 5).
const LEAST6: u16 = 1_280;

/// By address, what passes on the way there.
pub(super) struct PathMtus {
    /// Bytes of IP, and until when that is believed.
    known: HashMap<IpAddr, (u16, u64)>,
    limit: usize,
}

impl PathMtus {
    /// Of so many addresses at most.
    pub(super) fn new(limit: usize) -> Self {
        Self { known: HashMap::new(), limit }
    }

    /// Notes that no more than `mtu` bytes of IP pass to an address; whether it was not known that it is so few.
    pub(super) fn learn(&mut self, to: IpAddr, mtu: u16, now_ns: u64) -> bool {
        let mtu = match to {
            // Who does not know what passes says nothing.
            IpAddr::V4(_) if mtu == 0 => return false,
            IpAddr::V4(_) => mtu.max(LEAST4),
            IpAddr::V6(_) if mtu < LEAST6 => return false,
            IpAddr::V6(_) => mtu,
        };
        let before = self.fits(to, now_ns).unwrap_or(u16::MAX);
        if mtu > before {
            return false;
        }
        if self.known.len() >= self.limit {
            self.known.retain(|_, (_, until_ns)| *until_ns > now_ns);
        }
        if self.known.len() < self.limit || self.known.contains_key(&to) {
            self.known.insert(to, (mtu, now_ns + MEMORY_NS));
        }
        mtu < before
    }

    /// Whether anything was said of any way, lately or before.
    #[inline]
    pub(super) fn are_any(&self) -> bool {
        !self.known.is_empty()
    }

    /// Bytes of IP that pass to an address; `None` where nobody said so lately.
    #[inline]
    pub(super) fn fits(&self, to: IpAddr, now_ns: u64) -> Option<u16> {
        if self.known.is_empty() {
            return None;
        }
        self.known.get(&to).filter(|(_, until_ns)| *until_ns > now_ns).map(|(mtu, _)| *mtu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 30, 0, 1));

    #[test]
    fn the_least_that_was_said_counts_for_a_while() {
        let mut mtus = PathMtus::new(2);
        assert!(mtus.learn(TO, 1_400, 0) && mtus.learn(TO, 1_300, 1) && !mtus.learn(TO, 1_300, 2));
        // From another router on the way, beyond which nothing so long comes.
        assert!(!mtus.learn(TO, 1_400, 3));
        assert_eq!(mtus.fits(TO, MEMORY_NS), Some(1_300));
        assert_eq!(mtus.fits(TO, 2 + MEMORY_NS), None);
        assert!(mtus.learn(TO, 1_400, 2 + MEMORY_NS));
    }

    #[test]
    fn what_no_way_can_be_is_not_believed() {
        let (mut mtus, six) = (PathMtus::new(2), IpAddr::V6(std::net::Ipv6Addr::LOCALHOST));
        assert!(!mtus.learn(TO, 0, 0) && mtus.learn(TO, 68, 0) && !mtus.learn(six, 1_279, 0));
        assert_eq!((mtus.fits(TO, 0), mtus.fits(six, 0)), (Some(LEAST4), None));
    }

    #[test]
    fn old_ones_give_way_and_there_are_no_more_than_there_may_be() {
        let mut mtus = PathMtus::new(2);
        let [one, two, three] = [1, 2, 3].map(|last| IpAddr::from([10, 30, 0, last]));
        mtus.learn(one, 1_400, 0);
        mtus.learn(two, 1_400, 1);
        mtus.learn(three, 1_400, 2);
        assert_eq!(mtus.fits(three, 2), None);
        mtus.learn(three, 1_400, MEMORY_NS);
        assert_eq!((mtus.fits(three, MEMORY_NS), mtus.known.len()), (Some(1_400), 2));
    }
}
