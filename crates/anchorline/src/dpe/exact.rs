//! Exact rules of cards (flow director): whether a card takes any, asked before there are packets.

use super::steering::Asked;
use dplink::{PortSteering, Spread};
use std::time::Instant;
use steer::{Budget, ExactCard, Family, Takes};

/// What a card takes.
pub(super) type Grant = (Family, Takes);

/// The exact rules of all ports.
pub(super) type Directors = dataplane::Directors<dpdk::Port>;

/// The exact rules of ports, and the time for them from now on.
pub(super) fn directors(ports: Vec<Option<steer::ExactRules<dpdk::Port>>>) -> Directors {
    let start = Instant::now();
    let clock = move || u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    Directors::new(ports, Budget::new(clock))
}

/// Asks a card for exact rules, if the port may have any, once it is known how the card leads packets; what it does not take is told.
pub(super) fn ask(
    card: &mut impl ExactCard,
    (asked, led): (&Asked<'_>, Option<Spread>),
    about: &mut PortSteering,
) -> Option<Grant> {
    if asked.exact_rules == 0 {
        return None;
    }
    let family = Family::of_driver(asked.driver);
    let (takes, refused) = match asked.crew.workers {
        0 | 1 => (Takes::default(), vec!["one worker owns every user".to_owned()]),
        // Elsewhere workers hand packets over before they look for sessions, and nobody knows which rule goes first.
        _ if led != Some(Spread::InnerHash) || !family.has_rules() => {
            let why =
                "they are for cards that took the flow rules of their family, and hash users' addresses";
            (Takes::default(), vec![why.to_owned()])
        }
        _ => Takes::ask(card, family),
    };
    about.refused.extend(refused.into_iter().map(|refused| format!("exact rules: {refused}")));
    takes.any().then_some((family, takes))
}
