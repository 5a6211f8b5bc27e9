//! Packets kept for users who sleep (TS 29.244 5.2.4): told once for each rule, and how to go on is told in return. What
//! became of the packets decides when a rule is told of anew.

mod extended;

pub(crate) use extended::{is_extended, settle};

use crate::asking::Telling;
use crate::exchange::Purpose;
use crate::interface::Level;
use crate::node::Node;
use crate::sessions::Session;
use crate::{offline, predefined};
use pfcp::{
    Cause, DownlinkDataReport, DownlinkDataServiceInformation, ReportType, SessionReportRequest,
    SessionReportResponse, UpdateBarInReport, flags,
};
use rules::{ApplyAction, Bar, BarId, BarUpdate, Change, Direction, Far, PdrId, Qfi, Rules, Seid};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// The unit of a notification delay (TS 29.244 8.2.28).
const DELAY_UNIT_MS: u64 = 50;
/// An owner who refuses to hear of packets so often in a row hears of the next ones only.
const REFUSALS: u8 = 3;

/// What a session's owner knows of packets kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paging {
    /// Rules it was told of.
    told: BTreeMap<PdrId, Told>,
    /// Rules to tell of, and when.
    waiting: Vec<(PdrId, Kept)>,
    due_ms: u64,
    /// Nothing is told before.
    from_ms: u64,
    /// Reports refused in a row.
    refused: u8,
    /// How many packets the owner wants kept while they are kept this time (DL Buffering Suggested Packet Count).
    this_time: Vec<(BarId, u16)>,
    /// The owner does not want what is kept.
    pub(crate) drop_buffered: bool,
    /// BARs by which no more is kept for longer than usual, and what was is to be dropped.
    pub(crate) over: Vec<BarId>,
}

/// A packet that the data plane keeps, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    information: DownlinkDataServiceInformation,
    until_ms: u64,
}

/// What was told of a rule. The data plane says again that it keeps a packet once those it was told of were kept too
/// long, which is news unless it comes at once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    kept: Kept,
    again_ms: u64,
}

impl Paging {
    /// The rules have changed: what no longer keeps packets may be told of again when it does. Of what was dropped nothing is kept: the
    /// first packet that is comes after the change (TS 29.244 8.2.26).
    pub(crate) fn retain(&mut self, (before, rules): (&Rules, &Rules)) {
        let keeps = |pdr: &PdrId| far_of(rules, *pdr).is_some_and(Far::notifies);
        let begins = |pdr: &PdrId| drops(before, *pdr) && !drops(rules, *pdr);
        self.told.retain(|pdr, _| keeps(pdr) && !begins(pdr));
        self.waiting.retain(|(pdr, _)| keeps(pdr));
        self.this_time.retain(|(bar, _)| is_in_use(rules, *bar));
    }

    /// What the data plane is told of BARs beside what the session's rules say of them.
    pub(crate) fn adapt(&self, rules: &mut Arc<Rules>) {
        for (id, count) in &self.this_time {
            let is_in_use = is_in_use(rules, *id);
            let bar = Arc::make_mut(rules).bars.iter_mut().find(|bar| bar.id == *id).filter(|_| is_in_use);
            // Extended buffering has a count of its own.
            let bar = bar.filter(|bar| bar.extended.is_none());
            bar.into_iter().for_each(|bar| bar.suggested_packets = Some(*count));
        }
    }

    /// The newest word holds: a count for this time, or one that holds from now on.
    fn suggested(&mut self, rules: &Rules, update: &UpdateBarInReport) {
        let bar = BarId(update.bar_id);
        let this_time = update.dl_buffering_suggested_packet_count.filter(|_| is_in_use(rules, bar));
        if this_time.is_some() || update.suggested_buffering_packets_count.is_some() {
            self.this_time.retain(|(known, _)| *known != bar);
        }
        self.this_time.extend(this_time.map(|count| (bar, count.0)));
    }

    /// What was kept is dropped: what is kept from now on is news, to be told no sooner than `from_ms`.
    pub(crate) fn begin_anew(&mut self, from_ms: u64) {
        self.told.clear();
        self.waiting.clear();
        self.from_ms = from_ms;
    }

    /// Where nothing is to be told, no moment is either.
    pub(crate) const fn pass(&mut self, now_ms: u64) {
        if self.waiting.is_empty() {
            self.due_ms = 0;
        }
        if self.from_ms <= now_ms {
            self.from_ms = 0;
        }
    }

    fn wait(&mut self, pdr: PdrId, kept: Kept, due_ms: u64) {
        let due_ms = due_ms.max(self.from_ms);
        self.due_ms = if self.waiting.is_empty() { due_ms } else { self.due_ms.min(due_ms) };
        self.waiting.push((pdr, kept));
    }

