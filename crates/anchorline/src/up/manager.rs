//! What the manager of the system's services is told (sd_notify(3)), where it has started the node: nothing otherwise.

use sd_notify::NotifyState;

/// Users' packets pass, and control planes are answered.
pub(super) fn ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("users' packets pass, control planes are answered")]);
}

/// How it stands, for who asks for the state of the service.
pub(super) fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// The node ends, as it was told to.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("what sessions have used is being told")]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("the service manager cannot be told how the node is: {error}");
    }
}
