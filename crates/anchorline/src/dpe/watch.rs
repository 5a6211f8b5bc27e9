//! Whether packets get through ports: said in the log when it changes, and in the statistics of ports. A port whose interface in the
//! kernel has become another one hears nothing of it, and the client of a memif connects once: then the data plane ends, and opens all
//! ports anew where it is started again.

use super::memif::Server;
use dpdk::{LinkState, PortCounter};
use dplink::{PortLink, PortStatistics};
use std::time::Duration;
use tokio::time::Instant;

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// Looks at which a memif's server has to be there, as it may have much else to do first.
const SERVER_STAYS: u32 = 3;

/// A port that is looked at.
pub(super) struct Watched {
    name: String,
    link: PortLink,
    is_replaced: bool,
    /// It has no interface.
    is_missing: bool,
    /// What its interface takes, where that is less than the port's MTU.
    narrowed: Option<u32>,
    /// Of a memif whose end here is the client.
    server: Option<Server>,
    has_been_up: bool,
    /// Looks at which its server was there, and the link down.
    seen: u32,
}

/// All ports, in the order of the configuration.
pub(crate) struct Watch {
    ports: Vec<(Watched, PortCounter)>,
    next: Instant,
}

impl Watch {
    /// Of these ports.
    pub(super) fn new(ports: Vec<(Watched, PortCounter)>) -> Self {
        Self { ports, next: Instant::now() }
    }

    /// Looks at all ports once a second.
    ///
    /// # Errors
    /// One has to be opened anew.
    pub(super) fn look(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        self.next = now + PAUSE;
        for (port, counter) in &mut self.ports {
            if let Some(link) = counter.link() {
                port.note(link);
            }
            port.note_mtu(counter.narrowed());
        }
        match to_open(self.ports.iter_mut().map(|(port, _)| port)) {
            Some((port, why)) => anyhow::bail!("port {port}: {why}, and it has to be opened anew"),
            None => Ok(()),
        }
    }

    /// What only the devices know of their ports.
    pub(super) fn tell(&self, ports: &mut [PortStatistics]) {
        for (port, (watched, counter)) in ports.iter_mut().zip(&self.ports) {
            port.link = watched.link;
            port.unsent = counter.stats().map_or(0, |stats| stats.tx_errors);
        }
    }
}

/// A port that has to be opened anew, and why. While the interface of another is missing none could be, and what still passes goes on.
fn to_open<'a>(ports: impl Iterator<Item = &'a mut Watched>) -> Option<(&'a str, &'static str)> {
    let (mut to_open, mut is_any_missing) = (None, false);
    for port in ports {
        is_any_missing |= port.is_missing;
        let why = match (port.is_replaced, port.is_served_again()) {
            (true, _) => "its interface was made anew",
            (false, true) => "its memif's server is there again",
            (false, false) => continue,
        };
        to_open = to_open.or(Some((&*port.name, why)));
    }
    to_open.filter(|_| !is_any_missing)
}

impl Watched {
    /// A port of this name on this device.
    pub(super) fn new(name: &str, device: &str) -> Self {
        Self {
            name: name.to_owned(),
            link: PortLink::Unknown,
            is_replaced: false,
            is_missing: false,
            narrowed: None,
            server: Server::of(device),
            has_been_up: false,
            seen: 0,
        }
    }

    /// Whether the server of a memif that was connected is there again, and stays. One that does not take us then is not tried again:
    /// the other ports would have to be opened anew with each try.
    fn is_served_again(&mut self) -> bool {
        let is_lost = self.has_been_up && self.link == PortLink::Down;
        let is_there = is_lost && self.server.as_ref().is_some_and(Server::is_there);
        self.seen = if is_there { self.seen + 1 } else { 0 };
        self.seen >= SERVER_STAYS
    }

    /// What its interface takes now, if that is too little; whether it was said in the log.
    fn note_mtu(&mut self, narrowed: Option<u32>) -> bool {
        let name = &self.name;
        let is_news = self.narrowed != narrowed;
        match narrowed.filter(|_| is_news) {
            Some(mtu) => tracing::warn!(
                "port {name}: its interface takes packets of {mtu} octets only: that is less than the port's mtu, and longer ones are lost \
                 uncounted"
            ),
            None if is_news => {
                tracing::info!("port {name}: its interface takes packets of the port's MTU again")
            }
            None => {}
        }
        self.narrowed = narrowed;
        is_news
    }

