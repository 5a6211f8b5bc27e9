//! Where the steps of a session stand in its cells.
//!
//! PDRs that lead to the same share a step, so that what packets need of a session is as large as what it does, however
//! many PDRs say so. A step that is counted once stands in the cell of the account that counts it, and one that is not in the
//! first, where rates are: in the lane of its direction, where that is free. Others stand where there is room.

use crate::state::{HotStep, Kind, Name, STEPS, WholeStep};
use rules::{Direction, PdrId};
use std::collections::HashMap;

/// A step, and the peer of one that puts packets into a tunnel.
pub(crate) type Standing = (WholeStep, Option<Name>);
/// One that is to stand somewhere, and the way its packets go.
pub(crate) type Wanted = (Standing, Direction);

/// Where the steps of PDRs stand.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Each in its place by the order of PDRs.
    AsTried,
    /// Each in the place of the one beside it.
    Swapped,
    /// By PDR.
    Places(Vec<(PdrId, u16)>),
}

/// Steps by place.
pub(crate) struct Arrangement {
    /// In the cells, in their order; [`WholeStep::EMPTY`] where none stands.
    pub(crate) standing: Vec<Standing>,
    /// Where the steps stand that were given.
    pub(crate) places: Vec<u16>,
}

impl Arrangement {
    /// Of steps in the order of their PDRs, then of others, in cells of as many accounts.
    pub(crate) fn new(steps: &[Wanted], accounts: usize) -> Self {
        let (distinct, numbers) = distinct(steps);
        let cells = distinct.len().div_ceil(STEPS).max(accounts);
        let room = cells * STEPS;
        let mut room = Room { standing: vec![(WholeStep::EMPTY, None); room], taken: vec![false; room] };
        let mut places: Vec<Option<u16>> = distinct.iter().map(|step| room.beside(step)).collect();
        let mut from = 0;
        for (place, step) in places.iter_mut().zip(&distinct).filter(|(place, _)| place.is_none()) {
            *place = room.anywhere(&mut from, step);
        }
        let mut standing = room.standing;
        let used = places.iter().flatten().max().map_or(0, |last| usize::from(*last) + 1);
        standing.truncate(used);
        let place = |number: usize| places.get(number).copied().flatten().unwrap_or_default();
        Self { standing, places: numbers.into_iter().map(place).collect() }
    }

    /// Where the steps of these PDRs stand.
    pub(crate) fn of_pdrs(&self, pdrs: impl Iterator<Item = PdrId>) -> Order {
        let places: Vec<(PdrId, u16)> = pdrs.zip(self.places.iter().copied()).collect();
        let are = |flip: u16| places.iter().zip(0..).all(|((_, place), number)| *place == number ^ flip);
        match (are(0), are(1)) {
            (true, _) => Order::AsTried,
            (_, true) => Order::Swapped,
            _ => Order::Places(places),
        }
    }
}

/// Each step once, and which of these each is.
fn distinct(steps: &[Wanted]) -> (Vec<Wanted>, Vec<usize>) {
    let (mut distinct, mut known) = (Vec::new(), HashMap::new());
    let mut number = |((step, peer), direction): &Wanted| {
        let next = distinct.len();
        let number = match can_be_shared(step) {
            true => *known.entry((step.of_no_pdr(), *peer)).or_insert(next),
            false => next,
        };
        if number == next {
            distinct.push(((*step, *peer), *direction));
        }
        number
    };
    let numbers = steps.iter().map(&mut number).collect();
    (distinct, numbers)
}

/// Whether nothing but its bytes says what becomes of packets: a notification names the PDR, and copies, portals,
/// other addresses and quotas' other ways are found by the step's place.
fn can_be_shared(step: &HotStep) -> bool {
    matches!(step.kind, Kind::Drop | Kind::GateClosed | Kind::Plain | Kind::Tunnel)
        && !step.has_duplicates()
        && !step.may_readdress()
        && !step.may_yield()
        && !step.stands_in()
}

/// Cells while they are filled.
struct Room {
    standing: Vec<Standing>,
    /// By place.
    taken: Vec<bool>,
}

impl Room {
    /// Puts a step beside the account that limits and counts it, on one line with its direction's half of that.
    fn beside(&mut self, (step, direction): &Wanted) -> Option<u16> {
        let account = match step.0.lists().usages() {
            [] => 0,
            [account] => usize::from(*account),
            _ => return None,
        };
        self.put(account * STEPS + *direction as usize, step)
    }

