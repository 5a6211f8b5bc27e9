//! Serves the link to the control plane on a Unix socket: any number of connections, one of them in control.

use super::content::{Builder, Built};
use super::exact::{self, Directors};
use crate::exit;
use anyhow::Context;
use dataplane::{ChargingKey, ContentRules, Engine};
use dplink::frame::{self, Reader};
use dplink::{Command, Notice, PortSteering, Role, WorkerIdle};
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

/// Connections at once.
const CONNECTIONS_MAX: usize = 32;
/// Commands read ahead of the engine, over all connections.
const COMMANDS_AHEAD: usize = 1024;
/// Notices waiting to be written on one connection; who does not read is disconnected.
const NOTICES_AHEAD: usize = 65_536;
/// Commands obeyed between two looks at everything else: a look costs as much as a command.
const PORTION: usize = 32;
/// Between two looks at what the worker reports.
const POLL: Duration = Duration::from_millis(1);

type ConnectionId = u64;

/// From a connection: a command, or its end.
type Heard = (ConnectionId, Option<Command>);

struct Connection {
    notices: mpsc::Sender<Notice>,
    role: Option<Role>,
}

/// The socket, its connections, and the engine behind them.
pub(crate) struct Server {
    path: PathBuf,
    listener: UnixListener,
    engine: Engine,
    started: Instant,
    connections: HashMap<ConnectionId, Connection>,
    last_id: ConnectionId,
    in_control: Option<ConnectionId>,
    /// Who waits for statistics, in order.
    askers: VecDeque<ConnectionId>,
    content: Builder,
    /// What was found out about each port's card when it was opened.
    steering: Vec<PortSteering>,
    /// What each worker does while no packet waits.
    idle: Vec<WorkerIdle>,
    /// The exact rules that the engine wants cards to have.
    directors: Directors,
    /// What flows are charged under if their content rules say so.
    charged: Vec<ChargingKey>,
}

impl Server {
    /// Has flows charged under these keys where their content rules say so.
    pub(crate) fn with_charged(mut self, charged: Vec<ChargingKey>) -> Self {
        self.charged = charged;
        self
    }

    /// Tells of ports what was found out about their cards, in the order of the configuration.
    pub(crate) fn with_steering(mut self, steering: Vec<PortSteering>) -> Self {
        self.steering = steering;
        self
    }

    /// Tells of workers what they do while no packet waits.
    pub(crate) fn with_idle(mut self, idle: Vec<WorkerIdle>) -> Self {
        self.idle = idle;
        self
    }

    /// Has cards given the exact rules that the engine wants.
    pub(crate) fn with_directors(mut self, directors: Directors) -> Self {
        self.engine.lead_exactly(directors.cards());
        self.directors = directors;
        self
    }

