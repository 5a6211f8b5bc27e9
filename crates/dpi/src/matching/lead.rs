//! What a name or network leads to.

use super::check::Check;
use super::limits;

/// A rule by its rank, and whether there is anything left to check once it was found where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate(u32);

impl Candidate {
    pub(super) const fn new(rank: u32, checked: bool) -> Self {
        Self(rank << 1 | checked as u32)
    }

    pub(super) const fn rank(self) -> u32 {
        self.0 >> 1
    }

    pub(super) const fn is_checked(self) -> bool {
        self.0 & 1 != 0
    }
}

/// A candidate of a list, with what is left to check: one line read, not two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    pub(super) candidate: Candidate,
    pub(super) check: Check,
}

const _: () = assert!(size_of::<Listed>() == 24);

/// Candidates that stand together, lowest rank first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    pub(super) from: u32,
    pub(super) count: u32,
}

/// No place in a list of paths or ports.
pub(super) const NONE: u32 = u32::MAX;

/// The rules of one host, domain or network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) plain: List,
    /// Where in [`super::Classifier::paths`].
    pub(super) paths: u32,
    /// Where in [`super::Classifier::ports`].
    pub(super) ports: u32,
}

const _: () = assert!(size_of::<Group>() == 16);

impl Default for Group {
    fn default() -> Self {
        Self { plain: List::default(), paths: NONE, ports: NONE }
    }
}

/// The rules of one host, domain or network, by a word that lies where the name or network does: most have one rule or few
/// and nothing else, and each further place to read comes from far away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lead(u32);

/// What a [`Lead`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// One rule alone.
    Rule(Candidate),
    /// Few rules alone.
    List(List),
    /// Where in [`super::Classifier::groups`].
    Group(u32),
}

/// Not set of a group's number.
const TAG: u32 = 1 << 31;
/// Set with it of a list, not of a rule.
const LIST: u32 = 1 << 30;
/// Bits of how many candidates a list has; those before say where it begins.
const COUNT_BITS: u32 = 6;
const COUNT_MAX: u32 = (1 << COUNT_BITS) - 1;

// A pattern of a host has two groups at most.
const _: () = assert!(2 * limits::ALL_ALTERNATIVES < TAG as usize);

impl Lead {
    /// No rules.
    pub(super) const NONE: Self = Self(u32::MAX);

    pub(super) const fn group(number: u32) -> Self {
        Self(number)
    }

    /// `None` of a rank too large for it.
    pub(super) const fn rule(candidate: Candidate) -> Option<Self> {
        if candidate.0 < LIST { Some(Self(TAG | candidate.0)) } else { None }
    }

    /// `None` of a list too long for it, or too far behind.
    pub(super) const fn list(list: List) -> Option<Self> {
        let List { from, count } = list;
        // The highest count is that of `NONE`.
        let fits = from < LIST >> COUNT_BITS && count < COUNT_MAX;
        if fits { Some(Self(TAG | LIST | from << COUNT_BITS | count)) } else { None }
    }

    /// `None`: no rules.
    #[inline]
    pub(super) const fn to(self) -> Option<To> {
        let word = self.0;
        match (word & TAG != 0, word & LIST != 0) {
            (false, _) => Some(To::Group(word)),
            (true, false) => Some(To::Rule(Candidate(word & !TAG))),
            _ if word == Self::NONE.0 => None,
            _ => {
                let list = word & !(TAG | LIST);
                Some(To::List(List { from: list >> COUNT_BITS, count: list & COUNT_MAX }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_say_what_they_were_made_of_or_are_not_made() {
        assert_eq!(Lead::NONE.to(), None);
        for number in [0, 1, TAG - 1] {
            assert_eq!(Lead::group(number).to(), Some(To::Group(number)));
        }
        for candidate in [(0, false), (0, true), (limits::RULES as u32, true), ((LIST >> 1) - 1, true)] {
            let candidate = Candidate::new(candidate.0, candidate.1);
            assert_eq!(Lead::rule(candidate).and_then(Lead::to), Some(To::Rule(candidate)));
        }
        assert_eq!(Lead::rule(Candidate::new(LIST >> 1, false)), None);
        let most = (LIST >> COUNT_BITS) - 1;
        for (from, count) in [(0, 0), (7, 2), (limits::ALL_ALTERNATIVES as u32, 3), (most, COUNT_MAX - 1)] {
            let list = List { from, count };
            assert_eq!(Lead::list(list).and_then(Lead::to), Some(To::List(list)));
        }
        for (from, count) in [(0, COUNT_MAX), (most, COUNT_MAX), (most + 1, 1)] {
            assert_eq!(Lead::list(List { from, count }), None);
        }
    }
}
