//! Finds the first PDR an Ethernet frame matches, from the first PDR to the last: filters of frames are few
//! ([`limits::ETHERNET_FILTERS`](crate::limits::ETHERNET_FILTERS)).

use super::matcher::{Filter, bit};
use crate::check::Checked;
use crate::compile::Arrival;
use crate::ethernet::{EthernetFilter, MacFilter, TagFilter};
use crate::ids::{Instance, Qfi, Teid};
use crate::intent::{Interface, Pdi, Pdr};

/// A VLAN tag of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTag {
    /// VLAN ID, 12 bits.
    pub id: u16,
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// To be dropped before others.
    pub drop_eligible: bool,
}

/// What PDRs look at in an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameArrival {
    /// Where it came from.
    pub source: Interface,
    /// The network there; of frames in tunnels, nobody asks.
    pub instance: Instance,
    /// The tunnel it came in.
    pub teid: Option<Teid>,
    /// The QoS flow its tunnel header names.
    pub qfi: Option<Qfi>,
    /// Who sent it.
    pub from: [u8; 6],
    /// Whom it is for.
    pub to: [u8; 6],
    /// The customer's tag.
    pub c_tag: Option<FrameTag>,
    /// The provider's tag.
    pub s_tag: Option<FrameTag>,
    /// What is behind the tags.
    pub ethertype: u16,
    /// The IP packet in it, where there is a sound one.
    pub packet: Option<Arrival>,
}

/// All PDIs of an Ethernet session, in the order they are to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EthernetClassifier(Box<[FrameMatcher]>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FrameMatcher {
    source: Interface,
    /// Of frames outside tunnels.
    instance: Instance,
    /// `None` takes frames outside tunnels only.
    teid: Option<Teid>,
    /// Bit n set: QFI n matches; 0: all frames match.
    qfis: u64,
    /// Any of these; empty matches everything.
    sdf_filters: Box<[Filter]>,
    /// Any of these; empty matches everything.
    frame_filters: Box<[FrameFilter]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FrameFilter {
    macs: Box<[MacFilter]>,
    ethertype: Option<u16>,
    c_tag: Option<TagFilter>,
    s_tag: Option<TagFilter>,
    sdf_filters: Box<[Filter]>,
}

impl EthernetClassifier {
    /// Of PDRs in the order they are to be tried.
    pub(crate) fn new(pdrs: &[&Pdr], checked: &Checked<'_>) -> Self {
        Self(pdrs.iter().map(|pdr| FrameMatcher::new(&pdr.pdi, checked)).collect())
    }

    /// The place of the first PDR that matches.
    pub fn find(&self, frame: &FrameArrival) -> Option<usize> {
        self.0.iter().position(|matcher| matcher.matches(frame))
    }

    /// Whether any PDR looks at the IP packets in frames.
    pub fn looks_at_packets(&self) -> bool {
        self.0.iter().any(FrameMatcher::looks_at_packets)
    }

    /// Bytes allocated, without what the allocator adds, and without the lists in filters.
    pub fn heap_bytes(&self) -> usize {
        let filters = |matcher: &FrameMatcher| {
            size_of_val(&*matcher.sdf_filters) + size_of_val(&*matcher.frame_filters)
        };
        size_of_val(&*self.0) + self.0.iter().map(filters).sum::<usize>()
    }
}

impl FrameMatcher {
    fn new(pdi: &Pdi, checked: &Checked<'_>) -> Self {
        let direction = pdi.source_interface.direction();
        let resolve = |filter: &EthernetFilter| {
            let found = filter.reference().and_then(|id| checked.frame_filters.get(&id).copied());
            match found {
                Some((other, towards)) => FrameFilter::new(other, towards != direction, checked),
                None => FrameFilter::new(filter, false, checked),
            }
        };
        let ethernet = pdi.ethernet.iter().flat_map(|ethernet| &ethernet.filters);
        Self {
            source: pdi.source_interface,
            instance: pdi.instance,
            teid: pdi.f_teid.map(|f_teid| f_teid.teid),
            qfis: pdi.qfis.iter().fold(0, |mask, qfi| mask | bit(*qfi)),
            sdf_filters: pdi.sdf_filters.iter().map(|filter| Filter::new(checked.resolve(filter))).collect(),
            frame_filters: ethernet.map(resolve).collect(),
        }
    }

