//! From the tunnels to the UEs, and everything else that comes by GTP-U.

use super::TunnelRefused;
use super::bearer::{Bearer, index_of};
use super::counters::{GnbCounters, add};
use super::limit::RateLimit;
use crate::tunnel::Tunnel;
use machine::Time;
use packet::gtpu::{self, ErrorIndication, Malformed, Message, PduType, message_type};
use packet::ipv4;
use rules::Teid;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// More than an echo response takes.
const ECHO_RESPONSE_BYTES: usize = 32;

/// What a datagram calls for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict<'a> {
    /// Give the packet to the UE of this index.
    Deliver(usize, &'a [u8]),
    /// Answer.
    Answer(Vec<u8>, SocketAddrV4),
    /// Tell the runtime.
    Report(TunnelRefused),
    /// It was counted.
    Nothing,
}

/// Decides about datagrams: no socket, device or clock in here.
#[derive(Debug)]
pub(super) struct Downlink {
    address: Ipv4Addr,
    recovery_time_stamp: u32,
    bearers: Arc<[Bearer]>,
    counters: Arc<GnbCounters>,
    error_indications: RateLimit,
    reports: RateLimit,
    /// Set before each batch.
    pub(super) now: Time,
}

impl Downlink {
    /// For a gNB at `address` that began then, in seconds since 1900.
    pub(super) fn new(
        (address, recovery_time_stamp): (Ipv4Addr, u32),
        bearers: Arc<[Bearer]>,
        counters: Arc<GnbCounters>,
    ) -> Self {
        Self {
            address,
            recovery_time_stamp,
            bearers,
            counters,
            error_indications: RateLimit::default(),
            reports: RateLimit::default(),
            now: Time::ZERO,
        }
    }

    /// What to do with one datagram.
    pub(super) fn handle<'a>(&mut self, datagram: &'a [u8], from: SocketAddrV4) -> Verdict<'a> {
        let message = match Message::parse(datagram) {
            Ok(message) => message,
            Err(malformed) => return self.malformed(malformed),
        };
        match message.message_type {
            message_type::G_PDU => self.g_pdu(&message, datagram, from),
            message_type::ECHO_REQUEST => self.echo_request(&message, from),
            message_type::ECHO_RESPONSE => Verdict::Nothing,
            message_type::END_MARKER => self.end_marker(&message),
            message_type::ERROR_INDICATION => self.error_indication(&message, datagram),
            _ => self.nothing(|counters| &counters.unknown_type),
        }
    }

    fn nothing(&self, counter: impl Fn(&GnbCounters) -> &AtomicU64) -> Verdict<'static> {
        add(counter(&self.counters), 1);
        Verdict::Nothing
    }

    fn malformed(&self, malformed: Malformed) -> Verdict<'static> {
        self.nothing(|counters| match malformed {
            Malformed::Truncated => &counters.malformed_truncated,
            Malformed::Version => &counters.malformed_version,
            Malformed::Extension => &counters.malformed_extension,
            Malformed::UnknownExtension => &counters.malformed_unknown_extension,
        })
    }

    fn g_pdu<'a>(&mut self, message: &Message, datagram: &'a [u8], from: SocketAddrV4) -> Verdict<'a> {
        let found = index_of(message.teid).and_then(|index| Some((index, self.bearers.get(index)?)));
        let Some((index, bearer)) = found else {
            return self.unknown_teid(message.teid, from);
        };
        let packet = datagram.get(message.header_length..message.total_length).unwrap_or_default();
        let right = |c: &gtpu::PduSession| c.pdu_type == PduType::Downlink && c.qfi == bearer.qfi().value();
        if !message.pdu_session.as_ref().is_some_and(right) {
            add(&bearer.counters.down_wrong_qfi, 1);
        }
        // A frame is for whichever station its device knows.
        if bearer.carries_frames() {
            return Verdict::Deliver(index, packet);
        }
        let Ok(inner) = ipv4::Packet::parse(packet) else {
            return self.nothing(|counters| &counters.malformed_inner);
        };
        if inner.destination() != bearer.address() {
            add(&bearer.counters.down_wrong_address, 1);
            return Verdict::Nothing;
        }
        Verdict::Deliver(index, packet)
    }

    /// TS 29.281 7.3.1; to the GTP-U port, whatever port the packet came from (4.4.2.4).
    fn unknown_teid(&mut self, teid: u32, from: SocketAddrV4) -> Verdict<'static> {
        add(&self.counters.unknown_teid, 1);
        if !self.error_indications.allows(self.now) {
            return Verdict::Nothing;
        }
        let mut bytes = vec![0; ErrorIndication::LENGTH];
        let indication = ErrorIndication { teid, address: self.address };
        if indication.write(&mut bytes).is_none() {
            return Verdict::Nothing;
        }
        add(&self.counters.error_indications_sent, 1);
        Verdict::Answer(bytes, SocketAddrV4::new(*from.ip(), gtpu::PORT))
    }

    /// TS 29.281 7.2.2: to where the request came from, with the time since which our tunnels are known.
    fn echo_request(&self, message: &Message, from: SocketAddrV4) -> Verdict<'static> {
        add(&self.counters.echo_requests, 1);
        let mut bytes = vec![0; ECHO_RESPONSE_BYTES];
        let began = Some(self.recovery_time_stamp);
        match gtpu::write_echo_response(&mut bytes, message.sequence.unwrap_or(0), began) {
            Some(length) => {
                bytes.truncate(length);
                Verdict::Answer(bytes, from)
            }
            None => Verdict::Nothing,
        }
    }

    fn end_marker(&self, message: &Message) -> Verdict<'static> {
        match index_of(message.teid).and_then(|index| self.bearers.get(index)) {
            Some(bearer) => add(&bearer.counters.end_markers, 1),
            None => add(&self.counters.unknown_teid, 1),
        }
        Verdict::Nothing
    }

    fn error_indication(&mut self, message: &Message, datagram: &[u8]) -> Verdict<'static> {
        add(&self.counters.error_indications_received, 1);
        let Some(ErrorIndication { teid, address }) = ErrorIndication::read(message, datagram) else {
            return self.nothing(|counters| &counters.malformed_error_indication);
        };
        let tunnel = Tunnel { teid: Teid(teid), address };
        let ue = self.bearers.iter().position(|bearer| bearer.uplink() == Some(tunnel));
        if let Some(bearer) = ue.and_then(|ue| self.bearers.get(ue)) {
            add(&bearer.counters.error_indications, 1);
        }
        match self.reports.allows(self.now) {
            true => Verdict::Report(TunnelRefused { tunnel, ue }),
            false => Verdict::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
