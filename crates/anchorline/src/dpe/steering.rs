//! Finds out whether a port's card leads users' packets to their workers by itself, makes it do so, and remembers what it
//! did not take. Where it does not, workers hand packets over: nothing depends on a card but speed.

use crate::settings::{CrewSettings, DeviceHash};
use dplink::{PortSteering, Spread};
use steer::{Abilities, Action, Family, Item, Reach, Request, Rss, RssType, Rule, Script, Setup, Side, Step};

/// Entries of the table from hash to worker, as the workers have it (`dataplane/src/steering/buckets.rs`).
const TABLE: u16 = 128;

/// Of a port declared to hash TEIDs.
const TEIDS: &str = "declared (hash = \"teid\"): the TEIDs this node chooses lead to their users' workers; packets in \
                     tunnels that control planes number are handed over";

/// A port's card, before workers have its queues; refusals are sentences with the driver's words.
pub(super) trait Card {
    fn set(&mut self, setup: &Setup) -> Result<(), String>;
    fn validate(&self, rule: &Rule) -> Result<(), String>;
    fn create(&mut self, rule: &Rule) -> Result<(), String>;
    fn set_table(&mut self, period: u16, queues: u16) -> Result<(), String>;
    /// As it was when it was opened.
    fn reset(&mut self) -> Vec<String>;
}

impl Card for dpdk::Port {
    fn set(&mut self, setup: &Setup) -> Result<(), String> {
        Self::set(self, setup).map_err(|error| error.to_string())
    }

    fn validate(&self, rule: &Rule) -> Result<(), String> {
        self.validate_rule(rule).map_err(|error| error.to_string())
    }

    fn create(&mut self, rule: &Rule) -> Result<(), String> {
        self.create_rule(rule).map(drop).map_err(|error| error.to_string())
    }

    fn set_table(&mut self, period: u16, queues: u16) -> Result<(), String> {
        Self::set_table(self, period, queues).map_err(|error| error.to_string())
    }

    fn reset(&mut self) -> Vec<String> {
        let results = [self.flush_rules(), self.set_usual_hash()];
        results.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect()
    }
}

/// What is asked of a card.
pub(super) struct Asked<'a> {
    pub(super) hash: DeviceHash,
    pub(super) side: Side,
    pub(super) crew: &'a CrewSettings,
    /// As the device says.
    pub(super) driver: &'a str,
    /// Receive queues in use.
    pub(super) queues: usize,
}

/// How the card leads packets to their users' workers, if it does, and what there is to say about it.
pub(super) fn set_up(card: &mut impl Card, asked: &Asked<'_>) -> (Option<Spread>, PortSteering) {
    let mut about = PortSteering {
        driver: asked.driver.to_owned(),
        queues: u32::try_from(asked.queues).unwrap_or(u32::MAX),
        ..PortSteering::default()
    };
    let found = match asked.reason_not_to_try() {
        Some(reason) => Err(reason),
        None => match asked.hash {
            DeviceHash::Inner => Ok((
                Spread::InnerHash,
                "declared (hash = \"inner\"): somebody has set the card up for it".to_owned(),
            )),
            DeviceHash::Teid => Ok((Spread::TeidHash, TEIDS.to_owned())),
            DeviceHash::Auto | DeviceHash::Outer => {
                asked.try_rules(card, &mut about).map(|reason| (Spread::InnerHash, reason))
            }
        },
    };
    let (led, reason) = match found {
        Ok((spread, reason)) => (Some(spread), reason),
        Err(reason) => (None, reason),
    };
    about.reason = reason;
    (led, about)
}

