//! Predefined rules that operators put while the node runs, beside those of the configuration: kept in the session database, so that
//! they are there after the next start.

use crate::settings::predefined::{self, Parts, does};
use crate::settings::{Around, PortSettings, Settings};
use ::charging::Rating;
use n4::{Predefined, PredefinedRule};
use serde::{Deserialize, Serialize};
use session::{Change, PredefinedRecord};
use std::collections::{BTreeMap, BTreeSet};

/// Rules and groups put by operators, all together.
const PUT_MAX: usize = 1_024;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wish {
    /// Which there are.
    List,
    /// These tables of TOML, in the place of those of the same names that were put before.
    Put {
        /// As the configuration has them: `[[n4.predefined_rule]]` and `[[n4.predefined_group]]`.
        text: String,
    },
    /// Take these away that were put.
    Remove {
        /// Of rules and groups.
        names: Vec<String>,
    },
}

/// A rule or a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) from: Origin,
    /// What it says, as TOML; of those of the configuration the file says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// Of a rule in force that has one: where PDRs that activate it have none themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) precedence: Option<u32>,
    /// What a rule does to its packets, in words; or the rules of a group.
    pub(crate) does: Vec<String>,
    /// Why it is not in force, where it is not: what it needs, or would be, has changed with the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) idle: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Rule,
    Group,
}

/// Whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    Configuration,
    Operator,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Granted {
    /// Why nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
    /// All there are, where that was asked; else those that were put or removed.
    pub(crate) entries: Vec<Entry>,
    /// Sessions that have yet to be looked at for what has changed.
    pub(crate) unrenewed: usize,
    /// What of it matches nothing as things are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<String>,
    /// The database does not take it now: it is in force, and kept once the disk works again.
    #[serde(default)]
    pub(crate) is_unkept: bool,
}

/// Most that a warning names.
const NAMED: usize = 8;

/// What to say of rules for applications that are not known, as neither content rules nor PFDs name them; `None` where all are.
pub(super) fn unmatched<'a>(
    rules: impl Iterator<Item = &'a PredefinedRule>,
    is_known: impl Fn(&str) -> bool,
) -> Option<String> {
    let application =
        |rule: &'a PredefinedRule| Some((rule.name.as_str(), rule.application.as_ref()?.name()));
    let mut lost: Vec<(&str, &str)> = rules.filter_map(application).collect();
    lost.retain(|(_, application)| !is_known(application));
    let named = |(rule, application): &(&str, &str)| format!("{rule:?} (application {application:?})");
    let mut named: Vec<String> = lost.iter().take(NAMED).map(named).collect();
    named.extend(lost.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!("{more} more")));
    (!lost.is_empty()).then(|| {
        format!(
            "no content rule and no PFD names the application of these predefined rules, so they match nothing: {}",
            named.join(", ")
        )
    })
}

/// One that was put.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Put {
    text: String,
    idle: Option<String>,
}

/// Those of the configuration, and those that were put.
pub(crate) struct Tables {
    file: Predefined,
    ports: Vec<PortSettings>,
    policies: Vec<dataplane::PolicyConfig>,
    /// What can be charged, if anything is.
    rating: Option<Rating>,
    put: BTreeMap<String, Put>,
    in_force: Predefined,
}

/// A new table, and what is to be kept of that.
pub(super) struct Changed {
    pub(super) table: Predefined,
    pub(super) changes: Vec<Change>,
    names: BTreeSet<String>,
}

impl Tables {
    /// Of a start. Records that the configuration has no room for any more stay in the database, and are not in force.
    pub(super) fn new(settings: &Settings, records: Vec<PredefinedRecord>) -> Self {
        let rating = settings.charging.as_ref().map(|charging| charging.offline.rating.clone());
        let (file, ports) = (settings.n4.predefined.clone(), settings.dpe.ports.clone());
        let put = records.into_iter().map(|record| (record.name, Put { text: record.text, idle: None }));
        let policies = settings.dpe.policies.clone();
        let mut tables = Self { in_force: file.clone(), file, ports, policies, rating, put: put.collect() };
        tables.take_up();
        tables
    }

    /// All that holds.
    pub(super) const fn in_force(&self) -> &Predefined {
        &self.in_force
    }

    /// Puts in force what can be: rules first, as groups are of them.
    fn take_up(&mut self) {
        let texts: Vec<(String, String)> =
            self.put.iter().map(|(name, put)| (name.clone(), put.text.clone())).collect();
        let read = |text: &String| self.read(text);
        let mut all: Vec<(String, Result<Parts, String>)> =
            texts.iter().map(|(name, text)| (name.clone(), read(text))).collect();
        all.sort_by_key(|(_, parts)| parts.as_ref().is_ok_and(|parts| parts.rules.is_empty()));
        for (name, parts) in all {
            let taken = parts.and_then(|Parts { rules, groups }| {
                self.in_force.with(rules, &groups).map_err(|error| error.to_string())
            });
            match taken {
                Ok(table) => self.in_force = table,
                Err(why) => {
                    tracing::warn!(
                        "the predefined rule or group {name:?} that was put is not in force: {why}"
                    );
                    self.put.get_mut(&name).into_iter().for_each(|put| put.idle = Some(why.clone()));
                }
            }
        }
    }

