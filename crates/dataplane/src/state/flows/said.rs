//! What the first packets of a flow said, in as little as a flow has room for: enough to ask other rules of the same.

use dpi::matching::{Facts, Layer};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// In an octet whose lower bits are [`super::Flow::looks`]: there is something to ask again by...
const ASKABLE: u8 = 1 << 7;
/// ... the layer, counted from 1...
const LAYER_SHIFT: u32 = 4;
const LAYER: u8 = 7 << LAYER_SHIFT;
/// ... and Encrypted ClientHello.
const ECH: u8 = 1 << 3;
/// All of these.
pub(super) const BITS: u8 = ASKABLE | LAYER | ECH;

const LAYERS: [Layer; 7] =
    [Layer::Http, Layer::Http2, Layer::Tls, Layer::Quic, Layer::Dns, Layer::Stun, Layer::Rtp];

/// A layer, and eight bits of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Said {
    pub(super) bits: u8,
    /// 0 where no host was named.
    pub(super) host: u8,
}

impl Said {
    /// What nobody can be asked by: of it too much is needed that is not kept, as the path of a request.
    pub(crate) const UNKNOWN: Self = Self { bits: 0, host: 0 };

    /// What packets said themselves.
    pub(crate) fn of(facts: &Facts<'_>) -> Self {
        let number = facts.layer.and_then(|layer| LAYERS.iter().position(|it| *it == layer));
        let layer = number.map_or(0, |number| number as u8 + 1) << LAYER_SHIFT;
        let ech = if facts.ech { ECH } else { 0 };
        Self { bits: ASKABLE | layer | ech, host: facts.host.map_or(0, digest) }
    }

    /// Whether there is anything to ask by.
    pub(super) const fn is_known(self) -> bool {
        self.bits & ASKABLE != 0
    }

    /// The same facts again, where `learned`, which DNS calls the server, is not another host than was named.
    pub(crate) fn facts<'a>(self, learned: Facts<'a>) -> Option<Facts<'a>> {
        let is_it = self.host == 0 || learned.host.is_some_and(|host| digest(host) == self.host);
        let number = usize::from((self.bits & LAYER) >> LAYER_SHIFT);
        let layer = number.checked_sub(1).and_then(|number| LAYERS.get(number)).copied();
        (self.is_known() && is_it).then_some(Facts { layer, ech: self.bits & ECH != 0, ..learned })
    }
}

/// Eight bits of a host in any case of letters; never 0.
fn digest(host: &[u8]) -> u8 {
    let fnv =
        |hash: u32, octet: &u8| (hash ^ u32::from(octet.to_ascii_lowercase())).wrapping_mul(0x0100_0193);
    let hash = host.iter().fold(0x811c_9dc5, fnv);
    ((hash >> 24) as u8).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_said_again_where_the_server_is_called_so() {
        for layer in LAYERS.map(Some).into_iter().chain([None]) {
            for (ech, host) in [(false, Some(&b"A.example"[..])), (true, None)] {
                let facts = Facts { layer, ech, host, ..Facts::default() };
                let said = Said::of(&facts);
                let learned = Facts { host: Some(b"a.example"), ..Facts::default() };
                assert_eq!(said.facts(learned), Some(Facts { layer, ech, ..learned }));
                let unnamed = Facts::default();
                let again = host.is_none().then_some(Facts { layer, ech, ..unnamed });
                assert_eq!(said.facts(unnamed), again);
                assert_eq!(said.bits & !BITS, 0);
            }
        }
        assert_eq!(Said::UNKNOWN.facts(Facts::default()), None);
    }

    /// One other name in 255 is taken for it.
    #[test]
    fn few_other_names_are_taken_for_it() {
        let said = Said::of(&Facts { host: Some(b"www.a.example"), ..Facts::default() });
        let taken = (0..10_000).filter(|number| {
            let name = format!("host-{number}.cdn.example");
            said.facts(Facts { host: Some(name.as_bytes()), ..Facts::default() }).is_some()
        });
        assert!((20..60).contains(&taken.count()));
    }
}
