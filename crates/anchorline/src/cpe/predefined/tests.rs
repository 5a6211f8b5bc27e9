use super::*;

const EXAMPLE: &str = include_str!("../../../../../config/upf.toml");
const OF_FILE: &str = "\n[[n4.predefined_rule]]\nname = \"video\"\nmbr_kbps = { uplink = 1, downlink = 2 }\n";

fn settings(more: &str) -> Settings {
    Settings::parse(&format!("{EXAMPLE}{more}")).unwrap()
}

fn tables(more: &str, records: Vec<PredefinedRecord>) -> Tables {
    Tables::new(&settings(more), records)
}

fn put(tables: &mut Tables, text: &str) -> Result<Vec<Change>, String> {
    let changed = tables.put(text)?;
    tables.commit(&changed);
    Ok(changed.changes)
}

fn remove(tables: &mut Tables, name: &str) -> Result<Vec<Change>, String> {
    let changed = tables.remove(&[name.to_owned()])?;
    tables.commit(&changed);
    Ok(changed.changes)
}

const ADS: &str = "[[n4.predefined_rule]]\nname = \"ads\"\naction = \"drop\"\n";
const FAMILY: &str = "[[n4.predefined_group]]\nname = \"family\"\nrules = [\"ads\", \"video\"]\n";

/// What the database has after these changes.
fn kept(changes: &[Change]) -> Vec<PredefinedRecord> {
    let mut all = BTreeMap::new();
    for change in changes {
        match change {
            Change::SavePredefined(record) => drop(all.insert(record.name.clone(), record.clone())),
            Change::ErasePredefined(name) => drop(all.remove(name)),
            other => panic!("{other:?}"),
        }
    }
    all.into_values().collect()
}

#[test]
fn what_is_put_holds_and_is_there_after_the_next_start() {
    let mut before = tables(OF_FILE, vec![]);
    let mut changes = put(&mut before, &format!("{ADS}{FAMILY}")).unwrap();
    let names = |tables: &Tables| -> Vec<String> {
        tables.in_force().named("family").map(|rule| rule.name.clone()).collect()
    };
    assert_eq!(names(&before), ["ads", "video"]);
    // Another one of a name goes in its place.
    changes.extend(put(&mut before, &ADS.replace("drop", "reset")).unwrap());
    assert!(before.in_force().named("ads").all(|rule| rule.resets));
    let after = tables(OF_FILE, kept(&changes));
    assert_eq!((after.in_force(), after.entries()), (before.in_force(), before.entries()));
    changes.extend(remove(&mut before, "family").unwrap());
    changes.extend(remove(&mut before, "ads").unwrap());
    assert_eq!(*before.in_force(), settings(OF_FILE).n4.predefined);
    assert_eq!(kept(&changes), []);
}

#[test]
fn the_precedence_of_a_rule_is_told_where_it_has_one() {
    let mut known = tables(OF_FILE, vec![]);
    put(&mut known, &format!("{ADS}precedence = 10\n{FAMILY}")).unwrap();
    let told: Vec<_> = known.entries().into_iter().map(|entry| (entry.name, entry.precedence)).collect();
    let expected = [("ads", Some(10)), ("family", None), ("video", None)];
    assert_eq!(told, expected.map(|(name, precedence)| (name.to_owned(), precedence)));
}

#[test]
fn what_is_wrong_is_refused_whole_by_line_key_and_reason() {
    let mut known = tables(OF_FILE, vec![]);
    put(&mut known, &format!("{ADS}{FAMILY}")).unwrap();
    let before = known.entries();
    // Something right stands before it, which is not taken either.
    let right = "[[n4.predefined_rule]]\nname = \"right\"\n";
    for (text, why) in [
        ("[[n4.predefined_rule]]\nname = \"x\"\ndscp = 64\n", "line 5: dscp = 64: a DSCP is 0 to 63"),
        ("[[n4.predefined_rule]]\nname = \"x\"\nspeed = 1\n", "line 5: speed = 1: unknown field"),
        ("[node]\nid = \"10.0.0.1\"\n", "unknown field `node`"),
        ("[[n4.predefined_rule]]\nname = \"video\"\n", "\"video\" is in the configuration"),
        ("[[n4.predefined_group]]\nname = \"g\"\nrules = [\"no\"]\n", "a rule \"no\", which does not exist"),
        ("[[n4.predefined_rule]]\nname = \"\"\n", "1 to 255 octets"),
        ("[[n4.predefined_group]]\nname = \"right\"\nrules = []\n", "have one name"),
        (
            "[[n4.predefined_rule]]\nname = \"x\"\nmirror = { address = \"2001:db8::9\", teid = 7 }\n",
            "no port has an IPv6 address",
        ),
    ] {
        let refused = put(&mut known, &format!("{right}{text}")).unwrap_err();
        assert!(refused.contains(why), "{text}: {refused}");
        assert_eq!(known.entries(), before, "{text}");
    }
    assert!(put(&mut known, "").unwrap_err().contains("missing field `n4`"));
    assert!(put(&mut known, "[n4]\n").unwrap_err().contains("there is no [[n4.predefined_rule]]"));
    for (name, why) in [
        (
            "ads",
            "the group \"family\" has the rule \"ads\": put the group without it first, or remove both at once",
        ),
        ("video", "\"video\" is in the configuration"),
        ("nobody", "there is no predefined rule or group \"nobody\""),
    ] {
        let refused = remove(&mut known, name).unwrap_err();
        assert!(refused.contains(why), "{name}: {refused}");
    }
    assert_eq!(known.entries(), before);
}

