//! Fragments of datagrams to us: what is put together, what is given up, and whose.

use super::*;
use packet::ecn;
use proptest::prelude::*;

const DATAGRAMS: usize = 64;
const BY_SENDER: usize = 16;

fn name(identification: u32) -> DatagramName {
    from((Direction::Uplink, 1), identification)
}

fn from((side, host): (Direction, u8), identification: u32) -> DatagramName {
    DatagramName { port: 0, side, source: [10, 30, 0, host].into(), identification }
}

fn part(offset: usize, more: bool) -> Part {
    Part { offset, more, ecn: ecn::NOT_ECT }
}

/// As [`Fragments::take`], of which the octets.
fn take<'a>(
    fragments: &'a mut Fragments,
    name: DatagramName,
    part: (Part, &[u8]),
    now_ns: u64,
) -> Result<Option<&'a [u8]>, Useless> {
    fragments.take(name, part, now_ns).map(|whole| whole.map(|whole| whole.bytes))
}

/// Of its fragments alone, not of those that were in its place before.
#[test]
fn what_fragments_say_of_congestion_is_the_datagrams() {
    let mut fragments = Fragments::new(DATAGRAMS, 1);
    let bytes = [7; 8];
    for (first, last, expected) in [
        (ecn::ECT_0, ecn::CE, Some(ecn::CE)),
        (ecn::ECT_0, ecn::ECT_0, Some(ecn::ECT_0)),
        (ecn::NOT_ECT, ecn::CE, None),
        (ecn::NOT_ECT, ecn::NOT_ECT, Some(ecn::NOT_ECT)),
    ] {
        let first = Part { ecn: first, ..part(0, true) };
        assert_eq!(fragments.take(name(1), (first, &bytes), 0), Ok(None));
        let last = Part { ecn: last, ..part(8, false) };
        let whole = fragments.take(name(1), (last, &bytes), 0).unwrap().unwrap();
        assert_eq!((whole.bytes.len(), whole.ecn.whole()), (16, expected));
    }
}

#[test]
fn what_makes_no_sense_is_forgotten_whole() {
    let all = [7; 40];
    for second in [
        (part(8, true), 16),
        (part(12, true), 8),
        (part(16, true), 9),
        (part(16, true), 0),
        (part(1_992, true), 16),
        (part(0, false), 8),
    ] {
        let mut fragments = Fragments::new(DATAGRAMS, 1);
        assert_eq!(take(&mut fragments, name(1), (part(0, true), &all[..16]), 0), Ok(None));
        let (place, length) = second;
        assert_eq!(take(&mut fragments, name(1), (place, &all[..length]), 0), Err(Useless::Senseless));
        assert_eq!(
            (fragments.waiting(), fragments.free.len(), fragments.ended().senseless),
            (0, SIDES * DATAGRAMS, 1),
            "{second:?}"
        );
    }
    let mut fragments = Fragments::new(DATAGRAMS, 1);
    take(&mut fragments, name(1), (part(32, false), &all[..8]), 0).unwrap();
    assert_eq!(take(&mut fragments, name(1), (part(24, false), &all[..8]), 0), Err(Useless::Senseless));
    take(&mut fragments, name(1), (part(32, true), &all[..8]), 0).unwrap();
    assert_eq!(take(&mut fragments, name(1), (part(0, false), &all[..8]), 0), Err(Useless::Senseless));
}

