//! Content rules in force: what the first packets of a flow make of it.

use dpi::learn::Found;
use dpi::matching::{Classifier, Facts, Layer, Outcome};
use rules::{Application, ApplicationId, ApplicationTag};
use std::collections::HashMap;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Applications that may be named in all sets of rules a process ever has: their numbers are never used again, because
/// flows keep them.
const NUMBERS: usize = (Detected::AGAIN - Detected::FIRST) as usize;

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

/// A rating group and service of content rules under which flows are charged.
pub type ChargingKey = (u32, Option<u32>);

/// Content rules, ready to be asked. Immutable, so that workers share them.
#[derive(Debug)]
pub struct ContentRules {
    revision: u64,
    classifier: Classifier,
    /// What a rule makes of a flow, by its place among the classifier's outcomes.
    detected: Box<[Detected]>,
    /// Of all that ever had a number, by number.
    known: Vec<Known>,
}

/// What a number stands for: an application's name, and what stands for its charging key ([`ApplicationTag::bits`]).
pub(crate) type Named = (Option<String>, Option<u64>);

/// What flows of one number are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    application: Option<(ApplicationId, ApplicationTag)>,
    charged: Option<ApplicationTag>,
}

impl Known {
    fn tags(&self) -> (Option<ApplicationTag>, Option<ApplicationTag>) {
        (self.application.as_ref().map(|(_, tag)| *tag), self.charged)
    }
}

/// Numbers being given.
struct Numbers {
    known: Vec<Known>,
    by_tags: HashMap<(Option<ApplicationTag>, Option<ApplicationTag>), u16>,
    names: HashMap<ApplicationTag, ApplicationId>,
}

impl Numbers {
    fn after(before: Option<&ContentRules>) -> Self {
        let known = before.map_or_else(Vec::new, |before| before.known.clone());
        let by_tags = known.iter().map(Known::tags).zip(0..).collect();
        let names = known.iter().filter_map(|known| known.application.clone());
        Self { names: names.map(|(name, tag)| (tag, name)).collect(), known, by_tags }
    }

    /// The number of what it was before, or the next.
    fn give(&mut self, name: Option<&str>, key: Option<ChargingKey>) -> Result<u16, ContentError> {
        // The classifier refused names that are none.
        let application = name.and_then(ApplicationId::new).map(|name| (name.clone(), name.tag()));
        if let Some((name, tag)) = &application {
            let other = self.names.entry(*tag).or_insert_with(|| name.clone());
            if other != name {
                return Err(ContentError::Alike(other.to_string(), name.to_string()));
            }
        }
        let charged = key.map(|(group, service)| ApplicationId::of_charging(group, service).tag());
        let known = Known { application, charged };
        if let Some(number) = self.by_tags.get(&known.tags()) {
            return Ok(*number);
        }
        if self.known.len() == NUMBERS {
            return Err(ContentError::TooManyApplications);
        }
        let number = self.known.len() as u16;
        self.by_tags.insert(known.tags(), number);
        self.known.push(known);
        Ok(number)
    }
}

impl ContentRules {
    /// Rules of a revision, which names them and is never 0, to be put in force after `before`, whose applications keep
    /// their numbers.
    ///
    /// # Errors
    /// Applications without a number of their own.
    pub fn new(revision: u64, classifier: Classifier, before: Option<&Self>) -> Result<Self, ContentError> {
        Self::charging((revision, classifier), &[], before)
    }

    /// The same, where flows whose rules have one of these keys are of that, too, besides their applications.
    ///
    /// # Errors
    /// As [`ContentRules::new`].
    pub fn charging(
        (revision, classifier): (u64, Classifier),
        keys: &[ChargingKey],
        before: Option<&Self>,
    ) -> Result<Self, ContentError> {
        let mut given = Numbers::after(before);
        let names = classifier.applications();
        // All applications have a number, in the order in which they are named first, whether any flow is of them alone or not.
        for name in names {
            given.give(Some(name), None)?;
        }
        let detected = |outcome: &Outcome| {
            let name = outcome.application.and_then(|place| names.get(usize::from(place)));
            let key = Some((outcome.rating_group, outcome.service)).filter(|key| keys.contains(key));
            match (name, key) {
                (None, None) => Ok(Detected::NONE),
                (name, key) => Ok(Detected(given.give(name.map(|name| &**name), key)? + Detected::FIRST)),
            }
        };
        let detected = classifier.outcomes().iter().map(detected).collect::<Result<_, _>>()?;
        Ok(Self { revision, detected, known: given.known, classifier })
    }

