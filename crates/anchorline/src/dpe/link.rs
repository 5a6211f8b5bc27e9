//! Serves the link to the control plane on a Unix socket: any number of connections, one of them in control.

mod ending;
mod former;
mod looks;
mod streams;
#[cfg(test)]
mod tests;

use super::content::{Builder, Built};
use super::exact::{self, Directors};
use super::lives::Lives;
use super::taps::Taps;
use super::watch::Watch;
use crate::socket;
use dataplane::{ChargingKey, ContentRules, Engine};
use dplink::{Command, Notice, PortSteering, Role, WorkerIdle};
pub(crate) use ending::FAREWELL;
use former::Greeting;
use looks::{is_a_look, marked};
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use streams::{read, write};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior};

/// Connections at once; for who comes besides, one that is not in control has to go.
const CONNECTIONS_MAX: usize = 32;
/// Commands read ahead of the engine, over all connections.
const COMMANDS_AHEAD: usize = 1024;
/// Notices waiting to be written on one connection; who does not read is disconnected.
const NOTICES_AHEAD: usize = 65_536;
/// While more notices than this wait, nobody is asked for what was used that can be told later.
const BEHIND: usize = 256;
/// Commands obeyed between two looks at everything else: a look costs as much as a command.
const PORTION: usize = 32;
/// Between two looks at what the worker reports.
const POLL: Duration = Duration::from_millis(1);

/// What this is called where another one is in its way.
pub(super) const ENGINE: &str = "data plane";

type ConnectionId = u64;

/// From a connection: a command, or its end.
type Heard = (ConnectionId, Option<Command>);

struct Connection {
    notices: mpsc::Sender<Notice>,
    role: Option<Role>,
    reader: AbortHandle,
}

impl Drop for Connection {
    /// Its writer ends by itself, once all is written; nobody may ever hang up on the reader.
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Connection {
    /// Whether notices wait that the other side has not read yet.
    fn is_behind(&self) -> bool {
        self.notices.max_capacity() - self.notices.capacity() > BEHIND
    }
}

/// The socket, its connections, and the engine behind them.
pub(crate) struct Server {
    path: PathBuf,
    listener: UnixListener,
    engine: Engine,
    started: Instant,
    /// What connections have to say goes in here, and comes out there.
    tell: mpsc::Sender<Heard>,
    heard: mpsc::Receiver<Heard>,
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
    /// Ports' interfaces in the kernel.
    taps: Option<Taps>,
    watch: Watch,
    /// What this life counts in, and what those before it have left.
    lives: Lives,
    /// Who has greeted and is yet to hear of those.
    greeting: Option<Greeting>,
}

impl Server {
    /// Tells the control plane what former lives have left, before anything else.
    pub(crate) fn with_lives(mut self, lives: Lives) -> Self {
        self.lives = lives;
        self
    }

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

    /// Has what sessions have used told within so long, though nobody asks for it; not at all, if this is zero.
    pub(crate) fn with_interim_usage(mut self, interval: Duration) -> Self {
        self.engine.tell_interim(interval);
        self
    }

    /// Has ports and their interfaces in the kernel given what they have for each other.
    pub(crate) fn with_taps(mut self, taps: Taps) -> Self {
        self.taps = Some(taps);
        self
    }

    /// Watches whether packets get through ports.
    pub(crate) fn with_watch(mut self, watch: Watch) -> Self {
        self.watch = watch;
        self
    }

    /// Listens at `path`, in place of a socket that a dead engine left behind.
    pub(crate) fn listen(path: &Path, engine: Engine) -> anyhow::Result<Self> {
        let listener = socket::listen(path, ENGINE)?;
        let (tell, heard) = mpsc::channel(COMMANDS_AHEAD);
        Ok(Self {
            path: path.to_owned(),
            listener,
            engine,
            started: Instant::now(),
            tell,
            heard,
            connections: HashMap::new(),
            last_id: 0,
            in_control: None,
            askers: VecDeque::new(),
            content: Builder::new(),
            steering: Vec::new(),
            idle: Vec::new(),
            directors: exact::directors(Vec::new()),
            charged: Vec::new(),
            taps: None,
            watch: Watch::new(Vec::new()),
            lives: Lives::default(),
            greeting: None,
        })
    }