/// A network may bring a packet twice. What is not the same octet by octet is another matter.
#[test]
fn a_fragment_that_comes_twice_is_no_harm() {
    let all: Vec<u8> = (0..40).collect();
    let (first, last) = ((part(0, true), &all[..16]), (part(16, false), &all[16..37]));
    for order in [[first, first, last], [last, last, first], [first, (part(8, true), &all[8..16]), last]] {
        let mut fragments = Fragments::new(DATAGRAMS, 1);
        assert_eq!(take(&mut fragments, name(1), order[0], 0), Ok(None));
        assert_eq!(take(&mut fragments, name(1), order[1], 0), Err(Useless::Twice));
        assert_eq!((fragments.waiting(), fragments.ended()), (1, Ended::default()));
        assert_eq!(take(&mut fragments, name(1), order[2], 0), Ok(Some(&all[..37])));
    }
    let changed: Vec<u8> = all.iter().map(|octet| octet ^ 1).collect();
    for second in [(part(0, true), &changed[..16]), (part(0, false), &all[..16]), (part(0, true), &all[..24])]
    {
        let mut fragments = Fragments::new(DATAGRAMS, 1);
        assert_eq!(take(&mut fragments, name(1), first, 0), Ok(None));
        assert_eq!(take(&mut fragments, name(1), second, 0), Err(Useless::Senseless), "{second:?}");
    }
}

#[test]
fn the_limits_hold() {
    let mut fragments = Fragments::new(DATAGRAMS, 1);
    let first = (part(0, true), &[1; 8][..]);
    for host in 0..(DATAGRAMS / BY_SENDER) as u8 {
        for identification in 0..BY_SENDER as u32 {
            assert_eq!(
                take(&mut fragments, from((Direction::Uplink, host), identification), first, 5),
                Ok(None)
            );
        }
    }
    let another = from((Direction::Uplink, 200), 1);
    assert_eq!(take(&mut fragments, another, first, 5), Err(Useless::Full), "of all");
    let beyond = from((Direction::Downlink, 200), 1);
    assert_eq!(take(&mut fragments, beyond, first, 5), Ok(None), "of the other side");
    assert_eq!((fragments.waiting(), fragments.ended()), (DATAGRAMS as u64 + 1, Ended::default()));
    assert_eq!(take(&mut fragments, name(99), first, 5 + PATIENCE_NS + 1), Ok(None));
    let ended = Ended { incomplete: DATAGRAMS as u64 + 1, ..Ended::default() };
    assert_eq!((fragments.waiting(), fragments.ended()), (1, ended), "the older ones are gone");
    let last = (part(8, false), &[1; 8][..]);
    assert_eq!(
        take(&mut fragments, name(1), last, 5 + PATIENCE_NS + 1),
        Ok(None),
        "and none is known of this one"
    );
}

/// Which then has as many as before, and others have what they had.
#[test]
fn a_senders_own_oldest_gives_way_and_no_other_ones() {
    let mut fragments = Fragments::new(DATAGRAMS, 1);
    let (first, last) = ((part(0, true), &[1; 8][..]), (part(8, false), &[1; 8][..]));
    let others = from((Direction::Uplink, 2), 0);
    take(&mut fragments, others, first, 0).unwrap();
    for identification in 0..BY_SENDER as u32 {
        take(&mut fragments, name(identification), first, 1).unwrap();
    }
    take(&mut fragments, name(0), (part(16, true), &[1; 8]), 2).unwrap();
    assert_eq!(take(&mut fragments, name(99), first, 2), Ok(None));
    let ended = Ended { incomplete: 2, ..Ended::default() };
    assert_eq!(fragments.ended(), ended, "all fragments of the oldest");
    assert_eq!(fragments.waiting(), BY_SENDER as u64 + 1);
    for whole in [others, name(1), name(99)] {
        assert_eq!(take(&mut fragments, whole, last, 3), Ok(Some(&[1; 16][..])), "{whole:?}");
    }
}

/// A sender who has anything at all is not shut out by others.
#[test]
fn on_a_full_side_too_the_own_oldest_gives_way() {
    let mut fragments = Fragments::new(DATAGRAMS, 1);
    for host in 0..DATAGRAMS as u8 {
        take(&mut fragments, from((Direction::Uplink, host), 1), (part(0, true), &[1; 8]), 0).unwrap();
    }
    assert_eq!(take(&mut fragments, name(2), (part(0, true), &[1; 8]), 0), Ok(None));
    assert_eq!(take(&mut fragments, name(2), (part(8, false), &[1; 8]), 0), Ok(Some(&[1; 16][..])));
    assert_eq!(fragments.ended(), Ended { whole: 1, incomplete: 1, ..Ended::default() });
}

