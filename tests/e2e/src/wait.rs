//! Waiting, never for ever.

use crate::interrupt;
use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// Asks `probe` again and again until it has a value.
///
/// # Errors
/// Where `limit` passes first, `probe` fails, or a signal asks us to stop.
pub fn until<T>(what: &str, limit: Duration, mut probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = probe()? {
            return Ok(value);
        }
        if Instant::now() >= end {
            bail!("waited {} s in vain: {what}", limit.as_secs_f32());
        }
        interrupt::pause(interrupt::TICK)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_the_wait() {
        let mut left = 3;
        let value = until("three", Duration::from_secs(5), || {
            left -= 1;
            Ok((left == 0).then_some(7))
        });
        assert_eq!(value.unwrap(), 7);
    }

    #[test]
    fn a_wait_in_vain_says_for_what() {
        let failure = until::<()>("rain", Duration::from_millis(20), || Ok(None)).unwrap_err();
        assert_eq!(failure.to_string(), "waited 0.02 s in vain: rain");
    }
}
