//! What the node said, and how it is done: what is answered is in the database first.

use super::Runtime;
use crate::cpe::charging::Outbox;
use crate::cpe::keeping::is_change;
use crate::cpe::metrics::Pfcp;
use crate::cpe::send::{Datagram, send_all};
use charging::Cdr;
use charging::spool::Durable;
use dplink::Command;
use n4::Output;
use session::Change;
use tokio::time::Instant;

/// What is done once the database has what it must have.
pub(super) enum Action {
    /// A datagram, and whether it comes with changes: it must not be said before they are saved.
    Send(Datagram, bool),
    Command(Command),
    Write(Box<Cdr>),
}

impl Runtime {
    pub(super) fn note_outputs(&mut self, outputs: Vec<Output>) {
        let goes_with_changes = outputs.iter().any(is_change);
        for output in outputs {
            match output {
                Output::SaveSession(seid, packed) => self.changes.push(Change::SaveSession(seid, packed)),
                Output::EraseSession(seid) => self.changes.push(Change::EraseSession(seid)),
                Output::SaveNode(record) => self.changes.push(Change::SaveNode(record)),
                Output::SaveAssociation(record) => self.changes.push(Change::SaveAssociation(record)),
                Output::EraseAssociation(node_id) => self.changes.push(Change::EraseAssociation(node_id)),
                Output::SavePfds(record) => self.changes.push(Change::SavePfds(record)),
                Output::ErasePfds(application) => self.changes.push(Change::ErasePfds(application)),
                Output::SaveTold(told) => self.changes.push(Change::SaveTold(told)),
                Output::SavePath(path) => self.changes.push(Change::SavePath(path)),
                Output::ErasePath(path) => self.changes.push(Change::ErasePath(path)),
                Output::ContentRules => self.telling.pfds_changed(Instant::now()),
                Output::Send { to, bytes } => self.actions.push(Action::Send((to, bytes), goes_with_changes)),
                Output::Put(desired) => self.actions.push(Action::Command(Command::Put(desired))),
                Output::Delete(session) => self.actions.push(Action::Command(Command::Delete { session })),
                Output::QueryUsage { session, urrs, token, is_reported } => {
                    let query = Command::QueryUsage { session, urrs, token, is_reported };
                    self.actions.push(Action::Command(query));
                }
                Output::SaveCdr(cdr) => self.record(*cdr),
                Output::Note(note) => crate::log::note(note),
            }
        }
    }

    /// Does what the node said. What is answered must be in the database first.
    pub(super) async fn carry_out(&mut self) {
        let charging = self.charging.as_ref().map(Outbox::figures);
        self.told.send_replace(Pfcp::of(&self.node, charging).with_store_problem(self.keeping.is_failing()));
        self.keep();
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Send(datagram, goes_with_changes) => {
                    self.datagrams.extend(self.keeping.pass(datagram, goes_with_changes));
                }
                Action::Write(cdr) if self.keeping.is_failing() => self.keeping.hold_cdr(*cdr),
                Action::Command(command) => {
                    self.orders.give(command, |session| self.node.desired_of(session))
                }
                Action::Write(cdr) => self.charging.iter().for_each(|charging| charging.send((*cdr).clone())),
            }
        }
        // The room it has grown to is for the next ones.
        self.actions = actions;
        self.send_commands();
        send_all(&self.sockets, &mut self.datagrams).await;
    }

    /// Saves what is to be saved, and what could not be before.
    pub(super) fn keep(&mut self) {
        let was_failing = self.keeping.is_failing();
        if self.changes.is_empty() && !was_failing {
            return;
        }
        let is_saved = self.keeping.save(&mut self.changes, Instant::now());
        self.node.set_keeping(is_saved);
        if is_saved && was_failing {
            let (datagrams, cdrs) = self.keeping.release();
            self.datagrams.extend(datagrams);
            self.actions.extend(cdrs.into_iter().map(|cdr| Action::Write(Box::new(cdr))));
        }
    }

    /// A record without room is lost; its number is not given out again, so that files tell of it.
    fn record(&mut self, cdr: Cdr) {
        match self.charging.as_mut().map_or(Ok(()), |charging| charging.admit(&cdr)) {
            Ok(()) => {
                self.changes.push(Change::SaveCdr(cdr.clone()));
                self.actions.push(Action::Write(Box::new(cdr)));
            }
            Err(lost) => self.changes.extend([Change::SkipCdr(cdr.serial), Change::SaveLost(lost)]),
        }
    }

    /// Records that are in files are in the database no longer.
    pub(super) fn durable(&mut self, durable: Durable) {
        self.changes.push(Change::EraseCdrs(durable.first, durable.last));
        self.charging.iter_mut().for_each(|charging| charging.forgotten(durable));
    }
}
