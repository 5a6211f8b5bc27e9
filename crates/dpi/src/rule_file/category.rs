//! Lists of hosts that belong together, as they are handed around: one host a line.

use super::error::{Mistake, Mistakes, What, Why};
use crate::matching::{Conditions, HostPattern, Rule, limits};
use std::ops::RangeInclusive;

/// Most hosts of one category.
pub const HOSTS_MAX: usize = 500_000;

/// Ids of rules made of categories, which are no file's.
pub const CATEGORY_RULES: RangeInclusive<u32> = 4_100_000_000..=4_100_999_999;

/// Ids that one category may take.
const IDS: u32 = 10_000;

/// A category: hosts that are one application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Category {
    /// The application that PDRs and predefined rules name.
    pub name: String,
    /// Of its rules, among all content rules.
    pub precedence: u32,
    /// Of its rules.
    pub rating_group: u32,
}

impl Category {
    /// The rules of the category that is number `place` of all, from 0: a host stands for itself and all below it, unless
    /// it is a pattern as the key `host` of a rule has them (`=a.example` is that host alone). `#` begins a comment.
    ///
    /// # Errors
    /// Every line that is no host, up to [`Mistakes::MAX`], and one host more than [`HOSTS_MAX`].
    pub fn rules(&self, place: u32, text: &str) -> Result<Vec<Rule>, Mistakes> {
        let mut hosts: Vec<HostPattern> = vec![];
        let mut mistakes = vec![];
        for (line, number) in super::plain(text).lines().zip(1..) {
            let host = line.split('#').next().unwrap_or_default().trim();
            if host.is_empty() {
                continue;
            }
            if hosts.len() == HOSTS_MAX {
                mistakes.push(Mistake { line: number, what: What::Hosts(HOSTS_MAX) });
                break;
            }
            match pattern(host) {
                Ok(host) => hosts.push(host),
                Err(what) => mistakes.push(Mistake { line: number, what }),
            }
            if mistakes.len() == Mistakes::MAX {
                break;
            }
        }
        if !mistakes.is_empty() {
            return Err(Mistakes::of(mistakes));
        }
        let first = CATEGORY_RULES.start().saturating_add(place.saturating_mul(IDS));
        Ok(hosts.chunks(limits::ALTERNATIVES).zip(first..).map(|(hosts, id)| self.rule(id, hosts)).collect())
    }

    fn rule(&self, id: u32, hosts: &[HostPattern]) -> Rule {
        Rule {
            id,
            precedence: self.precedence,
            rating_group: self.rating_group,
            service: None,
            application: Some(self.name.as_str().into()),
            when: Conditions { hosts: hosts.to_vec(), ..Conditions::default() },
        }
    }
}

fn pattern(host: &str) -> Result<HostPattern, What> {
    let whole = match host.strip_prefix('=') {
        Some(alone) => alone.to_owned(),
        None if host.starts_with('.') || host.contains('*') => host.to_owned(),
        None => format!(".{host}"),
    };
    let refuse = |why| What::Value { key: "host", value: host.to_owned(), why: Why::Pattern(why) };
    whole.to_ascii_lowercase().parse().map_err(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::{Facts, compile};

    fn category() -> Category {
        Category { name: "games".to_owned(), precedence: 500, rating_group: 7 }
    }

    #[test]
    fn a_host_stands_for_all_below_it() {
        let text = "\u{feff}# of games\nGames.example\n\n=play.example # alone\n*.cdn.example\n";
        let rules = category().rules(3, text).unwrap();
        assert_eq!((rules.len(), rules[0].id, rules[0].precedence), (1, 4_100_030_000, 500));
        let classifier = compile(&rules).unwrap();
        let is_of_it = |host: &str| {
            let facts = Facts { host: Some(host.as_bytes()), ..Facts::default() };
            classifier.classify(&facts).is_some()
        };
        for host in ["games.example", "www.games.example", "play.example", "a.cdn.example"] {
            assert!(is_of_it(host), "{host}");
        }
        for host in ["www.play.example", "cdn.example", "games.example.org", "othergames.example"] {
            assert!(!is_of_it(host), "{host}");
        }
    }

    #[test]
    fn long_lists_are_several_rules_and_too_long_ones_are_refused() {
        let list = |hosts: usize| (0..hosts).map(|host| format!("h{host}.example\n")).collect::<String>();
        let rules = category().rules(0, &list(2_500)).unwrap();
        assert_eq!(rules.iter().map(|rule| rule.when.hosts.len()).collect::<Vec<_>>(), [1_024, 1_024, 452]);
        let most = category().rules(0, &list(HOSTS_MAX)).unwrap();
        assert!(most.len() <= IDS as usize);
        let error = category().rules(0, &list(HOSTS_MAX + 1)).unwrap_err().to_string();
        assert!(error.contains("line 500001: more than 500000 hosts"), "{error}");
        let error = category().rules(0, "ok.example\na b\n..\n").unwrap_err().to_string();
        assert!(error.contains("line 2: host \"a b\"") && error.contains("line 3: "), "{error}");
    }
}
