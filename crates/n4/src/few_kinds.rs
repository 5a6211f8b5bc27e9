//! Few lines about refusals of control planes that are associated. Each is told of, as somebody has to mend something; but one that asks
//! the same again and again, or whoever sends by its address, could fill the disk with them, too.

use crate::few_lines::Lines;
use crate::refusal::{Procedure, Refusal};
use machine::Time;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Kinds that are told apart at once. Those of which nothing came for a while make room; more are counted together.
const KINDS: usize = 64;
/// Lines of one kind in a while: all that comes in ordinary operation.
const MOST: u32 = 20;
/// A while.
const PAUSE: Duration = Duration::from_secs(10);

/// What makes two refusals the same to who reads of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    from: IpAddr,
    procedure: Procedure,
    cause: u8,
    offending_ie: Option<u16>,
}

/// Of each.
#[derive(Clone, Debug)]
pub(crate) struct FewKinds {
    kinds: BTreeMap<Kind, (Lines, Refusal)>,
    others: Lines,
}

impl Default for FewKinds {
    fn default() -> Self {
        Self { kinds: BTreeMap::new(), others: Lines::new(MOST, PAUSE) }
    }
}

impl FewKinds {
    /// Whether there is a line for one more.
    pub(crate) fn has_line(
        &mut self,
        (from, procedure): (IpAddr, Procedure),
        refusal: Refusal,
        now: Time,
    ) -> bool {
        let Refusal { cause, offending_ie, .. } = refusal;
        let kind = Kind { from, procedure, cause: cause.number(), offending_ie };
        if self.kinds.len() >= KINDS && !self.kinds.contains_key(&kind) {
            self.kinds.retain(|_, (lines, _)| !lines.is_over(now));
            if self.kinds.len() >= KINDS {
                return self.others.has_line(now);
            }
        }
        let refusal = Refusal { offending_ie, ..Refusal::of(cause) };
        let (lines, _) = self.kinds.entry(kind).or_insert((Lines::new(MOST, PAUSE), refusal));
        lines.has_line(now)
    }

    /// When some are to be told of that were only counted.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let all = self.kinds.values().map(|(lines, _)| lines).chain([&self.others]);
        all.filter_map(|lines| lines.due()).min()
    }

    /// Those who were only counted, once it is time to tell of them.
    pub(crate) fn sum_up(&mut self, now: Time) -> Vec<String> {
        let sum = |(kind, (lines, refusal)): (&Kind, &mut (Lines, Refusal))| {
            let untold = lines.sum_up(now)?;
            Some(format!("{untold} more times {} was refused {:?}: {refusal}", kind.from, kind.procedure))
        };
        let mut told: Vec<String> = self.kinds.iter_mut().filter_map(sum).collect();
        let others = self.others.sum_up(now);
        told.extend(others.map(|untold| format!("{untold} more requests were refused, for other reasons")));
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pfcp::Cause;

    #[test]
    fn kinds_have_a_limit_and_make_room() {
        let (mut few, from, start) = (FewKinds::default(), IpAddr::from([10, 40, 0, 1]), Time::ZERO);
        let ask = |few: &mut FewKinds, ie: u16, now| {
            let refusal = Refusal::blaming(Cause::MandatoryIeIncorrect, ie);
            few.has_line((from, Procedure::Modification), refusal, now)
        };
        let told = (0..1_000).filter(|ie| ask(&mut few, *ie, start)).count();
        assert_eq!((told, few.kinds.len()), (KINDS + MOST as usize, KINDS));
        let due = few.next_due().unwrap();
        assert_eq!(due, start + PAUSE);
        let untold = 1_000 - told;
        assert_eq!(few.sum_up(due), [format!("{untold} more requests were refused, for other reasons")]);
        assert!(ask(&mut few, 2_000, due) && few.kinds.len() == 1 && few.next_due().is_none());
    }
}
