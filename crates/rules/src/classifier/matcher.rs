//! One PDI, resolved and in little memory: 32 bytes unless it asks for more than plain sessions do.

use crate::check::Checked;
use crate::compile::Arrival;
use crate::ids::{Instance, Qfi, Teid};
use crate::intent::{Interface, Pdi};
use crate::list::Mostly1;
use crate::sdf::{Addresses, FlowDescription, FlowEnd, PortRange, SdfFilter, TrafficClass};
use ipnet::{IpNet, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;

const _: () = assert!(size_of::<Matcher>() == 32);

/// One PDI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matcher {
    pub(super) source: Interface,
    /// Of plain packets.
    pub(super) instance: Instance,
    qfis: Qfis,
    /// `None` takes plain packets only.
    teid: Option<NonZeroU32>,
    pub(super) ue_ipv4: Option<Ipv4Addr>,
    /// The user's prefix of 64 bits.
    ue_link: Option<[u8; 8]>,
    rest: Option<Box<Rest>>,
}

/// What few PDIs ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rest {
    /// Bit n set: QFI n matches, if several do.
    qfis: u64,
    /// The user's address, if it is not a prefix.
    ue_ipv6: Option<Ipv6Addr>,
    /// Networks behind the user, whose addresses match as its own does.
    framed_routes: Box<[IpNet]>,
    /// Any of these; empty matches everything.
    filters: Box<[Filter]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Qfis {
    Any,
    One(Qfi),
    /// As [`Rest::qfis`] says.
    Several,
}

/// An SDF filter, resolved. Ports are matched by any of their ranges; none match packets without ports, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) protocol: Option<u8>,
    pub(super) traffic_class: Option<TrafficClass>,
    pub(super) spi: Option<u32>,
    pub(super) flow_label: Option<u32>,
    pub(super) remote: Option<Addresses>,
    pub(super) user: Option<Addresses>,
    pub(super) remote_ports: Mostly1<PortRange>,
    pub(super) user_ports: Mostly1<PortRange>,
}

impl Matcher {
    pub(super) fn new(pdi: &Pdi, checked: &Checked<'_>) -> Self {
        let mask = pdi.qfis.iter().fold(0, |mask, qfi| mask | bit(*qfi));
        let link = pdi.ue_ipv6.filter(|prefix| prefix.prefix_len() == 64);
        let rest = Rest {
            qfis: if mask.count_ones() > 1 { mask } else { 0 },
            ue_ipv6: pdi.ue_ipv6.filter(|_| link.is_none()).map(|prefix| prefix.addr()),
            framed_routes: pdi.framed_routes.iter().map(IpNet::trunc).collect(),
            filters: pdi.sdf_filters.iter().map(|filter| Filter::new(checked.resolve(filter))).collect(),
        };
        Self {
            source: pdi.source_interface,
            instance: pdi.instance,
            qfis: match (mask.count_ones(), pdi.qfis.first()) {
                (1, Some(qfi)) => Qfis::One(*qfi),
                (0, _) => Qfis::Any,
                _ => Qfis::Several,
            },
            teid: pdi.f_teid.and_then(|f_teid| NonZeroU32::new(f_teid.teid.0)),
            ue_ipv4: pdi.ue_ipv4,
            ue_link: link.map(|prefix| link_of(prefix.addr())),
            rest: (rest != Rest::default()).then(|| Box::new(rest)),
        }
    }

    /// Whether a packet matches, of whatever application it is.
    #[inline]
    pub(super) fn matches(&self, packet: &Arrival) -> bool {
        let filters = self.filters();
        self.matches_tunnel_and_user(packet)
            && (filters.is_empty() || filters.iter().any(|filter| filter.matches(packet)))
    }

    /// Whether a packet matches by the filter of that place; without filters, by having none.
    pub(super) fn matches_by(&self, filter: u16, packet: &Arrival) -> bool {
        self.filters().get(usize::from(filter)).is_none_or(|filter| filter.matches(packet))
            && self.matches_tunnel_and_user(packet)
    }

    #[inline]
    fn matches_tunnel_and_user(&self, packet: &Arrival) -> bool {
        self.matches_source(packet)
            && self.teid() == packet.teid
            && self.matches_instance(packet)
            && self.matches_ue(packet.ue)
            && self.matches_qfi(packet.qfi)
    }

    /// A tunnel of ours says itself where its packets come from, whichever port serves it.
    #[inline]
    pub(super) fn matches_source(&self, packet: &Arrival) -> bool {
        self.teid.is_some() || self.source == packet.source
    }

    #[inline]
    pub(super) fn matches_instance(&self, packet: &Arrival) -> bool {
        self.teid.is_some() || self.instance == packet.instance
    }

    #[inline]
    pub(super) fn matches_ue(&self, ue: IpAddr) -> bool {
        let matches = match ue {
            IpAddr::V4(ue) => self.ue_ipv4 == Some(ue),
            IpAddr::V6(ue) => self.ue_link == Some(link_of(ue)) || self.single_ipv6() == Some(ue),
        };
        matches || self.is_behind_user(ue) || self.is_of_any_user()
    }

    #[inline]
    pub(super) fn matches_qfi(&self, qfi: Option<Qfi>) -> bool {
        match self.qfis {
            Qfis::Any => true,
            Qfis::One(one) => qfi == Some(one),
            Qfis::Several => qfi.is_some_and(|qfi| self.qfi_mask() & bit(qfi) != 0),
        }
    }

