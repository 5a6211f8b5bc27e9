//! Carries inputs to the PFCP node and does what it says.

use super::link::{Heard, Link};
use super::metrics::Pfcp;
use dplink::{Command, Notice};
use machine::Time;
use n4::{Input, Level, Node, Note, Output};
use session::{Change, Store};
use std::collections::VecDeque;
use std::net::SocketAddr;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// The longest datagram there is.
const DATAGRAM: usize = 65_535;

/// The node and everything around it.
pub(crate) struct Runtime {
    node: Node,
    store: Store,
    socket: UdpSocket,
    link: Link,
    /// Commands go here while the link stands.
    commands: Option<mpsc::Sender<Command>>,
    /// Commands the link has not taken yet: at most one resynchronisation and what the node has under way.
    outbox: VecDeque<Command>,
    zero: Instant,
    announced: bool,
    /// For metrics.
    told: watch::Sender<Pfcp>,
}

/// What wakes the runtime.
enum Wake {
    Datagram(usize, SocketAddr),
    Link(Option<Heard>),
    Room,
    Timer,
}

/// What is done once the database has what it must have.
enum Action {
    Send(SocketAddr, Vec<u8>),
    Command(Command),
}

impl Runtime {
    pub(crate) fn new(node: Node, store: Store, socket: UdpSocket, link: Link) -> Self {
        Self {
            told: watch::Sender::new(Pfcp::of(&node)),
            node,
            store,
            socket,
            link,
            commands: None,
            outbox: VecDeque::new(),
            zero: Instant::now(),
            announced: false,
        }
    }

    /// What the node counts, as of its last input.
    pub(crate) fn told(&self) -> watch::Receiver<Pfcp> {
        self.told.subscribe()
    }

    /// Runs until something breaks that only a new start can mend.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let mut bytes = vec![0; DATAGRAM];
        loop {
            match self.wake(&mut bytes).await? {
                Wake::Datagram(length, from) => {
                    let bytes = bytes.get(..length).unwrap_or_default();
                    self.input(Input::Datagram { from, bytes }).await?;
                }
                Wake::Link(Some(heard)) => self.heard(heard).await?,
                Wake::Link(None) => anyhow::bail!("the link's task ended"),
                Wake::Room => self.send_command(),
                Wake::Timer => self.input(Input::Tick).await?,
            }
        }
    }

    async fn wake(&mut self, bytes: &mut [u8]) -> anyhow::Result<Wake> {
        let due = self.node.next_due().map(|due| self.zero + due.since_zero());
        let timer = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let room = async {
            match &self.commands {
                Some(commands) if !self.outbox.is_empty() => commands.reserve().await.is_ok(),
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            received = self.socket.recv_from(bytes) => match received {
                Ok((length, from)) => Ok(Wake::Datagram(length, from)),
                // An ICMP error about something sent earlier: its timer will see to that.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(Wake::Timer),
                Err(error) => Err(error.into()),
            },
            heard = self.link.next() => Ok(Wake::Link(heard)),
            _ = room => Ok(Wake::Room),
            () = timer => Ok(Wake::Timer),
        }
    }

    async fn heard(&mut self, heard: Heard) -> anyhow::Result<()> {
        match heard {
            Heard::Connected { hello, commands } => {
                if let Notice::Hello { sessions, .. } = hello {
                    tracing::info!("the data plane is here; it holds {sessions} sessions");
                }
                self.commands = Some(commands);
                // What is left of a quota depends on which life of the data plane counted: the node hears of that
                // before it says how sessions should be.
                self.input(Input::DataPath(&hello)).await?;
                self.resynchronise();
                self.send_command();
                Ok(())
            }
            Heard::Notice(Notice::Resynced { swept }) => {
                tracing::info!(
                    "the data plane is in step; {swept} sessions nobody wants any more were removed"
                );
                self.announce();
                Ok(())
            }
            Heard::Notice(notice) => self.input(Input::DataPath(&notice)).await,
            Heard::Lost => {
                self.commands = None;
                self.outbox.clear();
                self.input(Input::DataPathLost).await
            }
        }
    }

    /// Says what every session should be; what is not named goes.
    fn resynchronise(&mut self) {
        self.outbox.clear();
        self.outbox.push_back(Command::ResyncBegin);
        self.outbox.extend(self.node.desired().map(Command::Put));
        self.outbox.push_back(Command::ResyncEnd);
    }

    fn announce(&mut self) {
        if !self.announced {
            self.announced = true;
            println!("cpe: ready");
        }
    }

    fn send_command(&mut self) {
        let Some(commands) = &self.commands else { return };
        while let Some(command) = self.outbox.pop_front() {
            match commands.try_send(command) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(command)) => return self.outbox.push_front(command),
                // The link will say that it is lost.
                Err(mpsc::error::TrySendError::Closed(_)) => return,
            }
        }
    }

    async fn input(&mut self, input: Input<'_>) -> anyhow::Result<()> {
        let now = Time::from_zero(self.zero.elapsed());
        let outputs = self.node.handle(input, now);
        self.told.send_replace(Pfcp::of(&self.node));
        let (mut changes, mut rest) = (Vec::new(), Vec::new());
        for output in outputs {
            match output {
                Output::SaveSession(record) => changes.push(Change::SaveSession(record)),
                Output::EraseSession(seid) => changes.push(Change::EraseSession(seid)),
                Output::SaveAssociation(record) => changes.push(Change::SaveAssociation(record)),
                Output::EraseAssociation(node_id) => changes.push(Change::EraseAssociation(node_id)),
                Output::Send { to, bytes } => rest.push(Action::Send(to, bytes)),
                Output::Put(desired) => rest.push(Action::Command(Command::Put(desired))),
                Output::Delete(session) => rest.push(Action::Command(Command::Delete { session })),
                Output::QueryUsage { session, urrs, token, is_reported } => {
                    let query = Command::QueryUsage { session, urrs, token, is_reported };
                    rest.push(Action::Command(query));
                }
                Output::Note(note) => say(note),
            }
        }
        // What is answered must be in the database first.
        if !changes.is_empty() {
            self.store.apply(&changes)?;
        }
        for action in rest {
            match action {
                Action::Send(to, bytes) => self.send(to, &bytes).await,
                Action::Command(command) => self.command(command),
            }
        }
        self.send_command();
        Ok(())
    }

    async fn send(&self, to: SocketAddr, bytes: &[u8]) {
        if let Err(error) = self.socket.send_to(bytes, to).await {
            tracing::warn!("a datagram to {to} was not sent: {error}");
        }
    }

    /// Without a link there is nobody to tell; the next one starts with a resynchronisation.
    fn command(&mut self, command: Command) {
        if self.commands.is_some() {
            self.outbox.push_back(command);
        }
    }
}

fn say(note: Note) {
    match note.level {
        Level::Info => tracing::info!("{}", note.text),
        Level::Warning => tracing::warn!("{}", note.text),
    }
}
