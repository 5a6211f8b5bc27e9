//! QoS Enforcement Rules.

use crate::fields::group;
use crate::value::{GateStatus, Rates};

group! {
    /// Create QER (TS 29.244 7.5.2.5).
    CreateQer {
        /// Its name in the session.
        qer_id: one u32 = QER_ID,
        /// Groups QERs across sessions.
        qer_correlation_id: opt u32 = QER_CORRELATION_ID,
        /// The gates of both directions.
        gate_status: one GateStatus = GATE_STATUS,
        /// Not more.
        mbr: opt Rates = MBR,
        /// Not less.
        gbr: opt Rates = GBR,
        /// The mark of packets in a tunnel.
        qfi: opt u8 = QFI,
        /// Reflective QoS.
        rqi: opt u8 = RQI,
    }
}

group! {
    /// Update QER (TS 29.244 7.5.4.5): what is absent stays.
    #[derive(Default)]
    UpdateQer {
        /// The rule.
        qer_id: one u32 = QER_ID,
        /// Groups QERs across sessions.
        qer_correlation_id: set u32 = QER_CORRELATION_ID,
        /// New gates.
        gate_status: set GateStatus = GATE_STATUS,
        /// Not more.
        mbr: set Rates = MBR,
        /// Not less.
        gbr: set Rates = GBR,
        /// New mark.
        qfi: set u8 = QFI,
        /// Reflective QoS.
        rqi: set u8 = RQI,
    }
}

group! {
    /// Remove QER (TS 29.244 7.5.4.9).
    #[derive(Default)]
    RemoveQer {
        /// The rule.
        qer_id: one u32 = QER_ID,
    }
}
