//! What the runtime waits for.

use super::Runtime;
use crate::cpe::control::Ordered;
use crate::cpe::link::Heard;
use charging::spool::Durable;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// What wakes the runtime.
pub(super) enum Wake {
    /// Its length, who sent it, and how long it has waited.
    Datagram(usize, SocketAddr, Duration),
    Link(Option<Heard>),
    Room,
    /// The file of content rules has changed.
    ContentFile,
    /// The data plane is to be told of content rules.
    Content,
    Timer,
    Durable(Durable),
    Ordered(Ordered),
    /// The database may take what waits for it.
    Keeping,
}

impl Runtime {
    pub(super) async fn wake(&mut self, bytes: &mut [u8]) -> anyhow::Result<Wake> {
        let due = self.node.next_due().map(|due| self.zero + due.since_zero());
        let durable = async {
            match &mut self.charging {
                Some(charging) => charging.durable().await,
                None => None,
            }
        };
        tokio::select! {
            received = self.sockets.receive(bytes) => match received {
                Ok((length, from, waited)) => Ok(Wake::Datagram(length, from, waited)),
                // An ICMP error about something sent earlier: its timer will see to that.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(Wake::Timer),
                Err(error) => Err(error.into()),
            },
            heard = self.link.next() => Ok(Wake::Link(heard)),
            () = self.orders.room() => Ok(Wake::Room),
            Ok(()) = self.content.changed() => Ok(Wake::ContentFile),
            () = until(self.telling.at()) => Ok(Wake::Content),
            Some(durable) = durable => Ok(Wake::Durable(durable)),
            ordered = self.control.next() => Ok(Wake::Ordered(ordered)),
            () = until(self.keeping.again()) => Ok(Wake::Keeping),
            () = until(due) => Ok(Wake::Timer),
        }
    }
}

/// For ever, where there is no moment.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