#[test]
fn there_are_no_more_than_there_may_be() {
    let mut known = tables("", vec![]);
    let rule = |number: usize| format!("[[n4.predefined_rule]]\nname = \"rule-{number}\"\n");
    let all: String = (0..PUT_MAX).map(rule).collect();
    put(&mut known, &all).unwrap();
    assert!(put(&mut known, &rule(PUT_MAX)).unwrap_err().contains("more than 1024"));
    put(&mut known, &rule(7)).unwrap();
    remove(&mut known, "rule-9").unwrap();
    put(&mut known, &rule(PUT_MAX)).unwrap();
}

/// The configuration has changed in between: what it says goes first, and nothing of what was put is forgotten.
#[test]
fn what_the_configuration_has_no_room_for_is_not_in_force_and_is_told() {
    let mut before = tables(OF_FILE, vec![]);
    let records = kept(&put(&mut before, &format!("{ADS}{FAMILY}")).unwrap());
    let idle = |tables: &Tables| -> Vec<(String, Kind)> {
        let entries = tables.entries().into_iter().filter(|entry| entry.idle.is_some());
        entries.map(|entry| (entry.name, entry.kind)).collect()
    };
    let mut without = tables("", records.clone());
    assert_eq!(idle(&without), [("family".to_owned(), Kind::Group)]);
    assert!(without.in_force().has("ads"));
    // Others can be put beside it, and it can be put anew or removed.
    put(&mut without, "[[n4.predefined_rule]]\nname = \"other\"\n").unwrap();
    put(&mut without, &FAMILY.replace(", \"video\"", "")).unwrap();
    assert_eq!(idle(&without), []);
    let same = format!("{OF_FILE}\n{ADS}");
    let mut twice = tables(&same, records);
    assert_eq!(idle(&twice), [("ads".to_owned(), Kind::Rule)]);
    assert_eq!(twice.in_force().named("family").count(), 2);
    remove(&mut twice, "ads").unwrap();
    assert!(twice.in_force().has("ads"), "that of the configuration");
}

/// A key without a meter would not be charged at all, as long as the node runs.
#[test]
fn what_cannot_be_charged_is_not_put() {
    let charging = "\n[charging]\ndirectory = \"/tmp/cdr\"\nformats = [\"json\"]\ndefault_rating_group = 1\n\
                    [[charging.content]]\nrating_group = 10\n";
    let mut known = tables(charging, vec![]);
    let rule = |group: u32| format!("[[n4.predefined_rule]]\nname = \"x\"\nrating_group = {group}\n");
    put(&mut known, &rule(10)).unwrap();
    assert!(put(&mut known, &rule(11)).unwrap_err().contains("does not charge"));
    put(&mut tables("", vec![]), &rule(11)).unwrap();
}

#[test]
fn rules_for_applications_that_nobody_names_are_told() {
    let of = |name: &str| {
        format!(
            "\n[[n4.predefined_rule]]\nname = \"r-{name}\"\napplication = \"{name}\"\naction = \"drop\"\n"
        )
    };
    let tables = tables(&(of("video") + &of("vidoe") + OF_FILE), vec![]);
    let told = |known: &[&str]| unmatched(tables.in_force().rules(), |name| known.contains(&name));
    let warning = told(&["video"]).unwrap();
    assert!(warning.ends_with("they match nothing: \"r-vidoe\" (application \"vidoe\")"), "{warning}");
    assert_eq!(told(&["video", "vidoe"]), None);
    let many: String = (0..10).map(|number| of(&number.to_string())).collect();
    let warning =
        unmatched(super::Tables::new(&settings(&many), vec![]).in_force().rules(), |_| false).unwrap();
    assert!(warning.ends_with("\"r-7\" (application \"7\"), 2 more"), "{warning}");
}
