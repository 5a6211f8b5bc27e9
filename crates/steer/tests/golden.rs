//! The rules of each family, as they would be typed into testpmd. `BLESS=1` writes the files anew.

#![allow(clippy::unwrap_used, reason = "tests speak plainly")]

use anchorline_steer::{
    Action, Class, Family, Refused, Request, Rule, Side, Steered, Step, Target, exact, script,
};
use std::path::PathBuf;

fn request(family: Family) -> Request {
    let classes = vec![
        Class { qfis: vec![1, 5], dscps: vec![46], pcps: vec![5] },
        Class { qfis: vec![2], dscps: vec![34], pcps: vec![3, 4] },
    ];
    let steered = vec![
        Steered { teid: 0x100, ue: "10.60.0.1".parse().unwrap(), queue: 2 },
        Steered { teid: 0x101, ue: "2001:db8:60::1".parse().unwrap(), queue: 3 },
    ];
    Request { classes, steered, ..Request::new(family, 4) }
}

fn text(request: &Request) -> String {
    let side = |side| script(request, side).unwrap().testpmd();
    format!("## access\n{}\n## core\n{}", side(Side::Access), side(Side::Core))
}

fn compare(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(golden == text, "{name} differs from {}:\n{text}", path.display());
}

#[test]
fn rules_are_those_of_the_golden_files() {
    for family in [Family::I40e, Family::Ice, Family::Iavf, Family::Mlx5] {
        compare(family.name(), &text(&Request::new(family, 4)));
        compare(&format!("{family}-classes"), &text(&request(family)));
        let alone = Request { workers: 1, steered: vec![], ..request(family) };
        compare(&format!("{family}-classes-one-worker"), &text(&alone));
    }
}

/// Those of one user: an IPv4 address, an IPv6 prefix, and a tunnel for both.
#[test]
fn exact_rules_are_those_of_the_golden_files() {
    let targets = [
        ("access", Target::Tunnel(0x100)),
        ("core", Target::Address([10, 60, 0, 1].into())),
        ("core, IPv6", Target::Prefix(0x2001_0db8_0060_0000)),
    ];
    let lines = |family| {
        targets.map(|(name, target)| {
            let rules = exact(family, target, 2).into_iter();
            rules.fold(format!("## {name}\n"), |text, rule| text + &rule.testpmd("create", 0) + "\n")
        })
    };
    for family in [Family::I40e, Family::Ice, Family::Iavf, Family::Mlx5] {
        compare(&format!("{family}-exact"), &lines(family).concat());
        assert!(family.exact_rules_most() > 0);
    }
    for family in [Family::Ixgbe, Family::Virtio, Family::Other] {
        assert!(!lines(family).concat().contains("flow") && family.exact_rules_most() == 0, "{family}");
    }
}

#[test]
fn cards_that_nobody_knows_are_asked_for_teids_and_addresses() {
    compare("other", &text(&Request::new(Family::Other, 4)));
    assert_eq!(text(&Request::new(Family::Virtio, 4)), text(&Request::new(Family::Other, 4)));
    let three = text(&Request::new(Family::Other, 3));
    assert!(three.contains("queues 0 1 2 0 1 2 "), "as tables of 128 are filled: {three}");
    for family in [Family::Other, Family::Mlx5] {
        for period in [64, 128] {
            let script = script(&Request { period, ..Request::new(family, 3) }, Side::Access).unwrap();
            let listed = script.steps.iter().filter_map(|step| match step {
                Step::Create(Rule { action: Action::Rss(rss), .. }) => Some(rss.queues.len()),
                _ => None,
            });
            assert!(listed.clone().count() > 0 && listed.clone().all(|queues| queues == period.into()));
        }
    }
    let classes = Request { steered: vec![], ..request(Family::Other) };
    let script = script(&classes, Side::Core).unwrap();
    assert_eq!(script.classes().count(), 0);
    assert!(script.steps.iter().any(|step| matches!(step, Step::Unmet(_))));
}

#[test]
fn classes_that_get_no_queue_are_told_apart_from_those_that_do() {
    let classes = |family, side| {
        let script = script(&request(family), side).unwrap();
        let unmet = script.steps.iter().filter(|step| matches!(step, Step::Unmet(_))).count();
        (script.classes().collect::<Vec<_>>(), unmet)
    };
    for family in [Family::Ice, Family::Iavf, Family::Mlx5] {
        assert_eq!(
            classes(family, Side::Access),
            (vec![0, 1], 1),
            "{family}: VLAN priorities alone are unmet"
        );
    }
    assert_eq!(classes(Family::I40e, Side::Core), (vec![0, 1], 2), "QFIs and DSCPs");
    let by_qfi =
        vec![Class { qfis: vec![1], ..Class::default() }, Class { dscps: vec![46], ..Class::default() }];
    for (family, expected) in [(Family::Ice, vec![0]), (Family::I40e, vec![])] {
        let request = Request { classes: by_qfi.clone(), ..Request::new(family, 1) };
        assert_eq!(script(&request, Side::Access).unwrap().classes().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn one_worker_and_sixty_four_have_rules_too() {
    for family in [Family::I40e, Family::Ice, Family::Iavf, Family::Mlx5] {
        for workers in [1, 3, 64] {
            let rules = text(&Request::new(family, workers));
            assert_eq!(
                rules.contains(" 63 end"),
                workers == 64 && (family == Family::I40e || family == Family::Mlx5)
            );
        }
    }
}

#[test]
fn what_cannot_be_met_is_refused() {
    let refused = |request: &Request| script(request, Side::Access).unwrap_err();
    let led = Request { classes: vec![], ..request(Family::Virtio) };
    assert_eq!(refused(&led), Refused::Unsteered(Family::Virtio));
    assert_eq!(refused(&Request::new(Family::Ice, 0)), Refused::Workers(0));
    assert_eq!(refused(&Request::new(Family::Ice, 65)), Refused::Workers(65));
    let odd = Request { workers: 3, steered: vec![], ..request(Family::Ice) };
    assert_eq!(refused(&odd), Refused::NotPowerOfTwo(3));
    let wide = Request { workers: 32, steered: vec![], ..request(Family::I40e) };
    assert_eq!(refused(&wide), Refused::Queues { family: Family::I40e, wanted: 96, most: 64 });
    let many = Request { classes: vec![Class::default(); 8], ..request(Family::Ice) };
    assert_eq!(refused(&many), Refused::Classes(8));
    let high =
        Request { classes: vec![Class { qfis: vec![64], ..Class::default() }], ..request(Family::Ice) };
    assert_eq!(refused(&high), Refused::Value(64));
    let astray = Request { workers: 2, ..request(Family::Mlx5) };
    assert_eq!(refused(&astray), Refused::Steered);
}
