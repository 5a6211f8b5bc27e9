//! Paths to other user planes and to radios, as the data plane finds them.

use crate::interface::Level;
use crate::node::Node;
use std::net::IpAddr;

impl Node {
    /// A peer no longer answers, or answers again. Failures are told again when the data plane is met anew.
    pub(crate) fn user_plane_path(&mut self, peer: IpAddr, is_up: bool) {
        let (level, what) =
            if is_up { (Level::Info, "answers again") } else { (Level::Warning, "is silent") };
        self.note(level, format!("the GTP-U peer {peer} {what}"));
    }
}