    fn read(&self, text: &str) -> Result<Parts, String> {
        let around = Around { ports: &self.ports, policies: &self.policies };
        let parts = predefined::read(text, around).map_err(|error| error.to_string())?;
        let has_no_meter = |rule: &&PredefinedRule| {
            let meter = |key| self.rating.as_ref().map(|rating| rating.own_meter(key).is_some());
            rule.key.is_some_and(|key| meter(key) == Some(false))
        };
        match parts.rules.iter().find(has_no_meter) {
            Some(rule) => Err(format!(
                "the rule {:?} has a rating_group and service_id that the configuration does not charge: name them in \
                 [[charging.content]], or in a rule there",
                rule.name
            )),
            None => Ok(parts),
        }
    }

    /// With what a text says.
    pub(super) fn put(&self, text: &str) -> Result<Changed, String> {
        self.read(text)?;
        let new: BTreeMap<String, String> = predefined::texts(text).into_iter().collect();
        let names: BTreeSet<String> = new.keys().cloned().collect();
        if names.is_empty() {
            return Err("there is no [[n4.predefined_rule]] and no [[n4.predefined_group]] in it".to_owned());
        }
        if predefined::texts(text).len() > new.len() {
            return Err("two of its rules or groups have one name".to_owned());
        }
        if let Some(name) = names.iter().find(|name| self.file.has(name)) {
            return Err(format!(
                "{name:?} is in the configuration; change it there, and send the node SIGHUP"
            ));
        }
        let mut texts: BTreeMap<&str, &str> =
            self.put.iter().map(|(name, put)| (name.as_str(), put.text.as_str())).collect();
        texts.extend(new.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        if texts.len() > PUT_MAX {
            return Err(format!(
                "there would be more than {PUT_MAX} rules and groups beside those of the configuration"
            ));
        }
        let table = self.together(&texts, &names)?;
        let record =
            |(name, text): (&String, &String)| PredefinedRecord { name: name.clone(), text: text.clone() };
        let changes = new.iter().map(record).map(Change::SavePredefined).collect();
        Ok(Changed { table, changes, names })
    }

    /// Without these.
    pub(super) fn remove(&self, names: &[String]) -> Result<Changed, String> {
        let names: BTreeSet<String> = names.iter().cloned().collect();
        for name in &names {
            match self.put.contains_key(name) {
                true => {}
                false if self.file.has(name) => {
                    return Err(format!(
                        "{name:?} is in the configuration; take it out there, and send the node SIGHUP"
                    ));
                }
                false => return Err(format!("there is no predefined rule or group {name:?}")),
            }
        }
        let left = self.put.iter().filter(|(name, _)| !names.contains(*name));
        let texts = left.map(|(name, put)| (name.as_str(), put.text.as_str())).collect();
        let held = |why| match self.in_force.group_with(&names) {
            Some((group, rule)) => format!(
                "the group {group:?} has the rule {rule:?}: put the group without it first, or remove both at once"
            ),
            None => why,
        };
        let table = self.together(&texts, &BTreeSet::new()).map_err(held)?;
        let changes = names.iter().cloned().map(Change::ErasePredefined).collect();
        Ok(Changed { table, changes, names })
    }

    /// The table of all of these. Those that are not in force, and are not `new`, are left out.
    fn together(&self, texts: &BTreeMap<&str, &str>, new: &BTreeSet<String>) -> Result<Predefined, String> {
        let mut all = Parts::default();
        for (name, text) in texts {
            let is_idle = self.put.get(*name).is_some_and(|put| put.idle.is_some());
            if is_idle && !new.contains(*name) {
                continue;
            }
            let Parts { rules, groups } = self.read(text)?;
            all.rules.extend(rules);
            all.groups.extend(groups);
        }
        self.file.with(all.rules, &all.groups).map_err(|error| error.to_string())
    }

    /// That is done: what was put or removed.
    pub(super) fn commit(&mut self, changed: &Changed) -> Vec<Entry> {
        let removed: Vec<Entry> =
            self.entries().into_iter().filter(|it| changed.names.contains(&it.name)).collect();
        self.in_force = changed.table.clone();
        for change in &changed.changes {
            match change {
                Change::SavePredefined(PredefinedRecord { name, text }) => {
                    drop(self.put.insert(name.clone(), Put { text: text.clone(), idle: None }));
                }
                Change::ErasePredefined(name) => drop(self.put.remove(name)),
                _ => {}
            }
        }
        let put: Vec<Entry> =
            self.entries().into_iter().filter(|it| changed.names.contains(&it.name)).collect();
        if put.is_empty() { removed } else { put }
    }

    /// All there are, by name.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let groups: BTreeSet<&str> = self.in_force.groups().collect();
        let rules =
            self.in_force.rules().map(|rule| (rule.name.as_str(), Kind::Rule, (rule.precedence, does(rule))));
        let members = |name: &str| self.in_force.named(name).map(|rule| rule.name.clone()).collect();
        let groups = groups.iter().map(|name| (*name, Kind::Group, (None, members(name))));
        let in_force = rules.chain(groups).map(|(name, kind, (precedence, does))| {
            let put = self.put.get(name).filter(|put| put.idle.is_none());
            let from = if put.is_some() { Origin::Operator } else { Origin::Configuration };
            Entry {
                name: name.to_owned(),
                kind,
                from,
                text: put.map(|put| put.text.clone()),
                precedence,
                does,
                idle: None,
            }
        });
        let idle = self.put.iter().filter(|(_, put)| put.idle.is_some()).map(|(name, put)| Entry {
            name: name.clone(),
            kind: if put.text.contains("predefined_group") { Kind::Group } else { Kind::Rule },
            from: Origin::Operator,
            text: Some(put.text.clone()),
            precedence: None,
            does: vec![],
            idle: put.idle.clone(),
        });
        let mut all: Vec<Entry> = in_force.chain(idle).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

#[cfg(test)]
mod tests;