    /// Puts a step into the first place from `place` on that is free.
    fn anywhere(&mut self, place: &mut usize, (step, _): &Wanted) -> Option<u16> {
        *place += self.taken.iter().skip(*place).position(|taken| !taken)?;
        self.put(*place, step)
    }

    fn put(&mut self, place: usize, step: &Standing) -> Option<u16> {
        let taken = self.taken.get_mut(place).filter(|taken| !**taken)?;
        *taken = true;
        *self.standing.get_mut(place)? = *step;
        u16::try_from(place).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::Side;
    use rules::{Interface, Teid};
    use std::net::IpAddr;

    /// Of a PDR, to a tunnel, counted by these accounts; of even ones, to the user.
    fn step(pdr: u16, teid: u32, accounts: &[u16]) -> Wanted {
        let gnb = (Side::of(Interface::Access), IpAddr::from([192, 0, 2, 1]));
        let direction = if pdr.is_multiple_of(2) { Direction::Downlink } else { Direction::Uplink };
        ((WholeStep::tunnel(PdrId(pdr), Teid(teid), accounts), Some(gnb)), direction)
    }

    fn pdrs(arrangement: &Arrangement) -> Vec<u16> {
        arrangement.standing.iter().map(|(step, _)| step.pdr.0).collect()
    }

    #[test]
    fn a_plain_session_stays_in_order() {
        let found = Arrangement::new(&[step(1, 7, &[0]), step(2, 8, &[0])], 1);
        assert_eq!((pdrs(&found), &found.places[..]), (vec![1, 2], &[0, 1][..]));
        assert_eq!(found.of_pdrs([PdrId(1), PdrId(2)].into_iter()), Order::AsTried);
    }

    #[test]
    fn a_plain_session_that_tries_downlink_first_is_swapped() {
        let found = Arrangement::new(&[step(2, 7, &[0]), step(3, 8, &[0])], 1);
        assert_eq!((pdrs(&found), &found.places[..]), (vec![3, 2], &[1, 0][..]));
        assert_eq!(found.of_pdrs([PdrId(2), PdrId(3)].into_iter()), Order::Swapped);
    }

    #[test]
    fn each_direction_has_the_lane_that_counts_it_before_others_have_what_is_left() {
        for account in [&[][..], &[0]] {
            let alone = Arrangement::new(&[step(1, 7, account), step(3, 8, account)], 1);
            assert_eq!((pdrs(&alone), &alone.places[..]), (vec![1, 3], &[0, 1][..]));
            let steps = [step(1, 7, account), step(3, 8, account), step(2, 9, account), step(4, 10, account)];
            assert_eq!(Arrangement::new(&steps, 1).places, [0, 2, 1, 3]);
            assert_eq!(Arrangement::new(&[step(2, 7, account)], 1).places, [1]);
        }
    }

    #[test]
    fn what_does_the_same_stands_once() {
        let steps: Vec<Wanted> = (1..=1_000).map(|pdr| step(pdr, u32::from(pdr % 2), &[0])).collect();
        let found = Arrangement::new(&steps, 1);
        assert_eq!(pdrs(&found), [1, 2]);
        assert!(found.places.iter().zip(0..).all(|(place, number)| *place == number % 2));
        assert!(matches!(found.of_pdrs((1..=1_000).map(PdrId)), Order::Places(_)));
    }

    #[test]
    fn another_peer_is_another_step() {
        let mut other = step(2, 7, &[0]);
        other.0.1 = Some((Side::of(Interface::Access), IpAddr::from([192, 0, 2, 2])));
        assert_eq!(Arrangement::new(&[step(1, 7, &[0]), other], 1).places, [0, 1]);
    }

    #[test]
    fn what_is_known_by_its_place_stands_alone() {
        let mut first = step(1, 7, &[0]);
        first.0.0.yields();
        let mut second = step(2, 7, &[0]);
        second.0.0.yields();
        let mut third = step(3, 7, &[0]);
        third.0.1 = None;
        third.0.0.stand_in();
        assert_eq!(Arrangement::new(&[first, second, third], 1).places, [0, 1, 2]);
    }

    #[test]
    fn steps_stand_beside_what_counts_them() {
        let steps =
            [step(1, 1, &[2]), step(2, 2, &[2]), step(3, 3, &[2]), step(4, 4, &[0, 1]), step(5, 5, &[1])];
        let found = Arrangement::new(&steps, 3);
        assert_eq!(found.places, [4, 5, 0, 1, 2]);
        assert_eq!(pdrs(&found), [3, 4, 5, 0, 1, 2]);
    }
}
