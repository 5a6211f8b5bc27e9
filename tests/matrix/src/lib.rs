//! A whole user plane on the bench: the PFCP node and the shipped data path, joined as the two processes are, over ports in
//! memory and a clock that stands still unless moved. Only sockets, threads and DPDK are left out.
//!
//! Content rules made of PFDs are not put in force: to build them is the processes' business.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

pub mod frames;
mod neighbours;
mod saved;
mod setup;
mod wire;

pub use neighbours::mac_of;
pub use saved::Saved;
pub use setup::{
    N3, N3_ADDRESS, N6, N6_ADDRESS, N6_ROUTER, N9, N9_ADDRESS, US, address_of, node_config, plane_config,
    plane_config3, plane_config6,
};
pub use wire::Wire;

use dataplane::{Engine, Worker, connect};
use dplink::{Command, Notice, Role, VERSION};
use machine::Time;
use n4::{Input, Node, Output};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// Turns without anything to do after which nothing is under way.
const QUIET: usize = 8;
/// Something is wrong if it is still not quiet then.
const TURNS: usize = 1_000_000;
/// The data path looks at its clock so often while time passes.
const TICK: Duration = Duration::from_millis(100);

/// A datagram and where it goes.
pub type Datagram = (SocketAddr, Vec<u8>);

/// Node, engine and worker, and what connects them.
pub struct UserPlane {
    /// The PFCP node.
    pub node: Node,
    /// The data path's control side.
    pub engine: Engine,
    /// The data path.
    pub worker: Worker<Wire>,
    /// The far ends of its ports.
    pub wires: Vec<Wire>,
    /// Since everything began.
    pub now: Time,
    /// What the database holds.
    pub saved: Saved,
    /// What people are told.
    pub notes: Vec<String>,
    config: (n4::Config, dataplane::Config),
    /// When the control process started: its own zero.
    started: Time,
    /// Notices that the node has yet to hear.
    notices: VecDeque<Notice>,
    outbox: Vec<Datagram>,
    /// There is no control process: nobody hears what comes for it.
    is_alone: bool,
    /// Frames that left, by port.
    frames: Vec<Vec<Vec<u8>>>,
}

impl Default for UserPlane {
    fn default() -> Self {
        Self::new()
    }
}

impl UserPlane {
    /// With a port to radios and one to the data network.
    pub fn new() -> Self {
        Self::over(node_config(), plane_config())
    }

    /// Configured so; node and data path must agree on addresses.
    pub fn over(node: n4::Config, plane: dataplane::Config) -> Self {
        let wires: Vec<Wire> = plane.ports.iter().map(|_| Wire::default()).collect();
        let (engine, worker) = connect(&plane, wires.clone(), || 0).unwrap();
        let saved = Saved::default();
        let mut user_plane = Self {
            node: Node::new(node.clone(), saved.start(0)),
            engine,
            worker,
            frames: vec![vec![]; wires.len()],
            wires,
            now: Time::ZERO,
            saved,
            notes: vec![],
            config: (node, plane),
            started: Time::ZERO,
            notices: VecDeque::new(),
            outbox: vec![],
            is_alone: false,
        };
        user_plane.join();
        user_plane
    }

    /// The link comes up: the data path hears how all sessions should be.
    fn join(&mut self) {
        self.command(Command::Hello { version: VERSION, role: Role::Control });
        self.hear();
        let desired: Vec<_> = self.node.desired().map(Command::Put).collect();
        let begin = Command::ResyncBegin { recovery_time_stamp: self.node.recovery_time_stamp() };
        let all = [begin].into_iter().chain(desired).chain([Command::ResyncEnd]);
        all.for_each(|command| self.command(command));
        self.settle();
    }

    /// The control process dies; the data path goes on until [`UserPlane::restart_node`], and after.
    pub fn end_node(&mut self) {
        self.is_alone = true;
    }

    /// The control process dies, if it has not, and another one takes its place, with what the database holds.
    pub fn restart_node(&mut self) {
        self.is_alone = false;
        self.started = self.now;
        self.notices.clear();
        let start = self.saved.start(self.now.since_zero().as_millis() as u64);
        self.node = Node::new(self.config.0.clone(), start);
        self.join();
    }

