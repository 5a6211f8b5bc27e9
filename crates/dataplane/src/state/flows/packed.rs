//! How a flow lies in memory. Nearly all are of TCP or UDP over IPv4 and take one cell of their session's, on its line of either
//! direction: these fit half a cache line. Others take a whole one, the second half for what the first has no room for.

use super::Place;
use super::entry::{Beginning, CLASS, Flow, LOOKS};
use crate::content::Detected;
use crate::state::cells;
use crate::state::flow_key::{FlowKey, Form, KIND_BITS, KIND_UNUSED};
use crate::state::step::StepIndex;
use rules::Direction;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What every flow has. All zero, it is none.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(in crate::state) struct Half {
    addresses: u64,
    /// Ports and network of the key; in the lower 16 bits of what application it is.
    ports: u64,
    generation: u32,
    arrivals: [u16; 2],
    pub(super) seen: u16,
    looks: u8,
    host: u8,
    /// What of the key there is ([`Form`]) and whether there is a second half; the cell, and of which directions a verdict is known.
    stands: u32,
}

/// What a flow has besides that takes a whole line.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(in crate::state) struct Rest {
    key: [u64; 3],
    down: StepIndex,
    classes: [u8; 2],
    /// Where a first half says what form it has: see the assertion below.
    kind: u16,
}

const _: () = assert!(size_of::<Half>() == 32 && size_of::<Rest>() == 32, "two halves of a cache line");
// So nothing is ever found in a second half.
const _: () =
    assert!(KIND_UNUSED as u32 == u32::MAX << FORM_SHIFT >> 16, "a second half looks like one of no form");

const FORM_SHIFT: u32 = 30;
const HAS_REST: u32 = 1 << 29;
/// Of one with a second half, the place of the uplink's step in its cell; of one without, that the downlink's step is known.
const DOWN: u32 = 1 << 28;
const UP: u32 = 1 << 27;
const CELL: u32 = UP - 1;
const _: () = assert!(cells::MOST == UP as usize, "every cell there may be has its bits");

/// What a half says of a packet.
pub(super) enum Found {
    /// The step it takes, by rules of this generation.
    Step(StepIndex, u32),
    /// That nobody knows.
    Nothing,
    /// That more has to be looked at.
    More,
}

/// A flow as it lies there.
#[derive(Clone, Copy, Debug)]
pub(in crate::state) enum Packed {
    Half(Half),
    Whole(Half, Rest),
}

impl Half {
    /// Of no flow.
    pub(in crate::state) const EMPTY: Self = Self {
        addresses: 0,
        ports: 0,
        generation: 0,
        arrivals: [0; 2],
        seen: 0,
        looks: 0,
        host: 0,
        stands: 0,
    };

    /// Whether it is the whole of a flow of this key: without branches, because it mostly is.
    #[inline(always)]
    pub(super) const fn is(&self, key: &FlowKey) -> bool {
        let ([addresses, ports], form) = (key.short(), key.form());
        let form = self.stands & (3 << FORM_SHIFT | HAS_REST) ^ (form as u32) << FORM_SHIFT;
        (self.addresses ^ addresses) | (self.ports ^ ports) >> KIND_BITS | form as u64 == 0
    }

    /// The step of one without a second half, and the generation of its rules. What `begins` with the packet is asked where that
    /// matters; no such flow looks at the traffic class.
    #[inline(always)]
    pub(super) fn step(&self, packet: Place<'_>, begins: impl Fn(bool) -> Beginning) -> Found {
        let Place { direction, circumstances, .. } = packet;
        let known = match direction {
            Direction::Uplink => self.stands & UP != 0,
            Direction::Downlink => self.stands & DOWN != 0,
        };
        if !known || self.arrivals[direction as usize] != circumstances.arrival {
            return Found::Nothing;
        }
        let looks = self.looks & LOOKS;
        if looks != 0 && begins(circumstances.may_ask(looks, direction, packet.key)) != Beginning::Nothing {
            return Found::More;
        }
        Found::Step(StepIndex::new(self.stands & CELL, direction as u32), self.generation)
    }

    /// What a first half says of the key, or all of it; what it has else stands in its lower bits.
    const fn short(&self) -> [u64; 2] {
        [self.addresses, self.ports]
    }

    /// Of what application the flow is.
    pub(super) const fn detected(&self) -> Detected {
        Detected::from_bits(self.ports as u16)
    }

    /// Whether there is a second half.
    pub(super) const fn has_rest(&self) -> bool {
        self.stands & HAS_REST != 0
    }

    const fn form(&self) -> Form {
        match self.stands >> FORM_SHIFT {
            0 => Form::None,
            1 => Form::Tcp,
            2 => Form::Udp,
            _ => Form::Other,
        }
    }

    const fn cell(&self) -> u32 {
        self.stands & CELL
    }

