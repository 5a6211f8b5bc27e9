//! Buffering Action Rules.

use crate::fields::group;
use crate::value::PacketCount;

group! {
    /// Create BAR (TS 29.244 7.5.2.6).
    #[derive(Default)]
    CreateBar {
        /// Its name in the session.
        bar_id: one u8 = BAR_ID,
        /// Before telling of packets, in units of 50 ms.
        downlink_data_notification_delay: opt u8 = DOWNLINK_DATA_NOTIFICATION_DELAY,
        /// Packets to keep.
        suggested_buffering_packets_count: opt u8 = SUGGESTED_BUFFERING_PACKETS_COUNT,
    }
}

group! {
    /// Update BAR (TS 29.244 7.5.4.11): what is absent stays.
    #[derive(Default)]
    UpdateBar {
        /// The rule.
        bar_id: one u8 = BAR_ID,
        /// Before telling of packets, in units of 50 ms.
        downlink_data_notification_delay: set u8 = DOWNLINK_DATA_NOTIFICATION_DELAY,
        /// Packets to keep.
        suggested_buffering_packets_count: set u8 = SUGGESTED_BUFFERING_PACKETS_COUNT,
    }
}

group! {
    /// Update BAR of a Session Report Response (TS 29.244 7.5.9.2): what is absent stays.
    #[derive(Default)]
    UpdateBarInReport {
        /// The rule.
        bar_id: one u8 = BAR_ID,
        /// Before telling of packets, in units of 50 ms.
        downlink_data_notification_delay: set u8 = DOWNLINK_DATA_NOTIFICATION_DELAY,
        /// How long to keep packets this time: [`crate::flags::timer_s`].
        dl_buffering_duration: set u8 = DL_BUFFERING_DURATION,
        /// Packets to keep, for this time.
        dl_buffering_suggested_packet_count: set PacketCount = DL_BUFFERING_SUGGESTED_PACKET_COUNT,
        /// Packets to keep.
        suggested_buffering_packets_count: set u8 = SUGGESTED_BUFFERING_PACKETS_COUNT,
    }
}

group! {
    /// Remove BAR (TS 29.244 7.5.4.12).
    #[derive(Default)]
    RemoveBar {
        /// The rule.
        bar_id: one u8 = BAR_ID,
    }
}