    fn matches(&self, frame: &FrameArrival) -> bool {
        self.teid == frame.teid
            // Of packets in a tunnel, the tunnel says both.
            && (self.teid.is_some() || self.source == frame.source && self.instance == frame.instance)
            && (self.qfis == 0 || frame.qfi.is_some_and(|qfi| self.qfis & bit(qfi) != 0))
            && holds(&self.sdf_filters, frame)
            && (self.frame_filters.is_empty()
                || self.frame_filters.iter().any(|filter| filter.matches(frame)))
    }

    fn looks_at_packets(&self) -> bool {
        !self.sdf_filters.is_empty() || self.frame_filters.iter().any(|filter| !filter.sdf_filters.is_empty())
    }
}

impl FrameFilter {
    /// `is_reversed`: its addresses change places.
    fn new(filter: &EthernetFilter, is_reversed: bool, checked: &Checked<'_>) -> Self {
        let place = |mac: &MacFilter| match is_reversed {
            true => MacFilter { source: mac.destination, destination: mac.source },
            false => *mac,
        };
        Self {
            macs: filter.macs.iter().map(place).collect(),
            ethertype: filter.ethertype,
            c_tag: filter.c_tag,
            s_tag: filter.s_tag,
            sdf_filters: filter.sdf_filters.iter().map(|one| Filter::new(checked.resolve(one))).collect(),
        }
    }

    fn matches(&self, frame: &FrameArrival) -> bool {
        let mac = |mac: &MacFilter| {
            mac.source.is_none_or(|range| range.contains(frame.from))
                && mac.destination.is_none_or(|range| range.contains(frame.to))
        };
        (self.macs.is_empty() || self.macs.iter().any(mac))
            && self.ethertype.is_none_or(|ethertype| ethertype == frame.ethertype)
            && self.c_tag.is_none_or(|wanted| has_tag(wanted, frame.c_tag))
            && self.s_tag.is_none_or(|wanted| has_tag(wanted, frame.s_tag))
            && holds(&self.sdf_filters, frame)
    }
}

fn has_tag(wanted: TagFilter, tag: Option<FrameTag>) -> bool {
    tag.is_some_and(|tag| {
        wanted.id.is_none_or(|id| id == tag.id)
            && wanted.priority.is_none_or(|priority| priority == tag.priority)
            && wanted.drop_eligible.is_none_or(|eligible| eligible == tag.drop_eligible)
    })
}