    /// Whether a packet is no news; it is kept longer than the others, though.
    fn knows(&mut self, pdr: PdrId, until_ms: u64, now_ms: u64) -> bool {
        let told = self.told.get_mut(&pdr).filter(|told| told.again_ms > now_ms).map(|told| &mut told.kept);
        let waiting = self.waiting.iter_mut().find(|(waiting, _)| *waiting == pdr).map(|(_, kept)| kept);
        let known = told.or(waiting);
        let is_known = known.is_some();
        known.into_iter().for_each(|kept| kept.until_ms = until_ms);
        is_known
    }

    /// Takes what is to be told now; what is not kept any more is not told.
    fn take(&mut self, now_ms: u64, again_ms: u64) -> Vec<(PdrId, Kept)> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|(_, kept)| kept.until_ms > now_ms);
        self.told.extend(waiting.iter().map(|(pdr, kept)| (*pdr, Told { kept: *kept, again_ms })));
        waiting
    }
}

/// Of a rule for packets to the user: what users send makes nobody page (TS 29.244 8.2.26, NOCP).
fn far_of(rules: &Rules, pdr: PdrId) -> Option<&Far> {
    let pdr = rules.pdrs.iter().find(|rule| rule.id == pdr)?;
    let far = (pdr.pdi.source_interface.direction() == Direction::Downlink).then_some(pdr.far)?;
    rules.fars.iter().find(|rule| rule.id == far)
}

fn drops(rules: &Rules, pdr: PdrId) -> bool {
    far_of(rules, pdr).is_some_and(|far| far.apply_action == ApplyAction::Drop)
}

/// Whether packets are kept by a BAR.
fn is_in_use(rules: &Rules, bar: BarId) -> bool {
    rules.fars.iter().any(|far| far.apply_action == ApplyAction::Buffer && far.bar == Some(bar))
}

fn bar_of<'a>(rules: &'a Rules, far: &Far) -> Option<&'a Bar> {
    far.bar.and_then(|id| rules.bars.iter().find(|bar| bar.id == id))
}

fn delay_ms(rules: &Rules, far: &Far) -> u64 {
    bar_of(rules, far).map_or(0, |bar| u64::from(bar.notification_delay_50ms) * DELAY_UNIT_MS)
}

impl Node {
    /// The data plane keeps the first packet of a rule.
    pub(crate) fn downlink_data(&mut self, seid: Seid, pdr: PdrId, (qfi, class): (Option<Qfi>, u8)) {
        let now_ms = self.wall_ms();
        let until_ms = now_ms + self.config.kept_for.as_millis() as u64;
        let Some(session) = self.sessions.get_mut(seid) else { return };
        let pdr = offline::behind(&session.record, &self.config, pdr);
        let pdr = predefined::parent(&session.record, &self.config.predefined, pdr);
        let rules = &session.record.rules;
        let Some(far) = far_of(rules, pdr).filter(|far| far.notifies()) else { return };
        if extended::waits_in_silence(rules, pdr) || session.paging.knows(pdr, until_ms, now_ms) {
            return;
        }
        let information = DownlinkDataServiceInformation {
            paging_policy_indication: Some(class >> 2),
            qfi: qfi.map(Qfi::value),
        };
        session.paging.wait(pdr, Kept { information, until_ms }, now_ms + delay_ms(rules, far));
        self.attend(seid);
    }

    /// Tells the owner of what waits, if it is time; when it will be.
    pub(crate) fn page(&mut self, seid: Seid, now_ms: u64) -> Option<u64> {
        let again_ms = self.paged_again_ms();
        let Session { paging, record, .. } = self.sessions.get_mut(seid)?;
        paging.waiting.retain(|(pdr, _)| !extended::waits_in_silence(&record.rules, *pdr));
        if paging.waiting.is_empty() || paging.due_ms > now_ms {
            return (!paging.waiting.is_empty()).then_some(paging.due_ms);
        }
        if self.must_wait(seid) {
            return None;
        }
        let waiting = self.sessions.get_mut(seid)?.paging.take(now_ms, again_ms);
        if waiting.is_empty() {
            return None;
        }
        let (pdr_ids, kept): (Vec<PdrId>, Vec<Kept>) = waiting.into_iter().unzip();
        let report = DownlinkDataReport {
            pdr_ids: pdr_ids.iter().map(|pdr| pdr.0).collect(),
            service_information: kept.into_iter().map(|kept| kept.information).collect(),
            carried: vec![],
        };
        let request = SessionReportRequest {
            report_type: ReportType(ReportType::DLDR),
            downlink_data_report: Some(report),
            ..SessionReportRequest::default()
        };
        match self.tell_owner(seid, Purpose::Paging(seid, pdr_ids.clone()), request) {
            Telling::UnderWay => self.counters.downlink_data_reports += 1,
            Telling::NoRoom | Telling::Silent => {
                let soon_ms = now_ms + self.config.report_interval.as_millis() as u64;
                self.wait_again(seid, &pdr_ids, soon_ms);
            }
        }
        self.sessions.get(seid).map(|s| &s.paging).filter(|p| !p.waiting.is_empty()).map(|p| p.due_ms)
    }

