//! Makes workers and the engine that controls them.

use super::announcing::Announcing;
use super::{Clock, LANE_ROOM, Lane, Order, RING, Report, TRASH_ROOM, Worker, moving, rest};
use crate::config::{Config, ConfigError};
use crate::counters::Counters;
use crate::cpu;
use crate::engine::Engine;
use crate::fair_share::FairShare;
use crate::frame::VECTOR;
use crate::graph::Graph;
use crate::held::Held;
use crate::kept::{Kept, Unkept};
use crate::lasting::Section;
use crate::port::{CLASSES_MAX, Port};
use crate::punt::{self, KernelSide};
use crate::state::{Ages, Punting, State};
use crate::steering::{Crew, Handoff, Steering, handoffs, posts};
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::VecDeque;

/// Makes a worker over `ports`, in the order of the configuration, and the engine that controls it.
///
/// # Errors
/// A configuration that makes no sense.
pub fn connect<P: Port>(
    config: &Config,
    ports: Vec<P>,
    clock: Clock,
) -> Result<(Engine, Worker<P>), ConfigError> {
    let (engine, workers) = connect_crew(config, &Crew::default(), vec![ports], clock)?;
    let worker = workers.into_iter().next().ok_or(ConfigError::Crew(0, 0))?;
    Ok((engine, worker))
}

/// The same of several workers, each with its own ports in the order of the configuration.
///
/// # Errors
/// A configuration that makes no sense, or not as many workers' ports as workers.
pub fn connect_crew<P: Port>(
    config: &Config,
    crew: &Crew,
    ports: Vec<Vec<P>>,
    clock: Clock,
) -> Result<(Engine, Vec<Worker<P>>), ConfigError> {
    connect_placed(config, crew, ports, (clock, |_| {}))
}

/// The same; `before` is called with each worker's number before the memory of its tables is touched first, as that decides
/// which NUMA node the memory is on.
///
/// # Errors
/// As of [`connect_crew`].
pub fn connect_placed<P: Port>(
    config: &Config,
    crew: &Crew,
    ports: Vec<Vec<P>>,
    (clock, mut before): (Clock, impl FnMut(usize)),
) -> Result<(Engine, Vec<Worker<P>>), ConfigError> {
    crew.check()?;
    if ports.len() != crew.workers {
        return Err(ConfigError::Crew(ports.len(), crew.distributors));
    }
    let own = Config { limits: crew.share(&config.limits), ..config.clone() };
    let mut sections = sections(&own, crew)?.into_iter();
    let (mut hands, mut workers) = (Vec::new(), Vec::new());
    let (punts, sides) = punt::rings(&config.ports, crew.workers).unzip();
    let mut sides: VecDeque<KernelSide> = sides.unwrap_or_default().into();
    let links = posts(crew.workers).into_iter().zip(handoffs(crew.workers));
    for ((me, ports), (post, handoff)) in ports.into_iter().enumerate().zip(links) {
        before(me);
        let (order_sender, orders) = RingBuffer::new(RING);
        let (reports, report_receiver) = RingBuffer::new(RING);
        let steering = Steering::new(crew, me as u8, post, &own.limits);
        let punting = Punting::new(&config.ports, |port| crew.punts_per_s(port, config.limits.punts_per_s));
        let mut state = State::new(&own, sections.next(), (steering, punting))?;
        state.sessions.peers.share(me as u8, crew.workers as u8);
        let mut worker = Worker::new(&own, (state, ports, handoff), (orders, reports), clock);
        worker.kernel = sides.pop_front().map(Box::new);
        workers.push(worker);
        hands.push((order_sender, report_receiver));
    }
    Ok((Engine::new(config, crew, hands, punts), workers))
}

/// Where each worker's counts lie, if they are to outlive the process.
fn sections(own: &Config, crew: &Crew) -> Result<Vec<Section>, ConfigError> {
    let Some(lasting) = &own.lasting else { return Ok(vec![]) };
    let sections = lasting.lay_out(crew.workers, &own.limits);
    sections
        .map_err(|error| ConfigError::Lasting { path: lasting.path().to_owned(), reason: error.to_string() })
}

impl<P: Port> Worker<P> {
    fn new(
        config: &Config,
        (state, ports, handoff): (State, Vec<P>, Handoff<P::Buffer>),
        (orders, reports): (Consumer<Order>, Producer<Report>),
        clock: Clock,
    ) -> Self {
        let room = || Vec::with_capacity(LANE_ROOM);
        let lane = |port| Lane { port, out: room(), receipts: Vec::with_capacity(LANE_ROOM) };
        let awaited = moving::Awaited::new(state.steering.is_shared());
        Self {
            counters: Counters::new(ports.len()),
            classes: ports.iter().map(Port::classes).max().unwrap_or(0).min(CLASSES_MAX),
            lanes: ports.into_iter().map(lane).collect(),
            graph: Graph::new(cpu::l1_data_bytes()),
            held: Held::new(config.limits.held_per_neighbour, config.limits.kept),
            kept: Kept::new(config.limits.kept),
            unkept: Unkept::new(),
            busy_cycles: 0,
            looking: None,
            state,
            received: Vec::with_capacity(VECTOR),
            vector: Vec::with_capacity(VECTOR),
            handed: 0,
            handed_unread: 0,
            passed_on: 0,
            are_new: false,
            is_ending: false,
            fair_share: FairShare::new(),
            classless: 0,
            trash: Vec::with_capacity(TRASH_ROOM + LANE_ROOM),
            resumed: Vec::with_capacity(config.limits.kept.max(awaited.most())),
            awaited,
            is_resuming: false,
            handoff,
            unsent: Vec::with_capacity(VECTOR),
            withheld: None,
            rest: rest::Rest::new(),
            kernel: None,
            kept_per_session: config.limits.kept_per_session,
            kept_ns: config.limits.kept_ns,
            ages: Ages { flow_ns: config.limits.flow_age_ns, connection_ns: config.limits.connection_age_ns },
            orders,
            obeyed: 0,
            reports,
            clock,
            expire_ns: 0,
            announcing: Announcing::default(),
            tracer: None,
        }
    }
}
