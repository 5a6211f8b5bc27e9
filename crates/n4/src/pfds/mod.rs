//! PFD management (TS 29.244 6.2.5, 7.4.3): control planes say what applications look like, and content rules are made
//! of it.
//!
//! An application has the PFDs that were told of last, whoever told (TS 23.501 5.8.2.8.4). They go with the association
//! of who did: when it is released, and when a control plane that restarted has forgotten what it told.

mod rules;
mod text;

use crate::exchange::Asked;
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::refusal::Refusal;
use dpi::matching::{Rule, compile};
use dpi::rule_file;
use pfcp::{ApplicationPfds, Cause, PfdContents, PfdManagementRequest, PfdManagementResponse, ie};
use session::PfdRecord;
use std::collections::{BTreeMap, BTreeSet};

/// What regular expressions of all PFDs may take: searches that every flow's host or URL goes through, ...
const SEARCHES: usize = 16;
/// ... and memory of their automata, in bytes.
const REGEX_BYTES: usize = 16 << 20;

/// PFDs of all applications.
#[derive(Debug, Default)]
pub(crate) struct Pfds {
    by_application: BTreeMap<String, Application>,
    /// Applications of other content rules; `None` where these are not known, and every name is taken.
    others: Option<BTreeSet<Box<str>>>,
}

/// Those of one.
#[derive(Clone, Debug)]
struct Application {
    record: PfdRecord,
    /// Without ids.
    rules: Vec<Rule>,
    cost: Cost,
}

/// By application what becomes of its PFDs, which may be none; or the application of which they are not taken.
type Changes = Result<BTreeMap<String, Option<Application>>, (String, Refused)>;

/// PFDs that are not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    cause: Cause,
    /// For people.
    why: String,
}

impl Refused {
    const fn incorrect(why: String) -> Self {
        Self { cause: Cause::MandatoryIeIncorrect, why }
    }

    /// A text that cannot be read.
    fn unread(kind: &str, octets: &[u8]) -> Self {
        Self::incorrect(format!("the {kind} {:?} cannot be read", String::from_utf8_lossy(octets)))
    }

    /// What is not done here.
    fn unsupported(what: String) -> Self {
        Self { cause: Cause::ServiceNotSupported, why: format!("{what}: not supported") }
    }
}

/// What is limited over all applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    rules: usize,
    searches: usize,
    regex_bytes: usize,
}

impl Pfds {
    /// What was saved. What an earlier version of us understood and this does not is left out.
    pub(crate) fn new(records: Vec<PfdRecord>) -> Self {
        let mut pfds = Self::default();
        for record in records {
            let contents =
                |pfd: &Vec<Vec<u8>>| pfd.iter().filter_map(|octets| PfdContents::of_octets(octets)).collect();
            let contexts: Vec<Vec<PfdContents>> = record.pfds.iter().map(contents).collect();
            if let Ok(application) = Application::new(record, &contexts) {
                pfds.put(application);
            }
        }
        pfds
    }

    /// Whether somebody has said what an application looks like.
    pub(crate) fn know(&self, application: &str) -> bool {
        let is_of_rules = |others: &BTreeSet<Box<str>>| others.contains(application);
        self.others.as_ref().is_none_or(is_of_rules) || self.by_application.contains_key(application)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_application.len()
    }

    fn put(&mut self, application: Application) {
        self.by_application.insert(application.record.application.clone(), application);
    }

    /// By name, so that the same PFDs make the same rules.
    fn rules(&self) -> Vec<Rule> {
        let rules = self.by_application.values().flat_map(|application| &application.rules);
        let numbered = |(rule, id): (&Rule, u32)| Rule { id, ..rule.clone() };
        rules.zip(rule_file::PFD_RULES).map(numbered).collect()
    }

    /// Of all applications but these.
    fn cost_without(&self, names: &BTreeMap<String, Option<Application>>) -> Cost {
        let others = self.by_application.iter().filter(|(name, _)| !names.contains_key(*name));
        others.fold(Cost::default(), |sum, (_, application)| sum.plus(application.cost))
    }
}

