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

/// What the log says of a resynchronisation that named so many sessions, to a data plane that held so many before and had to
/// remove so many of them, as none of those is one.
pub(super) fn in_step(named: u64, held: u64, swept: u64) -> String {
    let put = match (held, named) {
        (_, 0) => "there are no sessions".to_owned(),
        (0, named) => format!("it held no session, and was given {named} again"),
        // How many of them it had already, and as they are now, it does not say.
        (held, named) => format!("it held {held} sessions, and was told of {named}"),
    };
    format!("the data plane is in step: {put}; {swept} sessions nobody wants any more were removed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_what_a_data_plane_that_came_back_was_given() {
        let end = "; 0 sessions nobody wants any more were removed";
        let again = in_step(5, 0, 0);
        assert_eq!(
            again,
            format!("the data plane is in step: it held no session, and was given 5 again{end}")
        );
        assert_eq!(in_step(0, 0, 0), format!("the data plane is in step: there are no sessions{end}"));
        let some = in_step(5, 7, 2);
        assert!(some.contains("it held 7 sessions, and was told of 5; 2 sessions nobody wants"), "{some}");
    }

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
