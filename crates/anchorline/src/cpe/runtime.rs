//! Carries inputs to the PFCP node and does what it says.

mod outputs;
mod waking;

use super::charging::Outbox;
use super::content::{Rules, Telling};
use super::control::{Control, Ordered};
use super::keeping::Keeping;
use super::link::{Heard, Link};
use super::metrics::Pfcp;
use super::obey::{Obeyed, obey};
use super::orders::Orders;
use super::predefined::{Granted, Tables, unmatched};
use super::resync::in_step;
use super::send::Datagram;
use super::sockets::{Inbox, Sockets};
use dplink::{Command, Notice};
use machine::Time;
use n4::{Input, Node, PredefinedRule};
use outputs::Action;
use session::{Change, Store};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use waking::Wake;

/// Inputs of one kind that are taken before what they ask for is done: the database is written once for all of them,
/// which costs hardly more than for one.
const BATCH: usize = 128;
/// The node is told anew how long requests wait when it is another number of these.
const WAIT_MS: u128 = 16;
/// The node is told of the time of day when it differs by so much from what it was told.
const CLOCK_DIFFERS_MS: u64 = 100;

/// The node and everything around it.
pub(crate) struct Runtime {
    node: Node,
    keeping: Keeping,
    /// Charging records on their way into files, where anything is charged.
    charging: Option<Outbox>,
    sockets: Sockets,
    link: Link,
    /// What the operator orders.
    control: Control,
    /// Predefined rules, those that were put with them.
    tables: Tables,
    /// What the data plane is told.
    orders: Orders,
    /// Sessions that it held when it was linked.
    held: u64,
    /// What the node said and is not done yet.
    changes: Vec<Change>,
    actions: Vec<Action>,
    /// What goes out together.
    datagrams: Vec<Datagram>,
    zero: Instant,
    /// What time of day it was then, as the node was told last: milliseconds since 1900.
    told_zero_ms: u64,
    /// How long requests waited, as the node was told last: so many times [`WAIT_MS`].
    told_wait: u128,
    announced: bool,
    /// For metrics.
    told: watch::Sender<Pfcp>,
    /// The file of content rules to be in force.
    content: watch::Receiver<Rules>,
    /// PDRs of applications that nobody knows are refused.
    refuses_unknown: bool,
    /// When the data plane is told of it, and of rules made of PFDs.
    telling: Telling,
}

impl Runtime {
    pub(crate) fn new(
        ((node, zero), store, charging): ((Node, Instant), Arc<Store>, Option<Outbox>),
        sockets: Sockets,
        (link, control, tables): (Link, Control, Tables),
        (content, refuses_unknown): (watch::Receiver<Rules>, bool),
    ) -> Self {
        Self {
            told: watch::Sender::new(Pfcp::of(&node, charging.as_ref().map(Outbox::figures))),
            node,
            keeping: Keeping::new(store),
            charging,
            sockets,
            link,
            control,
            tables,
            orders: Orders::default(),
            held: 0,
            changes: Vec::new(),
            actions: Vec::new(),
            datagrams: Vec::new(),
            zero,
            told_zero_ms: 0,
            told_wait: 0,
            announced: false,
            content,
            refuses_unknown,
            telling: Telling::default(),
        }
    }

    /// What the node counts, as of its last input.
    pub(crate) fn told(&self) -> watch::Receiver<Pfcp> {
        self.told.subscribe()
    }

    /// Runs until something breaks that only a new start can mend.
    pub(crate) async fn run(&mut self) -> anyhow::Result<()> {
        let mut inbox = Inbox::new();
        self.know_applications();
        if let Some(warning) = self.unmatched(None) {
            tracing::warn!("{warning}");
        }
        loop {
            let wake = self.wake(inbox.one()).await?;
            self.tell_time();
            match wake {
                Wake::Datagram(length, from, waited) => {
                    self.tell_wait(waited);
                    self.datagrams(&mut inbox, (length, from));
                }
                Wake::Link(Some(heard)) => self.heard(heard).await,
                Wake::Link(None) => anyhow::bail!("the link's task ended"),
                Wake::Room => self.send_commands(),
                Wake::ContentFile => {
                    self.know_applications();
                    self.telling.file_changed(Instant::now());
                }
                Wake::Content => self.put_content(None),
                Wake::Timer => self.input(Input::Tick),
                Wake::Durable(durable) => self.durable(durable),
                Wake::Ordered(ordered) => self.obey(ordered),
                Wake::Keeping => {}
            }
            self.carry_out().await;
            // While there is always something to do, as amid a resynchronisation, nobody would look at the sockets: control
            // planes' heartbeats would wait.
            tokio::task::yield_now().await;
        }
    }

