//! What an operator asks for while we run.

use std::io::BufRead;
use std::net::Ipv4Addr;
use tokio::sync::mpsc;

/// Commands not yet obeyed.
const AHEAD: usize = 64;

/// A command; UEs by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// The UE goes to sleep.
    Sleep(usize),
    /// The UE wakes up.
    Wake(usize),
}

/// The lines of standard input, if they are wanted. A thread of its own reads them and is left behind at the end:
/// nothing can make a blocking read return.
pub(crate) fn read(wanted: bool) -> mpsc::Receiver<String> {
    let (tell, lines) = mpsc::channel(AHEAD);
    if wanted {
        std::thread::spawn(move || {
            let all = std::io::stdin().lock().lines().map_while(Result::ok);
            all.map(|line| tell.blocking_send(line)).take_while(Result::is_ok).for_each(drop);
        });
    }
    lines
}

/// A line, in words; or one sentence on why not.
pub(crate) fn parse(line: &str, ues: &[Ipv4Addr]) -> Result<Command, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [word, address] = words[..] else {
        return Err(format!("{line:?}: expected \"sleep ADDRESS\" or \"wake ADDRESS\""));
    };
    let ue = ues.iter().position(|ue| ue.to_string() == address);
    match (word, ue) {
        ("sleep", Some(ue)) => Ok(Command::Sleep(ue)),
        ("wake", Some(ue)) => Ok(Command::Wake(ue)),
        (_, Some(_)) => Err(format!("{word:?}: expected \"sleep\" or \"wake\"")),
        (_, None) => Err(format!("{address:?} is no UE's address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_a_ue_by_its_address() {
        let ues = [Ipv4Addr::new(10, 60, 0, 1), Ipv4Addr::new(10, 60, 0, 2)];
        assert_eq!(parse(" sleep  10.60.0.2 ", &ues), Ok(Command::Sleep(1)));
        assert_eq!(parse("wake 10.60.0.1", &ues), Ok(Command::Wake(0)));
        for line in ["", "sleep", "sleep 10.60.0.9", "doze 10.60.0.1", "wake 10.60.0.1 now"] {
            assert!(parse(line, &ues).is_err(), "{line}");
        }
    }
}