impl Cost {
    const fn plus(self, other: Self) -> Self {
        Self {
            rules: self.rules + other.rules,
            searches: self.searches + other.searches,
            regex_bytes: self.regex_bytes + other.regex_bytes,
        }
    }
}

impl Application {
    fn new(record: PfdRecord, contexts: &[Vec<PfdContents>]) -> Result<Self, Refused> {
        let mut made = vec![];
        for contents in contexts {
            made.append(&mut rules::of_pfd(&record.application, contents)?);
        }
        check(&made)?;
        let cost = cost(&made)?;
        Ok(Self { record, rules: made, cost })
    }
}

/// The data plane reads all rules there are as one file, and takes none where one is wrong: so each is read here before it is among them.
fn check(made: &[Rule]) -> Result<(), Refused> {
    let numbered = made.iter().zip(rule_file::PFD_RULES).map(|(rule, id)| Rule { id, ..rule.clone() });
    let text: String = numbered.map(|rule| format!("{rule}\n")).collect();
    let wrong = |mistakes: rule_file::Mistakes| {
        let first = mistakes.list().first().map(|mistake| mistake.what.to_string());
        Refused::incorrect(first.unwrap_or_default())
    };
    rule_file::read_lines(&text).and_then(|rules| rules.compile()).map(|_| ()).map_err(wrong)
}

/// Expressions alone are compiled to find out what they cost.
fn cost(rules: &[Rule]) -> Result<Cost, Refused> {
    let is_regex = |rule: &Rule| rule.when.host_regex.is_some() || rule.when.url_regex.is_some();
    let regexes: Vec<Rule> = rules
        .iter()
        .filter(|rule| is_regex(rule))
        .cloned()
        .zip(0..)
        .map(|(rule, id)| Rule { id, ..rule })
        .collect();
    let rules = rules.len();
    if regexes.is_empty() {
        return Ok(Cost { rules, ..Cost::default() });
    }
    let wrong = |_| Refused::incorrect("its expressions cannot be compiled".to_owned());
    let shape = compile(&regexes).map_err(wrong)?.shape();
    Ok(Cost { rules, searches: shape.loose_automata, regex_bytes: shape.bytes })
}

impl Node {
    /// Applications that content rules of the operator lead to. From now on PDRs of others are refused, unless PFDs tell of
    /// them.
    pub fn know_applications(&mut self, names: BTreeSet<Box<str>>) {
        self.pfds.others = Some(names);
    }

    /// Applications that PDRs may name, as content rules lead to them or PFDs tell of them; `None` where all names are taken.
    pub fn applications(&self) -> Option<BTreeSet<String>> {
        let of_rules = self.pfds.others.iter().flatten().map(|name| name.to_string());
        let all = || of_rules.chain(self.pfds.by_application.keys().cloned()).collect();
        self.pfds.others.is_some().then(all)
    }

    /// Whether PFDs tell of an application.
    pub fn has_pfds_of(&self, application: &str) -> bool {
        self.pfds.by_application.contains_key(application)
    }

    /// Content rules made of PFDs, with ids and precedence of [`rule_file::PFD_RULES`]. They change after
    /// [`Output::ContentRules`] alone.
    pub fn content_rules(&self) -> Vec<Rule> {
        self.pfds.rules()
    }

    pub(crate) fn manage_pfds(
        &mut self,
        asked: &Asked,
        request: &PfdManagementRequest,
    ) -> Result<(), Refusal> {
        let node_id = self.provisioner(asked, request)?;
        let changes =
            self.pfd_changes(&node_id, &request.applications)?.map_err(|(application, refused)| {
                let Refused { cause, why } = refused;
                self.note(
                    Level::Warning,
                    format!("PFDs of application {application:?} from {node_id} are refused: {why}"),
                );
                Refusal::blaming(cause, ie::PFD_CONTENTS)
            })?;
        self.check_room(&changes)?;
        self.note(
            Level::Info,
            match changes.len() {
                0 => format!("{node_id} removes all PFDs, those of {} applications", self.pfds.len()),
                count => format!("{node_id} provisions PFDs of {count} applications"),
            },
        );
        match changes.is_empty() {
            true => self.drop_pfds(|_| true),
            false => self.change_pfds(changes),
        }
        let (cause, node_id) = (Cause::RequestAccepted, Some(self.config.node_id.clone()));
        self.accept(
            asked,
            None,
            PfdManagementResponse { cause, offending_ie: None, node_id, carried: vec![] },
        );
        Ok(())
    }