    /// Which they are.
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// How many.
    pub fn rules(&self) -> usize {
        self.classifier.shape().rules
    }

    /// Of what application a flow is. Where rules tell requests apart, one that has had a request of HTTP/1.x may be of another
    /// one from its next request on.
    pub(crate) fn detect(&self, facts: &Facts<'_>) -> Detected {
        let detected = self.classifier.rank(facts).and_then(|rank| self.detected.get(rank));
        let detected = detected.copied().unwrap_or(Detected::NONE);
        match facts.layer == Some(Layer::Http) && self.classifier.tells_requests_apart() {
            true => Detected(detected.0 | Detected::AGAIN),
            false => detected,
        }
    }

    /// Whether rules ask for what a ClientHello offers, which is kept of no flow, of one that begins with one.
    pub(crate) fn asks_for_more_than(&self, kept: &Facts<'_>) -> bool {
        matches!(kept.layer, Some(Layer::Tls | Layer::Quic)) && self.classifier.asks_for_alpn()
    }

    fn known(&self, detected: Detected) -> Option<&Known> {
        self.known.get(detected.place()?)
    }

    /// What numbers stand for, in their order, for another process.
    pub(crate) fn names(&self) -> Vec<Named> {
        let named = |known: &Known| {
            let name = known.application.as_ref().map(|(application, _)| application.name().to_owned());
            (name, known.charged.map(ApplicationTag::bits))
        };
        self.known.iter().map(named).collect()
    }

    /// What another process called so; `None` of what these rules do not name.
    pub(crate) fn numbers(&self, names: &[Named]) -> Vec<Option<Detected>> {
        let own: HashMap<Named, u16> = self.names().into_iter().zip(Detected::FIRST..).collect();
        names.iter().map(|name| own.get(name).map(|number| Detected(*number))).collect()
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
    /// Beside a number: its later requests are to be looked at.
    const AGAIN: u16 = 1 << 15;

    const fn number(self) -> u16 {
        self.0 & !Self::AGAIN
    }

    /// Where its name stands among those of [`ContentRules::names`]; `None` of what has none.
    pub(crate) fn place(self) -> Option<usize> {
        self.number().checked_sub(Self::FIRST).map(usize::from)
    }

    /// The same, whose later requests are to be looked at where another's are.
    pub(crate) const fn looking_again_as(self, other: Self) -> Self {
        Self(self.number() | other.0 & Self::AGAIN)
    }

    /// As one number.
    pub(crate) const fn bits(self) -> u16 {
        self.0
    }

    /// Of [`Detected::bits`].
    pub(crate) const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Whether it was found to be of some application, or charged as some content.
    pub(crate) const fn is_of_some(self) -> bool {
        self.number() >= Self::FIRST
    }

    /// Whether any request to come may make it one of another application.
    pub(crate) const fn looks_again(self) -> bool {
        self.0 & Self::AGAIN != 0
    }

    /// The name of its application, if it is of one.
    pub(crate) fn name(self, rules: &ContentRules) -> Option<&str> {
        rules.known(self)?.application.as_ref().map(|(application, _)| application.name())
    }

    /// As PDRs look at it.
    pub(crate) fn application(self, rules: &ContentRules) -> Application {
        match rules.known(self).map(Known::tags) {
            None | Some((None, None)) => Application::None,
            Some((Some(application), None)) => Application::Of(application),
            Some((application, Some(charged))) => Application::Charged(application, charged),
        }
    }
}

/// Of what application a lookup was found to be, and under which circumstances: its answer is of the same, if these still hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfQuery {
    /// Of the rules that said so; the lowest bits alone are kept.
    pub(crate) revision: u64,
    pub(crate) dscp: u8,
    pub(crate) detected: Detected,
}

