//! Moments as CDRs tell them. They come as milliseconds since 1900, as PFCP counts.

/// A day.
pub const DAY_MS: u64 = 86_400_000;

/// From 1900 to 1970.
pub const UNIX_EPOCH_MS: u64 = 2_208_988_800_000;

/// A moment on the calendar, at a distance from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// With the century.
    pub year: u64,
    /// From 1.
    pub month: u8,
    /// From 1.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// Ahead of UTC.
    pub utc_offset_min: i32,
}

impl Calendar {
    /// Where a moment is on the calendar, so many minutes ahead of UTC.
    pub fn of(moment_ms: u64, utc_offset_min: i32) -> Self {
        let local_ms = moment_ms.saturating_add_signed(i64::from(utc_offset_min) * 60_000);
        let (days, second_of_day) = (local_ms / DAY_MS, local_ms % DAY_MS / 1_000);
        let (year, month, day) = date(days);
        let part = |seconds: u64, of: u64| (second_of_day / seconds % of) as u8;
        Self {
            year,
            month,
            day,
            hour: part(3_600, 24),
            minute: part(60, 60),
            second: part(1, 60),
            utc_offset_min,
        }
    }

    /// `+` or `-`, hours and minutes of the distance from UTC.
    pub const fn utc_offset(&self) -> (char, u8, u8) {
        let sign = if self.utc_offset_min < 0 { '-' } else { '+' };
        let minutes = self.utc_offset_min.unsigned_abs();
        (sign, (minutes / 60) as u8, (minutes % 60) as u8)
    }

    /// `TimeStamp` of TS 32.298: YYMMDDhhmmss in packed decimals, the sign as a character, hhmm.
    pub fn timestamp(&self) -> [u8; 9] {
        let packed = |value: u8| ((value / 10) << 4) | (value % 10);
        let (sign, hours, minutes) = self.utc_offset();
        let parts =
            [(self.year % 100) as u8, self.month, self.day, self.hour, self.minute, self.second].map(packed);
        let [year, month, day, hour, minute, second] = parts;
        [year, month, day, hour, minute, second, sign as u8, packed(hours), packed(minutes)]
    }
}

/// The Gregorian date of a day counted from 1900-01-01. Years are taken from March, so that the day that leaps is the
/// last one, and 400 of them at a time.
fn date(days_since_1900: u64) -> (u64, u8, u8) {
    /// From 0000-03-01 to 1900-01-01.
    const BEFORE_1900: u64 = 693_901;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days_since_1900 + BEFORE_1900;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u8;
    (era * 400 + year + u64::from(month <= 2), month, day_of_month)
}

/// ISO 8601 with milliseconds, in UTC.
pub fn iso(moment_ms: u64) -> String {
    let Calendar { year, month, day, hour, minute, second, .. } = Calendar::of(moment_ms, 0);
    let ms = moment_ms % 1_000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds since 1970 and their dates, as `date -u -d @...` tells them.
    #[test]
    fn moments_are_found_on_the_calendar() {
        for (unix_s, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(UNIX_EPOCH_MS + unix_s * 1_000), expected);
        }
        assert_eq!(iso(7), "1900-01-01T00:00:00.007Z");
    }

    #[test]
    fn time_stamps_are_local_and_say_so() {
        let moment = UNIX_EPOCH_MS + 1_735_689_599_000;
        let east = Calendar::of(moment, 330).timestamp();
        assert_eq!(east, [0x25, 0x01, 0x01, 0x05, 0x29, 0x59, b'+', 0x05, 0x30]);
        let west = Calendar::of(moment, -60).timestamp();
        assert_eq!(west, [0x24, 0x12, 0x31, 0x22, 0x59, 0x59, b'-', 0x01, 0x00]);
    }
}