impl Asked<'_> {
    fn workers(&self) -> u16 {
        u16::try_from(self.crew.workers).unwrap_or(u16::MAX)
    }

    fn reason_not_to_try(&self) -> Option<String> {
        let workers = self.workers();
        if workers < 2 || self.queues < self.crew.workers && self.crew.distributors == 0 {
            let queues = u16::try_from(self.queues).unwrap_or(u16::MAX);
            return Some(steer::decide(Abilities { reach: Reach::Inner, queues }, workers).reason);
        }
        if self.crew.distributors > 0 {
            return Some("dpe.distributors: workers distribute packets, whatever the card can".to_owned());
        }
        (self.hash == DeviceHash::Outer)
            .then(|| "declared (hash = \"outer\"): nothing else was tried".to_owned())
    }

    fn try_rules(&self, card: &mut impl Card, about: &mut PortSteering) -> Result<String, String> {
        let family = Family::of_driver(self.driver);
        if !family.has_rules() {
            return Err(unknown(card, self.driver, about));
        }
        let script = steer::script(&Request::new(family, self.workers()), self.side)
            .map_err(|refused| refused.to_string())?;
        if let Err(reason) = install(card, &script, about) {
            about.installed.clear();
            about.refused.extend(card.reset());
            return Err(reason);
        }
        if !self.workers().is_power_of_two() && family != Family::Mlx5 {
            about.refused.extend(card.set_table(TABLE, self.workers()).err());
        }
        let but = match about.refused.is_empty() {
            true => String::new(),
            false => "; what it did not take is handed over".to_owned(),
        };
        Ok(format!("the card took the flow rules for {family}: it hashes users' addresses{but}"))
    }
}

/// Every step in order; one about IPv6 alone may fail, because packets of those users are then handed over.
fn install(card: &mut impl Card, script: &Script, about: &mut PortSteering) -> Result<(), String> {
    for step in &script.steps {
        let done = match step {
            Step::Note(_) => continue,
            Step::Set(setup) => card.set(setup),
            Step::Create(rule) => card.validate(rule).and_then(|()| card.create(rule)),
        };
        match done {
            Ok(()) => about.installed.extend(step.testpmd(0)),
            Err(refused) => {
                about.refused.push(refused);
                if !is_about_ipv6(step) {
                    return Err("the card did not take what leads to users' workers: they hand packets over"
                        .to_owned());
                }
            }
        }
    }
    Ok(())
}

fn is_about_ipv6(step: &Step) -> bool {
    matches!(step, Step::Create(rule) if rule.pattern.contains(&Item::Ipv6))
}

