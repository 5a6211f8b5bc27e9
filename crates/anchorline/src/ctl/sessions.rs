//! At which worker a user's session is, and how it gets to another.

use super::names;
use crate::settings::Settings;
use dplink::{Destination, Placed, Whose};
use std::net::IpAddr;

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
    /// No packet overtakes another, and counts go on. Packets that come meanwhile wait at the new worker, and none is lost unless more
    /// than 2,048 would wait there: those are dropped (`moving_full` of `ctl drops`). Sessions of Ethernet frames, and those that
    /// share a meter with others, stay where they are. With `hash = "inner"` or chosen TEIDs the card goes on bringing its packets to the
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
    pub(super) async fn execute(&self, settings: &Settings, json: bool) -> anyhow::Result<String> {
        let (user, to) = match &self.deed {
            Deed::Where(user) => (user, None),
            Deed::Move { user, worker } => (user, Some(Destination { worker: *worker, is_dry: false })),
        };
        let network = user.network_instance.as_deref();
        let whose = Whose::User(user.ue, names::instance(settings, network)?);
        let placed = crate::observer::locate(&settings.link(), whose, to).await;
        super::say(&placed.map_err(|error| in_network(error, whose, network))?, json, text)
    }
}

/// Where nobody has the address in the network that was asked for, somebody may have it in another.
fn in_network(error: anyhow::Error, whose: Whose, network: Option<&str>) -> anyhow::Error {
    match network.filter(|_| error.to_string().ends_with(&whose.not_found())) {
        Some(network) => anyhow::anyhow!("{error} in network instance {network}"),
        None => error,
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
    use dplink::Notice;
    use rules::{Instance, Seid};
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixListener;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn it_is_said_how_many_packets_may_wait_amid_a_move() {
        for words in [&["sessions", "move", "--help"][..], &["balance", "--help"]] {
            let words = ["ctl"].iter().chain(words);
            let help = <crate::ctl::Args as clap::Parser>::try_parse_from(words).err().unwrap().to_string();
            assert!(help.contains("2,048"), "{help}");
        }
    }

    /// No node is asked: it tells only whether the user is there, and of another network instance none is.
    #[test]
    fn a_network_instance_that_no_port_has_is_refused_by_its_name() {
        let settings = Settings::parse(include_str!("../../../../config/upf.toml")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for deed in [&["where"][..], &["move", "--worker", "1"]] {
            let user = ["--ue", "10.60.0.1", "--network-instance", "intrnet"];
            let words = ["sessions"].iter().chain(deed).chain(&user);
            let Line { args } = clap::Parser::try_parse_from(words).unwrap();
            let refused = runtime.block_on(args.execute(&settings, true)).unwrap_err().to_string();
            assert_eq!(refused, "no port is of network instance intrnet; there is none");
        }
    }

    /// A data plane that says this of every session.
    async fn engine(listener: UnixListener, why: String) {
        let mut answer = Vec::new();
        dplink::frame::write(&Notice::Placed { token: 0, outcome: Err(why) }, &mut answer).unwrap();
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(&answer).await.unwrap();
        }
    }

    /// What is said of a user of this network, where the data plane says this.
    fn refused(words: &[&str], why: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::parse(include_str!("../../../../config/upf.toml")).unwrap();
        settings.run_dir = folder.path().to_owned();
        settings.dpe.ports.iter_mut().for_each(|port| port.network_instance = Some("ims".to_owned()));
        let words = ["sessions"].iter().chain(words).chain(&["--ue", "10.60.0.1"]);
        let Line { args } = clap::Parser::try_parse_from(words).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tokio::spawn(engine(UnixListener::bind(settings.link()).unwrap(), why.to_owned()));
            args.execute(&settings, false).await.unwrap_err().to_string()
        })
    }

    #[test]
    fn where_nobody_has_an_address_the_network_that_was_asked_for_is_named() {
        let nobody = Whose::User([10, 60, 0, 1].into(), Instance::of("ims")).not_found();
        let ims = ["--network-instance", "ims"];
        let there = [&["where"][..], &ims].concat();
        let away = [&["move", "--worker", "1"][..], &ims].concat();
        let named = "no session has the address 10.60.0.1 in network instance ims";
        assert_eq!(refused(&there, &nobody), named);
        assert_eq!(refused(&away, &nobody), format!("nothing was moved to worker 1: {named}"));
        assert_eq!(refused(&["where"], &nobody), nobody);
        assert_eq!(refused(&there, "there is one worker"), "there is one worker");
    }

    #[test]
    fn it_is_said_whether_a_session_moved() {
        let placed = |came_from| text(&Placed { session: Seid(16), worker: 2, came_from });
        assert!(placed(None).ends_with("is at worker 2\n"));
        assert!(placed(Some(1)).ends_with("moved from worker 1 to worker 2\n"));
    }
}
