//! After how many entries the tables from hash to worker begin again: those of a node's cards, and its workers' own.

/// As many as most network cards have entries.
pub const PERIOD: u16 = 128;
/// The least, where cards have shorter tables (virtual functions of Intel's: 64). With fewer still, some workers would have
/// far more users than others.
const PERIOD_MIN: u16 = 64;

/// The period of a node whose cards look hashes up in tables of so many entries: the shortest that can be followed says it,
/// as a card reads no more bits of a hash than its table has entries for.
pub fn period(tables: impl IntoIterator<Item = u16>) -> u16 {
    let followed = |entries: &u16| entries.is_power_of_two() && *entries >= PERIOD_MIN;
    tables.into_iter().filter(followed).fold(PERIOD, u16::min)
}

/// Whether a card's table of so many entries can lead hashes where the workers' does, that begins again after `period`.
pub fn agrees(entries: u16, period: u16, workers: u16) -> bool {
    // Of a power of two of workers, only as many lowest bits of the hash matter as tell them apart.
    let needed = if workers.is_power_of_two() { workers } else { period };
    entries.is_power_of_two() && entries >= needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_table_that_can_be_followed_says_the_period() {
        for (tables, expected) in [
            (&[][..], 128),
            (&[512, 2_048], 128),
            (&[512, 64], 64),
            (&[64, 128], 64),
            (&[0, 16, 100, 512], 128),
        ] {
            assert_eq!(period(tables.iter().copied()), expected, "{tables:?}");
        }
    }

    /// As cards do it: the lowest bits of the hash choose an entry, and that says the queue.
    #[test]
    fn tables_that_agree_lead_every_hash_to_one_worker() {
        for entries in [32_u32, 64, 128, 512] {
            for (period, workers) in
                [64, 128].into_iter().flat_map(|period| (2..=32).map(move |w| (period, w)))
            {
                let filled: Vec<u32> = (0..entries).map(|entry| entry % period % workers).collect();
                let leads_right =
                    |hash: u32| filled[(hash & (entries - 1)) as usize] == hash % period % workers;
                let says = agrees(entries as u16, period as u16, workers as u16);
                assert_eq!((0..4_096).all(leads_right), says, "{entries} {period} {workers}");
            }
        }
        assert!(!agrees(0, 128, 2) && !agrees(96, 64, 3), "no table, and one that hashes are no index of");
    }
}
