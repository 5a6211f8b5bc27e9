//! What a configuration needs of this machine beside a file that is right, tried without disturbing the control plane that
//! runs.

use crate::cpe::{self, charging, endpoint};
use crate::settings::Settings;
use anyhow::Context;
use std::net::{SocketAddr, TcpListener, UdpSocket};

/// Whether a control plane could start with `next` where one that has been started with `now` ends for it.
///
/// # Errors
/// The key, and why not.
pub(super) fn of(next: &Settings, now: &Settings) -> anyhow::Result<()> {
    if let Some(content) = &next.content {
        content.read()?;
    }
    pfcp(next, now)?;
    metrics(next.metrics, now.metrics)?;
    // Last, as it may leave a folder behind.
    let held = now.charging.as_ref().map(|charging| charging.directory.as_path());
    next.charging.as_ref().map_or(Ok(()), |charging| charging::try_folder(&charging.directory, held))
}

fn pfcp(next: &Settings, now: &Settings) -> anyhow::Result<()> {
    let held = [Some(now.n4.listen), now.n4.also_listen];
    for (key, listen) in [("n4.listen", Some(next.n4.listen)), ("n4.also_listen", next.n4.also_listen)] {
        if let Some(listen) = listen
            && let Some(place) = place(listen, &held)
        {
            UdpSocket::bind(place).map_err(|error| cpe::bind_error(listen, &error)).context(key)?;
        }
    }
    Ok(())
}

fn metrics(next: Option<SocketAddr>, now: Option<SocketAddr>) -> anyhow::Result<()> {
    if let Some(listen) = next
        && let Some(place) = place(listen, &[now])
    {
        TcpListener::bind(place).map_err(|error| endpoint::bind_error(listen, &error))?;
    }
    Ok(())
}

/// Where to try whether `listen` can be had: nowhere, where we hold it ourselves. Where we hold its port at all addresses
/// and it is one of them, or the reverse, the port is not to be had before we let go: then the address is tried, at any
/// port.
fn place(listen: SocketAddr, held: &[Option<SocketAddr>]) -> Option<SocketAddr> {
    let held = || held.iter().flatten();
    if held().any(|held| *held == listen) {
        return None;
    }
    let is_of_all = |held: &SocketAddr| held.ip().is_unspecified() || listen.ip().is_unspecified();
    let is_our_port = held().any(|held| held.port() == listen.port() && is_of_all(held));
    let mut place = listen;
    if is_our_port {
        place.set_port(0);
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    const EXAMPLE: &str = include_str!("../../../../../config/upf.toml");

    /// The example at addresses that every machine has, with more of it: at port 0 at one that nobody has.
    fn settings(mut listen: SocketAddr, more: &str) -> Settings {
        if listen.port() == 0 {
            listen = UdpSocket::bind(listen).unwrap().local_addr().unwrap();
        }
        let text = EXAMPLE.replacen("10.40.0.2:8805", &listen.to_string(), 1);
        Settings::parse(&format!("{text}\n{more}\n")).unwrap()
    }

    fn refused(next: &Settings, now: &Settings) -> String {
        of(next, now).map_or_else(|error| format!("{error:#}"), |()| "nothing".to_owned())
    }

    fn listen(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn an_address_that_is_taken_is_refused_unless_by_ourselves() {
        let taken = UdpSocket::bind(listen(0)).unwrap().local_addr().unwrap();
        let (held, free) = (UdpSocket::bind(taken).unwrap(), settings(listen(0), ""));
        let said = refused(&settings(taken, ""), &free);
        assert!(
            said.starts_with("n4.listen: PFCP") && said.contains("another program uses that port"),
            "{said}"
        );
        assert_eq!(refused(&settings(taken, ""), &settings(taken, "")), "nothing");
        drop(held);
        assert_eq!(refused(&settings(taken, ""), &free), "nothing");
        let metrics = TcpListener::bind(listen(0)).unwrap();
        let at = metrics.local_addr().unwrap();
        let next = settings(listen(0), &format!("[metrics]\nlisten = \"{at}\""));
        let said = refused(&next, &free);
        assert!(said.contains(&at.to_string()) && said.ends_with("change metrics.listen"), "{said}");
        assert_eq!(refused(&next, &next), "nothing");
        // From one address to all of them, and back.
        let all = settings(listen(0), &format!("[metrics]\nlisten = \"0.0.0.0:{}\"", at.port()));
        assert_eq!([refused(&all, &next), refused(&next, &all)], ["nothing", "nothing"]);
    }

    #[test]
    fn an_address_of_nobody_here_is_refused_by_its_key() {
        let now = settings(listen(0), "");
        let away = settings("192.0.2.9:8805".parse().unwrap(), "");
        assert!(refused(&away, &now).starts_with("n4.listen: PFCP cannot be served at 192.0.2.9:8805"));
        let metrics = settings(listen(0), "[metrics]\nlisten = \"192.0.2.9:9100\"");
        let everywhere = settings(listen(0), "[metrics]\nlisten = \"0.0.0.0:9100\"");
        assert!(refused(&metrics, &everywhere).ends_with("change metrics.listen"));
    }

    #[test]
    fn rules_that_are_absent_or_wrong_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (rules, hosts) = (folder.path().join("rules"), folder.path().join("hosts"));
        let category = format!("[[content.category]]\nname = \"video\"\nfile = {hosts:?}");
        let next = settings(listen(0), &format!("[content]\nrules = {rules:?}\n{category}"));
        let said = || refused(&next, &settings(listen(0), ""));
        assert!(said().starts_with(&format!("content.rules: cannot read {}", rules.display())), "{}", said());
        fs::write(&rules, "id=x\n").unwrap();
        assert!(said().contains("is refused: line 1: "), "{}", said());
        fs::write(&rules, "id=1 precedence=1 rating-group=1 any\n").unwrap();
        let expected = format!("the file of [[content.category]] \"video\": cannot read {}", hosts.display());
        assert!(said().starts_with(&expected), "{}", said());
        fs::write(&hosts, "video.example\n").unwrap();
        assert_eq!(said(), "nothing");
    }

    #[test]
    fn a_folder_for_charging_records_is_made_or_the_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let said = |directory: &Path| {
            let charging = format!("[charging]\ndirectory = {directory:?}\nformats = [\"json\"]");
            refused(&settings(listen(0), &charging), &settings(listen(0), ""))
        };
        let made = folder.path().join("made");
        assert_eq!((said(&made).as_str(), made.is_dir()), ("nothing", true));
        let held = nix::fcntl::Flock::lock(
            fs::File::open(&made).unwrap(),
            nix::fcntl::FlockArg::LockExclusiveNonblock,
        );
        let taken = said(&made);
        assert!(
            taken.starts_with("another node uses ") && taken.ends_with("or change charging.directory"),
            "{taken}"
        );
        let charging = format!("[charging]\ndirectory = {made:?}\nformats = [\"json\"]");
        let ours = settings(listen(0), &charging);
        assert_eq!(refused(&ours, &ours), "nothing", "it is held by the one that runs");
        drop(held);
        let below_a_file = said(&folder.path().join("file/cdr"));
        assert!(below_a_file.starts_with("charging.directory ") && below_a_file.contains("Not a directory"));
        // Nobody writes there, whoever asks.
        let unwritten = said(Path::new("/proc/self/fdinfo"));
        assert!(
            unwritten.starts_with("charging.directory ") || nix::unistd::geteuid().is_root(),
            "{unwritten}"
        );
    }
}
