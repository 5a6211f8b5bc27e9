//! One association (TS 29.244 6.2.6), as it stands.

use crate::capabilities::Outdated;
use crate::heartbeat::Suspicion;
use crate::pace::Pace;
use machine::Time;
use pfcp::CpFeature;
use session::AssociationRecord;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// An association (TS 29.244 6.2.6).
#[derive(Debug)]
pub(crate) struct Association {
    pub(crate) record: AssociationRecord,
    /// Since when it is silent; as far as is known, it is there.
    pub(crate) silent: Option<Time>,
    /// When it is looked whether it has been silent for too long (`gone.rs`).
    pub(crate) given_up: Option<Time>,
    /// When anything came from its address last.
    pub(crate) heard: Option<Time>,
    /// When somebody spoke in its name last though it was silent: from another address of its own, or one of its set.
    pub(crate) spoken_for: Option<Time>,
    /// When it was asked last whether it is there.
    pub(crate) asked: Option<Time>,
    /// When to ask next whether it is there.
    pub(crate) next_heartbeat: Time,
    /// It has been asked and has not answered yet.
    pub(crate) is_asked: bool,
    /// What came of asking it last, since it was set up.
    pub(crate) answer: Answer,
    /// When it was set up, or answered last: unlike what comes from its address, that is its own doing.
    pub(crate) shown: Option<Time>,
    /// Which of those who stand in for it while it is silent is asked: how often one of them did not answer.
    pub(crate) turn: usize,
    /// CP F-SEIDs of its sessions where nobody answers: what these are told goes to its own address instead.
    pub(crate) unreached: BTreeSet<IpAddr>,
    /// It told another recovery time stamp, and until when it may say which sessions it retains.
    pub(crate) restarted: Option<(u32, Time)>,
    /// A heartbeat request of its own told a later recovery time stamp.
    pub(crate) suspicion: Option<Suspicion>,
    /// When its answer told otherwise last.
    pub(crate) cleared: Option<Time>,
    /// It restarted and has not associated since: if it leaves that to us, it is asked to.
    pub(crate) is_forgotten: bool,
    /// When it is over, as we asked for its release.
    pub(crate) ends: Option<Time>,
    /// That time has come, its sessions end, and until when it is told what they used.
    pub(crate) farewell: Option<Time>,
    /// Its sessions end by portions (`ending.rs`): nothing else of this is due until that is done.
    pub(crate) is_ending: bool,
    /// Sessions that have gone, as it did not release us in time.
    pub(crate) parted: usize,
    /// It was asked for its release in a former life of ours, and may not have heard.
    pub(crate) is_to_hear: bool,
    /// Another one has been set up at its address since it spoke by its name: it may be that one.
    pub(crate) is_doubted: bool,
    /// Sessions of up to this era end then, as it has not named them (`stale.rs`).
    pub(crate) stale_end: Option<(u32, Time)>,
    /// It has yet to hear what we can do now.
    pub(crate) outdated: Option<Outdated>,
    /// When it is told next of what its sessions used.
    pub(crate) pace: Pace,
    /// The load it was told of last, and the overload and when.
    pub(crate) told: Told,
}

impl Association {
    /// One that was heard of then, if in this life of ours, and is asked whether it is there at that time.
    pub(super) fn new(record: AssociationRecord, heard: Option<Time>, next_heartbeat: Time) -> Self {
        Self {
            record,
            silent: None,
            given_up: None,
            heard,
            spoken_for: None,
            asked: None,
            next_heartbeat,
            is_asked: false,
            answer: Answer::Unknown,
            shown: heard,
            turn: 0,
            unreached: BTreeSet::new(),
            restarted: None,
            suspicion: None,
            cleared: None,
            is_forgotten: false,
            ends: None,
            farewell: None,
            is_ending: false,
            parted: 0,
            is_to_hear: false,
            is_doubted: false,
            stale_end: None,
            outdated: None,
            pace: Pace::default(),
            told: Told::default(),
        }
    }

    pub(crate) const fn is_up(&self) -> bool {
        self.silent.is_none()
    }

    /// Whether only its sessions are left of it.
    pub(crate) fn is_over(&self) -> bool {
        self.record.ends_ms == Some(AssociationRecord::IS_OVER)
    }

    /// From now on; looked at again after `patience`, if there is an end to that.
    pub(crate) fn falls_silent(&mut self, now: Time, patience: Option<Duration>) {
        self.silent = Some(now);
        self.given_up = patience.map(|patience| now + patience);
        self.turn = 0;
    }

    pub(crate) const fn is_heard(&mut self) {
        (self.silent, self.given_up, self.turn) = (None, None, 0);
    }

    /// Whether it has been asked whether it is there and has never said so.
    pub(crate) const fn is_mute(&self) -> bool {
        !self.record.answers_heartbeats && self.asked.is_some()
    }

    /// Whether it speaks from there: itself, or others of its set in its name (TS 29.244 5.22.2).
    pub(crate) fn speaks_from(&self, address: IpAddr) -> bool {
        self.record.address.ip() == address || self.record.alternatives.contains(&address)
    }

    pub(crate) fn is_of_set(&self, other: &Self) -> bool {
        !self.record.set_id.is_empty() && self.record.set_id == other.record.set_id
    }

    /// Whether it can do something (TS 29.244 8.2.58).
    pub(crate) fn has(&self, feature: CpFeature) -> bool {
        let bit = feature as usize;
        self.record.features.get(bit / 8).is_some_and(|octet| octet & (1 << (bit % 8)) != 0)
    }
}

/// Whether a control plane answers heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It has not been asked for long enough.
    Unknown,
    Given,
    Missing,
}

/// What a control plane was told last of how busy we are: sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) load: Option<u32>,
    pub(crate) overload: Option<(u32, Time)>,
}
