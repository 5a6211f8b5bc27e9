//! Flows in a table that is filled as far as it was made for, and beyond.

use super::*;
use crate::state::tags::Tags;
use packet::five_tuple::FiveTuple;
use zerocopy::IntoBytes;

const AGES: Ages = Ages { flow_ns: 1 << 32, connection_ns: 1 << 32 };
const CIRCUMSTANCES: Circumstances = Circumstances { arrival: 0, class: 0, bytes: 0 };

/// From this number on, every third flow is of IPv6 and takes a whole line.
const MIXED: u32 = 1 << 24;

/// Of a user who has four.
fn key(number: u32) -> FlowKey {
    let tuple = FiveTuple {
        source: u128::from(0x0a00_0000 + number / 4) << 96,
        destination: u128::from(0xc000_0200 + number % 4) << 96,
        version: if number >= MIXED && number.is_multiple_of(3) { 6 } else { 4 },
        source_port: 1,
        destination_port: 2,
        protocol: packet::protocol::UDP,
        ..FiveTuple::default()
    };
    FlowKey::new(&tuple, Direction::Uplink)
}

impl Flows {
    fn meet(&mut self, number: u32, now_ns: u64) {
        let key = key(number);
        let place = Place {
            key: &key,
            hash: self.hash(&key),
            likely: self.seek(self.hash(&key)),
            direction: Direction::Uplink,
            circumstances: CIRCUMSTANCES,
        };
        let step = StepIndex::new(number, 0);
        let verdict = Verdict { step, generation: 1, class_matters: false, detected: Detected::NOT_YET };
        self.learn(place, verdict, now_ns);
    }

    /// Its rules look at the traffic class, for which there is room in a whole line alone.
    fn look_at_class(&mut self, number: u32, detected: Detected) {
        let key = key(number);
        let verdict =
            Verdict { step: StepIndex::new(number, 0), generation: 1, class_matters: true, detected };
        self.learn(self.place_of(&key), verdict, 0);
    }

    fn seek(&self, hash: u64) -> FlowLine {
        self.look(hash, self.prefetch_tags(hash))
    }

    fn knows_application(&self, number: u32) -> bool {
        let key = key(number);
        let place = Place {
            key: &key,
            hash: self.hash(&key),
            likely: FlowLine::NONE,
            direction: Direction::Uplink,
            circumstances: CIRCUMSTANCES,
        };
        self.detected(place) != Detected::NOT_YET
    }

    /// Whether it is known where it stands before it is looked for.
    fn foresees(&mut self, number: u32) -> bool {
        let key = key(number);
        let hash = self.hash(&key);
        let line = self.look_again(hash, self.seek(hash));
        self.blocks.foreseen(line).is_some_and(|half| half.is(&key))
    }

    fn knows(&mut self, number: u32) -> bool {
        let key = key(number);
        let place = Place {
            key: &key,
            hash: self.hash(&key),
            likely: self.seek(self.hash(&key)),
            direction: Direction::Uplink,
            circumstances: CIRCUMSTANCES,
        };
        let found = self.find(place, 0, |_| Beginning::Nothing);
        // Wherever it seems to be.
        for likely in [FlowLine::NONE, self.seek(!place.hash)] {
            assert_eq!(self.find(Place { likely, ..place }, 0, |_| Beginning::Nothing), found);
        }
        assert!(found.is_none_or(|(step, _)| step == StepIndex::new(number, 0)), "another's verdict");
        found.is_some()
    }

    /// How many flows of each block stand in others, as counted from the flows themselves.
    fn away(&self) -> Vec<usize> {
        let mut away = vec![0; self.blocks.len()];
        for block in 0..self.blocks.len() {
            for at in self.blocks.taken(block) {
                let own = self.block(self.hash(&self.blocks.get(at).flow().key));
                away[own] += usize::from(own != block);
            }
        }
        away
    }

