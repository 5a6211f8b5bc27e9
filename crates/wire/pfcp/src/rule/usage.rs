//! Usage Reporting Rules and Buffering Action Rules: known by name; the rest is carried as it came.

use crate::fields::group;

group! {
    /// Create URR (TS 29.244 7.5.2.4).
    #[derive(Default)]
    CreateUrr {
        /// Its name in the session.
        urr_id: one u32 = URR_ID,
        /// Durations, volumes or events.
        measurement_method: one u8 = MEASUREMENT_METHOD,
        /// When to report.
        reporting_triggers: one Vec<u8> = REPORTING_TRIGGERS,
    }
}

group! {
    /// Update URR (TS 29.244 7.5.4.4).
    #[derive(Default)]
    UpdateUrr {
        /// The rule.
        urr_id: one u32 = URR_ID,
    }
}

group! {
    /// Remove URR (TS 29.244 7.5.4.8).
    #[derive(Default)]
    RemoveUrr {
        /// The rule.
        urr_id: one u32 = URR_ID,
    }
}

group! {
    /// Create BAR (TS 29.244 7.5.2.6).
    #[derive(Default)]
    CreateBar {
        /// Its name in the session.
        bar_id: one u8 = BAR_ID,
    }
}

group! {
    /// Update BAR (TS 29.244 7.5.4.11).
    #[derive(Default)]
    UpdateBar {
        /// The rule.
        bar_id: one u8 = BAR_ID,
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
