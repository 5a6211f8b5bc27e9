//! How long the first packets of flows take to be classified, and how large the content rules are.
//!
//! What is measured is what a flow costs besides its way through the data path: a fresh inspection looks at the packet that says
//! what the flow is, and the rule is found. Packets and rules are those of the traffic crate; times are the thread's own.

use crate::plan::Plan;
use crate::spread::{Spread, rounded};
use crate::{interrupt, machine};
use anyhow::Context;
use dpi::extract::{Datagram, Inspection, Pool, Seen, Verdict};
use dpi::matching::{Classifier, Facts};
use packet::{FiveTuple, ethernet, gtpu, ipv4, protocol, tcp, udp};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use traffic::{FRAME_MAX, Flows, Profile, Transport, catalogue, profile};

/// Flows in a round, and rounds.
const FLOWS: usize = 2_000;
const ROUNDS: usize = 15;
/// More packets are not looked through for so many flows.
const PACKETS: usize = 4_000_000;
/// What is asked of the rules: to be compiled in so many milliseconds, and to take so many MiB.
const COMPILED_ASKED_MS: u32 = 3_000;
const MEMORY_ASKED_MIB: u32 = 256;
/// What says what a flow is, and the nanoseconds that are asked for.
const ASKED: [(Transport, &str, u32); 4] = [
    (Transport::Http, "HTTP", 1_500),
    (Transport::Tls, "TLS", 1_500),
    (Transport::Quic, "QUIC", 6_000),
    (Transport::Udp, "addresses", 200),
];

/// What `services` adds about first packets and the rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Classification {
    pub(crate) rules: usize,
    /// From lines in memory to what is searched.
    pub(crate) compiled_ms: f64,
    pub(crate) compiled_asked_ms: u32,
    /// As far as it can be counted, and as much as the process has grown by it.
    pub(crate) memory_mib: f64,
    pub(crate) grown_mib: f64,
    pub(crate) memory_asked_mib: u32,
    pub(crate) first_packets: Vec<FirstPacket>,
}

/// First packets of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FirstPacket {
    /// What tells.
    pub(crate) by: String,
    /// Over rounds.
    pub(crate) ns: Spread,
    pub(crate) asked_ns: u32,
}

impl Classification {
    /// Whether each figure is within what is asked.
    pub(crate) fn is_as_asked(&self) -> bool {
        let is_quick = |packet: &FirstPacket| packet.ns.median < f64::from(packet.asked_ns);
        self.compiled_ms < f64::from(self.compiled_asked_ms)
            && self.memory_mib.max(self.grown_mib) < f64::from(self.memory_asked_mib)
            && self.first_packets.iter().all(is_quick)
    }
}

/// Measures with the plan's number of rules.
///
/// # Errors
/// Rules that are refused, too few flows of a kind, an interruption.
pub(super) fn measure(plan: &Plan) -> anyhow::Result<Classification> {
    const MIB: f64 = 1_048_576.0;
    let lines: String =
        catalogue::applications().take(plan.rules as usize).map(|rule| format!("{rule}\n")).collect();
    let before = machine::resident_bytes("self")?;
    let start = machine::cpu_time();
    let classifier = dpi::rule_file::read_lines(&lines)?.compile()?;
    let compiled = machine::cpu_time().saturating_sub(start);
    let grown = machine::resident_bytes("self")?.saturating_sub(before);
    let samples = Samples::new(plan.seed)?;
    let first_packets = ASKED.into_iter().map(|(transport, by, asked_ns)| {
        let ns = first_packet(&classifier, samples.of(transport))?;
        Ok(FirstPacket { by: by.to_owned(), ns, asked_ns })
    });
    Ok(Classification {
        rules: classifier.shape().rules,
        compiled_ms: rounded(compiled.as_secs_f64() * 1e3),
        compiled_asked_ms: COMPILED_ASKED_MS,
        memory_mib: rounded(classifier.shape().bytes as f64 / MIB),
        grown_mib: rounded(grown as f64 / MIB),
        memory_asked_mib: MEMORY_ASKED_MIB,
        first_packets: first_packets.collect::<anyhow::Result<_>>()?,
    })
}