    /// Listens at `path`, in place of a socket that a dead engine left behind.
    pub(crate) fn listen(path: &Path, engine: Engine) -> anyhow::Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        // A socket that somebody answers at is no dead engine's.
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(exit::unusable(anyhow::anyhow!(
                "another data plane runs at {}; stop it or change node.run_dir",
                path.display()
            )));
        }
        let _ = fs::remove_file(path);
        let listener =
            UnixListener::bind(path).with_context(|| format!("{} cannot be listened at", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            listener,
            engine,
            started: Instant::now(),
            connections: HashMap::new(),
            last_id: 0,
            in_control: None,
            askers: VecDeque::new(),
            content: Builder::new(),
            steering: Vec::new(),
            idle: Vec::new(),
            directors: exact::directors(Vec::new()),
            charged: Vec::new(),
        })
    }

    /// Serves for ever.
    pub(crate) async fn serve(mut self) -> anyhow::Result<()> {
        let (tell, mut heard) = mpsc::channel::<Heard>(COMMANDS_AHEAD);
        let mut poll = tokio::time::interval(POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => self.accept(accepted?.0, tell.clone()),
                // What the engine has no room for stays in the channel, then in the sockets.
                Some(first) = heard.recv(), if self.engine.has_room() => self.obey_all(first, &mut heard),
                Some(built) = self.content.built() => self.load(built),
                // Commands and packets wait for the end of a move: it is looked after without a rest.
                () = tokio::task::yield_now(), if self.engine.is_moving() => {}
                _ = poll.tick() => {}
            }
            self.tell_reports();
        }
    }

    fn accept(&mut self, stream: UnixStream, tell: mpsc::Sender<Heard>) {
        if self.connections.len() >= CONNECTIONS_MAX {
            tracing::warn!("a connection was refused: {CONNECTIONS_MAX} are open");
            return;
        }
        self.last_id += 1;
        let id = self.last_id;
        let (reader, writer) = stream.into_split();
        let (notices, queue) = mpsc::channel(NOTICES_AHEAD);
        tokio::spawn(read(id, reader, tell));
        tokio::spawn(write(writer, queue));
        self.connections.insert(id, Connection { notices, role: None });
    }

    /// Obeys a command and those that wait behind it, up to a portion.
    fn obey_all(&mut self, (id, command): Heard, heard: &mut mpsc::Receiver<Heard>) {
        self.obey(id, command);
        for _ in 1..PORTION {
            if !self.engine.has_room() {
                return;
            }
            let Ok((id, command)) = heard.try_recv() else { return };
            self.obey(id, command);
        }
    }

    fn obey(&mut self, id: ConnectionId, command: Option<Command>) {
        let Some(command) = command else { return self.close(id) };
        if !self.connections.contains_key(&id) {
            return;
        }
        if !self.is_allowed(id, &command) {
            tracing::warn!("connection {id} was closed: it may not do what it asked for");
            return self.close(id);
        }
        if let Command::PutContent(part) = command {
            if let Err(refused) = self.content.take(part) {
                self.tell(id, refused);
            }
            return;
        }
        if command == Command::GetStatistics {
            self.askers.push_back(id);
        }
        let answer = self.engine.handle(marked(command, id));
        self.lead();
        match answer {
            Ok(Some(notice)) => self.tell(id, notice),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!("connection {id} was closed: {error}");
                self.close(id);
            }
        }
    }

    /// A connection first says what it is for; only one in control may change anything.
    fn is_allowed(&mut self, id: ConnectionId, command: &Command) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        match (connection.role, command) {
            (None, Command::Hello { role, .. }) => {
                connection.role = Some(*role);
                if *role == Role::Control {
                    self.take_control(id);
                }
                true
            }
            (Some(Role::Control), _) => true,
            (Some(Role::Observer), command) => is_a_look(command),
            (None, _) => false,
        }
    }

    fn take_control(&mut self, id: ConnectionId) {
        if let Some(old) = self.in_control.replace(id) {
            tracing::info!("a new control plane takes over");
            self.close(old);
        } else {
            tracing::info!("the control plane is here");
        }
    }

    /// Puts content rules in force that are ready.
    fn load(&mut self, Built { revision, outcome }: Built) {
        let before = self.engine.content();
        let rules = outcome.and_then(|classifier| {
            ContentRules::charging((revision, classifier), &self.charged, before.as_deref())
                .map_err(|error| error.to_string())
        });
        match rules {
            Ok(rules) => self.engine.load(rules),
            Err(reason) => {
                if let Some(id) = self.in_control {
                    self.tell(id, Built::refused(revision, reason));
                }
            }
        }
    }

    /// Gives cards the rules that the engine wants, before anybody is told that the sessions they are for are there.
    fn lead(&mut self) {
        self.directors.obey(self.engine.leads());
    }

    fn tell_reports(&mut self) {
        let uptime_ms = self.started.elapsed().as_millis() as u64;
        let notices = self.engine.poll(uptime_ms);
        self.lead();
        for notice in notices {
            match notice {
                Notice::Statistics(mut statistics) => {
                    for (at, (port, steering)) in statistics.ports.iter_mut().zip(&self.steering).enumerate()
                    {
                        port.steering.clone_from(steering);
                        port.steering.exact = self.directors.state(at);
                    }
                    statistics.idle.clone_from(&self.idle);
                    let notice = Notice::Statistics(statistics);
                    for asker in std::mem::take(&mut self.askers) {
                        self.tell(asker, notice.clone());
                    }
                }
                Notice::Trace { token, .. }
                | Notice::Explanation { token, .. }
                | Notice::Placed { token, .. }
                | Notice::Balance { token, .. }
                | Notice::Evening { token, .. }
                | Notice::Peers { token, .. } => self.tell(token, notice),
                notice => {
                    if let Some(id) = self.in_control {
                        self.tell(id, notice);
                    }
                }
            }
        }
    }

    fn tell(&mut self, id: ConnectionId, notice: Notice) {
        let Some(connection) = self.connections.get(&id) else { return };
        if connection.notices.try_send(notice).is_err() {
            tracing::warn!("connection {id} was closed: it does not read");
            self.close(id);
        }
    }

    /// Ends the writer, which ends the connection.
    fn close(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
        self.askers.retain(|asker| *asker != id);
        self.engine.end_trace(id);
        if self.in_control == Some(id) {
            self.in_control = None;
            tracing::warn!("the control plane is gone; traffic goes on as it was told");
        }
    }
}

