//! What is asked of a card, and what is made of its answers.

use super::*;
use steer::Class;

/// A card that refuses what contains a word.
struct Model {
    refuses: Option<&'static str>,
    created: usize,
    entries: u16,
    table: Option<(u16, u16)>,
    resets: usize,
}

impl Default for Model {
    fn default() -> Self {
        Self { refuses: None, created: 0, entries: 512, table: None, resets: 0 }
    }
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

    fn table(&self) -> u16 {
        self.entries
    }

    fn set_table(&mut self, period: u16, queues: u16) -> Result<(), String> {
        self.judge("reta")?;
        self.table = Some((period, queues));
        Ok(())
    }

    fn reset(&mut self) -> Vec<String> {
        (self.created, self.resets) = (0, self.resets + 1);
        vec![]
    }
}

impl steer::ExactCard for Model {
    type Handle = ();

    fn validate(&self, rule: &Rule) -> Result<(), String> {
        Card::validate(self, rule)
    }

    fn create(&mut self, rule: &Rule) -> Result<(), String> {
        Card::create(self, rule)
    }

    fn destroy(&mut self, (): ()) -> Result<(), String> {
        self.created -= 1;
        Ok(())
    }
}

fn try_with(card: &mut Model, driver: &str, workers: usize, hash: DeviceHash) -> (bool, PortSteering) {
    let crew = CrewSettings { workers, distributors: 0, cpus: vec![], balance: dataplane::Balance::New };
    let asked = Asked {
        hash,
        side: Side::Access,
        crew: &crew,
        driver,
        queues: workers,
        period: steer::period([card.entries]),
        classes: &[],
        exact_rules: 0,
    };
    let (led, about) = set_up(card, &asked);
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

/// Virtual functions of an E810 have 64 entries, and the node's function begins again after as many.
#[test]
fn a_shorter_table_is_filled_as_the_workers_is() {
    for workers in [3, 5, 6, 7] {
        let mut card = Model { entries: 64, ..Model::default() };
        let (leads, about) = try_with(&mut card, "net_iavf", workers, DeviceHash::Auto);
        assert!(leads && about.refused.is_empty(), "{about:?}");
        assert_eq!(card.table, Some((64, workers as u16)));
        assert!(about.reason.contains("begin again after 64 entries"), "{}", about.reason);
    }
}

/// It would lead every second packet astray: that is no hash that leads to workers.
#[test]
fn a_card_whose_table_does_not_lead_to_workers_is_not_said_to_lead() {
    for (entries, refuses, why) in [
        (32, None, "a table of 32 entries from hash to queue, with 3 workers"),
        (100, None, "a table of 100 entries from hash to queue, with 3 workers"),
        (0, None, "a table of 0 entries from hash to queue, with 3 workers"),
        (512, Some("reta"), "no reta here"),
    ] {
        let mut card = Model { entries, refuses, ..Model::default() };
        let (leads, about) = try_with(&mut card, "net_iavf", 3, DeviceHash::Auto);
        assert!(!leads && about.installed.is_empty(), "{about:?}");
        assert_eq!((card.created, card.resets, card.table), (0, 1, None));
        assert_eq!(about.refused, [why]);
        assert!(about.reason.contains("table cannot lead"), "{}", about.reason);
    }
    // What tells four workers apart is in 32 entries, too.
    let mut card = Model { entries: 32, ..Model::default() };
    assert!(try_with(&mut card, "net_iavf", 4, DeviceHash::Auto).0);
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

/// Asks a card of a driver that nobody has written rules for.
fn try_unknown(card: &mut Model, side: Side, workers: usize) -> (Option<Spread>, PortSteering) {
    let crew = CrewSettings { workers, distributors: 0, cpus: vec![], balance: dataplane::Balance::New };
    let (driver, hash) = ("net_new", DeviceHash::Auto);
    let (queues, period) = (workers, steer::PERIOD);
    set_up(card, &Asked { hash, side, crew: &crew, driver, queues, period, classes: &[], exact_rules: 0 })
}

/// The TEID of tunnels, and the address outside: which of the three ways it is, is found out.
#[test]
fn a_driver_that_nobody_knows_is_asked_for_what_any_card_may_do() {
    for (side, spread, what) in
        [(Side::Access, Spread::TeidHash, "gtpu"), (Side::Core, Spread::InnerHash, "l3-dst-only")]
    {
        let mut card = Model::default();
        let (led, about) = try_unknown(&mut card, side, 2);
        assert_eq!((led, card.created, card.resets), (Some(spread), 2, 0), "{about:?}");
        assert!(about.installed.iter().all(|line| line.contains(what)), "{about:?}");
        let mut card = Model { refuses: Some("ipv6"), ..Model::default() };
        let (led, about) = try_unknown(&mut card, side, 2);
        assert_eq!((led, card.created), (Some(spread), 1), "{about:?}");
        assert!(about.reason.ends_with("is handed over"), "{about:?}");
        let mut card = Model { refuses: Some(what), ..Model::default() };
        let (led, about) = try_unknown(&mut card, side, 2);
        assert_eq!((led, card.created, card.resets), (None, 0, 1), "{about:?}");
        assert!(about.installed.is_empty() && about.refused == [format!("no {what} here")], "{about:?}");
        assert!(about.reason.contains("net_new takes no rule for"), "{about:?}");
    }
    let mut card = Model::default();
    assert_eq!((try_unknown(&mut card, Side::Access, 1).0, card.created), (None, 0));
}

/// With the classes voice (QFI 1 and 5, VLAN priority 5) and video (QFI 2), and so many queues.
fn try_classes(
    card: &mut Model,
    driver: &str,
    (workers, queues): (usize, usize),
) -> (Option<Spread>, PortSteering) {
    let crew = CrewSettings { workers, distributors: 0, cpus: vec![], balance: dataplane::Balance::New };
    let class = |name: &str, qfis: &[u8], pcps: &[u8]| ClassSettings {
        name: name.to_owned(),
        class: Class { qfis: qfis.to_vec(), dscps: vec![], pcps: pcps.to_vec() },
    };
    let classes = [class("voice", &[1, 5], &[5]), class("video", &[2], &[])];
    let (hash, side, period) = (DeviceHash::Auto, Side::Access, steer::PERIOD);
    set_up(
        card,
        &Asked { hash, side, crew: &crew, driver, queues, period, classes: &classes, exact_rules: 0 },
    )
}

fn in_force(about: &PortSteering) -> Vec<bool> {
    about.classes.iter().map(|class| class.in_force).collect()
}

#[test]
fn classes_get_their_queues_where_a_card_can_tell_them_apart() {
    for (driver, expected) in [
        ("net_ice", [true, true]),
        ("net_iavf", [true, true]),
        ("mlx5_pci", [true, true]),
        ("net_i40e", [true, false]),
    ] {
        for workers in [1, 4] {
            let mut card = Model::default();
            let (led, about) = try_classes(&mut card, driver, (workers, 3 * workers));
            assert_eq!(
                (led, in_force(&about)),
                (Some(Spread::InnerHash), expected.to_vec()),
                "{driver}: {about:?}"
            );
            assert!(card.resets == 0 && about.reason.contains("of the classes first"), "{about:?}");
            assert!(
                about.refused.iter().all(|refused| refused.starts_with("not available with")),
                "{about:?}"
            );
        }
    }
    let (_, about) = try_classes(&mut Model::default(), "net_ice", (2, 6));
    assert_eq!(
        (about.classes[0].name.as_str(), about.classes[0].packets.as_str()),
        ("voice", "QFI 1, 5; VLAN priority 5")
    );
}

#[test]
fn a_card_that_does_not_take_the_classes_leads_without_them() {
    for refuses in ["qfi", "Table"] {
        let mut card = Model { refuses: Some(refuses), ..Model::default() };
        let (led, about) = try_classes(&mut card, "net_ice", (2, 6));
        assert_eq!(
            (led, card.resets, in_force(&about)),
            (Some(Spread::InnerHash), 1, vec![false; 2]),
            "{about:?}"
        );
        assert!(about.refused.contains(&format!("no {refuses} here")), "{about:?}");
        assert!(!about.installed.iter().any(|line| line.contains("qfi")), "{about:?}");
    }
    // One worker has nothing to be led to.
    let mut card = Model { refuses: Some("qfi"), ..Model::default() };
    let (led, about) = try_classes(&mut card, "net_ice", (1, 3));
    assert_eq!((led, card.created, in_force(&about)), (None, 0, vec![false; 2]));
    assert!(about.reason.contains("one worker owns every user"), "{about:?}");
}

#[test]
fn why_a_port_has_no_classes_is_told() {
    for (driver, queues, expected) in [
        ("net_ice", 4, "classes: they need 6 receive queues, and the device has 4"),
        ("net_af_packet", 2, "classes: there are no flow rules for the driver net_af_packet"),
    ] {
        let (_, about) = try_classes(&mut Model::default(), driver, (2, queues));
        assert!(about.refused.iter().any(|refused| refused == expected), "{about:?}");
        assert_eq!(in_force(&about), [false; 2]);
    }
}

#[test]
fn users_packets_over_ipv6_may_be_in_no_class() {
    let mut card = Model { refuses: Some("ipv6"), ..Model::default() };
    let (led, about) = try_classes(&mut card, "net_ice", (2, 6));
    assert_eq!((led, in_force(&about)), (Some(Spread::InnerHash), vec![true; 2]), "{about:?}");
    assert!(about.reason.ends_with("or with the rest"), "{about:?}");
}

/// What a card of a driver takes of exact rules, and what is told; as many rules are in force as before.
fn try_exact(
    card: &mut Model,
    driver: &str,
    workers: usize,
) -> (Option<super::super::exact::Grant>, Vec<String>) {
    let crew = CrewSettings { workers, distributors: 0, cpus: vec![], balance: dataplane::Balance::New };
    let (hash, side, queues, period) = (DeviceHash::Auto, Side::Core, workers, steer::PERIOD);
    let asked = Asked { hash, side, crew: &crew, driver, queues, period, classes: &[], exact_rules: 16 };
    let (led, mut about) = set_up(card, &asked);
    let created = card.created;
    let grant = super::super::exact::ask(card, (&asked, led), &mut about);
    let none = Asked { exact_rules: 0, ..asked };
    assert_eq!(super::super::exact::ask(card, (&none, led), &mut PortSteering::default()), None);
    assert_eq!(card.created, created, "what was only asked is taken back");
    (grant, about.refused)
}

#[test]
fn a_card_that_hashes_users_addresses_is_asked_for_exact_rules() {
    for (driver, prefixes) in
        [("net_i40e", false), ("net_ice", false), ("net_iavf", false), ("mlx5_pci", true)]
    {
        let (grant, refused) = try_exact(&mut Model::default(), driver, 2);
        let takes = steer::Takes { tunnels: true, addresses: true, prefixes };
        assert_eq!((grant, refused), (Some((Family::of_driver(driver), takes)), vec![]), "{driver}");
    }
    let (grant, refused) = try_exact(&mut Model { refuses: Some("teid"), ..Model::default() }, "net_ice", 2);
    assert_eq!(grant.map(|(_, takes)| (takes.tunnels, takes.addresses)), Some((false, true)));
    assert_eq!(refused, ["exact rules: no teid here"]);
    let (grant, refused) =
        try_exact(&mut Model { refuses: Some("queue index"), ..Model::default() }, "net_ice", 2);
    assert_eq!((grant, refused.len()), (None, 2), "{refused:?}");
}

#[test]
fn other_cards_are_not_asked_for_exact_rules() {
    for (driver, workers, why) in
        [("net_new", 2, "took the flow rules of their family"), ("net_ice", 1, "one worker owns every user")]
    {
        let (grant, refused) = try_exact(&mut Model::default(), driver, workers);
        assert!(grant.is_none() && refused.len() == 1 && refused[0].contains(why), "{driver}: {refused:?}");
    }
    let mut card = Model { refuses: Some("gtpu"), ..Model::default() };
    let (grant, refused) = try_exact(&mut card, "net_ice", 2);
    assert!(grant.is_none() && refused.iter().any(|told| told.starts_with("exact rules:")), "{refused:?}");
}
