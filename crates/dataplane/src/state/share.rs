//! Which flow gives way where a block of the table is full: each user has a share of a group of its places, and whoever
//! has more of it gives way first. So a user who makes every packet a flow of its own displaces its own flows, and
//! nobody else's.
//!
//! Free places are anybody's: a lone user may fill the table. And nothing is counted: the group itself tells who has how
//! much of it, so known flows pay nothing.

/// Places of a group that are a user's own.
pub(super) const SHARE: usize = 2;

/// The place to take, of a full group in which `user` tells whose flow stands at a place and `idle` for how long it has
/// had no packet, for another flow of `newcomer`: the one idle for the longest, of its own where it would have more than
/// its share, else of those users who have more than theirs, else of all.
pub(super) fn give_way<const WAYS: usize>(
    newcomer: u64,
    user: impl Fn(usize) -> u64,
    idle: impl Fn(usize) -> u16,
) -> usize {
    let users: [u64; WAYS] = std::array::from_fn(user);
    let share = |of: u64| users.iter().filter(|user| **user == of).count() + usize::from(of == newcomer);
    let is_greedy = share(newcomer) > SHARE;
    let may_go = |user: u64| if is_greedy { user == newcomer } else { share(user) > SHARE };
    let greedy = |way: &usize| users.get(*way).is_some_and(|user| may_go(*user));
    let longest = |ways: &mut dyn Iterator<Item = usize>| ways.max_by_key(|way| idle(*way));
    longest(&mut (0..WAYS).filter(greedy)).or_else(|| longest(&mut (0..WAYS))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who has to go of these users' flows, which have been idle for so long.
    fn gone(newcomer: u64, flows: [(u64, u16); 8]) -> usize {
        give_way::<8>(newcomer, |way| flows[way].0, |way| flows[way].1)
    }

    #[test]
    fn of_modest_users_the_oldest_flow_goes() {
        let flows = [(1, 1), (2, 9), (3, 3), (4, 4), (5, 5), (2, 6), (3, 7), (4, 8)];
        assert_eq!((gone(6, flows), gone(1, flows)), (1, 1));
    }

    #[test]
    fn who_has_its_share_displaces_its_own() {
        let flows = [(1, 1), (1, 7), (2, 50), (3, 60), (4, 70), (2, 80), (5, 90), (6, 99)];
        assert_eq!((gone(1, flows), gone(2, flows)), (1, 5));
        assert_eq!(gone(3, flows), 7, "who has less does not");
    }

    #[test]
    fn who_has_more_than_its_share_gives_way_to_others() {
        let flows = [(1, 0), (1, 1), (1, 3), (1, 2), (1, 1), (1, 0), (2, 70), (3, 80)];
        assert_eq!((gone(4, flows), gone(2, flows)), (2, 2));
        let flows = [(1, 0), (1, 1), (1, 3), (2, 9), (2, 8), (2, 7), (3, 70), (4, 80)];
        assert_eq!(gone(3, flows), 3, "of several, the oldest flow");
    }
}
