//! What goes wrong on this host, in one sentence with a remedy.

use anyhow::anyhow;
use std::io::{self, ErrorKind};
use std::net::SocketAddrV4;

/// Why binding to `address`, which the operator set as `key`, failed.
pub(crate) fn explain_bind(address: SocketAddrV4, key: &str, error: &io::Error) -> anyhow::Error {
    let ip = address.ip();
    match error.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "UDP {address} is in use: stop the program that has it (`ss -lunp` names it), or change {key}"
        ),
        ErrorKind::AddrNotAvailable => anyhow!(
            "{ip} is not an address of this host: add it (`ip address add {ip}/24 dev DEVICE`), or change {key}"
        ),
        ErrorKind::PermissionDenied => {
            anyhow!("UDP {address} needs a privilege: run as root, or choose a port above 1023 in {key}")
        }
        _ => anyhow!("cannot listen on UDP {address} ({key}): {error}"),
    }
}