impl OfQuery {
    const DSCP_SHIFT: u32 = 16;
    const REVISION_SHIFT: u32 = 24;

    /// As one number. (It is never 0, as what was found is not, nor the largest one, as DSCP has six bits.)
    pub(crate) const fn found(self) -> Option<Found> {
        let circumstances = self.revision << Self::REVISION_SHIFT | (self.dscp as u64) << Self::DSCP_SHIFT;
        Found::new(circumstances | self.detected.0 as u64)
    }

    /// What was found, if it was under the same circumstances.
    pub(crate) fn if_as(self, found: Found) -> Option<Detected> {
        let detected = Detected(found.get() as u16);
        (Self { detected, ..self }.found() == Some(found)).then_some(detected)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two requests of a connection may be of different ones.
    pub(crate) fn rules_of_urls() -> ContentRules {
        let text = "id=1 precedence=1 rating-group=1 application=a url=a.example/a*\n";
        ContentRules::new(1, dpi::rule_file::read_lines(text).unwrap().compile().unwrap(), None).unwrap()
    }

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

    /// Only of HTTP/1.x, and only where that matters; of the same application it is all the same.
    #[test]
    fn a_flow_with_a_request_is_looked_at_again_where_rules_tell_requests_apart() {
        let text = "id=1 precedence=1 rating-group=1 application=video host=video.example\n";
        for (line, looks_again) in [("url=a.example/b application=b", true), ("network=192.0.2.0/24", false)]
        {
            let text = if looks_again {
                format!("{text}id=2 precedence=2 rating-group=2 {line}\n")
            } else {
                format!("id=1 precedence=1 rating-group=1 application=video {line}\n")
            };
            let classifier = dpi::rule_file::read_lines(&text).unwrap().compile().unwrap();
            let rules = ContentRules::new(1, classifier, None).unwrap();
            let facts =
                Facts { host: Some(b"video.example"), server: [192, 0, 2, 1].into(), ..Facts::default() };
            let [http, tls] =
                [Layer::Http, Layer::Tls].map(|layer| rules.detect(&Facts { layer: Some(layer), ..facts }));
            assert_eq!((http.looks_again(), tls.looks_again()), (looks_again, false), "{line}");
            assert_eq!((http.name(&rules), tls.name(&rules)), (Some("video"), Some("video")));
            assert_eq!(http.application(&rules), tls.application(&rules));
            let none =
                Facts { host: None, server: [198, 51, 100, 1].into(), layer: Some(Layer::Http), ..facts };
            let none = rules.detect(&none);
            assert_eq!((none.looks_again(), none.is_of_some()), (looks_again, false));
            assert_eq!(none.application(&rules), Application::None);
        }
    }

    #[test]
    fn what_is_charged_is_told_with_the_application_and_without() {
        let text = "id=1 precedence=1 rating-group=7 application=video host=video.example\n\
                    id=2 precedence=2 rating-group=7 service=1 application=video host=free.example\n\
                    id=3 precedence=3 rating-group=7 host=plain.example\n\
                    id=4 precedence=4 rating-group=9 host=other.example\n";
        let classifier = dpi::rule_file::read_lines(text).unwrap().compile().unwrap();
        let rules = ContentRules::charging((1, classifier), &[(7, None)], None).unwrap();
        let video = ApplicationId::new("video").unwrap().tag();
        let seven = ApplicationId::of_charging(7, None).tag();
        assert_ne!(seven, ApplicationId::of_charging(7, Some(0)).tag());
        for (host, expected) in [
            ("video.example", Application::Charged(Some(video), seven)),
            ("free.example", Application::Of(video)),
            ("plain.example", Application::Charged(None, seven)),
            ("other.example", Application::None),
        ] {
            assert_eq!(detect(&rules, host).application(&rules), expected, "{host}");
        }
        let named = |host| detect(&rules, host).name(&rules);
        assert_eq!((named("video.example"), named("plain.example")), (Some("video"), None));
    }
}
