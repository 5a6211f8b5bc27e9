//! How the data plane gets in step with the node.

use dplink::{Command, Desired};
use rules::Seid;
use std::collections::HashSet;

/// Sessions that are to go, until the data plane says that they have gone: at most all there were.
#[derive(Debug, Default)]
pub(crate) struct Going(HashSet<Seid>);

impl Going {
    /// A command of the node, whether or not there is a link for it.
    pub(crate) fn ordered(&mut self, command: &Command) {
        match command {
            Command::Delete { session } => drop(self.0.insert(*session)),
            Command::Put(desired) => drop(self.0.remove(&desired.session)),
            _ => {}
        }
    }

    /// The data plane has let a session go.
    pub(crate) fn gone(&mut self, session: Seid) {
        self.0.remove(&session);
    }

    /// Says what every session should be; what is not named goes. Those known to go are named before all others: what they
    /// have, a tunnel or an address, may be another's by now, and what is not named goes last.
    pub(crate) fn resynchronisation(
        &self,
        desired: impl Iterator<Item = Desired>,
    ) -> impl Iterator<Item = Command> {
        let deletions = self.0.iter().map(|session| Command::Delete { session: *session });
        let all = std::iter::once(Command::ResyncBegin).chain(deletions).chain(desired.map(Command::Put));
        all.chain([Command::ResyncEnd])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_went_while_nobody_listened_make_room_for_the_others_first() {
        let put = |session| Command::Put(Desired::new(Seid(session), 1, rules::Rules::default()));
        let delete = |session| Command::Delete { session: Seid(session) };
        let mut going = Going::default();
        [delete(1), delete(3), delete(4), put(4)].iter().for_each(|command| going.ordered(command));
        going.gone(Seid(3));
        let desired = Desired::new(Seid(2), 1, rules::Rules::default());
        let all: Vec<Command> = going.resynchronisation(std::iter::once(desired)).collect();
        assert_eq!(all, [Command::ResyncBegin, delete(1), put(2), Command::ResyncEnd]);
    }
}
