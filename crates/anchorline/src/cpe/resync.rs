//! How the data plane gets in step with the node.

use dplink::Command;
use machine::SeededSet;
use rules::Seid;

/// Sessions that are to go, until the data plane says that they have gone: at most all there were.
#[derive(Debug, Default)]
pub(crate) struct Going(SeededSet<Seid>);

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

    /// Those known to go are named before all others: what they have, a tunnel or an address, may be another's by now, and
    /// what is not named goes last.
    pub(crate) fn deletions(&self) -> impl Iterator<Item = Command> {
        self.0.iter().map(|session| Command::Delete { session: *session })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_went_while_nobody_listened_are_named() {
        let put = |session| Command::Put(dplink::Desired::new(Seid(session), 1, rules::Rules::default()));
        let delete = |session| Command::Delete { session: Seid(session) };
        let mut going = Going::default();
        [delete(1), delete(3), delete(4), put(4)].iter().for_each(|command| going.ordered(command));
        going.gone(Seid(3));
        assert_eq!(going.deletions().collect::<Vec<_>>(), [delete(1)]);
    }
}