    /// The steps of one without a second half.
    fn steps(&self) -> [StepIndex; 2] {
        let step = |known: u32, place| match self.stands & known {
            0 => StepIndex::NONE,
            _ => StepIndex::new(self.cell(), place),
        };
        [step(UP, 0), step(DOWN, 1)]
    }
}

impl Packed {
    /// What begins with this half; behind it on its line stands `second`, which is its own or not.
    #[inline]
    pub(in crate::state) const fn of(half: Half, second: Half) -> Self {
        if half.has_rest() { Self::Whole(half, zerocopy::transmute!(second)) } else { Self::Half(half) }
    }

    /// As they lie there.
    pub(in crate::state) const fn halves(&self) -> (Half, Option<Half>) {
        match self {
            Self::Half(half) => (*half, None),
            Self::Whole(half, rest) => (*half, Some(zerocopy::transmute!(*rest))),
        }
    }

    /// Whether it is a flow of this key.
    #[inline]
    pub(super) fn is(&self, key: &FlowKey) -> bool {
        match self {
            Self::Half(half) => half.is(key),
            Self::Whole(half, rest) => FlowKey::of_long(half.short(), (rest.key, rest.kind)).is(key),
        }
    }

    /// As small as it can be.
    pub(super) fn new(flow: &Flow) -> Self {
        let form = flow.key.form();
        match in_one_cell(flow.steps) {
            Some(stands) if form != Form::Other && flow.looks & CLASS == 0 => {
                Self::Half(first_half(flow, (form as u32) << FORM_SHIFT | stands))
            }
            _ => Self::whole(flow),
        }
    }

    /// With a second half, whether or not it needs one.
    pub(super) fn whole(flow: &Flow) -> Self {
        let ([up, down], (key, kind)) = (flow.steps, flow.key.long());
        let up = match up {
            StepIndex::NONE => 0,
            _ => UP | if up.place() == 0 { 0 } else { DOWN } | up.cell() as u32 & CELL,
        };
        let stands = (Form::Other as u32) << FORM_SHIFT | HAS_REST | up;
        Self::Whole(first_half(flow, stands), Rest { key, down, classes: flow.classes, kind })
    }

    /// Tick of its last packet.
    pub(super) const fn seen(&self) -> u16 {
        let (Self::Half(half) | Self::Whole(half, _)) = self;
        half.seen
    }

    /// Places of the table.
    pub(super) const fn places(&self) -> usize {
        if self.is_half() { 1 } else { 2 }
    }

    /// Whether it takes half a line.
    pub(in crate::state) const fn is_half(&self) -> bool {
        matches!(self, Self::Half(_))
    }

    /// The flow itself.
    pub(super) fn flow(&self) -> Flow {
        let (half, steps, key, classes) = match self {
            Self::Half(half) => (half, half.steps(), FlowKey::of_short(half.form(), half.short()), [0; 2]),
            Self::Whole(half, rest) => {
                let place = u32::from(half.stands & DOWN != 0);
                let up =
                    if half.stands & UP == 0 { StepIndex::NONE } else { StepIndex::new(half.cell(), place) };
                (half, [up, rest.down], FlowKey::of_long(half.short(), (rest.key, rest.kind)), rest.classes)
            }
        };
        Flow {
            key,
            generation: half.generation,
            steps,
            arrivals: half.arrivals,
            seen: half.seen,
            classes,
            looks: half.looks,
            host: half.host,
            detected: half.detected(),
        }
    }
}

/// Where both steps stand, if one cell has both, each on the line of its direction.
fn in_one_cell([up, down]: [StepIndex; 2]) -> Option<u32> {
    let stands = |step: StepIndex, known: u32, place: usize| match step {
        StepIndex::NONE => Some((0, None)),
        _ => {
            (step.place() == place && step.cell() <= CELL as usize).then(|| (known, Some(step.cell() as u32)))
        }
    };
    let ((up, at), (down, other)) = (stands(up, UP, 0)?, stands(down, DOWN, 1)?);
    let is_one = at.is_none() || other.is_none() || at == other;
    is_one.then(|| up | down | at.or(other).unwrap_or_default())
}