/// Whether a command changes nothing of what sessions are.
const fn is_a_look(command: &Command) -> bool {
    matches!(
        command,
        Command::GetStatistics
            | Command::GetPeers { .. }
            | Command::Trace { .. }
            | Command::Explain { .. }
            | Command::Locate { .. }
            | Command::GetBalance { .. }
            | Command::Even { .. }
    )
}

/// Tokens of looks are those of connections here, so that each gets its own answer.
fn marked(command: Command, id: ConnectionId) -> Command {
    match command {
        Command::GetPeers { .. } => Command::GetPeers { token: id },
        Command::Trace { filter, .. } => Command::Trace { token: id, filter },
        Command::Explain { question, .. } => Command::Explain { token: id, question },
        Command::Locate { whose, to, .. } => Command::Locate { token: id, whose, to },
        Command::GetBalance { .. } => Command::GetBalance { token: id },
        Command::Even { by, is_dry, .. } => Command::Even { token: id, by, is_dry },
        other => other,
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

async fn read(id: ConnectionId, mut socket: OwnedReadHalf, tell: mpsc::Sender<Heard>) {
    let mut reader = Reader::default();
    let mut bytes = vec![0; 65_536];
    while let Ok(length @ 1..) = socket.read(&mut bytes).await {
        reader.extend(bytes.get(..length).unwrap_or_default());
        if let Err(error) = pass_on(id, &mut reader, &tell).await {
            tracing::warn!("connection {id} was closed: {error}");
            break;
        }
    }
    let _ = tell.send((id, None)).await;
}

/// Passes every whole command on; waits while too many are under way.
async fn pass_on(id: ConnectionId, reader: &mut Reader, tell: &mpsc::Sender<Heard>) -> anyhow::Result<()> {
    while let Some(command) = reader.take()? {
        tell.send((id, Some(command))).await?;
    }
    Ok(())
}

async fn write(mut socket: OwnedWriteHalf, mut notices: mpsc::Receiver<Notice>) {
    let mut bytes = Vec::new();
    while let Some(notice) = notices.recv().await {
        bytes.clear();
        let mut next = Some(notice);
        // Whatever else waits goes out in the same write.
        while let Some(notice) = next {
            if let Err(error) = frame::write(&notice, &mut bytes) {
                tracing::error!("a notice cannot be sent: {error}");
            }
            next = notices.try_recv().ok();
        }
        if socket.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dplink::{Destination, Measure, Question, TraceFilter, Whose};

    fn looks() -> [Command; 6] {
        let filter = TraceFilter { packets: 1, seconds: 1, port: None, ue: None, teid: None };
        let question = Question {
            is_down: false,
            ue: [10, 60, 0, 1].into(),
            instance: rules::Instance::DEFAULT,
            remote: [8, 8, 8, 8].into(),
            protocol: 1,
            ports: None,
            traffic_class: 0,
            qfi: None,
            teid: None,
            is_verbose: false,
            application: None,
        };
        let (trace, explain) = (Command::Trace { token: 1, filter }, Command::Explain { token: 1, question });
        let whose = Whose::User([10, 60, 0, 1].into(), rules::Instance::DEFAULT);
        let locate = Command::Locate { token: 1, whose, to: Some(Destination { worker: 1, is_dry: false }) };
        let even = Command::Even { token: 1, by: Measure::Load, is_dry: false };
        [Command::GetPeers { token: 1 }, trace, explain, locate, Command::GetBalance { token: 1 }, even]
    }

    #[test]
    fn an_observer_looks_and_changes_nothing() {
        assert!(looks().iter().all(is_a_look) && is_a_look(&Command::GetStatistics));
        let session = rules::Seid(1);
        for change in
            [Command::ResyncBegin { recovery_time_stamp: 1 }, Command::ResyncEnd, Command::Delete { session }]
        {
            assert!(!is_a_look(&change), "{change:?}");
        }
    }

    #[test]
    fn a_look_is_answered_where_it_came_from_whatever_it_says_of_itself() {
        for look in looks() {
            let (Command::Trace { token, .. }
            | Command::Explain { token, .. }
            | Command::Locate { token, .. }
            | Command::GetBalance { token }
            | Command::Even { token, .. }
            | Command::GetPeers { token }) = marked(look, 7)
            else {
                panic!("a look became something else")
            };
            assert_eq!(token, 7);
        }
    }
}