/// A base station whose path splits every packet in two and loses one fragment in 500, in a fifth of a second.
#[test]
fn what_is_lost_on_the_way_costs_its_own_datagrams_alone() {
    const SENT: u32 = 20_000;
    const LOST_EVERY: u32 = 500;
    /// The second fragment leaves so many datagrams behind the first.
    const BEHIND: u32 = 3;
    let mut fragments = Fragments::new(DATAGRAMS, 1);
    let (mut sent, mut lost, mut whole) = (0, 0, 0);
    for turn in 0..SENT + BEHIND {
        let first = (turn < SENT).then(|| (turn, part(0, true)));
        let second = turn.checked_sub(BEHIND).map(|number| (number, part(8, false)));
        for (number, part) in first.into_iter().chain(second) {
            sent += 1;
            if sent % LOST_EVERY == 0 {
                lost += 1;
                continue;
            }
            let taken = take(&mut fragments, name(number), (part, &[1; 8]), u64::from(turn) * 10_000);
            whole += u32::from(taken.unwrap().is_some());
        }
    }
    assert_eq!((lost, whole), (2 * SENT / LOST_EVERY, SENT - lost));
    let ended = fragments.ended();
    assert_eq!(u64::from(lost), ended.incomplete + fragments.waiting(), "their other halves");
}

proptest! {
    /// What was taken in waits or has ended, and every place is in use or free, whoever sends what and when.
    #[test]
    fn all_is_accounted_for(
        sent in proptest::collection::vec((0..9_u8, 0..24_u32, 0..4_usize, any::<bool>()), 0..600),
        gap_ns in 0..PATIENCE_NS / 100,
    ) {
        let mut fragments = Fragments::new(8, 3);
        let (mut taken, mut ended) = (0, Ended::default());
        for (turn, (host, identification, unit, more)) in sent.into_iter().enumerate() {
            let part = part(unit * UNIT, more);
            let name = from(([Direction::Uplink, Direction::Downlink][turn % 2], host), identification);
            taken += u64::from(take(&mut fragments, name, (part, &[1; UNIT]), turn as u64 * gap_ns) == Ok(None));
            let Ended { whole, senseless, incomplete } = fragments.ended();
            ended.whole += whole;
            ended.senseless += senseless;
            ended.incomplete += incomplete;
            let used: Vec<usize> = (0..SIDES).map(|side| fragments.by_age.of(side).count()).collect();
            prop_assert_eq!(&used, &fragments.counts);
            prop_assert!(used.iter().all(|used| *used <= 8));
            prop_assert_eq!(used.iter().sum::<usize>() + fragments.free.len(), SIDES * 8);
        }
        prop_assert_eq!(taken, fragments.waiting() + ended.whole + ended.senseless + ended.incomplete);
    }

    /// In any order, mixed with another datagram's, fragments make the datagram.
    #[test]
    fn nothing_is_lost(
        bytes in proptest::collection::vec(any::<u8>(), 1..BYTES),
        chunk in 1usize..100,
        order in any::<prop::sample::Index>(),
    ) {
        let chunk = chunk * UNIT;
        let count = bytes.len().div_ceil(chunk);
        let mut numbers: Vec<usize> = (0..count).collect();
        numbers.rotate_left(order.index(count));
        let mut fragments = Fragments::new(DATAGRAMS, 1);
        for (turn, number) in numbers.iter().enumerate() {
            let end = bytes.len().min((number + 1) * chunk);
            let part = part(number * chunk, number + 1 < count);
            let other = take(&mut fragments, name(2), (super::tests::part(turn * UNIT, true), &[0; UNIT]), 0);
            prop_assert_eq!(other, Ok(None));
            let taken = take(&mut fragments, name(1), (part, &bytes[number * chunk..end]), 0);
            let whole = (turn + 1 == count).then_some(&bytes[..]);
            prop_assert_eq!(taken, Ok(whole));
        }
    }
}