    /// Both processes and the database are gone; a new user plane takes the place.
    pub fn lose_everything(&mut self) {
        self.saved = Saved { lives: self.saved.lives + 1, ..Saved::default() };
        self.restart_data_path_alone();
        self.restart_node();
    }

    /// The data path dies and comes back empty; what was on its wires is lost.
    pub fn restart_data_path(&mut self) {
        self.notices.clear();
        self.input(Input::DataPathLost);
        self.restart_data_path_alone();
        self.join();
    }

    fn restart_data_path_alone(&mut self) {
        self.config.1.epoch += 1;
        self.wires.iter_mut().for_each(|wire| *wire = Wire::default());
        (self.engine, self.worker) = connect(&self.config.1, self.wires.clone(), || 0).unwrap();
    }

    /// A PFCP message comes in and is worked off: all that was sent since this was last asked, or [`UserPlane::told`].
    pub fn datagram(&mut self, from: SocketAddr, bytes: &[u8]) -> Vec<Datagram> {
        self.input(Input::Datagram { from, bytes });
        self.settle();
        self.told()
    }

    /// They come first when this is asked the next time.
    pub fn tell_later(&mut self, datagrams: Vec<Datagram>) {
        self.outbox.splice(0..0, datagrams);
    }

    /// PFCP messages sent since this was last asked.
    pub fn told(&mut self) -> Vec<Datagram> {
        std::mem::take(&mut self.outbox)
    }

    /// A frame comes in by a port; it goes its way when the bench settles.
    pub fn receive(&mut self, port: usize, frame: &[u8]) {
        self.wires[port].arrive(frame);
    }

    /// Frames that left by a port since this was last asked; not those by which neighbours are found.
    pub fn sent(&mut self, port: usize) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.frames[port])
    }

    /// All that is under way is done, in no time.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..TURNS {
            quiet = if self.turn() { 0 } else { quiet + 1 };
            if quiet == QUIET {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    /// Time passes, and whatever falls due is done in time.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let due =
                self.node.next_due().filter(|_| !self.is_alone).map(|due| self.started + due.since_zero());
            let next = due.into_iter().fold(end.min(self.now + TICK), Time::min);
            self.now = self.now.max(next);
            self.input(Input::Tick);
            self.settle();
        }
    }

    /// Whether anything happened.
    fn turn(&mut self) -> bool {
        // The worker takes 0 for a time that has not come.
        let taken = self.worker.turn(self.now.since_zero().as_nanos() as u64 + 1);
        let uptime_ms = self.now.since_zero().as_millis() as u64;
        self.notices.extend(self.engine.poll(uptime_ms));
        let left = self.collect();
        self.hear() || taken > 0 || left
    }

    /// Takes what left by the ports; stations that are looked for answer.
    fn collect(&mut self) -> bool {
        let mut left = false;
        for (wire, frames) in self.wires.iter().zip(&mut self.frames) {
            for frame in wire.take() {
                left = true;
                match neighbours::answer(frame) {
                    Ok(answer) => wire.arrive(&answer),
                    Err(frame) => frames.push(frame),
                }
            }
        }
        left
    }

    /// The node hears what the data path said.
    fn hear(&mut self) -> bool {
        let mut heard = false;
        while let Some(notice) = self.notices.pop_front() {
            self.input(Input::DataPath(&notice));
            heard = true;
        }
        heard
    }

    fn input(&mut self, input: Input<'_>) {
        if self.is_alone {
            return;
        }
        let outputs = self.node.handle(input, Time::from_zero(self.now - self.started));
        outputs.into_iter().for_each(|output| self.carry_out(output));
    }

    fn carry_out(&mut self, output: Output) {
        match self.saved.apply(output) {
            Some(Output::Send { to, bytes }) => self.outbox.push((to, bytes)),
            Some(Output::Put(desired)) => self.command(Command::Put(desired)),
            Some(Output::Delete(session)) => self.command(Command::Delete { session }),
            Some(Output::QueryUsage { session, urrs, token, is_reported }) => {
                self.command(Command::QueryUsage { session, urrs, token, is_reported });
            }
            Some(Output::Note(note)) => self.notes.push(note.text),
            _ => {}
        }
    }

    fn command(&mut self, command: Command) {
        self.notices.extend(self.engine.handle(command).unwrap());
    }
}