    /// Somebody may have changed the clock. Whatever comes finds that out, heartbeats at the latest.
    fn tell_time(&mut self) {
        if let Ok(since_1900_ms) = super::start::time_of_day(SystemTime::now()) {
            let moment = self.zero.elapsed().as_millis() as u64;
            let zero_ms = since_1900_ms.saturating_sub(moment);
            if zero_ms.abs_diff(self.told_zero_ms) >= CLOCK_DIFFERS_MS {
                self.told_zero_ms = zero_ms;
                self.input(Input::TimeOfDay { since_1900_ms });
            }
        }
    }

    /// How long requests wait, by the first of a batch: those behind it came no earlier.
    fn tell_wait(&mut self, waited: Duration) {
        let wait = waited.as_millis() / WAIT_MS;
        if wait != self.told_wait {
            self.told_wait = wait;
            self.input(Input::Waited(waited));
        }
    }

    /// A datagram, and those that wait behind it.
    fn datagrams(&mut self, inbox: &mut Inbox, (length, from): (usize, SocketAddr)) {
        let bytes = inbox.one().get(..length).unwrap_or_default();
        self.input(Input::Datagram { from, bytes });
        let mut taken = 1;
        while taken < BATCH {
            let more = self.sockets.try_receive(inbox, BATCH - taken);
            if more == 0 {
                return;
            }
            inbox.datagrams().for_each(|(bytes, from)| self.input(Input::Datagram { from, bytes }));
            taken += more;
        }
    }

    /// What the link says, and what it has said meanwhile.
    async fn heard(&mut self, heard: Heard) {
        let (mut next, mut taken) = (Some(heard), 0);
        while let Some(heard) = next {
            match heard {
                Heard::Farewell { commands } => self.farewell(&commands).await,
                Heard::Notice(notice) => {
                    self.notice(&notice);
                    taken += sessions(&notice);
                }
                other => {
                    self.link_changed(other).await;
                    taken += 1;
                }
            }
            next = if taken < BATCH { self.link.try_next() } else { None };
        }
    }

    /// Tells the node which applications there are, where it is to refuse others.
    fn know_applications(&mut self) {
        if self.refuses_unknown {
            let rules = self.content.borrow().clone().unwrap_or_default();
            self.node.know_applications(rules.applications().clone());
        }
    }

    /// Tells the data plane of the content rules, unless it has them.
    fn put_content(&mut self, in_force: Option<u64>) {
        let file = self.content.borrow_and_update().clone().unwrap_or_default();
        let rules = file.with(&self.node.content_rules());
        self.telling.lost();
        if self.orders.is_linked() && !in_force.is_some_and(|revision| rules.is_in_force(revision)) {
            self.telling.told(Instant::now());
            for part in rules.parts() {
                self.orders.give(Command::PutContent(part), |_| None);
            }
        }
    }

    fn notice(&mut self, notice: &Notice) {
        if let Notice::Resynced { swept } = notice {
            tracing::info!("{}", in_step(self.orders.named(), self.held, *swept));
            self.announce();
        }
        match notice {
            Notice::Removed { session, .. } => self.orders.gone(*session),
            Notice::ContentLoaded { rules, .. } => {
                self.telling.answered();
                tracing::info!("{rules} content rules are in force");
            }
            Notice::ContentRefused { reason, .. } => {
                self.telling.answered();
                tracing::warn!("the content rules stay as they are: {reason}");
            }
            _ => {}
        }
        self.input(Input::DataPath(notice));
    }