    fn is_whole(&self) {
        let counted: Vec<bool> = (0..self.blocks.len()).map(|block| self.blocks.has_away(block)).collect();
        assert_eq!(counted, self.away().iter().map(|away| *away > 0).collect::<Vec<_>>());
        let flows = || (0..self.blocks.len()).flat_map(|block| self.blocks.taken(block));
        assert_eq!(flows().count(), self.len());
        assert_eq!(flows().map(|at| self.blocks.get(at).places()).sum::<usize>(), self.taken);
        let free = |block| self.blocks.tags(block).places_of(Tags::FREE).count();
        let free: usize = (0..self.blocks.len()).map(free).sum();
        assert_eq!(free + self.taken, self.blocks.len() * WAYS);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a hundred thousand flows take an hour there, and say nothing that few do not")]
fn a_table_holds_what_it_was_made_for_but_for_one_of_two_thousand() {
    const MANY: u32 = 100_000;
    let mut flows = Flows::new(MANY as usize, 7, None).unwrap();
    (0..MANY).for_each(|number| flows.meet(number, 0));
    let known = (0..MANY).filter(|number| flows.knows(*number)).count();
    assert!(known >= (MANY - MANY / 2_000) as usize, "{known}");
    flows.is_whole();
    let elsewhere: usize = flows.away().iter().sum();
    assert!(elsewhere < MANY as usize / 20, "{elsewhere} are found at the second look");
    // All but those of whose tag there is another in their block.
    let foreseen = (0..MANY).filter(|number| flows.foresees(*number)).count();
    assert!(foreseen > MANY as usize / 1_000 * 998, "{foreseen}");
}

#[test]
fn flows_that_stand_elsewhere_are_found_and_forgotten() {
    let mut flows = Flows::new(200, 7, None).unwrap();
    // More than there is room for, again and again: all ways lead through a full table.
    for round in 0..20 {
        let now_ns = round << 31;
        let first = MIXED + round as u32 * 50;
        (first..first + 400).for_each(|number| {
            flows.meet(number, now_ns);
            assert!(flows.knows(number), "{number} was just met");
        });
        flows.is_whole();
        flows.sweep(100, now_ns, AGES);
        flows.is_whole();
    }
    assert!(flows.away().iter().any(|away| *away > 0));
    flows.sweep(10_000, 1 << 40, AGES);
    assert_eq!((flows.len(), flows.away().iter().sum::<usize>()), (0, 0));
    flows.is_whole();
}

/// Flows move while it is passed on, block by block, of what applications they are.
#[test]
fn of_what_application_a_flow_is_is_passed_on_wherever_it_moves() {
    const KNOWN: u32 = if cfg!(miri) { 300 } else { 20_000 };
    let facts = dpi::matching::Facts { layer: Some(dpi::matching::Layer::Http), ..Default::default() };
    let detected = crate::content::tests::rules_of_urls().detect(&facts);
    let mut flows = Flows::new(2 * KNOWN as usize, 7, None).unwrap();
    let known = MIXED..MIXED + KNOWN;
    known.clone().for_each(|number| flows.learn_application(&key(number), detected, 0));
    let (mut from, mut told, mut new) =
        (Some(0), std::collections::HashSet::new(), known.end..known.end + KNOWN);
    // These need more room than they had, the last ones first.
    let mut grown = known.clone().rev();
    while let Some(block) = from {
        from = flows.applications(block, 10, |key, known| {
            assert_eq!(known, detected);
            told.insert(key.as_bytes().to_vec());
        });
        new.by_ref().take(200).for_each(|number| flows.meet(number, 0));
        for number in grown.by_ref().take(200) {
            if flows.knows_application(number) {
                flows.look_at_class(number, detected);
            }
        }
    }
    assert!(new.is_empty() && grown.next().is_none());
    let missed: Vec<u32> = known
        .filter(|number| flows.knows_application(*number) && !told.contains(key(*number).as_bytes()))
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// With the headers of its version that are the shortest, whatever the packet has; and it must look like one.
#[test]
fn what_may_ask_again_is_long_enough_for_a_request() {
    for (version, short, long) in [(4, 52, 53), (6, 72, 73)] {
        let mut flows = Flows::new(8, 7, None).unwrap();
        let tuple = FiveTuple { version, protocol: packet::protocol::TCP, ..FiveTuple::default() };
        let key = FlowKey::new(&tuple, Direction::Uplink);
        let place = |direction, bytes| Place {
            key: &key,
            hash: key.hash(7),
            likely: FlowLine::NONE,
            direction,
            circumstances: Circumstances { bytes, ..CIRCUMSTANCES },
        };
        let facts = dpi::matching::Facts { layer: Some(dpi::matching::Layer::Http), ..Default::default() };
        let detected = crate::content::tests::rules_of_urls().detect(&facts);
        let step = StepIndex::new(1, 0);
        let verdict = Verdict { step, generation: 1, class_matters: false, detected };
        let [up, down] = [Direction::Uplink, Direction::Downlink];
        for direction in [up, down] {
            flows.learn(place(direction, long), verdict, 0);
        }
        let said = |asks| if asks { Beginning::Request } else { Beginning::Nothing };
        let mut finds =
            |direction, bytes, asks| flows.find(place(direction, bytes), 0, |_| said(asks)).is_some();
        let found = [(up, short, true), (up, long, false), (down, long, true), (up, long, true)]
            .map(|(direction, bytes, asks)| finds(direction, bytes, asks));
        assert_eq!(found, [true, true, true, false], "{version}");
        // Nothing overtakes it, until it has been looked at.
        assert!(!finds(up, short, false) && !finds(up, long, false) && finds(down, short, false));
        flows.learn(place(up, long), verdict, 0);
        assert_eq!(flows.find(place(up, short), 0, |_| Beginning::Request), Some((step, 1)));
    }
}
