//! A record as a JSON object in a line of its own.

use crate::record::{Cdr, Container};
use crate::time::iso;
use serde_json::{Value, json};

/// The line, with its end.
pub fn line(cdr: &Cdr, node: &str) -> String {
    let (session, user) = (&cdr.session, &cdr.session.user);
    let slice = user.slice.map(|slice| {
        let sd = slice.sd.map(|[a, b, c]| format!("{a:02x}{b:02x}{c:02x}"));
        json!({ "sst": slice.sst, "sd": sd })
    });
    let (uplink_bytes, downlink_bytes) = cdr.bytes();
    let value = json!({
        "serial": cdr.serial,
        "node": node,
        // As text: not every reader keeps all 64 bits of a number.
        "seid": format!("{:016x}", session.seid),
        "cp_node": session.owner,
        "cp_seid": format!("{:016x}", session.cp_seid),
        "cp_address": session.cp_address,
        "serving_nodes": session.serving_nodes,
        "imsi": user.imsi,
        "msisdn": user.msisdn,
        "imei": user.imei,
        "nai": user.nai,
        "supi": user.supi,
        "gpsi": user.gpsi,
        "pei": user.pei,
        "dnn": user.dnn,
        "slice": slice,
        "ipv4": user.ipv4,
        "ipv6": user.ipv6.map(|(address, length)| format!("{address}/{length}")),
        "session_started": iso(cdr.started_ms),
        "opened": iso(cdr.opened_ms),
        "closed": iso(cdr.closed_ms),
        "duration_s": cdr.closed_ms.saturating_sub(cdr.opened_ms) / 1_000,
        "sequence": cdr.sequence,
        "is_last": !cdr.cause.is_partial(),
        "cause": cdr.cause,
        "cause_number": cdr.cause.number(),
        "uplink_bytes": uplink_bytes,
        "downlink_bytes": downlink_bytes,
        "containers": cdr.containers.iter().map(container).collect::<Vec<_>>(),
    });
    format!("{value}\n")
}

fn container(container: &Container) -> Value {
    json!({
        "rating_group": container.key.rating_group,
        "service_id": container.key.service_id,
        "sequence": container.sequence,
        "uplink_bytes": container.uplink_bytes,
        "downlink_bytes": container.downlink_bytes,
        "time_s": (container.duration_ms > 0).then_some(container.duration_ms / 1_000),
        "from": iso(container.from_ms),
        "until": iso(container.until_ms),
        "first_packet": container.first_packet_ms.map(iso),
        "last_packet": container.last_packet_ms.map(iso),
        "conditions": container.conditions.names().collect::<Vec<_>>(),
        "serving_nodes": container.serving_nodes,
    })
}