    /// The data plane has told all, and ends when it hears that this is kept; or of a former life of it, and then forgets that.
    async fn farewell(&mut self, commands: &mpsc::Sender<Command>) {
        self.carry_out().await;
        let is_kept = !self.keeping.is_failing();
        // A link that is gone says so.
        let _ = commands.send(Command::Farewell { is_kept }).await;
    }

    /// What came before is done first: it was said to another link.
    async fn link_changed(&mut self, heard: Heard) {
        self.carry_out().await;
        match heard {
            Heard::Connected { hello, commands } => {
                let mut in_force = None;
                if let Notice::Hello { sessions, content, .. } = hello {
                    tracing::info!("the data plane is here; it holds {sessions} sessions");
                    self.held = sessions;
                    in_force = Some(content);
                }
                // What is left of a quota depends on which life of the data plane counted: the node hears of that
                // before it says how sessions should be.
                self.input(Input::DataPath(&hello));
                self.carry_out().await;
                self.orders.begin(commands, (self.node.recovery_time_stamp(), self.node.all()));
                self.put_content(in_force);
                self.send_commands();
            }
            Heard::Lost => {
                self.orders.lost();
                self.telling.lost();
                self.input(Input::DataPathLost);
            }
            Heard::Notice(notice) => self.notice(&notice),
            Heard::Farewell { commands } => self.farewell(&commands).await,
        }
    }

    fn announce(&mut self) {
        if !self.announced {
            self.announced = true;
            crate::log::say("cpe: ready");
        }
    }

    fn send_commands(&mut self) {
        self.orders.send(|session| self.node.desired_of(session));
    }

    /// Tells the node what came, and notes what it says.
    fn input(&mut self, input: Input<'_>) {
        let outputs = self.node.handle(input, self.now());
        self.note_outputs(outputs);
    }

    fn now(&self) -> Time {
        Time::from_zero(self.zero.elapsed())
    }

    /// Does what an operator orders.
    fn obey(&mut self, (order, answer): Ordered) {
        let now = self.now();
        let Obeyed { outputs, changes, mut done } = obey(&mut self.node, &mut self.tables, order, now);
        self.note_outputs(outputs);
        if !changes.is_empty() {
            self.changes.extend(changes);
            self.keep();
            let is_unkept = self.keeping.is_failing();
            done.predefined.iter_mut().for_each(|granted| granted.is_unkept = is_unkept);
        }
        if let Some(granted) = &mut done.predefined {
            granted.warning = self.unmatched(Some(granted));
        }
        // Who asked may have hung up.
        let _ = answer.send(done);
    }

    /// What to say of predefined rules whose application nobody knows: of the table's, or of those that were put.
    fn unmatched(&self, put: Option<&Granted>) -> Option<String> {
        let content = self.content.borrow().clone().unwrap_or_default();
        let is_put = |rule: &&PredefinedRule| {
            put.is_none_or(|put| put.entries.iter().any(|entry| entry.name == rule.name))
        };
        let rules = self.tables.in_force().rules().filter(is_put);
        unmatched(rules, |name| content.applications().contains(name) || self.node.has_pfds_of(name))
    }

    /// The process ends as it was told to: what is to be remembered of that.
    pub(crate) fn stopped(&mut self) -> anyhow::Result<()> {
        // A data plane that has ended before us may have said what nobody has looked at yet.
        while let Some(heard) = self.link.try_next() {
            if let Heard::Notice(notice) = heard {
                self.notice(&notice);
            }
        }
        let outputs = self.node.stopped();
        self.note_outputs(outputs);
        let is_saved = self.keeping.save(&mut self.changes, Instant::now());
        anyhow::ensure!(is_saved, "the session database does not take what is to be remembered");
        Ok(())
    }
}

/// How many sessions a notice is about, at most: each takes the node its time.
fn sessions(notice: &Notice) -> usize {
    match notice {
        Notice::InterimUsage { counts } | Notice::FormerUsage { counts, .. } => counts.len(),
        _ => 1,
    }
}