    /// Nobody answered: as long as packets are kept, the owner is told again; at once, if that is at another address of its from now on.
    pub(crate) fn page_unheard(&mut self, (seid, at): (Seid, SocketAddr), pdrs: &[PdrId]) {
        let is_elsewhere = self.sessions.get(seid).is_some_and(|session| {
            let (owner, named) = (&session.record.owner, session.record.cp_f_seid.address);
            let next = self.report_address(owner, named);
            next != at && next.ip() != named
        });
        let again_ms = if is_elsewhere { self.wall_ms() } else { self.paged_again_ms() };
        self.wait_again(seid, pdrs, again_ms);
        self.attend(seid);
    }

    fn page_again(&mut self, seid: Seid, pdrs: &[PdrId]) {
        self.wait_again(seid, pdrs, self.paged_again_ms());
        self.attend(seid);
    }

    /// An owner who refuses may be able to do more in a while, but not for ever.
    pub(crate) fn page_answered(&mut self, seid: Seid, pdrs: &[PdrId], cause: Cause) {
        let Some(session) = self.sessions.get_mut(seid) else { return };
        let refused = if cause.is_accepted() { 0 } else { session.paging.refused + 1 };
        session.paging.refused = refused % (REFUSALS + 1);
        if session.paging.refused > 0 {
            self.page_again(seid, pdrs);
        }
    }

    /// When an owner that did not take it is told again.
    fn paged_again_ms(&self) -> u64 {
        self.wall_ms() + self.config.heartbeat_interval.as_millis() as u64
    }

    fn wait_again(&mut self, seid: Seid, pdrs: &[PdrId], again_ms: u64) {
        let Some(Session { paging, .. }) = self.sessions.get_mut(seid) else { return };
        for pdr in pdrs {
            if let Some(told) = paging.told.remove(pdr) {
                paging.wait(*pdr, told.kept, again_ms);
            }
        }
    }

    /// The answer to a report may say how to keep packets from now on, or to keep none (TS 29.244 7.5.9).
    pub(crate) fn buffer_otherwise(&mut self, seid: Seid, response: &SessionReportResponse) {
        let drops = response.pfcpsrrsp_flags.is_some_and(|bits| bits & flags::PFCPSRRSP_DROBU != 0);
        // Who drops every packet is told of every other: not all at once.
        let now_ms = self.wall_ms();
        let from_ms = now_ms + self.config.report_interval.as_millis() as u64;
        let Some(session) = self.sessions.get_mut(seid) else { return };
        session.paging.drop_buffered |= drops;
        if drops {
            session.paging.begin_anew(from_ms);
            each_rules(session).for_each(extended::end_all);
        }
        let update = response.update_bar.as_ref();
        if let Some(unknown) = update.filter(|update| !change(session, update, now_ms)) {
            let bar = BarId(unknown.bar_id);
            self.note(Level::Warning, format!("session {seid} has no {bar} to update"));
        }
        if drops || update.is_some() {
            self.put_again(seid);
            self.attend(seid);
        }
    }
}

/// Those a session has, and those it is about to have.
fn each_rules(session: &mut Session) -> impl Iterator<Item = &mut Arc<Rules>> {
    let next = session.pending.as_mut().and_then(|pending| pending.next());
    next.into_iter().chain([&mut session.record]).map(|record| &mut record.rules)
}

/// Whether there is such a BAR.
fn change(session: &mut Session, update: &UpdateBarInReport, now_ms: u64) -> bool {
    session.paging.suggested(&session.record.rules, update);
    let known = each_rules(session).filter_map(|rules| change_bar(rules, update, now_ms).then_some(()));
    known.count() > 0
}

fn change_bar(rules: &mut Arc<Rules>, asked: &UpdateBarInReport, now_ms: u64) -> bool {
    let update = BarUpdate { extended: extended::asked(rules, asked, now_ms), ..bar_update(asked) };
    let changed = rules.change(Change { update_bars: vec![update], ..Change::default() });
    changed.map(|changed| *rules = Arc::new(changed)).is_ok()
}

/// What holds from now on.
fn bar_update(update: &UpdateBarInReport) -> BarUpdate {
    let count = update.suggested_buffering_packets_count.map(u16::from);
    BarUpdate {
        id: BarId(update.bar_id),
        notification_delay_50ms: update.downlink_data_notification_delay,
        suggested_packets: count.map(Some),
        extended: None,
    }
}
