//! Which PDR a frame of an Ethernet PDU session matches (TS 29.244 5.2.1, 7.5.2.2-3; IEEE 802.1Q, 802.1ad).

use crate::bytes::{octets, u16_at};
use crate::detection::{Arrival, Tunnel, meant, sdf_matches};
use crate::ethernet::{IPV4, IPV6, VLAN};
use crate::gtpu::Relayed;
use crate::ip::UserPacket;
use crate::setup::{Mac, Network};
use rules::{Direction, EthernetFilter, EthernetPdi, MacFilter, Pdi, Pdr, Rules, SdfFilter, TagFilter};

/// Types of a provider's tag: of 802.1ad, and of before.
const PROVIDERS: [u16; 2] = [0x88a8, 0x9100];

/// A frame and how it came.
#[derive(Clone, Debug)]
pub(crate) struct FrameArrival {
    pub(crate) port: usize,
    pub(crate) network: Network,
    pub(crate) tunnel: Option<Tunnel>,
    /// Extension headers of that tunnel's header that go on into the next.
    pub(crate) relayed: Relayed,
    pub(crate) bytes: Vec<u8>,
}

/// What is read of a frame.
struct Frame {
    from: Mac,
    to: Mac,
    customers: Option<u16>,
    providers: Option<u16>,
    ethertype: u16,
    /// The IP packet in it, if it is sound.
    packet: Option<Arrival>,
}

impl FrameArrival {
    pub(crate) fn direction(&self) -> Direction {
        self.network.0.direction()
    }

    /// Its destination and its source.
    pub(crate) fn stations(&self) -> Option<(Mac, Mac)> {
        u16_at(&self.bytes, 12)?;
        Some((octets(&self.bytes, 0)?, octets(&self.bytes, 6)?))
    }

    /// `None` where its tags are cut short, or there are more than two.
    fn read(&self) -> Option<Frame> {
        let (to, from) = self.stations()?;
        let (mut at, mut tags) = (12, Vec::new());
        let mut ethertype = u16_at(&self.bytes, at)?;
        while ethertype == VLAN || PROVIDERS.contains(&ethertype) {
            tags.push((ethertype, u16_at(&self.bytes, at + 2)?));
            at += 4;
            ethertype = u16_at(&self.bytes, at)?;
        }
        let (providers, customers) = match tags[..] {
            [] => (None, None),
            [(VLAN, one)] | [(VLAN, one), _] => (None, Some(one)),
            [(_, one)] => (Some(one), None),
            [(_, one), (_, other)] => (Some(one), Some(other)),
            _ => return None,
        };
        let is_ip = [IPV4, IPV6].contains(&ethertype);
        let payload = self.bytes.get(at + 2..).filter(|_| is_ip).unwrap_or_default();
        let packet = UserPacket::read(payload).map(|packet| Arrival {
            port: self.port,
            source: self.network.0,
            instance: self.network.1,
            tunnel: self.tunnel,
            relayed: vec![],
            packet,
        });
        Some(Frame { from, to, customers, providers, ethertype, packet })
    }
}

/// The first that matches, by precedence, then PDR ID; of a frame that cannot be read, `Err`.
pub(crate) fn first_pdr<'a>(rules: &'a Rules, arrival: &FrameArrival) -> Result<Option<&'a Pdr>, ()> {
    let frame = arrival.read().ok_or(())?;
    let matching = rules.pdrs.iter().filter(|pdr| pdi_matches(&pdr.pdi, rules, (arrival, &frame)));
    Ok(matching.min_by_key(|pdr| (pdr.precedence, pdr.id)))
}

fn pdi_matches(pdi: &Pdi, rules: &Rules, (arrival, frame): (&FrameArrival, &Frame)) -> bool {
    let qfi = arrival.tunnel.and_then(|tunnel| tunnel.qfi);
    let is_from = pdi.source_interface == arrival.network.0 && pdi.instance == arrival.network.1;
    let default = EthernetPdi::default();
    let filters = &pdi.ethernet.as_deref().unwrap_or(&default).filters;
    pdi.f_teid == arrival.tunnel.map(|tunnel| tunnel.f_teid)
        // A tunnel of ours says where its frames come from.
        && (arrival.tunnel.is_some() || is_from)
        && (pdi.qfis.is_empty() || qfi.is_some_and(|qfi| pdi.qfis.contains(&qfi)))
        && any_sdf_matches(&pdi.sdf_filters, rules, frame)
        && (filters.is_empty()
            || filters.iter().any(|filter| {
                let (filter, is_reversed) = resolved(filter, rules, pdi.source_interface.direction());
                filter_matches((filter, is_reversed), rules, frame)
            }))
}

/// A filter of nothing but an ID stands for the session's bidirectional one of that ID; whether that is of the other way.
fn resolved<'a>(
    filter: &'a EthernetFilter,
    rules: &'a Rules,
    direction: Direction,
) -> (&'a EthernetFilter, bool) {
    let is_reference =
        |filter: &EthernetFilter| *filter == EthernetFilter { id: filter.id, ..EthernetFilter::default() };
    if filter.id.is_none() || !is_reference(filter) {
        return (filter, false);
    }
    for pdr in &rules.pdrs {
        let filters = pdr.pdi.ethernet.iter().flat_map(|ethernet| &ethernet.filters);
        let found = filters.into_iter().find(|other| other.is_bidirectional && other.id == filter.id);
        if let Some(found) = found {
            return (found, pdr.pdi.source_interface.direction() != direction);
        }
    }
    (filter, false)
}

fn filter_matches((filter, is_reversed): (&EthernetFilter, bool), rules: &Rules, frame: &Frame) -> bool {
    let ends = if is_reversed { (frame.to, frame.from) } else { (frame.from, frame.to) };
    (filter.macs.is_empty() || filter.macs.iter().any(|macs| macs_match(macs, ends)))
        && filter.ethertype.is_none_or(|ethertype| ethertype == frame.ethertype)
        && filter.c_tag.is_none_or(|wanted| tag_matches(wanted, frame.customers))
        && filter.s_tag.is_none_or(|wanted| tag_matches(wanted, frame.providers))
        && any_sdf_matches(&filter.sdf_filters, rules, frame)
}

fn macs_match(macs: &MacFilter, (source, destination): (Mac, Mac)) -> bool {
    let is_in = |range: &rules::MacRange, mac: Mac| (range.first..=range.last).contains(&mac);
    macs.source.as_ref().is_none_or(|range| is_in(range, source))
        && macs.destination.as_ref().is_none_or(|range| is_in(range, destination))
}

/// Priority in the three highest bits, then whether it is to be dropped first, then the VLAN (IEEE 802.1Q 9.6).
fn tag_matches(wanted: TagFilter, tag: Option<u16>) -> bool {
    tag.is_some_and(|tag| {
        wanted.id.is_none_or(|id| id == tag & 0x0fff)
            && wanted.priority.is_none_or(|priority| u16::from(priority) == tag >> 13)
            && wanted.drop_eligible.is_none_or(|eligible| eligible == (tag & 0x1000 != 0))
    })
}

/// Of frames without an IP packet, none.
fn any_sdf_matches(filters: &[SdfFilter], rules: &Rules, frame: &Frame) -> bool {
    let is_met = |packet: &Arrival| filters.iter().any(|filter| sdf_matches(meant(filter, rules), packet));
    filters.is_empty() || frame.packet.as_ref().is_some_and(is_met)
}
