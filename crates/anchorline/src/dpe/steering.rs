//! Finds out whether a port's card leads users' packets to their workers by itself, makes it do so, and remembers what it
//! did not take. Where it does not, workers hand packets over: nothing depends on a card but speed.

use crate::settings::{ClassSettings, CrewSettings, DeviceHash};
use dplink::{PortClass, PortSteering, Spread};
use steer::{Abilities, Family, Item, Reach, Request, Rule, Script, Setup, Side, Step};

/// Of a port declared to hash users' addresses.
const INNER: &str = "declared (hash = \"inner\"): somebody has set the card up for it";
/// Of a port declared to hash TEIDs.
const TEIDS: &str = "declared (hash = \"teid\")";
/// What that means.
const LED_BY_TEIDS: &str = ": those this node chooses lead to their users' workers; packets in tunnels that control planes \
                            number are handed over";

/// A port's card, before workers have its queues; refusals are sentences with the driver's words.
pub(super) trait Card {
    fn set(&mut self, setup: &Setup) -> Result<(), String>;
    fn validate(&self, rule: &Rule) -> Result<(), String>;
    fn create(&mut self, rule: &Rule) -> Result<(), String>;
    /// Entries of its table from hash to queue; 0 where it has none.
    fn table(&self) -> u16;
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

