//! What the gNB counts. Each counter has one writing thread, so relaxed order suffices.

use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// Declares counters and the plain values they are read into, so that none can be forgotten in the report.
macro_rules! counters {
    ($(#[$doc:meta])* $counters:ident -> $counts:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        #[derive(Debug, Default)]
        pub(super) struct $counters {
            $(pub(super) $field: AtomicU64,)*
        }

        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct $counts {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        impl $counters {
            pub(super) fn read(&self) -> $counts {
                $counts { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }

        impl $counts {
            /// Every counter with its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field),)*]
            }
        }
    };
}

counters! {
    /// Counted for one UE; bytes are those of the UE's own packets.
    UeCounters -> UeCounts {
        /// Sent into the tunnel.
        up_packets,
        /// Sent into the tunnel.
        up_bytes,
        /// Given to the UE.
        down_packets,
        /// Given to the UE.
        down_bytes,
        /// From the UE's device, but not IPv4 (the host's own router solicitations and the like).
        up_not_ipv4,
        /// From the UE while it had no tunnel.
        up_no_tunnel,
        /// From the UE, refused by the N3 side's network stack.
        up_unsent,
        /// Downlink packets of another QFI than the UE's, or of none; delivered all the same.
        down_wrong_qfi,
        /// Downlink packets to another address than the UE's; dropped.
        down_wrong_address,
        /// Downlink packets the UE's device refused.
        down_refused,
        /// End markers (TS 29.281 7.3.2).
        end_markers,
        /// Error Indications about the UE's uplink tunnel.
        error_indications,
    }
}

counters! {
    /// Counted for the gNB as a whole.
    GnbCounters -> GnbCounts {
        /// Echo requests, each answered.
        echo_requests,
        /// Error Indications received.
        error_indications_received,
        /// Error Indications sent.
        error_indications_sent,
        /// Packets into tunnels we do not have.
        unknown_teid,
        /// Messages of other types than we know.
        unknown_type,
        /// Malformed: shorter than the header or its length says.
        malformed_truncated,
        /// Malformed: not GTP version 1.
        malformed_version,
        /// Malformed: an impossible chain of extension headers.
        malformed_extension,
        /// Malformed: an extension header we must understand and do not.
        malformed_unknown_extension,
        /// Malformed: the user's packet is not IPv4.
        malformed_inner,
        /// Malformed: an Error Indication that does not say of what.
        malformed_error_indication,
        /// Answers of ours that the network stack refused.
        unsent,
    }
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Adds a packet of so many bytes.
pub(super) fn add_packet(packets: &AtomicU64, bytes: &AtomicU64, length: usize) {
    add(packets, 1);
    add(bytes, u64::try_from(length).unwrap_or(u64::MAX));
}
