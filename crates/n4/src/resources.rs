//! What control planes are told of our addresses when an association is set up: where GTP-U is served, and the pools of users'
//! addresses.

use crate::config::{GtpuAddress, InterfaceTypes};
use crate::node::Node;
use crate::pools::UePool;
use ipnet::IpNet;
use pfcp::{NetworkInstance, PoolIdentity, PoolInformation, RawIe, flags, ie};
use rules::{Instance, Interface};
use std::net::Ipv6Addr;

impl Node {
    /// Where GTP-U is served (User Plane IP Resource Information, TS 29.244 Release 15, 8.2.82), for control planes that choose
    /// tunnel endpoints themselves: at these addresses of ours any TEID may be given that is not in use. The access side's
    /// first, and of these the ones base stations are at: some control planes read no further.
    pub(crate) fn ip_resources(&self) -> Vec<RawIe> {
        let is_elsewhere = |types: InterfaceTypes| {
            InterfaceTypes::RADIO.iter().all(|number| types.say(*number) == Some(false))
        };
        let mut all: Vec<&GtpuAddress> = self.config.gtpu.iter().collect();
        all.sort_by_key(|port| (port.interface != Interface::Access, is_elsewhere(port.interface_types)));
        all.into_iter().map(|address| self.ip_resource(address)).collect()
    }

    /// With the name of its network, where it has one: by it and the side control planes choose among several.
    fn ip_resource(&self, address: &GtpuAddress) -> RawIe {
        const V4: u8 = 1;
        const V6: u8 = 1 << 1;
        const ASSONI: u8 = 1 << 5;
        const ASSOSI: u8 = 1 << 6;
        let mut names = self.config.network_instances.iter();
        let network = names.find(|name| Instance::of(name) == address.instance);
        let flag = |is_there, flag| if is_there { flag } else { 0 };
        let (v6, assoni) = (flag(address.told_ipv6().is_some(), V6), flag(network.is_some(), ASSONI));
        let mut value = vec![V4 | v6 | assoni | ASSOSI];
        value.extend(address.told_ipv4().octets());
        value.extend(address.told_ipv6().iter().flat_map(Ipv6Addr::octets));
        value.extend(network.into_iter().flat_map(|name| NetworkInstance::labels(name).0));
        // Source Interface (8.2.2).
        value.push(match address.interface {
            Interface::Access => 0,
            Interface::Core => 1,
            Interface::SgiLan => 2,
        });
        RawIe { ie: ie::USER_PLANE_IP_RESOURCE_INFORMATION, value }
    }

    /// The pools we choose users' addresses from (TS 29.244 7.4.4.1-3).
    pub(crate) fn pool_information(&self) -> Vec<PoolInformation> {
        let information = |pool: &UePool| PoolInformation {
            identity: PoolIdentity(pool.name.clone().into_bytes()),
            network_instance: pool.network_instance.as_deref().map(NetworkInstance::labels),
            ip_version: Some(match pool.prefix {
                IpNet::V4(_) => flags::IP_VERSION_V4,
                IpNet::V6(_) => flags::IP_VERSION_V6,
            }),
            carried: vec![],
        };
        self.config.ue_pools.iter().map(information).collect()
    }
}
