//! What a user of the network measures, with the programs users have.

mod download;
mod iperf;
mod ping;

pub use download::{Download, Downloaded, hash, random_file};
pub use iperf::{Direction, IperfServer, Tcp, Udp};
pub use ping::{Ping, PingInProgress};