    /// Whether it names no address of the user, and no network behind it.
    #[inline]
    pub(super) fn is_of_any_user(&self) -> bool {
        self.ue_ipv4.is_none() && self.ue_ipv6().is_none() && self.framed_routes().is_empty()
    }

    #[inline]
    fn is_behind_user(&self, ue: IpAddr) -> bool {
        self.framed_routes().iter().any(|route| holds(*route, ue))
    }

    #[inline]
    pub(super) fn framed_routes(&self) -> &[IpNet] {
        self.rest.as_ref().map_or(&[], |rest| &rest.framed_routes)
    }

    /// The user's prefix.
    pub(super) fn ue_ipv6(&self) -> Option<Ipv6Net> {
        let network = |link: [u8; 8]| u128::from(u64::from_be_bytes(link)) << 64;
        let prefix = self.ue_link.and_then(|link| Ipv6Net::new(network(link).into(), 64).ok());
        prefix.or_else(|| self.single_ipv6().map(Ipv6Net::from))
    }

    #[inline]
    pub(super) fn teid(&self) -> Option<Teid> {
        self.teid.map(|teid| Teid(teid.get()))
    }

    /// Bit n set: QFI n matches; 0: all packets match.
    pub(super) fn qfi_mask(&self) -> u64 {
        match self.qfis {
            Qfis::Any => 0,
            Qfis::One(qfi) => bit(qfi),
            Qfis::Several => self.rest.as_ref().map_or(0, |rest| rest.qfis),
        }
    }

    #[inline]
    pub(super) fn filters(&self) -> &[Filter] {
        self.rest.as_ref().map_or(&[], |rest| &rest.filters)
    }

    /// What there is to look at, at most: filters and their port ranges, and networks behind the user.
    pub(super) fn steps(&self) -> usize {
        let ranges = |filter: &Filter| filter.remote_ports.len() + filter.user_ports.len();
        let filters = self.filters().len().max(1) + self.filters().iter().map(ranges).sum::<usize>();
        filters + self.framed_routes().len()
    }

    fn single_ipv6(&self) -> Option<Ipv6Addr> {
        self.rest.as_ref()?.ue_ipv6
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let ports = self
            .filters()
            .iter()
            .map(|filter| filter.user_ports.heap_bytes() + filter.remote_ports.heap_bytes());
        let rest = self.rest.as_ref().map_or(0, |_| size_of::<Rest>());
        rest + size_of_val(self.framed_routes()) + size_of_val(self.filters()) + ports.sum::<usize>()
    }
}

impl Filter {
    pub(super) fn new(filter: &SdfFilter) -> Self {
        let any = FlowDescription::default();
        let FlowDescription { protocol, remote, user } = filter.flow.as_ref().unwrap_or(&any);
        let ports = |end: &FlowEnd| end.ports.iter().copied().collect();
        Self {
            protocol: *protocol,
            traffic_class: filter.traffic_class,
            spi: filter.spi,
            flow_label: filter.flow_label,
            remote: remote.addresses,
            user: user.addresses,
            remote_ports: ports(remote),
            user_ports: ports(user),
        }
    }

    pub(super) fn matches(&self, packet: &Arrival) -> bool {
        let class = |wanted: TrafficClass| (packet.traffic_class ^ wanted.value) & wanted.mask == 0;
        self.protocol.is_none_or(|protocol| protocol == packet.protocol)
            && within(&self.remote_ports, packet.remote_port)
            && within(&self.user_ports, packet.ue_port)
            && self.remote.is_none_or(|wanted| is_among(wanted, packet.remote))
            && self.user.is_none_or(|wanted| is_among(wanted, packet.ue))
            && self.traffic_class.is_none_or(class)
            && self.spi.is_none_or(|spi| packet.spi == Some(spi))
            && self.flow_label.is_none_or(|label| packet.flow_label == Some(label))
    }
}

fn within(ranges: &[PortRange], port: Option<u16>) -> bool {
    ranges.is_empty() || port.is_some_and(|port| ranges.iter().any(|range| range.contains(port)))
}

/// Not all others are: the other IP version's are not.
#[inline]
pub(super) fn is_among(wanted: Addresses, address: IpAddr) -> bool {
    match wanted.inverted {
        false => holds(wanted.prefix, address),
        true => wanted.prefix.addr().is_ipv4() == address.is_ipv4() && !holds(wanted.prefix, address),
    }
}

/// As [`IpNet::contains`], in a third of its time.
fn holds(prefix: IpNet, address: IpAddr) -> bool {
    let differ_at = match (prefix, address) {
        (IpNet::V4(prefix), IpAddr::V4(address)) => {
            (prefix.addr().to_bits() ^ address.to_bits()).leading_zeros()
        }
        (IpNet::V6(prefix), IpAddr::V6(address)) => {
            (prefix.addr().to_bits() ^ address.to_bits()).leading_zeros()
        }
        _ => return false,
    };
    differ_at >= u32::from(prefix.prefix_len())
}

/// The upper 64 bits.
fn link_of(address: Ipv6Addr) -> [u8; 8] {
    let [link @ .., _, _, _, _, _, _, _, _] = address.octets();
    link
}

pub(super) const fn bit(qfi: Qfi) -> u64 {
    1 << qfi.value()
}