/// Of a driver nobody has written rules for, only whether it would take one; that both directions meet is not known.
fn unknown(card: &impl Card, driver: &str, about: &mut PortSteering) -> String {
    let rss = Rss { types: vec![RssType::Ipv4, RssType::SourceOnly], ..Rss::default() };
    let pattern = vec![Item::Eth, Item::Ipv4, Item::Udp, Item::Gtpu, Item::Ipv4];
    match card.validate(&Rule::new(pattern, Action::Rss(rss))) {
        Ok(()) => format!(
            "the driver {driver} would take a rule for users' addresses, but it is not known whether both directions meet"
        ),
        Err(refused) => {
            about.refused.push(refused);
            format!("the driver {driver} takes no rule for users' addresses: workers hand packets over")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card that refuses what contains a word.
    #[derive(Default)]
    struct Model {
        refuses: Option<&'static str>,
        created: usize,
        table: Option<(u16, u16)>,
        resets: usize,
    }

    impl Model {
        fn judge(&self, text: &str) -> Result<(), String> {
            match self.refuses.filter(|word| text.contains(word)) {
                Some(word) => Err(format!("no {word} here")),
                None => Ok(()),
            }
        }
    }

    impl Card for Model {
        fn set(&mut self, setup: &Setup) -> Result<(), String> {
            self.judge(&format!("{setup:?}"))
        }

        fn validate(&self, rule: &Rule) -> Result<(), String> {
            self.judge(&rule.to_string())
        }

        fn create(&mut self, _: &Rule) -> Result<(), String> {
            self.created += 1;
            Ok(())
        }

        fn set_table(&mut self, period: u16, queues: u16) -> Result<(), String> {
            self.table = Some((period, queues));
            Ok(())
        }

        fn reset(&mut self) -> Vec<String> {
            (self.created, self.resets) = (0, self.resets + 1);
            vec![]
        }
    }

    fn try_with(card: &mut Model, driver: &str, workers: usize, hash: DeviceHash) -> (bool, PortSteering) {
        let crew = CrewSettings { workers, distributors: 0, cpus: vec![], balance: dataplane::Balance::New };
        let (led, about) =
            set_up(card, &Asked { hash, side: Side::Access, crew: &crew, driver, queues: workers });
        let expected = if hash == DeviceHash::Teid { Spread::TeidHash } else { Spread::InnerHash };
        assert!(led.is_none_or(|spread| spread == expected), "{led:?}");
        (led.is_some(), about)
    }

    #[test]
    fn a_card_that_takes_all_leads() {
        for driver in ["net_i40e", "net_ice", "net_iavf", "mlx5_pci"] {
            let mut card = Model::default();
            let (leads, about) = try_with(&mut card, driver, 4, DeviceHash::Auto);
            assert!(leads && card.created > 0 && about.refused.is_empty(), "{driver}: {about:?}");
            assert!(about.installed.iter().any(|line| line.contains("gtpu")), "{driver}: {about:?}");
            assert_eq!(card.table, None, "tables agree where workers are a power of two");
        }
        let mut card = Model::default();
        assert!(try_with(&mut card, "net_ice", 3, DeviceHash::Auto).0);
        assert_eq!(card.table, Some((128, 3)));
    }

    #[test]
    fn a_refusal_is_remembered_and_all_is_undone() {
        for (driver, word) in [("net_i40e", "Profile"), ("net_ice", "gtpu"), ("mlx5_pci", "jump")] {
            let mut card = Model { refuses: Some(word), ..Model::default() };
            let (leads, about) = try_with(&mut card, driver, 2, DeviceHash::Auto);
            assert!(!leads && about.installed.is_empty(), "{driver}: {about:?}");
            assert_eq!(about.refused, [format!("no {word} here")]);
            assert_eq!((card.created, card.resets), (0, 1));
            assert!(about.reason.contains("they hand packets over"), "{}", about.reason);
        }
    }

    #[test]
    fn what_is_refused_of_ipv6_alone_is_handed_over() {
        let mut card = Model { refuses: Some("ipv6"), ..Model::default() };
        let (leads, about) = try_with(&mut card, "net_ice", 2, DeviceHash::Auto);
        assert!(leads && !about.refused.is_empty() && about.reason.ends_with("is handed over"), "{about:?}");
    }

    #[test]
    fn nothing_is_tried_where_it_would_not_matter() {
        for (workers, hash, expected) in [
            (1, DeviceHash::Auto, "one worker owns every user"),
            (2, DeviceHash::Outer, "declared (hash = \"outer\")"),
        ] {
            let mut card = Model::default();
            let (leads, about) = try_with(&mut card, "net_ice", workers, hash);
            assert!(!leads && card.created == 0 && about.reason.contains(expected), "{about:?}");
        }
        let (leads, about) = try_with(&mut Model::default(), "net_null", 2, DeviceHash::Inner);
        assert!(leads && about.reason.contains("declared"));
        let mut card = Model::default();
        let (leads, about) = try_with(&mut card, "net_ice", 2, DeviceHash::Teid);
        assert!(leads && card.created == 0 && about.reason.contains("hash = \"teid\""), "{about:?}");
        assert!(!try_with(&mut card, "net_ice", 1, DeviceHash::Teid).0);
    }

    #[test]
    fn of_an_unknown_driver_only_the_answer_is_told() {
        let mut card = Model { refuses: Some("gtpu"), ..Model::default() };
        let (leads, about) = try_with(&mut card, "net_tap", 2, DeviceHash::Auto);
        assert!(!leads && about.refused == ["no gtpu here"] && about.reason.contains("net_tap"), "{about:?}");
        let (leads, about) = try_with(&mut Model::default(), "net_tap", 2, DeviceHash::Auto);
        assert!(!leads && about.reason.contains("not known whether both directions meet"));
    }
}
