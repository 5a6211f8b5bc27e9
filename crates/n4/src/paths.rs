//! GTP-U paths that fail and come back, as the data plane tells (TS 23.007 20.3).

use crate::interface::Level;
use crate::node::Node;
use rules::Interface;
use std::net::IpAddr;

impl Node {
    /// The path to a peer has failed, or is there again. Failures are told again when the data plane is met anew.
    pub(crate) fn path(&mut self, side: Interface, remote: IpAddr, failed: bool) {
        self.counters.path_failures += u64::from(failed);
        let side = match side {
            Interface::Access => "access",
            Interface::Core => "core",
            Interface::SgiLan => "SGi-LAN",
        };
        let (level, verdict) =
            if failed { (Level::Warning, "has failed") } else { (Level::Info, "is there again") };
        self.note(level, format!("the GTP-U path to {remote} on the {side} side {verdict}"));
    }
}
