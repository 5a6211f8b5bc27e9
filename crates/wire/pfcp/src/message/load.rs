//! How busy a user plane is, and how much less it wants to hear (TS 29.244 6.2.3 and 6.2.4).

use crate::fields::group;

group! {
    /// Load Control Information (TS 29.244 7.5.3.3).
    #[derive(Default)]
    LoadControlInformation {
        /// Grows with every change.
        sequence_number: one u32 = SEQUENCE_NUMBER,
        /// Percent, 0 to 100.
        metric: one u8 = METRIC,
    }
}

group! {
    /// Overload Control Information (TS 29.244 7.5.3.4).
    #[derive(Default)]
    OverloadControlInformation {
        /// Grows with every change.
        sequence_number: one u32 = SEQUENCE_NUMBER,
        /// Percent of requests to leave out, 0 to 100; 0 ends it.
        reduction_metric: one u8 = METRIC,
        /// How long it holds: [`crate::flags::timer_s`].
        period_of_validity: one u8 = TIMER,
        /// The bits of [`crate::flags`].
        flags: opt u8 = OCI_FLAGS,
    }
}
