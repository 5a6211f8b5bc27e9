//! Flows that are open, and what is drawn of them.

use crate::bulk::{Bulk, Noise};
use crate::flows::Error;
use crate::origin::Flow;
use crate::profile::{Length, Profile, Transport};
use crate::random::{Choice, threshold};
use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Flows of one service that are open.
pub(crate) struct Table {
    pub(crate) transport: Transport,
    pub(crate) flows: Vec<Flow>,
    /// Most that are open.
    pub(crate) limit: u32,
    /// By place in the profile's lengths.
    uplink: Vec<Bulk>,
    downlink: Vec<Bulk>,
}

impl Table {
    /// One for each service, which together hold about `flows`.
    pub(crate) fn all(profile: &Profile, noise: &Noise, flows: u32) -> Result<Vec<Self>, Error> {
        let table = |service| -> Result<Self, Error> {
            let limit = ((profile.share(service) * f64::from(flows)) as u32).max(1);
            let mut table = Vec::new();
            table.try_reserve_exact(limit as usize).map_err(|_| Error::Memory(profile.flows))?;
            let bulk = |uplink, lengths: &[Length]| {
                lengths.iter().map(|length| Bulk::new(noise, (service.transport, uplink), length)).collect()
            };
            Ok(Self {
                transport: service.transport,
                flows: table,
                limit,
                uplink: bulk(true, profile.uplink_lengths),
                downlink: bulk(false, profile.downlink_lengths),
            })
        };
        profile.services.iter().map(table).collect()
    }

    #[inline]
    pub(crate) fn bulk(&self, draw: Draw) -> Option<Bulk> {
        let bulk = if draw.uplink { &self.uplink } else { &self.downlink };
        bulk.get(draw.length).copied()
    }
}

/// All that is drawn at random.
pub(crate) struct Draws {
    pub(crate) random: Pcg64,
    /// Below this of all 32-bit numbers, a packet opens a flow.
    pub(crate) opening: u32,
    uplink: u32,
    /// Services and lengths, down and up.
    choices: [[Choice; 2]; 2],
}

/// The next packet of a flow that is open.
#[derive(Clone, Copy)]
pub(crate) struct Draw {
    /// Place in the profile.
    pub(crate) service: usize,
    /// Place in the service's table.
    pub(crate) slot: usize,
    pub(crate) uplink: bool,
    /// Place in the direction's lengths.
    pub(crate) length: usize,
}

impl Draws {
    pub(crate) fn new(profile: &Profile, seed: u64) -> Self {
        let lengths = |lengths: &[Length]| Choice::new(lengths.iter().map(|length| length.share));
        let services = profile.services;
        Self {
            random: Pcg64::seed_from_u64(seed),
            opening: threshold(profile.opening),
            uplink: threshold(profile.uplink),
            choices: [
                [Choice::new(services.iter().map(|one| one.downlink)), lengths(profile.downlink_lengths)],
                [Choice::new(services.iter().map(|one| one.uplink)), lengths(profile.uplink_lengths)],
            ],
        }
    }

    /// Whether the next packet opens a flow.
    #[inline]
    pub(crate) fn opens(&mut self) -> bool {
        self.random.next_u32() < self.opening
    }

    /// A packet but for its slot, and a number to choose that by.
    #[inline]
    pub(crate) fn next(&mut self) -> (Draw, u32) {
        let [way, which] = [self.random.next_u64(), self.random.next_u64()];
        let uplink = (way as u32) < self.uplink;
        let [down, up] = &self.choices;
        let [services, lengths] = if uplink { up } else { down };
        let (service, length) = (services.pick((way >> 32) as u32), lengths.pick((which >> 32) as u32));
        (Draw { service, slot: 0, uplink, length }, which as u32)
    }
}
