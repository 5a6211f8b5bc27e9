//! What observers may ask: looks, each answered where it came from.

use super::ConnectionId;
use dplink::Command;

/// Whether a command changes nothing of what sessions are.
pub(super) const fn is_a_look(command: &Command) -> bool {
    matches!(
        command,
        Command::GetStatistics
            | Command::GetPeers { .. }
            | Command::Trace { .. }
            | Command::Explain { .. }
            | Command::Locate { .. }
            | Command::GetBalance { .. }
            | Command::Even { .. }
    )
}

/// Tokens of looks are those of connections here, so that each gets its own answer.
pub(super) fn marked(command: Command, id: ConnectionId) -> Command {
    match command {
        Command::GetPeers { .. } => Command::GetPeers { token: id },
        Command::Trace { filter, .. } => Command::Trace { token: id, filter },
        Command::Explain { question, .. } => Command::Explain { token: id, question },
        Command::Locate { whose, to, .. } => Command::Locate { token: id, whose, to },
        Command::GetBalance { .. } => Command::GetBalance { token: id },
        Command::Even { by, is_dry, .. } => Command::Even { token: id, by, is_dry },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dplink::{Destination, Measure, Question, TraceFilter, Whose};

    fn looks() -> [Command; 6] {
        let filter = TraceFilter { packets: 1, seconds: 1, port: None, ue: None, teid: None };
        let question = Question {
            is_down: false,
            ue: [10, 60, 0, 1].into(),
            instance: rules::Instance::DEFAULT,
            remote: [8, 8, 8, 8].into(),
            protocol: 1,
            ports: None,
            traffic_class: 0,
            spi: None,
            flow_label: 0,
            qfi: None,
            teid: None,
            is_verbose: false,
            application: None,
        };
        let (trace, explain) = (Command::Trace { token: 1, filter }, Command::Explain { token: 1, question });
        let whose = Whose::User([10, 60, 0, 1].into(), rules::Instance::DEFAULT);
        let locate = Command::Locate { token: 1, whose, to: Some(Destination { worker: 1, is_dry: false }) };
        let even = Command::Even { token: 1, by: Measure::Load, is_dry: false };
        [Command::GetPeers { token: 1 }, trace, explain, locate, Command::GetBalance { token: 1 }, even]
    }

    #[test]
    fn an_observer_looks_and_changes_nothing() {
        assert!(looks().iter().all(is_a_look) && is_a_look(&Command::GetStatistics));
        let session = rules::Seid(1);
        for change in
            [Command::ResyncBegin { recovery_time_stamp: 1 }, Command::ResyncEnd, Command::Delete { session }]
        {
            assert!(!is_a_look(&change), "{change:?}");
        }
    }

    #[test]
    fn a_look_is_answered_where_it_came_from_whatever_it_says_of_itself() {
        for look in looks() {
            let (Command::Trace { token, .. }
            | Command::Explain { token, .. }
            | Command::Locate { token, .. }
            | Command::GetBalance { token }
            | Command::Even { token, .. }
            | Command::GetPeers { token }) = marked(look, 7)
            else {
                panic!("a look became something else")
            };
            assert_eq!(token, 7);
        }
    }
}
