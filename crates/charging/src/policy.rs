//! When containers and records are closed.

use crate::zone::Zone;

/// What an operator sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// A record is closed after so long.
    pub time_limit_ms: u64,
    /// A record is closed with so many bytes, both ways together.
    pub volume_limit_bytes: u64,
    /// A record is closed with so many containers; one change closes a container of each key, so that there may be that
    /// many more, but no more than [`Cdr::CONTAINERS`](crate::Cdr::CONTAINERS).
    pub containers: usize,
    /// Minutes of the local day at which tariffs change, ascending.
    pub tariff_minutes: Vec<u32>,
    /// Whose local day.
    pub zone: Zone,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            time_limit_ms: 3_600_000,
            volume_limit_bytes: 1 << 30,
            containers: 100,
            tariff_minutes: vec![],
            zone: Zone::default(),
        }
    }
}

impl Policy {
    /// The first tariff time after a time of day, if there are any.
    pub fn next_tariff_ms(&self, after_ms: u64) -> Option<u64> {
        self.zone.next(after_ms, &self.tariff_minutes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::DAY_MS;

    /// 1900-01-01 was a Monday; any day will do.
    const DAY: u64 = 45_000 * DAY_MS;

    #[test]
    fn tariffs_change_at_local_times() {
        let policy =
            Policy { tariff_minutes: vec![6 * 60, 22 * 60], zone: Zone::Fixed(120), ..Policy::default() };
        let hours = |hours: u64| DAY + hours * 3_600_000;
        assert_eq!(policy.next_tariff_ms(hours(0)), Some(hours(4)));
        assert_eq!(policy.next_tariff_ms(hours(4)), Some(hours(20)));
        assert_eq!(policy.next_tariff_ms(hours(21)), Some(hours(28)));
        assert_eq!(policy.next_tariff_ms(hours(23)), Some(hours(28)));
        let west = Policy { zone: Zone::Fixed(-300), ..policy };
        assert_eq!(west.next_tariff_ms(hours(0)), Some(hours(3)));
        assert_eq!(Policy::default().next_tariff_ms(0), None);
    }
}
