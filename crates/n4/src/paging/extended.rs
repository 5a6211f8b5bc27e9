//! Extended buffering (TS 29.244 5.2.4.2 and 8.2.29): the owner knows that the user cannot be reached for a while, and wants
//! packets kept for so long without hearing of them. It ends when its time is over, and what waited goes with it; when the FAR does
//! not keep packets any more; or when the owner has them dropped.

use super::{Paging, bar_of, each_rules, far_of, is_in_use};
use crate::node::Node;
use crate::sessions::Session;
use pfcp::{UpdateBarInReport, flags, ie};
use rules::{ApplyAction, BarId, Extended, PdrId, Rules, Seid};
use std::sync::Arc;

/// Unit and value of a timer that is stopped (TS 29.244 8.2.29).
const STOPPED: u8 = 0;

/// What becomes of a BAR's extended buffering by the answer to a report: nothing, where packets are not kept by it.
pub(super) fn asked(rules: &Rules, update: &UpdateBarInReport, now_ms: u64) -> Option<Option<Extended>> {
    let id = BarId(update.bar_id);
    let bar = rules.bars.iter().find(|bar| bar.id == id).filter(|_| is_in_use(rules, id))?;
    let count = update.dl_buffering_suggested_packet_count.map(|count| count.0);
    // The newest word holds.
    let before = bar.extended.filter(|_| update.suggested_buffering_packets_count.is_none());
    let packets = count.or(before.and_then(|extended| extended.packets));
    match update.dl_buffering_duration {
        Some(STOPPED) => Some(None),
        None if update.removes(ie::DL_BUFFERING_DURATION) => Some(None),
        None => bar.extended.map(|extended| Some(Extended { packets, ..extended })),
        Some(timer) => {
            let lasts_s = flags::timer_s(timer).map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
            let ends_ms = lasts_s.map_or(Extended::NEVER, |seconds| now_ms + u64::from(seconds) * 1_000);
            Some(Some(Extended { lasts_s, ends_ms, packets }))
        }
    }
}

/// Whether packets of a rule are kept without a word now.
pub(super) fn waits_in_silence(rules: &Rules, pdr: PdrId) -> bool {
    let far = far_of(rules, pdr).filter(|far| far.apply_action == ApplyAction::Buffer);
    let bar = far.and_then(|far| bar_of(rules, far));
    bar.is_some_and(|bar| bar.extended.is_some())
}

/// Ends it where `is_over` says so.
fn end(rules: &mut Arc<Rules>, is_over: impl Fn(&Rules, BarId) -> bool) {
    let lasting = rules.bars.iter().filter(|bar| bar.extended.is_some());
    let over: Vec<BarId> = lasting.map(|bar| bar.id).filter(|bar| is_over(rules, *bar)).collect();
    if !over.is_empty() {
        let bars = Arc::make_mut(rules).bars.iter_mut().filter(|bar| over.contains(&bar.id));
        bars.for_each(|bar| bar.extended = None);
    }
}

pub(super) fn end_all(rules: &mut Arc<Rules>) {
    end(rules, |_, _| true);
}

/// Rules as a modification would have them: where they keep no packets, nothing lasts.
pub(crate) fn settle(rules: &mut Arc<Rules>, are_dropped: bool) {
    end(rules, |rules, bar| are_dropped || !is_in_use(rules, bar));
}

/// Whether there is some that will be over.
pub(crate) fn is_extended(session: &Session) -> bool {
    session.record.rules.bars.iter().any(|bar| bar.extended.is_some())
}

impl Paging {
    /// What was kept by these is dropped: what comes next is news.
    fn end(&mut self, rules: &Rules, over: &[BarId]) {
        let is_by = |pdr: PdrId| {
            let bar = far_of(rules, pdr).and_then(|far| far.bar);
            bar.is_some_and(|bar| over.contains(&bar))
        };
        self.told.retain(|pdr, _| !is_by(*pdr));
        self.waiting.retain(|(pdr, _)| !is_by(*pdr));
        self.this_time.retain(|(bar, _)| !over.contains(bar));
        self.over.extend(over);
    }
}

impl Node {
    /// Ends extended buffering whose time is over; when the next is.
    pub(crate) fn end_buffering(&mut self, seid: Seid, now_ms: u64) -> Option<u64> {
        let session = self.sessions.get_mut(seid)?;
        let lasting = |session: &Session| {
            let bars = session.record.rules.bars.iter();
            let ends: Vec<_> = bars.filter_map(|bar| Some((bar.id, bar.extended?.ends_ms))).collect();
            ends.into_iter().filter(|(_, ends_ms)| *ends_ms != Extended::NEVER)
        };
        let over: Vec<BarId> =
            lasting(session).filter(|(_, ends_ms)| *ends_ms <= now_ms).map(|(bar, _)| bar).collect();
        if !over.is_empty() {
            session.paging.end(&session.record.rules, &over);
            each_rules(session).for_each(|rules| end(rules, |_, bar| over.contains(&bar)));
            self.put_again(seid);
        }
        lasting(self.sessions.get(seid)?).map(|(_, ends_ms)| ends_ms).min()
    }
}
