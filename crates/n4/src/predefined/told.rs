//! What names of predefined rules stand for, as numbers, which outlive the process: by them the next one knows whether the data
//! plane goes by other rules. Another build may come to others; then sessions are told once more, and nothing is lost.

use super::{Predefined, PredefinedRule};
use fnv::FnvHasher;
use rules::QerId;
use session::ToldRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug, Write};
use std::hash::Hasher;

/// Names that stand for something else than they did, and whether they bring other QERs.
pub(super) type Changed = BTreeMap<String, bool>;

impl Predefined {
    /// What names stand for.
    pub(crate) fn told(&self) -> Vec<ToldRecord> {
        let record = |name: &String| {
            let rules: Vec<&PredefinedRule> = self.named(name).collect();
            let rated = rules.iter().filter(|rule| rule.has_qer());
            let qers: Vec<_> = rated.map(|rule| (&rule.name, rule.qer(QerId(0)))).collect();
            ToldRecord { name: name.clone(), whole: digest(&rules), qers: digest(&qers) }
        };
        self.names().map(record).collect()
    }
}

/// A name that is in one alone stood for nothing, or does now.
pub(super) fn changed(before: &[ToldRecord], after: &[ToldRecord]) -> Changed {
    let [before, after] = [before, after].map(|told| {
        let number = |told: &ToldRecord| (told.name.clone(), (told.whole, told.qers));
        told.iter().map(number).collect::<BTreeMap<_, _>>()
    });
    let nothing: [(); 0] = [];
    let nothing = (digest(&nothing), digest(&nothing));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter_map(|name| {
        let [old, new] = [&before, &after].map(|told| *told.get(name).unwrap_or(&nothing));
        (old != new).then(|| (name.clone(), old.1 != new.1))
    });
    changed.collect()
}

/// The same where some names stand for different things in different sessions: whatever they come to stand for is a change.
pub(super) fn unsettled(mut told: Vec<ToldRecord>, names: &Changed) -> Vec<ToldRecord> {
    told.retain(|told| !names.contains_key(&told.name));
    told.extend(names.keys().map(|name| ToldRecord { name: name.clone(), whole: 0, qers: 0 }));
    told
}

/// Takes text in as it is written.
#[derive(Default)]
struct Digest(FnvHasher);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// FNV-1a of 64 bits, as the databases of nodes have it: with another digest, all sessions with predefined rules would be told anew,
/// and charged apart before and after, for nothing.
fn digest(what: &impl Debug) -> u64 {
    let mut digest = Digest::default();
    // Writing there does not fail.
    let _ = write!(digest, "{what:?}");
    digest.0.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::BitRates;

    fn rule(name: &str, kbps: Option<u64>) -> PredefinedRule {
        let mbr = kbps.map(|kbps| BitRates { uplink_kbps: kbps, downlink_kbps: kbps });
        PredefinedRule { mbr, ..PredefinedRule::new(name.to_owned()) }
    }

    fn told(rules: Vec<PredefinedRule>) -> Vec<ToldRecord> {
        let all = rules.iter().map(|rule| rule.name.clone()).collect();
        Predefined::new(rules, &[("all".to_owned(), all)]).unwrap().told()
    }

    fn expected(names: &[(&str, bool)]) -> Changed {
        names.iter().map(|(name, qers)| ((*name).to_owned(), *qers)).collect()
    }

    #[test]
    fn what_has_changed_is_known_by_name_and_whether_it_is_a_rate() {
        let first = told(vec![rule("one", Some(5)), rule("two", None)]);
        assert_eq!(changed(&first, &told(vec![rule("one", Some(5)), rule("two", None)])), expected(&[]));
        let faster = told(vec![rule("one", Some(6)), rule("two", None)]);
        assert_eq!(changed(&first, &faster), expected(&[("all", true), ("one", true)]));
        let dropping = PredefinedRule { drops: true, ..rule("two", None) };
        let dropping = told(vec![rule("one", Some(5)), dropping]);
        assert_eq!(changed(&first, &dropping), expected(&[("all", false), ("two", false)]));
    }

    /// By the vectors of FNV's authors: a database that an earlier build has written says the same to this one.
    #[test]
    fn numbers_in_a_database_mean_the_same_to_every_build() {
        for (text, number) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(digest(&format_args!("{text}")), number, "{text}");
        }
        // However many pieces it is written in.
        assert_eq!(digest(&format_args!("{}{}", "foo", "bar")), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn names_that_come_and_go_bring_what_they_stand_for() {
        let (none, plain, rated) = (vec![], told(vec![rule("one", None)]), told(vec![rule("one", Some(1))]));
        assert_eq!(changed(&none, &plain), expected(&[("all", false), ("one", false)]));
        assert_eq!(changed(&rated, &none), expected(&[("all", true), ("one", true)]));
        let empty = Predefined::new(vec![], &[("none".to_owned(), vec![])]).unwrap().told();
        assert_eq!(changed(&none, &empty), expected(&[]), "a group of nothing is nothing");
    }
}