/// Nanoseconds a flow, over rounds.
fn first_packet(classifier: &Classifier, samples: &[Sample]) -> anyhow::Result<Spread> {
    let mut pool = Pool::new(256);
    let mut round = || {
        let start = machine::cpu_time();
        for sample in samples {
            let ticket = pool.take();
            let Some(inspection) = pool.get(ticket) else { continue };
            let facts = match sample.look(inspection) {
                Verdict::Seen(seen) => sample.facts().with(&seen),
                _ => sample.facts(),
            };
            black_box(classifier.classify(&facts));
            pool.put(ticket);
        }
        machine::cpu_time().saturating_sub(start).as_nanos() as f64 / samples.len().max(1) as f64
    };
    round();
    let times: Vec<f64> = (0..ROUNDS).take_while(|_| !interrupt::asked()).map(|_| round()).collect();
    Spread::of(&times).context("interrupted before first packets were measured")
}

/// A packet that says what its flow is.
struct Sample {
    tuple: FiveTuple,
    /// Of TCP.
    sequence: Option<u32>,
    payload: Vec<u8>,
}

impl Sample {
    /// Of a frame from the user; `None` where it carries nothing.
    fn of(frame: &[u8]) -> Option<Self> {
        let outer = frame.get(ethernet::LENGTH + ipv4::LENGTH + udp::LENGTH..)?;
        let inner = outer.get(gtpu::Message::parse(outer).ok()?.header_length..)?;
        let found = FiveTuple::parse(inner).ok()?;
        let upper = inner.get(found.upper..found.total)?;
        let (sequence, payload) = match found.tuple.protocol {
            protocol::TCP => {
                let segment = tcp::Segment::parse(upper).ok()?;
                (Some(segment.sequence()), segment.payload())
            }
            _ => (None, upper.get(udp::LENGTH..)?),
        };
        (!payload.is_empty()).then(|| Self { tuple: found.tuple, sequence, payload: payload.to_vec() })
    }

    fn look<'a>(&'a self, inspection: &'a mut Inspection) -> Verdict<'a> {
        let (server_port, payload) = (self.tuple.destination_port, self.payload.as_slice());
        match self.sequence {
            Some(sequence) => inspection.segment(sequence, payload),
            None => inspection.datagram(Datagram { server_port, payload }),
        }
    }

    fn facts<'f>(&self) -> Facts<'f> {
        Facts {
            server: self.tuple.destination_address(),
            server_port: self.tuple.destination_port,
            protocol: self.tuple.protocol,
            dscp: self.tuple.tos >> 2,
            ..Facts::default()
        }
    }
}

/// As many flows of each kind as a round needs.
struct Samples([Vec<Sample>; ASKED.len()]);

impl Samples {
    fn new(seed: u64) -> anyhow::Result<Self> {
        let model = profile("epc-us").context("the profile with all kinds of flows")?;
        let busy = Profile { opening: 0.9, flows: 1_000, ..*model };
        let mut flows = Flows::new(&busy, crate::setup::ENDPOINTS, seed)?;
        let (mut samples, mut frame, mut pool) = (Self(Default::default()), vec![0; FRAME_MAX], Pool::new(1));
        for _ in 0..PACKETS {
            let Some(written) = flows.next(&mut frame) else { break };
            if !written.uplink || !written.first_packets {
                continue;
            }
            let Some(sample) = frame.get(..written.length).and_then(Sample::of) else { continue };
            let transport = flows.label(written.flow).transport;
            let ticket = pool.take();
            let verdict = pool.get(ticket).map(|inspection| sample.look(inspection));
            let is_told = matches!(verdict, Some(Verdict::Seen(seen)) if !matches!(seen, Seen::Dns(_)));
            pool.put(ticket);
            // Media never says what it is in one packet: there, addresses tell.
            if is_told || transport == Transport::Udp {
                samples.take(transport, sample);
            }
            if samples.0.iter().all(|kind| kind.len() == FLOWS) {
                return Ok(samples);
            }
        }
        anyhow::bail!("the traffic has too few flows of some kind")
    }

    fn take(&mut self, transport: Transport, sample: Sample) {
        let kinds = ASKED.iter().zip(&mut self.0);
        let kind = kinds.filter(|((of, ..), kind)| *of == transport && kind.len() < FLOWS);
        if let Some((_, kind)) = kind.into_iter().next() {
            kind.push(sample);
        }
    }

    fn of(&self, transport: Transport) -> &[Sample] {
        let found = ASKED.iter().zip(&self.0).find(|((of, ..), _)| *of == transport);
        found.map_or(&[], |(_, samples)| samples)
    }
}
