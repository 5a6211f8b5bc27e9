//! The association (TS 29.244 6.2.6): set up, kept alive, set up again, released.

use super::failure::Reason;
use super::{Event, HEARTBEAT, Purpose, RETRY, Smf, messages};
use machine::Time;
use pfcp::{Message, NodeId};

/// Where the association stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not begun.
    Idle,
    /// A setup request is under way.
    SettingUp,
    /// The user plane is to ask for it.
    Awaited,
    /// A setup failed and is tried again then.
    Failed(Time),
    /// It is there.
    Up {
        /// When the next heartbeat is due.
        heartbeat_at: Time,
        /// The last one went unanswered.
        silent: bool,
    },
    /// A release request is under way.
    Releasing,
    /// All is over.
    Stopped,
}

impl Phase {
    fn up(now: Time) -> Self {
        Self::Up { heartbeat_at: now + HEARTBEAT, silent: false }
    }

    pub(super) fn is_up(self) -> bool {
        matches!(self, Self::Up { .. })
    }

    pub(super) fn next_due(self) -> Option<Time> {
        match self {
            Self::Failed(at) | Self::Up { heartbeat_at: at, .. } => Some(at),
            _ => None,
        }
    }
}

impl Smf {
    pub(super) fn start(&mut self, now: Time) {
        self.deadline = Some(now + self.settings.wait);
        self.set_up(now);
    }

    fn set_up(&mut self, now: Time) {
        if self.settings.awaits_setup {
            self.phase = Phase::Awaited;
            return;
        }
        self.phase = Phase::SettingUp;
        let request = self.settings.dialect.phrases().setup(&self.settings);
        let message = Message::node(messages::UNNUMBERED, request);
        self.ask(Purpose::Setup, message, now);
    }

    /// What time calls for: a setup that failed, a heartbeat.
    pub(super) fn keep_association(&mut self, now: Time) {
        match self.phase {
            Phase::Failed(at) if at <= now => self.set_up(now),
            Phase::Awaited => drop(self.end_patience(now)),
            Phase::Up { heartbeat_at, silent } if heartbeat_at <= now => {
                self.phase = Phase::Up { heartbeat_at: now + HEARTBEAT, silent };
                let message = messages::heartbeat(&self.settings);
                self.ask(Purpose::Heartbeat, message, now);
            }
            _ => {}
        }
    }

    /// The association is there, and with it no session (6.2.6.2.1: a new one starts empty).
    pub(super) fn associated(&mut self, node_id: NodeId, recovery_time_stamp: u32, now: Time) {
        self.requests.cancel(|_| true);
        self.recovery_time_stamp = Some(recovery_time_stamp);
        self.deadline = None;
        self.phase = Phase::up(now);
        self.event(Event::Associated(node_id));
        self.sessions.establish_all(now);
    }

    /// The user plane asks for an association, or for the one there is once more.
    pub(super) fn asked_to_associate(&mut self, node_id: NodeId, recovery_time_stamp: u32, now: Time) {
        match self.phase {
            // The same life of the user plane: it lost our answer, not our sessions.
            Phase::Up { .. } if self.recovery_time_stamp == Some(recovery_time_stamp) => {}
            Phase::Up { .. } => {
                self.event(Event::Restarted);
                self.associated(node_id, recovery_time_stamp, now);
            }
            Phase::Failed(_) | Phase::Awaited => self.associated(node_id, recovery_time_stamp, now),
            // Ours is under way, and its answer decides: it overwrites what the user plane asked for (6.2.6.2.2).
            Phase::SettingUp | Phase::Idle | Phase::Releasing | Phase::Stopped => {}
        }
    }

    /// A heartbeat, or the answer to one, tells the user plane's recovery time stamp (TS 23.007 19A).
    pub(super) fn note_recovery(&mut self, recovery_time_stamp: u32, now: Time) {
        if !self.phase.is_up() || self.recovery_time_stamp == Some(recovery_time_stamp) {
            return;
        }
        self.event(Event::Restarted);
        self.associate_again(now);
    }

    /// The user plane knows no association of ours.
    pub(super) fn associate_again(&mut self, now: Time) {
        if self.phase.is_up() && !self.stopping {
            self.requests.cancel(|_| true);
            self.sessions.forget_all();
            self.set_up(now);
        }
    }

    pub(super) fn heartbeat_answered(&mut self) {
        if let Phase::Up { silent, .. } = &mut self.phase
            && std::mem::take(silent)
        {
            self.event(Event::Answering);
        }
    }

    /// Sessions are kept through silence: only a new recovery time stamp says that they are gone.
    pub(super) fn heartbeat_unanswered(&mut self) {
        if let Phase::Up { silent, .. } = &mut self.phase
            && !std::mem::replace(silent, true)
        {
            self.event(Event::Silent);
        }
    }

    pub(super) fn setup_unanswered(&mut self, now: Time) {
        if !self.end_patience(now) {
            self.set_up(now);
        }
    }

    /// Whether the first association took too long.
    fn end_patience(&mut self, now: Time) -> bool {
        let is_over = self.deadline.is_some_and(|deadline| deadline <= now);
        if is_over {
            self.phase = Phase::Stopped;
            self.event(Event::Unreachable(self.settings.upf));
        }
        is_over
    }

    pub(super) fn setup_failed(&mut self, reason: Reason, now: Time) {
        self.phase = Phase::Failed(now + RETRY);
        self.report_failure(Purpose::Setup, reason);
    }

    /// Whoever says it again, as a user whom we are leaving as the user plane asked, changes nothing.
    pub(super) fn stop(&mut self, now: Time) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        match self.phase {
            Phase::Up { .. } => self.sessions.delete_all(now),
            Phase::Releasing | Phase::Stopped => {}
            Phase::Idle | Phase::SettingUp | Phase::Awaited | Phase::Failed(_) => self.stopped(),
        }
    }

    /// Once no session is left.
    pub(super) fn release(&mut self, now: Time) {
        self.phase = Phase::Releasing;
        let message = messages::release(&self.settings);
        self.ask(Purpose::Release, message, now);
    }

    pub(super) fn stopped(&mut self) {
        self.requests.cancel(|_| true);
        self.phase = Phase::Stopped;
        self.event(Event::Stopped);
    }
}
