//! Who gave way, by name: whoever runs the node is to know whom to ask, or to limit.

use arrayvec::ArrayVec;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Users that are told; of more, those that gave way last.
pub const NAMED_MAX: usize = 16;

/// A user that gave way to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaveWay {
    /// Its address; of IPv6 the first one of its prefix of 64 bits.
    pub user: IpAddr,
    /// Packets of it dropped for that, as long as it is told without a break.
    pub packets: u64,
}

/// Users that gave way, and by when each was told of last.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    users: ArrayVec<(GaveWay, u64), NAMED_MAX>,
    /// Times somebody was told of.
    times: u64,
}

impl Named {
    /// More packets of a user were dropped, told as flows' keys have it.
    pub(super) fn note(&mut self, (user, is_ipv6): (u64, bool), packets: u64) {
        self.times += 1;
        let user = match is_ipv6 {
            true => Ipv6Addr::from_bits(u128::from(user) << 64).into(),
            false => Ipv4Addr::from_bits((user >> 32) as u32).into(),
        };
        if let Some((known, last)) = self.users.iter_mut().find(|(known, _)| known.user == user) {
            known.packets += packets;
            *last = self.times;
            return;
        }
        if self.users.is_full() {
            let oldest = self.users.iter().enumerate().min_by_key(|(_, (_, last))| *last);
            oldest.map(|(at, _)| at).into_iter().for_each(|at| _ = self.users.swap_remove(at));
        }
        self.users.push((GaveWay { user, packets }, self.times));
    }

    /// All that are told.
    pub(super) fn all(&self) -> ArrayVec<GaveWay, NAMED_MAX> {
        self.users.iter().map(|(user, _)| *user).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_more_users_than_are_told_those_that_gave_way_last_are() {
        let mut named = Named::default();
        let user = |number: u64| ((0x0a3c_0000 + number) << 32, false);
        for number in 0..NAMED_MAX as u64 {
            named.note(user(number), 1);
        }
        named.note(user(0), 4);
        named.note((0x2001_0db8_0000_0000, true), 7);
        let told = named.all();
        let packets = |address: &str| {
            let address: IpAddr = address.parse().unwrap();
            told.iter().find(|told| told.user == address).map(|told| told.packets)
        };
        assert_eq!(told.len(), NAMED_MAX);
        assert_eq!(
            [packets("10.60.0.0"), packets("10.60.0.1"), packets("10.60.0.2")],
            [Some(5), None, Some(1)]
        );
        assert_eq!([packets("2001:db8::"), packets("32.1.13.184")], [Some(7), None]);
    }
}
