//! Local time: a distance from UTC, or that of a place, where clocks may be put forward and back.

use crate::time::{Calendar, DAY_MS, UNIX_EPOCH_MS};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Timestamp, civil};

/// What clocks on the wall show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zone {
    /// So many minutes ahead of UTC, all year.
    Fixed(i32),
    /// As the IANA time zone database has it.
    Named(TimeZone),
}

impl Default for Zone {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl Zone {
    /// Of a name of the IANA time zone database, which is the host's, or where that has none, as it was when this was built.
    /// `None` where it has no such name.
    pub fn named(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(Self::Named)
    }

    /// How many minutes local time is ahead of UTC at a moment, in milliseconds since 1900.
    pub fn offset_min(&self, moment_ms: u64) -> i32 {
        match self {
            Self::Fixed(minutes) => *minutes,
            Self::Named(zone) => {
                timestamp(moment_ms).map_or(0, |moment| zone.to_offset(moment).seconds() / 60)
            }
        }
    }

    /// Where a moment is on the local calendar.
    pub fn calendar(&self, moment_ms: u64) -> Calendar {
        Calendar::of(moment_ms, self.offset_min(moment_ms))
    }

    /// The first moment after another at which it is one of these minutes of the local day. A minute that is left out, as
    /// clocks are put forward, is when they are; of one that comes twice, as they are put back, it is the first time.
    pub fn next(&self, after_ms: u64, minutes: &[u32]) -> Option<u64> {
        let local_ms = after_ms.saturating_add_signed(i64::from(self.offset_min(after_ms)) * 60_000);
        let midnight_ms = local_ms - local_ms % DAY_MS;
        // What comes first of tomorrow may be what was left out of today.
        let days = [midnight_ms.saturating_sub(DAY_MS), midnight_ms, midnight_ms + DAY_MS];
        let all = days.into_iter().flat_map(|day_ms| {
            minutes.iter().filter_map(move |minute| self.moment(day_ms + u64::from(*minute) * 60_000))
        });
        all.filter(|moment_ms| *moment_ms > after_ms).min()
    }

    /// When it is a local time, given as if it were UTC.
    fn moment(&self, local_ms: u64) -> Option<u64> {
        let zone = match self {
            Self::Fixed(minutes) => {
                return Some(local_ms.saturating_add_signed(-i64::from(*minutes) * 60_000));
            }
            Self::Named(zone) => zone,
        };
        let local: civil::DateTime = Offset::UTC.to_datetime(timestamp(local_ms)?);
        let at = |offset: Offset| offset.to_timestamp(local).ok();
        match zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => at(offset).map(moment_ms),
            AmbiguousOffset::Fold { before, .. } => at(before).map(moment_ms),
            AmbiguousOffset::Gap { before, .. } => {
                // By the clock as it was, the change is at that moment or before.
                let behind = timestamp(moment_ms(at(before)?) + 1)?;
                zone.preceding(behind).next().map(|change| moment_ms(change.timestamp()))
            }
        }
    }
}

fn timestamp(moment_ms: u64) -> Option<Timestamp> {
    let unix_ms = i64::try_from(moment_ms).ok()?.checked_sub_unsigned(UNIX_EPOCH_MS)?;
    Timestamp::from_millisecond(unix_ms).ok()
}

fn moment_ms(timestamp: Timestamp) -> u64 {
    UNIX_EPOCH_MS.saturating_add_signed(timestamp.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::iso;

    /// Seconds since 1970, of what `TZ=Europe/Berlin date -d ...` and `date -u -d ...` tell.
    const fn moment(unix_s: u64) -> u64 {
        UNIX_EPOCH_MS + unix_s * 1_000
    }

    /// 2026-03-28 12:00 and 2026-10-24 12:00 UTC: the next night, clocks change at 01:00 UTC.
    const BEFORE_SPRING: u64 = moment(1_774_699_200);
    const BEFORE_AUTUMN: u64 = moment(1_792_843_200);

    fn berlin() -> Zone {
        Zone::named("Europe/Berlin").unwrap()
    }

    /// Every switch of two days, in UTC.
    fn switches(zone: &Zone, from_ms: u64, minutes: &[u32]) -> Vec<String> {
        let next = |after: &u64| zone.next(*after, minutes);
        let all = std::iter::successors(zone.next(from_ms, minutes), next);
        let told = all.take_while(|moment_ms| *moment_ms < from_ms + 2 * DAY_MS);
        told.map(|moment_ms| iso(moment_ms).chars().take(16).collect()).collect()
    }

    #[test]
    fn clocks_go_forward_in_spring() {
        let times = [60, 6 * 60, 22 * 60];
        assert_eq!(
            switches(&berlin(), BEFORE_SPRING, &times),
            [
                "2026-03-28T21:00",
                "2026-03-29T00:00",
                "2026-03-29T04:00",
                "2026-03-29T20:00",
                "2026-03-29T23:00",
                "2026-03-30T04:00",
            ]
        );
        // 02:00 to 02:59 are left out: all of them are when the clocks change, and that is once.
        for minute in [120, 150, 179] {
            let told = switches(&berlin(), BEFORE_SPRING, &[minute]);
            assert_eq!(told.first().map(String::as_str), Some("2026-03-29T01:00"), "{minute}");
            assert_eq!(told.len(), 2, "{told:?}");
        }
        assert_eq!(switches(&berlin(), BEFORE_SPRING, &[150, 180]).len(), 3, "at the same moment");
    }

    #[test]
    fn clocks_go_back_in_autumn() {
        let times = [60, 6 * 60, 22 * 60];
        assert_eq!(
            switches(&berlin(), BEFORE_AUTUMN, &times),
            [
                "2026-10-24T20:00",
                "2026-10-24T23:00",
                "2026-10-25T05:00",
                "2026-10-25T21:00",
                "2026-10-26T00:00",
                "2026-10-26T05:00",
            ]
        );
        // 02:30 comes twice, and counts once.
        assert_eq!(switches(&berlin(), BEFORE_AUTUMN, &[150]), ["2026-10-25T00:30", "2026-10-26T01:30"]);
    }

    #[test]
    fn local_times_tell_how_far_they_are_from_utc() {
        let told = |hours: u64| {
            let at = berlin().calendar(BEFORE_SPRING + hours * 3_600_000);
            (at.hour, at.utc_offset())
        };
        assert_eq!((told(12), told(13)), ((1, ('+', 1, 0)), (3, ('+', 2, 0))));
        assert_eq!(Zone::Fixed(-330).calendar(BEFORE_SPRING).utc_offset(), ('-', 5, 30));
    }

    #[test]
    fn a_name_that_is_none_is_none() {
        for name in ["", "Europe", "Europe/Nowhere", "+01:00", "../../etc/passwd"] {
            assert_eq!(Zone::named(name), None, "{name}");
        }
    }
}
