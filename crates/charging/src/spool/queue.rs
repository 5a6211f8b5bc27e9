//! Records that wait for a file, and how much of one they fill.

use super::Settings;
use crate::ber::Context;
use crate::file::{self, Closure};
use crate::record::Cdr;
use machine::Time;
use std::collections::VecDeque;

/// A record that waits.
#[derive(Debug)]
struct Waiting {
    cdr: Cdr,
    since: Time,
    /// Its octets in a file, of the format in which it has most.
    bytes: usize,
}

/// Records that wait, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

impl Queue {
    pub(super) fn push(&mut self, cdr: Cdr, since: Time, settings: &Settings) {
        let context = Context { node: &settings.node, zone: &settings.zone };
        let lengths = settings.formats.iter().map(|format| file::record(&cdr, *format, context).len());
        let bytes = lengths.max().unwrap_or(0);
        self.bytes += bytes;
        self.waiting.push_back(Waiting { cdr, since, bytes });
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The first `count` of them.
    pub(super) fn first(&self, count: usize) -> Vec<Cdr> {
        self.waiting.iter().take(count).map(|one| one.cdr.clone()).collect()
    }

    /// Forgets the first `count`. Those behind have waited since they came.
    pub(super) fn drop_first(&mut self, count: usize) {
        let gone: usize = self.waiting.drain(..count.min(self.len())).map(|one| one.bytes).sum();
        self.bytes -= gone;
    }

    /// Whether a file is to be closed: they fill one, whatever the time, or the first has waited long enough.
    pub(super) fn is_due(&self, settings: &Settings, now: Time) -> bool {
        let is_full = self.len() >= settings.file_cdrs || self.bytes >= settings.file_bytes;
        self.waiting.front().is_some_and(|first| is_full || first.since + settings.file_age <= now)
    }

    /// How many go into the next file, and why no more.
    pub(super) fn next_file(&self, settings: &Settings, is_due: bool) -> (usize, Closure) {
        let mut bytes = 0;
        for (at, one) in self.waiting.iter().enumerate() {
            bytes += one.bytes;
            if bytes > settings.file_bytes && at > 0 {
                return (at, Closure::Size);
            }
            if at == settings.file_cdrs {
                return (at, Closure::Count);
            }
        }
        let closure = match self.len() {
            _ if bytes >= settings.file_bytes => Closure::Size,
            all if all == settings.file_cdrs => Closure::Count,
            _ if is_due => Closure::Time,
            _ => Closure::Normal,
        };
        (self.len(), closure)
    }
}
