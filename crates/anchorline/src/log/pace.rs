//! A pace for what the database says of each try that fails: we try once a second, and tell once ourselves what that means.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata};
use tracing_subscriber::layer::{Context, Filter};

/// Whose lines have a pace, by the beginning of their targets.
const PACED: [&str; 2] = ["fjall", "lsm_tree"];
/// Between two lines of one place of the source.
const PAUSE: Duration = Duration::from_secs(60);
/// Places that are remembered: the two have fewer that warn. Lines of more pass.
const PLACES: usize = 256;

/// Lets one line a minute pass of each place in the database's source that warns or tells of an error; who asks for more than these gets
/// all of it.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<HashMap<Place, Instant>>);

/// Where a line is from. The words have errors and paths in them, and are different each time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Place {
    target: String,
    line: u64,
}

impl<S> Filter<S> for Pace {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let is_grave = *event.metadata().level() <= Level::WARN;
        !is_grave || self.passes(Place::of(event), Instant::now())
    }

    /// Nothing is held back by its level.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        None
    }
}

impl Pace {
    fn passes(&self, place: Place, now: Instant) -> bool {
        if !PACED.iter().any(|paced| place.target.starts_with(paced)) {
            return true;
        }
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_soon = said.get(&place).is_some_and(|before| now.duration_since(*before) < PAUSE);
        if !is_soon && (said.len() < PLACES || said.contains_key(&place)) {
            said.insert(place, now);
        }
        !is_soon
    }
}

impl Place {
    /// Lines of crates that know `log` alone have their place in fields of these names, as their own is the one that hands them on.
    fn of(event: &Event<'_>) -> Self {
        let own = event.metadata();
        let mut place = Self { target: own.target().to_owned(), line: own.line().unwrap_or_default().into() };
        event.record(&mut place);
        place
    }
}

impl Visit for Place {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            value.clone_into(&mut self.target);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "log.line" {
            self.line = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::Arc;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::{Layer, fmt};

    fn place(target: &str, line: u64) -> Place {
        Place { target: target.to_owned(), line }
    }

    #[test]
    fn a_place_of_the_database_is_heard_once_a_minute() {
        let (pace, start) = (Pace::default(), Instant::now());
        let passes =
            |target, line, after_s| pace.passes(place(target, line), start + Duration::from_secs(after_s));
        assert!(
            passes("fjall::batch", 1, 0) && !passes("fjall::batch", 1, 1) && !passes("fjall::batch", 1, 59)
        );
        assert!(passes("fjall::batch", 2, 1) && passes("lsm_tree::tree", 1, 1), "another place");
        assert!(passes("fjall::batch", 1, 60) && !passes("fjall::batch", 1, 119));
        assert!((0..9).all(|_| passes("anchorline::cpe", 1, 0)), "our own lines have a pace of their own");
    }

    #[test]
    fn places_that_are_remembered_have_a_limit() {
        let (pace, now) = (Pace::default(), Instant::now());
        for line in 0..2 * PLACES as u64 {
            assert!(pace.passes(place("fjall", line), now));
        }
        assert_eq!(pace.0.lock().unwrap().len(), PLACES);
        assert!(!pace.passes(place("fjall", 0), now) && pace.passes(place("fjall", PLACES as u64), now));
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(octets);
            Ok(octets.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn errors_of_each_try_are_one_line_and_what_is_asked_for_is_there() {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = fmt::layer().with_writer(move || writer.clone()).with_filter(Pace::default());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            for number in 0..3 {
                tracing::error!(target: "log", { log.target = "fjall::batch", log.line = 119_u64 }, "persist failed {number}");
                tracing::debug!(target: "fjall::batch", "a step {number}");
                tracing::warn!("ours {number}");
            }
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let times = |what: &str| text.matches(what).count();
        assert_eq!((times("persist failed"), times("a step"), times("ours")), (1, 3, 3), "{text}");
    }
}