fn holds(filters: &[Filter], frame: &FrameArrival) -> bool {
    filters.is_empty()
        || frame.packet.as_ref().is_some_and(|packet| filters.iter().any(|filter| filter.matches(packet)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{pdi, rules};
    use crate::{Application, EthernetPdi, MacRange, RuleError, RuleRef, Rules, SdfFilter, compile, limits};

    const UE: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const HOST: [u8; 6] = [2, 0, 0, 0, 0, 9];

    /// PDR 1 takes all frames from the tunnel, PDR 2 all of the network.
    fn ethernet() -> Rules {
        let mut rules = rules();
        for pdr in &mut rules.pdrs {
            (pdr.pdi.ue_ipv4, pdr.pdi.ethernet) = (None, Some(Box::default()));
        }
        rules
    }

    fn filtered(filters: Vec<EthernetFilter>) -> Rules {
        let mut rules = ethernet();
        rules.pdrs[0].pdi.ethernet = Some(Box::new(EthernetPdi { filters }));
        rules
    }

    fn up() -> FrameArrival {
        FrameArrival {
            source: Interface::Access,
            instance: Instance::DEFAULT,
            teid: Some(Teid(0x100)),
            qfi: Qfi::new(1),
            from: UE,
            to: HOST,
            c_tag: Some(FrameTag { id: 7, priority: 3, drop_eligible: false }),
            s_tag: None,
            ethertype: 0x0800,
            packet: None,
        }
    }

    fn down() -> FrameArrival {
        FrameArrival { source: Interface::Core, teid: None, qfi: None, from: HOST, to: UE, ..up() }
    }

    fn find(rules: &Rules, frame: FrameArrival) -> Option<usize> {
        compile(rules).unwrap().ethernet.unwrap().classifier.find(&frame)
    }

    fn one(filter: EthernetFilter, frame: FrameArrival) -> bool {
        find(&filtered(vec![filter]), frame) == Some(0)
    }

    #[test]
    fn without_filters_all_frames_match_by_where_they_come_from() {
        assert_eq!(find(&ethernet(), up()), Some(0));
        assert_eq!(find(&ethernet(), down()), Some(1));
        assert_eq!(find(&ethernet(), FrameArrival { teid: Some(Teid(9)), ..up() }), None);
        assert_eq!(find(&ethernet(), FrameArrival { instance: Instance::of("other"), ..down() }), None);
    }

    #[test]
    fn each_part_of_a_filter_must_match() {
        let source = |range| vec![MacFilter { source: Some(range), destination: None }];
        let range = MacRange { first: UE, last: [2, 0, 0, 0, 0, 3] };
        let all = EthernetFilter {
            macs: source(range),
            ethertype: Some(0x0800),
            c_tag: Some(TagFilter { id: Some(7), priority: Some(3), drop_eligible: Some(false) }),
            ..EthernetFilter::default()
        };
        assert!(one(all.clone(), up()));
        assert!(one(all.clone(), FrameArrival { from: [2, 0, 0, 0, 0, 3], ..up() }));
        assert!(!one(all.clone(), FrameArrival { from: [2, 0, 0, 0, 0, 4], ..up() }));
        assert!(!one(all.clone(), FrameArrival { ethertype: 0x0806, ..up() }));
        assert!(!one(all.clone(), FrameArrival { c_tag: None, ..up() }));
        let tag = FrameTag { id: 8, priority: 3, drop_eligible: false };
        assert!(!one(all.clone(), FrameArrival { c_tag: Some(tag), ..up() }));
        assert!(!one(EthernetFilter { s_tag: Some(TagFilter::default()), ..all }, up()));
    }

    #[test]
    fn packets_in_frames_are_looked_at_where_there_are_sdf_filters() {
        let sdf = SdfFilter {
            flow: Some("permit out 17 from any 53 to assigned".parse().unwrap()),
            ..SdfFilter::default()
        };
        let filter = EthernetFilter { sdf_filters: vec![sdf], ..EthernetFilter::default() };
        let packet = |port| Arrival {
            source: Interface::Access,
            instance: Instance::DEFAULT,
            teid: Some(Teid(0x100)),
            qfi: None,
            ue: [10, 0, 0, 1].into(),
            remote: [10, 0, 0, 2].into(),
            protocol: 17,
            ue_port: Some(4000),
            remote_port: Some(port),
            traffic_class: 0,
            spi: None,
            flow_label: None,
            application: Application::None,
        };
        assert!(one(filter.clone(), FrameArrival { packet: Some(packet(53)), ..up() }));
        assert!(!one(filter.clone(), FrameArrival { packet: Some(packet(54)), ..up() }));
        assert!(!one(filter, up()));
    }

    #[test]
    fn a_bidirectional_filter_is_named_by_the_other_direction_and_turns_round() {
        let macs = vec![MacFilter { source: Some(MacRange::one(UE)), destination: None }];
        let both = EthernetFilter { id: Some(5), is_bidirectional: true, macs, ..EthernetFilter::default() };
        let mut rules = filtered(vec![both.clone()]);
        let named = EthernetFilter { id: Some(5), ..EthernetFilter::default() };
        rules.pdrs[1].pdi.ethernet = Some(Box::new(EthernetPdi { filters: vec![named] }));
        assert_eq!(find(&rules, up()), Some(0));
        assert_eq!(find(&rules, down()), Some(1));
        assert_eq!(find(&rules, FrameArrival { to: [2, 0, 0, 0, 0, 2], ..down() }), None);
        let one_way = EthernetFilter { is_bidirectional: false, ..both };
        rules.pdrs[0].pdi.ethernet = Some(Box::new(EthernetPdi { filters: vec![one_way] }));
        let unknown = RuleError::UnknownEthernetFilter(RuleRef::Pdr(crate::PdrId(2)), 5);
        assert_eq!(rules.check(), Err(unknown));
    }

    #[test]
    fn what_frames_do_not_get_is_refused() {
        let first = RuleRef::Pdr(crate::PdrId(1));
        let mut mixed = ethernet();
        mixed.pdrs[1].pdi = pdi(Interface::Core);
        assert_eq!(mixed.check(), Err(RuleError::MixedTypes(RuleRef::Pdr(crate::PdrId(2)))));
        let mut addressed = ethernet();
        addressed.pdrs[0].pdi.ue_ipv4 = Some([10, 0, 0, 1].into());
        assert_eq!(addressed.check(), Err(RuleError::NotOfFrames(first, "a UE IP address")));
        let range = MacRange { first: HOST, last: UE };
        let macs = vec![MacFilter { source: None, destination: Some(range) }];
        let backwards = EthernetFilter { macs, ..EthernetFilter::default() };
        assert_eq!(filtered(vec![backwards]).check(), Err(RuleError::MacRange(first)));
        let many = vec![EthernetFilter::default(); limits::ETHERNET_FILTERS_PER_PDI + 1];
        assert_eq!(filtered(many).check(), Err(RuleError::TooManyOf(first, "Ethernet filters")));
        let mut networks = ethernet();
        networks.pdrs.push(networks.pdrs[1].clone());
        networks.pdrs[2].id = crate::PdrId(3);
        networks.pdrs[2].pdi.instance = Instance::of("other");
        assert_eq!(networks.check(), Err(RuleError::SeveralNetworks(RuleRef::Pdr(crate::PdrId(3)))));
        let mut copies = ethernet();
        copies.fars[0].duplicating = true;
        copies.fars[0].duplicates = copies.fars[0].forwarding.into_iter().collect();
        assert_eq!(copies.check(), Err(RuleError::NotOfFrames(RuleRef::Far(crate::FarId(1)), "copies")));
        let mut steered = ethernet();
        let to = steered.fars[0].forwarding.as_mut().unwrap();
        to.policy = Some(crate::Policy::of(b"mec1"));
        let refused = RuleError::NotOfFrames(RuleRef::Far(crate::FarId(1)), "a forwarding policy");
        assert_eq!(steered.check(), Err(refused));
    }

    #[test]
    fn what_the_switch_has_to_know_is_compiled() {
        let mut rules = ethernet();
        let program = compile(&rules).unwrap().ethernet.unwrap();
        assert_eq!(
            (program.network, program.reports, program.inactivity_s),
            (Some(Instance::DEFAULT), false, None)
        );
        rules.urrs = vec![crate::Urr {
            id: crate::UrrId(1),
            triggers: crate::Triggers::MAC_ADDRESSES,
            ethernet_inactivity_s: Some(30),
            ..crate::Urr::default()
        }];
        let program = compile(&rules).unwrap().ethernet.unwrap();
        assert_eq!((program.reports, program.inactivity_s), (true, Some(30)));
        assert_eq!(compile(&crate::fixture::rules()).unwrap().ethernet, None);
    }
}