    /// Requests before Release 16 do not name their sender.
    fn provisioner(&self, asked: &Asked, request: &PfdManagementRequest) -> Result<String, Refusal> {
        if let Some(node_id) = &request.node_id {
            return self.associated(asked, node_id);
        }
        let there = self.peers.speaking_from(asked.key.from.ip()).next();
        let node_id = there.map(|association| association.record.node_id.clone());
        node_id.ok_or(Refusal::of(Cause::NoEstablishedPfcpAssociation))
    }

    /// What becomes of each application that is named; one whose PFDs are not taken, and why.
    fn pfd_changes(&self, owner: &str, told: &[ApplicationPfds]) -> Result<Changes, Refusal> {
        let mut changes = BTreeMap::new();
        for ApplicationPfds { application_id, contexts, .. } in told {
            let name = rules::text(application_id).filter(|name| ::rules::ApplicationId::new(name).is_some());
            let name = name.ok_or(Refusal::incorrect(ie::APPLICATION_ID))?.to_owned();
            let contexts: Vec<_> = contexts.iter().map(|context| context.contents.clone()).collect();
            let octets = |pfd: &Vec<PfdContents>| pfd.iter().map(PfdContents::octets).collect();
            let record = PfdRecord {
                application: name.clone(),
                owner: owner.to_owned(),
                pfds: contexts.iter().map(octets).collect(),
            };
            let application = match contexts.is_empty() {
                true => None,
                false => match Application::new(record, &contexts) {
                    Ok(application) => Some(application),
                    Err(refused) => return Ok(Err((name, refused))),
                },
            };
            // Two that contradict each other.
            if changes.insert(name, application).is_some() {
                return Err(Refusal::incorrect(ie::APPLICATION_IDS_PFDS));
            }
        }
        Ok(Ok(changes))
    }

    fn check_room(&self, changes: &BTreeMap<String, Option<Application>>) -> Result<(), Refusal> {
        let limits = self.config.limits;
        let stay = self.pfds.by_application.keys().filter(|name| !changes.contains_key(*name)).count();
        let new = changes.values().flatten();
        let cost = new.clone().fold(self.pfds.cost_without(changes), |sum, one| sum.plus(one.cost));
        let fits = stay + new.count() <= limits.pfd_applications
            && cost.rules <= limits.pfd_rules
            && cost.searches <= SEARCHES
            && cost.regex_bytes <= REGEX_BYTES;
        if fits {
            Ok(())
        } else {
            Err(Refusal::blaming(Cause::NoResourcesAvailable, ie::APPLICATION_IDS_PFDS))
        }
    }

    fn change_pfds(&mut self, changes: BTreeMap<String, Option<Application>>) {
        for (name, change) in changes {
            match change {
                Some(application) => {
                    self.out.push(Output::SavePfds(application.record.clone()));
                    self.pfds.put(application);
                }
                None if self.pfds.by_application.remove(&name).is_some() => {
                    self.out.push(Output::ErasePfds(name));
                }
                None => {}
            }
        }
        self.out.push(Output::ContentRules);
    }

    pub(crate) fn drop_pfds_of(&mut self, node_id: &str) {
        self.drop_pfds(|record| record.owner == node_id);
    }

    fn drop_pfds(&mut self, goes: impl Fn(&PfdRecord) -> bool) {
        let applications = &mut self.pfds.by_application;
        let gone: Vec<_> = applications.extract_if(.., |_, application| goes(&application.record)).collect();
        let is_change = !gone.is_empty();
        self.out.extend(gone.into_iter().map(|(name, _)| Output::ErasePfds(name)));
        self.out.extend(is_change.then_some(Output::ContentRules));
    }
}
