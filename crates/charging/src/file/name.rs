//! What files are called: `NodeID_-_RC.date_-_time_-_PI`, and an ending (TS 32.297 6.2).

use super::{Format, Frame};
use crate::time::Calendar;

/// The name of a file that is closed now. Of the Node ID only letters, digits, `.` and `-` are kept; the running count
/// is the file's number; the time tells its distance from UTC; the private information is the format.
pub fn name(format: Format, frame: &Frame<'_>) -> String {
    let closed = frame.context.zone.calendar(frame.now_ms);
    let Calendar { year, month, day, hour, minute, .. } = closed;
    let (sign, hours, minutes) = closed.utc_offset();
    let keep = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
    let node: String = frame.context.node.chars().filter(keep).collect();
    let ending = if format == Format::Json { "jsonl" } else { "cdr" };
    format!(
        "{node}_-_{}.{year:04}{month:02}{day:02}_-_{hour:02}{minute:02}{sign}{hours:02}{minutes:02}_-_{}.{ending}",
        frame.sequence,
        format.name(),
    )
}
