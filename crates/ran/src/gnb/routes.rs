//! Routes through UEs.

use super::Tun;
use crate::config::UeConfig;
use anyhow::{Context, Result};
use nix::libc::EEXIST;
use rtnetlink::packet_route::route::RouteMessage;
use rtnetlink::{Error, Handle, RouteMessageBuilder};
use std::net::Ipv4Addr;

/// Routes of UEs are less preferred than the host's own, and the first UE's more than the second's.
const FIRST_METRIC: u32 = 1_000;

/// Adds each UE's routes. They go with the UE's device.
///
/// # Errors
/// The route the kernel refused, and why.
pub async fn add_routes(ues: &[UeConfig], tuns: &[Tun]) -> Result<()> {
    if ues.iter().all(|ue| ue.routes.is_empty()) {
        return Ok(());
    }
    let (connection, handle, _) = rtnetlink::new_connection().context("no netlink socket")?;
    let connection = tokio::spawn(connection);
    let added = add_all(&handle, ues, tuns).await;
    connection.abort();
    added
}

async fn add_all(handle: &Handle, ues: &[UeConfig], tuns: &[Tun]) -> Result<()> {
    for ((ue, tun), metric) in ues.iter().zip(tuns).zip(FIRST_METRIC..) {
        let device = tun.index().with_context(|| format!("TUN device {}", ue.tun))?;
        for route in &ue.routes {
            let message = RouteMessageBuilder::<Ipv4Addr>::new()
                .destination_prefix(route.network(), route.prefix_len())
                .output_interface(device)
                .pref_source(ue.address)
                .priority(metric)
                .build();
            let added = add(handle, message).await;
            added.with_context(|| format!("route {route} through {} cannot be added", ue.tun))?;
        }
    }
    Ok(())
}

/// One that is there already is there.
async fn add(handle: &Handle, route: RouteMessage) -> Result<(), Error> {
    match handle.route().add(route).execute().await {
        Err(Error::NetlinkError(message)) if message.raw_code() == -EEXIST => Ok(()),
        result => result,
    }
}
