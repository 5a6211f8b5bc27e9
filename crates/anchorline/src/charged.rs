//! Rating groups of content rules under which nothing is charged. Their flows are charged otherwise, or not at all, which nobody
//! sees before the bills.

use crate::content::Whole;
use crate::settings::Settings;
use ::charging::Key;
use dpi::matching::Rule;
use std::collections::{BTreeMap, BTreeSet};

/// Most that are named.
const NAMED: usize = 8;

/// What is charged of what content rules say.
#[derive(Clone, Debug)]
pub(crate) struct Charged {
    listed: BTreeSet<Key>,
    default: Option<Key>,
}

impl Charged {
    /// As `[charging]` has it; `None` where nothing is charged at all.
    pub(crate) fn of(settings: &Settings) -> Option<Self> {
        let rating = &settings.charging.as_ref()?.offline.rating;
        Some(Self { listed: rating.content().iter().copied().collect(), default: rating.default_key() })
    }

    /// What to say of rules whose groups are not listed; `None` where all are. Where flows are charged so by default, it is as
    /// if they were.
    pub(crate) fn warning(&self, rules: &Whole) -> Option<String> {
        let mut firsts: BTreeMap<Key, String> = BTreeMap::new();
        let mut order = vec![];
        for (place, rule) in rules.rules.iter().enumerate() {
            let key = Key { rating_group: rule.rating_group, service_id: rule.service };
            let line = rules.lines.get(place);
            // Of a category, 0 is what stands where nothing was said.
            let is_said = line.is_some() || key.rating_group != 0;
            if is_said && !self.listed.contains(&key) && self.default != Some(key) {
                firsts.entry(key).or_insert_with(|| {
                    order.push(key);
                    first(line, rule)
                });
            }
        }
        let named = order.iter().take(NAMED).filter_map(|key| Some(name(*key, firsts.get(key)?)));
        let mut named = named.collect::<Vec<_>>().join(", ");
        if order.len() > NAMED {
            named += &format!(", and {} more", order.len() - NAMED);
        }
        (!order.is_empty()).then(|| {
            format!(
                "no [[charging.content]] lists these rating groups of content rules: {named}; where PDRs say nothing else, flows \
                 by them are {}",
                self.instead()
            )
        })
    }

    fn instead(&self) -> String {
        match self.default {
            Some(Key { rating_group, .. }) => format!("charged under default_rating_group = {rating_group}"),
            None => "not charged, as there is no default_rating_group".to_owned(),
        }
    }
}

/// Where a group stands first.
fn first(line: Option<&u64>, rule: &Rule) -> String {
    match (line, &rule.application) {
        (Some(line), _) => format!("line {line}"),
        (None, application) => format!("category {}", application.as_deref().unwrap_or_default()),
    }
}

fn name(key: Key, first: &str) -> String {
    match key.service_id {
        None => format!("{} ({first})", key.rating_group),
        Some(service) => format!("{} with service {service} ({first})", key.rating_group),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{Format, Sources};

    const fn key(rating_group: u32, service_id: Option<u32>) -> Key {
        Key { rating_group, service_id }
    }

    fn warning(text: &str, charged: &Charged) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let (rules, hosts) = (folder.path().join("content.rules"), folder.path().join("hosts"));
        std::fs::write(&rules, text).unwrap();
        std::fs::write(&hosts, "games.example\n").unwrap();
        let category = |name: &str, rating_group| {
            let category = dpi::rule_file::Category { name: name.to_owned(), precedence: 500, rating_group };
            (category, hosts.clone())
        };
        let sources =
            Sources { categories: vec![category("games", 5), category("news", 0)], ..Sources::default() };
        charged.warning(&sources.read_whole(&rules, Format::Lines).unwrap())
    }

    fn line(id: u32, group: &str) -> String {
        format!("id={id} precedence={id} rating-group={group} host=h{id}.example\n")
    }

    #[test]
    fn groups_that_are_not_listed_are_named_with_their_first_line() {
        let text =
            line(1, "10") + &line(2, "1") + "# none\n" + &line(3, "77 service=2") + &line(4, "77 service=2");
        let charged =
            Charged { listed: BTreeSet::from([key(10, None), key(5, None)]), default: Some(key(1, None)) };
        assert_eq!(
            warning(&text, &charged).unwrap(),
            "no [[charging.content]] lists these rating groups of content rules: 77 with service 2 (line 4); where PDRs say \
             nothing else, flows by them are charged under default_rating_group = 1"
        );
        let listed = BTreeSet::from([key(10, None), key(5, None), key(77, Some(2))]);
        assert_eq!(warning(&text, &Charged { listed, ..charged }), None);
    }

    #[test]
    fn many_groups_are_counted_and_categories_have_some_too() {
        let nothing = Charged { listed: BTreeSet::new(), default: None };
        let told = warning("# none\n", &nothing).unwrap();
        assert!(
            told.contains(": 5 (category games); ") && told.ends_with("no default_rating_group"),
            "{told}"
        );
        let told =
            warning(&(1..=20).map(|id| line(id, &id.to_string())).collect::<String>(), &nothing).unwrap();
        assert!(told.contains("7 (line 7), 8 (line 8), and 12 more; "), "{told}");
    }
}