fn first_half(flow: &Flow, stands: u32) -> Half {
    let [addresses, ports] = flow.key.short();
    Half {
        addresses,
        ports: ports | u64::from(flow.detected.bits()),
        generation: flow.generation,
        arrivals: flow.arrivals,
        seen: flow.seen,
        looks: flow.looks,
        host: flow.host,
        stands,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Circumstances;
    use super::*;
    use crate::state::blocks::FlowLine;
    use packet::five_tuple::FiveTuple;
    use packet::protocol::{ICMP, TCP, UDP};
    use proptest::prelude::*;

    /// Of any kind, half of them over IPv4, with few values for what is to be alike.
    fn tuples() -> impl Strategy<Value = FiveTuple> {
        let address = || prop_oneof![Just(1), any::<u128>()];
        let rest =
            (any::<[u16; 2]>(), prop::sample::select(vec![TCP, UDP, ICMP]), any::<bool>(), any::<bool>());
        (address(), address(), rest).prop_map(
            |(source, destination, (ports, protocol, fragment, is_ipv4))| {
                let (version, shift) = if is_ipv4 { (4, 96) } else { (6, 0) };
                let [source_port, destination_port] = ports;
                let (source, destination) = (source << shift, destination << shift);
                let of =
                    FiveTuple { source, destination, version, protocol, fragment, ..FiveTuple::default() };
                FiveTuple { source_port, destination_port, ..of }
            },
        )
    }

    fn steps() -> impl Strategy<Value = StepIndex> {
        let cells = prop_oneof![Just(CELL), 0..4u32];
        prop_oneof![
            Just(StepIndex::NONE),
            (cells, 0..2u32).prop_map(|(cell, place)| StepIndex::new(cell, place))
        ]
    }

    fn flows() -> impl Strategy<Value = Flow> {
        let key = (tuples(), any::<u16>(), any::<bool>()).prop_map(|(tuple, instance, between)| {
            let key = FlowKey::new(&tuple, Direction::Uplink).within(rules::Instance::of_digest(instance));
            if between { key.between(crate::state::session::SessionIndex(7)) } else { key }
        });
        let octets = (any::<[u8; 2]>(), any::<u8>(), any::<u8>());
        (key, any::<u32>(), [steps(), steps()], any::<([u16; 2], u16)>(), octets, any::<u16>()).prop_map(
            |(key, generation, steps, (arrivals, seen), (classes, looks, host), detected)| Flow {
                key,
                generation,
                steps,
                arrivals,
                seen,
                classes: if looks & CLASS == 0 { [0; 2] } else { classes },
                looks,
                host,
                detected: Detected::from_bits(detected),
            },
        )
    }

    proptest! {
        #[test]
        fn a_flow_comes_out_as_it_was_put_in(flow in flows()) {
            prop_assert_eq!(Packed::new(&flow).flow(), flow);
            prop_assert_eq!(Packed::whole(&flow).flow(), flow);
        }

        /// A half is found by its own key and no other, and says what the flow does; the second one of a whole is never found.
        #[test]
        fn a_half_says_what_its_flow_does(flow in flows(), other in flows(), begins: bool) {
            let (packed, arrival) = (Packed::new(&flow), flow.arrivals[0]);
            let keys = [flow.key, other.key];
            let Packed::Half(half) = packed else {
                let Packed::Whole(half, rest) = packed else { unreachable!() };
                let second: Half = zerocopy::transmute!(rest);
                prop_assert!(keys.iter().all(|key| !half.is(key) && !second.is(key)));
                return Ok(());
            };
            prop_assert_eq!(keys.map(|key| half.is(&key)), keys.map(|key| key == flow.key));
            let arriving = |arrival| Place {
                key: &flow.key,
                hash: 0,
                likely: FlowLine::NONE,
                direction: Direction::Uplink,
                circumstances: Circumstances { arrival, ..Circumstances::default() },
            };
            let begins = |_| if begins { Beginning::Connection } else { Beginning::Nothing };
            let found = half.step(arriving(arrival), begins);
            match found {
                Found::Step(step, generation) => prop_assert_eq!((step, generation), (flow.steps[0], flow.generation)),
                Found::Nothing => prop_assert_eq!(flow.steps[0], StepIndex::NONE),
                Found::More => prop_assert!(flow.looks & LOOKS != 0 && begins(false) == Beginning::Connection),
            }
            let elsewhere = half.step(arriving(!arrival), begins);
            prop_assert!(matches!(elsewhere, Found::Nothing));
        }
    }

    #[test]
    fn a_flow_of_one_cell_over_ipv4_takes_half_a_line() {
        let udp = FiveTuple {
            source: 1 << 96,
            destination: 2 << 96,
            version: 4,
            protocol: UDP,
            ..FiveTuple::default()
        };
        let key = FlowKey::new(&udp, Direction::Uplink);
        let flow = Flow { key, steps: [StepIndex::new(7, 0), StepIndex::new(7, 1)], ..Flow::EMPTY };
        let one_way = Flow { steps: [StepIndex::NONE, StepIndex::new(7, 1)], ..flow };
        assert!(Packed::new(&flow).is_half() && Packed::new(&one_way).is_half());
        let elsewhere = Flow { steps: [StepIndex::new(7, 0), StepIndex::new(8, 1)], ..flow };
        let swapped = Flow { steps: [StepIndex::new(7, 1), StepIndex::NONE], ..flow };
        let by_class = Flow { looks: CLASS, ..flow };
        let ping =
            Flow { key: FlowKey::new(&FiveTuple { protocol: ICMP, ..udp }, Direction::Uplink), ..flow };
        assert!([elsewhere, swapped, by_class, ping].iter().all(|flow| !Packed::new(flow).is_half()));
    }
}
