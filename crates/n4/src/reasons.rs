//! Why an IE is not obeyed, where that is not for want of time: for who reads `docs/ie-support.md` and expects another thing.

use pfcp::ie;

/// What an event is no clause says: event-based charging is for predefined rules and applications of the operator's (TS 23.503
/// table 6.3.1), whose user plane is to know. A Usage Report has room for times of events (TS 29.244 table 7.5.8.3-1), and for no count.
const EVENTS: &str = "which events are counted is not specified (TS 23.503 table 6.3.1 leaves it to who defines a rule or an \
                      application), so none would ever be reached";

/// By number.
pub(crate) const REASONS: &[(u16, &str)] = &[
    (ie::EVENT_QUOTA, EVENTS),
    (ie::EVENT_THRESHOLD, EVENTS),
    (ie::SUBSEQUENT_EVENT_QUOTA, EVENTS),
    (ie::SUBSEQUENT_EVENT_THRESHOLD, EVENTS),
];
