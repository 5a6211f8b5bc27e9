//! Content rules in force: what the first packets of a flow make of it.

use dpi::matching::{Classifier, Facts};
use rules::{Application, ApplicationId, ApplicationTag};
use std::collections::HashMap;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Applications that may be named in all sets of rules a process ever has: their numbers are never used again, because
/// flows keep them.
const NUMBERS: usize = (u16::MAX - Detected::FIRST) as usize;

/// Content rules that cannot be put in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// More than numbers.
    #[error(
        "{NUMBERS} different applications were named since the data plane started; restart it to name others"
    )]
    TooManyApplications,
    /// They could not be told apart.
    #[error("applications {0:?} and {1:?} cannot be told apart by their hashes; call one of them otherwise")]
    Alike(String, String),
}

/// Content rules, ready to be asked. Immutable, so that workers share them.
#[derive(Debug)]
pub struct ContentRules {
    revision: u64,
    classifier: Classifier,
    /// By the place of an application in the classifier.
    numbers: Box<[u16]>,
    /// Of all that ever had a number, by number.
    applications: Vec<(ApplicationId, ApplicationTag)>,
}

impl ContentRules {
    /// Rules of a revision, which names them and is never 0, to be put in force after `before`, whose applications keep
    /// their numbers.
    ///
    /// # Errors
    /// Applications without a number of their own.
    pub fn new(revision: u64, classifier: Classifier, before: Option<&Self>) -> Result<Self, ContentError> {
        let mut applications = before.map_or_else(Vec::new, |before| before.applications.clone());
        let mut known: HashMap<ApplicationTag, u16> =
            applications.iter().zip(0..).map(|((_, tag), number)| (*tag, number)).collect();
        let mut numbers = Vec::with_capacity(classifier.applications().len());
        // The classifier refused names that are none.
        for application in classifier.applications().iter().filter_map(|name| ApplicationId::new(name)) {
            let tag = application.tag();
            let number = *known.entry(tag).or_insert(applications.len().min(NUMBERS) as u16);
            match applications.get(usize::from(number)) {
                Some((other, _)) if *other != application => {
                    return Err(ContentError::Alike(other.to_string(), application.to_string()));
                }
                Some(_) => {}
                None if applications.len() == NUMBERS => return Err(ContentError::TooManyApplications),
                None => applications.push((application, tag)),
            }
            numbers.push(number);
        }
        Ok(Self { revision, classifier, numbers: numbers.into(), applications })
    }

    /// Which they are.
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// How many.
    pub fn rules(&self) -> usize {
        self.classifier.shape().rules
    }

    /// Of what application a flow is.
    pub(crate) fn detect(&self, facts: &Facts<'_>) -> Detected {
        let application = self.classifier.classify(facts).and_then(|outcome| outcome.application);
        let number = application.and_then(|place| self.numbers.get(usize::from(place)));
        number.map_or(Detected::NONE, |number| Detected(number + Detected::FIRST))
    }

    fn tag(&self, number: u16) -> Option<ApplicationTag> {
        self.applications.get(usize::from(number)).map(|(_, tag)| *tag)
    }
}

/// What has been found out about a flow, in as little memory as a flow has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub(crate) struct Detected(u16);

impl Detected {
    /// Nothing yet.
    pub(crate) const NOT_YET: Self = Self(0);
    /// That it is of no application.
    pub(crate) const NONE: Self = Self(1);
    /// The first number of an application.
    const FIRST: u16 = 2;

    /// Its name, if it is one.
    pub(crate) fn name(self, rules: &ContentRules) -> Option<&str> {
        let number = self.0.checked_sub(Self::FIRST)?;
        rules.applications.get(usize::from(number)).map(|(application, _)| application.name())
    }

    /// As PDRs look at it.
    pub(crate) fn application(self, rules: &ContentRules) -> Application {
        let number = self.0.checked_sub(Self::FIRST);
        number.and_then(|number| rules.tag(number)).map_or(Application::None, Application::Of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(revision: u64, names: &[&str], before: Option<&ContentRules>) -> ContentRules {
        let line = |(id, name): (usize, &&str)| {
            format!("id={id} precedence={id} rating-group=1 application={name} host={name}.example\n")
        };
        let text: String = names.iter().enumerate().map(line).collect();
        let classifier = dpi::rule_file::read_lines(&text).unwrap().compile().unwrap();
        ContentRules::new(revision, classifier, before).unwrap()
    }

    fn detect(rules: &ContentRules, host: &str) -> Detected {
        rules.detect(&Facts { host: Some(host.as_bytes()), ..Facts::default() })
    }

    #[test]
    fn an_application_keeps_its_number_over_all_rules() {
        let first = rules(1, &["video", "voice"], None);
        let voice = detect(&first, "voice.example");
        let second = rules(2, &["voice", "games"], Some(&first));
        assert_eq!(detect(&second, "voice.example"), voice);
        assert_eq!(detect(&second, "video.example"), Detected::NONE);
        let third = rules(3, &["games", "video"], Some(&second));
        assert_eq!(detect(&third, "video.example"), detect(&first, "video.example"));
        let tag = |name| Application::Of(ApplicationId::new(name).unwrap().tag());
        assert_eq!(
            voice.application(&third),
            tag("voice"),
            "flows of an application that is no more keep it"
        );
        assert_eq!(Detected::NONE.application(&third), Application::None);
        assert_eq!(Detected::NOT_YET.application(&third), Application::None);
    }
}
