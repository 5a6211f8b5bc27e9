//! At which worker a user's session is, and how it gets to another.

use dplink::{Destination, Placed, Whose};
use rules::Instance;
use std::net::IpAddr;
use std::path::Path;

/// Whose, and what about it.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    deed: Deed,
}

#[derive(clap::Subcommand)]
enum Deed {
    /// At which worker a user's session is.
    Where(User),
    /// Move a user's session to another worker.
    ///
    /// No packet is lost, none overtakes another, and counts go on. Sessions of Ethernet frames, and those that share a meter
    /// with others, stay where they are. With `hash = "inner"` or chosen TEIDs the card goes on bringing its packets to the
    /// worker of the user's address, which hands them over.
    Move {
        #[command(flatten)]
        user: User,
        /// The worker, by its number from 0, as in `ctl status`.
        #[arg(long, value_name = "NUMBER")]
        worker: u8,
    },
}

#[derive(clap::Args)]
struct User {
    /// The user's address.
    #[arg(long, value_name = "ADDRESS")]
    ue: IpAddr,
    /// The network instance it is of, where the node has several.
    #[arg(long, value_name = "NAME")]
    network_instance: Option<String>,
}

impl Args {
    /// Asks the data plane, and says what it said.
    pub(super) async fn execute(&self, link: &Path, json: bool) -> anyhow::Result<String> {
        let (user, to) = match &self.deed {
            Deed::Where(user) => (user, None),
            Deed::Move { user, worker } => (user, Some(Destination { worker: *worker, is_dry: false })),
        };
        let instance = user.network_instance.as_deref().map_or(Instance::DEFAULT, Instance::of);
        let placed = crate::observer::locate(link, Whose::User(user.ue, instance), to).await?;
        super::say(&placed, json, text)
    }
}

pub(super) fn text(placed: &Placed) -> String {
    let Placed { session, worker, came_from } = placed;
    match came_from {
        Some(from) => format!("session {session} moved from worker {from} to worker {worker}\n"),
        None => format!("session {session} is at worker {worker}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::Seid;

    #[test]
    fn it_is_said_whether_a_session_moved() {
        let placed = |came_from| text(&Placed { session: Seid(16), worker: 2, came_from });
        assert!(placed(None).ends_with("is at worker 2\n"));
        assert!(placed(Some(1)).ends_with("moved from worker 1 to worker 2\n"));
    }
}