    /// Its link is like this now; what has changed is logged.
    fn note(&mut self, now: LinkState) {
        let link = match now {
            LinkState::Up => PortLink::Up,
            LinkState::Down => PortLink::Down,
            LinkState::Gone | LinkState::Replaced => PortLink::Gone,
        };
        let was_replaced = std::mem::replace(&mut self.is_replaced, now == LinkState::Replaced);
        self.is_missing = now == LinkState::Gone;
        self.has_been_up |= link == PortLink::Up;
        let before = std::mem::replace(&mut self.link, link);
        let name = &self.name;
        if self.is_replaced && !was_replaced {
            tracing::warn!(
                "port {name}: its interface was made anew, and is opened once that of no other port is missing"
            );
        }
        match (before, link) {
            (before, link) if before == link => {}
            (PortLink::Unknown, PortLink::Up) => {}
            (_, PortLink::Up) => tracing::info!("port {name}: its link is up again"),
            (_, PortLink::Gone) => {
                tracing::warn!("port {name}: its interface is gone; no packet gets through")
            }
            _ => tracing::warn!("port {name}: its link is down; no packet gets through"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_takes_less_is_told_of_when_that_changes() {
        let mut port = Watched::new("n6", "net_af_packet0,iface=n6");
        let told = [None, Some(1_000), Some(1_000), Some(900), None, None].map(|mtu| port.note_mtu(mtu));
        assert_eq!(told, [false, true, false, true, true, false]);
    }

    #[test]
    fn a_port_is_as_its_interface_was_seen_last() {
        let mut port = Watched::new("n6", "net_af_packet0,iface=n6");
        for (seen, link, is_replaced, is_missing) in [
            (LinkState::Up, PortLink::Up, false, false),
            (LinkState::Down, PortLink::Down, false, false),
            (LinkState::Gone, PortLink::Gone, false, true),
            (LinkState::Replaced, PortLink::Gone, true, false),
        ] {
            port.note(seen);
            assert_eq!((port.link, port.is_replaced, port.is_missing), (link, is_replaced, is_missing));
        }
    }

    #[test]
    fn ports_are_opened_anew_once_all_have_interfaces() {
        let mut ports = ["n3", "n6"].map(|name| Watched::new(name, &format!("net_af_packet0,iface={name}")));
        let mut look = |states: [LinkState; 2]| {
            ports.iter_mut().zip(states).for_each(|(port, state)| port.note(state));
            to_open(ports.iter_mut()).map(|(name, _)| name.to_owned())
        };
        assert_eq!(look([LinkState::Up, LinkState::Gone]), None);
        assert_eq!(look([LinkState::Replaced, LinkState::Gone]), None, "n6 could not be opened");
        assert_eq!(look([LinkState::Replaced, LinkState::Replaced]), Some("n3".to_owned()));
        assert_eq!(look([LinkState::Up, LinkState::Replaced]), Some("n6".to_owned()));
    }

    #[test]
    fn a_memif_that_was_connected_is_opened_anew_when_its_server_is_back_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("memif.sock");
        let mut port =
            Watched::new("n6", &format!("net_memif0,socket={},socket-abstract=no", socket.display()));
        let mut look = |link, is_served: bool| {
            let _server = is_served.then(|| std::os::unix::net::UnixListener::bind(&socket).unwrap());
            port.note(link);
            let is_served_again = port.is_served_again();
            let _ = std::fs::remove_file(&socket);
            is_served_again
        };
        let (up, down) = (LinkState::Up, LinkState::Down);
        let never_up = [(down, true); 4].map(|(link, is_served)| look(link, is_served));
        assert_eq!(never_up, [false; 4], "it has never had one");
        let looks = [
            (up, true),
            (down, false),
            (down, true),
            (down, true),
            (down, false),
            (down, true),
            (down, true),
        ];
        assert!(looks.into_iter().all(|(link, is_served)| !look(link, is_served)));
        assert!(look(down, true));
    }
}