    fn table(&self) -> u16 {
        self.capabilities().rss_table_size
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
    /// After so many entries the workers' table from hash to worker begins again (`dataplane/src/steering/buckets.rs`).
    pub(super) period: u16,
    /// The most urgent first.
    pub(super) classes: &'a [ClassSettings],
    /// Exact rules at most.
    pub(super) exact_rules: usize,
}

/// How the card leads packets to their users' workers, if it does, and what there is to say about it.
pub(super) fn set_up(card: &mut impl Card, asked: &Asked<'_>) -> (Option<Spread>, PortSteering) {
    let mut about = PortSteering {
        driver: asked.driver.to_owned(),
        queues: u32::try_from(asked.queues).unwrap_or(u32::MAX),
        classes: asked.classes.iter().map(class).collect(),
        ..PortSteering::default()
    };
    let found = match asked.reason_not_to_try() {
        Some(reason) => Err(reason),
        None => match asked.hash {
            DeviceHash::Inner => Ok((Spread::InnerHash, format!("{INNER}{}", asked.about_tables()))),
            DeviceHash::Teid => {
                Ok((Spread::TeidHash, format!("{TEIDS}{LED_BY_TEIDS}{}", asked.about_tables())))
            }
            DeviceHash::Auto | DeviceHash::Outer => asked.try_rules(card, &mut about),
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
        let has_too_few = self.queues < self.crew.workers && self.crew.distributors == 0;
        if has_too_few || workers < 2 && self.classes.is_empty() {
            return Some(self.reason_without_rules());
        }
        if self.crew.distributors > 0 {
            return Some("dpe.distributors: workers distribute packets, whatever the card can".to_owned());
        }
        (self.hash == DeviceHash::Outer)
            .then(|| "declared (hash = \"outer\"): nothing else was tried".to_owned())
    }

    /// Of one worker, or of a device with fewer queues than workers.
    fn reason_without_rules(&self) -> String {
        let queues = u16::try_from(self.queues).unwrap_or(u16::MAX);
        steer::decide(Abilities { reach: Reach::Inner, queues }, self.workers()).reason
    }

    fn try_rules(&self, card: &mut impl Card, about: &mut PortSteering) -> Result<(Spread, String), String> {
        let family = Family::of_driver(self.driver);
        if !self.classes.is_empty() {
            match self.try_classes((card, family), about) {
                Ok(reason) => return Ok((Spread::InnerHash, reason)),
                Err(why) => about.refused.push(format!("classes: {why}")),
            }
        }
        if self.workers() < 2 {
            return Err(self.reason_without_rules());
        }
        if !family.has_rules() {
            return self.try_usual((card, family), about);
        }
        let but = attempt(card, (&self.request(family), self.side), about)?.but();
        if family.looks_tables_up() {
            self.fill_table(card, about)?;
        }
        let tables = self.about_tables();
        let reason =
            format!("the card took the flow rules for {family}: it hashes users' addresses{tables}{but}");
        Ok((Spread::InnerHash, reason))
    }

    fn request(&self, family: Family) -> Request {
        Request { period: self.period, ..Request::new(family, self.workers()) }
    }

    /// Has the card's table lead hashes where the workers' does. Without that it leads most users astray, and is none that
    /// hashes users' addresses, whatever rules it took: all is taken back.
    fn fill_table(&self, card: &mut impl Card, about: &mut PortSteering) -> Result<(), String> {
        let workers = self.workers();
        let filled = self.check_table(card).and_then(|()| match workers.is_power_of_two() {
            // As drivers fill it by themselves.
            true => Ok(()),
            false => card.set_table(self.period, workers),
        });
        filled.map_err(|refused| {
            about.refused.push(refused);
            about.installed.clear();
            about.refused.extend(card.reset());
            "the card's table cannot lead to users' workers: they hand packets over".to_owned()
        })
    }

    fn check_table(&self, card: &impl Card) -> Result<(), String> {
        let (entries, workers) = (card.table(), self.workers());
        let too_short = || format!("a table of {entries} entries from hash to queue, with {workers} workers");
        steer::agrees(entries, self.period, workers).then_some(()).ok_or_else(too_short)
    }

    /// What else there is to know of tables, where it matters how many entries they have.
    fn about_tables(&self) -> String {
        match self.workers().is_power_of_two() {
            true => String::new(),
            false => format!("; tables from hash to worker begin again after {} entries", self.period),
        }
    }

    /// Of a driver nobody has written rules for, what any card may do: TEIDs on the access side, addresses on the core side.
    fn try_usual(
        &self,
        (card, family): (&mut impl Card, Family),
        about: &mut PortSteering,
    ) -> Result<(Spread, String), String> {
        let (spread, what) = match self.side {
            Side::Access => (Spread::TeidHash, "TEIDs"),
            Side::Core => (Spread::InnerHash, "users' addresses"),
        };
        let driver = self.driver;
        match attempt(card, (&self.request(family), self.side), about) {
            Ok(taken) => {
                let but = taken.but();
                let led = if spread == Spread::TeidHash { LED_BY_TEIDS } else { "" };
                Ok((spread, format!("the driver {driver} took rules by which it hashes {what}{led}{but}")))
            }
            Err(_) => Err(format!("the driver {driver} takes no rule for {what}: workers hand packets over")),
        }
    }

    /// With the classes, or not at all: what is left of a refused attempt is taken back.
    fn try_classes(
        &self,
        (card, family): (&mut impl Card, Family),
        about: &mut PortSteering,
    ) -> Result<String, String> {
        if !family.has_rules() {
            return Err(format!("there are no flow rules for the driver {}", self.driver));
        }
        let classes = self.classes.iter().map(|settings| settings.class.clone()).collect();
        let request = Request { classes, ..self.request(family) };
        if self.queues < request.total_queues() {
            let wanted = request.total_queues();
            return Err(format!("they need {wanted} receive queues, and the device has {}", self.queues));
        }
        if family.looks_tables_up() {
            self.check_table(card)?;
        }
        let taken = attempt(card, (&request, self.side), about)?;
        let sorted: Vec<&mut PortClass> = about
            .classes
            .iter_mut()
            .enumerate()
            .filter(|(at, _)| taken.classes.contains(at))
            .map(|it| it.1)
            .collect();
        if sorted.is_empty() {
            about.installed.clear();
            about.refused.extend(card.reset());
            return Err("none of them can be told apart here".to_owned());
        }
        let count = sorted.len();
        sorted.into_iter().for_each(|class| class.in_force = true);
        let but = taken.but();
        Ok(format!(
            "the card took the flow rules for {family}: it hashes users' addresses, {count} of the classes first{but}"
        ))
    }
}

fn class(settings: &ClassSettings) -> PortClass {
    PortClass { name: settings.name.clone(), packets: settings.packets(), in_force: false }
}

/// What a card took of a script.
struct Taken {
    /// Classes that some rule in force leads to their queues.
    classes: Vec<usize>,
    /// But for some rules.
    is_all: bool,
}

impl Taken {
    fn but(&self) -> &'static str {
        match (self.is_all, self.classes.is_empty()) {
            (true, _) => "",
            (false, true) => "; what it did not take is handed over",
            (false, false) => "; what it did not take is handed over, or with the rest",
        }
    }
}

/// The whole script, or nothing.
fn attempt(
    card: &mut impl Card,
    (request, side): (&Request, Side),
    about: &mut PortSteering,
) -> Result<Taken, String> {
    let script = steer::script(request, side).map_err(|refused| refused.to_string())?;
    install(card, (&script, request.workers), about).inspect_err(|_| {
        about.installed.clear();
        about.refused.extend(card.reset());
    })
}

/// Every step in order; one about IPv6 alone may fail, because packets of those users are then handed over, or are in no class.
fn install(
    card: &mut impl Card,
    (script, workers): (&Script, u16),
    about: &mut PortSteering,
) -> Result<Taken, String> {
    let mut taken = Taken { classes: Vec::new(), is_all: true };
    for step in &script.steps {
        let done = match step {
            Step::Note(_) => continue,
            Step::Unmet(what) => {
                about.refused.push(what.clone());
                continue;
            }
            Step::Set(setup) => card.set(setup),
            Step::Create(rule) => card.validate(rule).and_then(|()| card.create(rule)),
        };
        match done {
            Ok(()) => {
                about.installed.extend(step.testpmd(0));
                taken.classes.extend(step.class(workers));
            }
            Err(refused) => {
                about.refused.push(refused);
                taken.is_all = false;
                if !is_about_ipv6(step) {
                    return Err("the card did not take what leads to users' workers: they hand packets over"
                        .to_owned());
                }
            }
        }
    }
    Ok(taken)
}

fn is_about_ipv6(step: &Step) -> bool {
    let is_ipv6 = |item: &Item| matches!(item, Item::Ipv6 | Item::Ipv6Class(_) | Item::Ipv6Dscp(_));
    matches!(step, Step::Create(rule) if rule.pattern.iter().any(is_ipv6))
}

#[cfg(test)]
mod tests;