    /// Serves for ever.
    ///
    /// # Errors
    /// The socket is of no use any more, or a port has to be opened anew.
    pub(crate) async fn serve(&mut self) -> anyhow::Result<()> {
        let mut poll = tokio::time::interval(POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => self.accept(accepted?.0),
                // What the engine has no room for stays in the channel, then in the sockets.
                Some(first) = self.heard.recv(), if self.has_room() => self.obey_all(first),
                Some(built) = self.content.built() => self.load(built),
                // Commands and packets wait for the end of a move: it is looked after without a rest.
                () = tokio::task::yield_now(), if self.engine.is_moving() => {}
                _ = poll.tick() => {}
            }
            if let Some(taps) = &mut self.taps {
                taps.exchange(&mut self.engine);
            }
            self.watch.look()?;
            self.tell_former();
            self.tell_reports();
            // Who has just answered can be asked again.
            self.ask_interim();
        }
    }

    fn accept(&mut self, stream: UnixStream) {
        if self.connections.len() >= CONNECTIONS_MAX
            && let Some(id) = self.next_to_go()
        {
            tracing::warn!("connection {id} was closed for another one: {CONNECTIONS_MAX} are open");
            self.close(id);
        }
        self.last_id += 1;
        let id = self.last_id;
        let (reader, writer) = stream.into_split();
        let (notices, queue) = mpsc::channel(NOTICES_AHEAD);
        let reader = tokio::spawn(read(id, reader, self.tell.clone())).abort_handle();
        tokio::spawn(write(writer, queue));
        self.connections.insert(id, Connection { notices, role: None, reader });
    }

    /// The oldest that has not said what it is for, or else the oldest that looks. So nobody keeps the control plane out.
    fn next_to_go(&self) -> Option<ConnectionId> {
        let others = self.connections.iter().filter(|(id, _)| self.in_control != Some(**id));
        others.min_by_key(|(id, connection)| (connection.role.is_some(), **id)).map(|(id, _)| *id)
    }

    /// Whether commands can be obeyed now. While the first content rules are being built, what comes behind them waits: a flow that began
    /// without them would be of no application as long as it lives.
    fn has_room(&self) -> bool {
        self.engine.has_room() && (self.engine.has_content() || !self.content.is_building())
    }

    /// Obeys a command and those that wait behind it, up to a portion.
    fn obey_all(&mut self, (id, command): Heard) {
        self.obey(id, command);
        for _ in 1..PORTION {
            if !self.has_room() {
                return;
            }
            let Ok((id, command)) = self.heard.try_recv() else { return };
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
        let Some(command) = self.hear_former(id, command) else { return };
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
            Ok(rules) => {
                self.lives.name(&rules);
                self.engine.load(rules);
            }
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

    fn uptime_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Asks for some of what sessions have used, where somebody is there to be told and keeps up.
    fn ask_interim(&mut self) {
        let in_control = self.in_control.and_then(|id| self.connections.get(&id));
        if in_control.is_some_and(|connection| !connection.is_behind()) {
            self.engine.ask_interim(self.uptime_ms());
        }
    }

    fn tell_reports(&mut self) {
        let notices = self.engine.poll(self.uptime_ms());
        self.lead();
        for notice in notices {
            match notice {
                Notice::Statistics(mut statistics) => {
                    for (at, (port, steering)) in statistics.ports.iter_mut().zip(&self.steering).enumerate()
                    {
                        port.steering.clone_from(steering);
                        port.steering.exact = self.directors.state(at);
                        let refused = self.taps.as_ref().map_or(0, |taps| taps.refused(at));
                        port.punting.iter_mut().for_each(|punting| punting.refused = refused);
                    }
                    self.watch.tell(&mut statistics.ports);
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
        if self.greeting.take_if(|greeting| greeting.id == id).is_some() {
            self.lives.rewind();
        }
        if self.in_control == Some(id) {
            self.in_control = None;
            tracing::warn!("the control plane is gone; traffic goes on as it was told");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
