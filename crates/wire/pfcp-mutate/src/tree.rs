//! IEs and the groups they stand in (TS 29.244 8.1.1).

use pfcp::ie;

/// IEs that are groups: they are looked into. Their numbers say so wherever they stand.
pub const GROUPS: &[u16] = &[
    ie::CREATE_PDR,
    ie::PDI,
    ie::CREATE_FAR,
    ie::FORWARDING_PARAMETERS,
    ie::DUPLICATING_PARAMETERS,
    ie::CREATE_URR,
    ie::CREATE_QER,
    ie::CREATED_PDR,
    ie::UPDATE_PDR,
    ie::UPDATE_FAR,
    ie::UPDATE_FORWARDING_PARAMETERS,
    ie::UPDATE_BAR_IN_SESSION_REPORT,
    ie::UPDATE_URR,
    ie::UPDATE_QER,
    ie::REMOVE_PDR,
    ie::REMOVE_FAR,
    ie::REMOVE_URR,
    ie::REMOVE_QER,
    ie::LOAD_CONTROL_INFORMATION,
    ie::OVERLOAD_CONTROL_INFORMATION,
    ie::APPLICATION_IDS_PFDS,
    ie::PFD_CONTEXT,
    ie::APPLICATION_DETECTION_INFORMATION,
    ie::QUERY_URR,
    ie::USAGE_REPORT_IN_MODIFICATION,
    ie::USAGE_REPORT_IN_DELETION,
    ie::USAGE_REPORT_IN_REPORT,
    ie::DOWNLINK_DATA_REPORT,
    ie::CREATE_BAR,
    ie::UPDATE_BAR,
    ie::REMOVE_BAR,
    ie::ERROR_INDICATION_REPORT,
    ie::USER_PLANE_PATH_FAILURE_REPORT,
    ie::USER_PLANE_PATH_RECOVERY_REPORT,
    ie::PEER_UP_RESTART_REPORT,
    ie::UPDATE_DUPLICATING_PARAMETERS,
    ie::CREATE_TRAFFIC_ENDPOINT,
    ie::CREATED_TRAFFIC_ENDPOINT,
    ie::UPDATE_TRAFFIC_ENDPOINT,
    ie::REMOVE_TRAFFIC_ENDPOINT,
    ie::ETHERNET_PACKET_FILTER,
    ie::ETHERNET_TRAFFIC_INFORMATION,
    ie::PFCP_SESSION_RETENTION_INFORMATION,
    ie::UE_IP_ADDRESS_POOL_INFORMATION,
    ie::ADDITIONAL_MONITORING_TIME,
    ie::PFCP_SESSION_CHANGE_INFO,
];

/// Groups within groups within...: deeper than any message goes.
const DEPTH: usize = 8;

/// An IE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Its number.
    pub ie: u16,
    /// Its octets, if it is no group; those behind the last whole IE, if it is one.
    pub value: Vec<u8>,
    /// What is in it, if it is a group.
    pub children: Vec<Tree>,
    /// The length it says it has, where that is a lie.
    pub lie: Option<u16>,
}

impl Tree {
    /// One that is no group.
    pub const fn of(ie: u16, value: Vec<u8>) -> Self {
        Self { ie, value, children: vec![], lie: None }
    }

    /// Whether it is looked into.
    pub fn is_group(&self) -> bool {
        GROUPS.contains(&self.ie)
    }
}

/// The way down to an IE: its place in the message, then in the group there...
pub type Way = Vec<usize>;

/// The IEs `bytes` consist of, and the octets that are none.
pub fn parse(bytes: &[u8]) -> (Vec<Tree>, Vec<u8>) {
    parse_at(bytes, DEPTH)
}

fn parse_at(mut bytes: &[u8], depth: usize) -> (Vec<Tree>, Vec<u8>) {
    let mut all = vec![];
    while let Some((ie, value, rest)) = first(bytes) {
        let (children, value) = match depth > 0 && GROUPS.contains(&ie) {
            true => parse_at(value, depth - 1),
            false => (vec![], value.to_vec()),
        };
        all.push(Tree { ie, value, children, lie: None });
        bytes = rest;
    }
    (all, bytes.to_vec())
}

/// The first IE's number and value, and what follows it.
fn first(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let ([i0, i1, l0, l1], rest) = bytes.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*l0, *l1])))?;
    Some((u16::from_be_bytes([*i0, *i1]), value, rest))
}

/// As on the wire. What does not fit a length field is told as the longest there is.
pub fn write(trees: &[Tree]) -> Vec<u8> {
    let mut bytes = vec![];
    for tree in trees {
        let value = [write(&tree.children), tree.value.clone()].concat();
        let length = tree.lie.unwrap_or(u16::try_from(value.len()).unwrap_or(u16::MAX));
        bytes.extend(tree.ie.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(value);
    }
    bytes
}

/// The ways to all IEs, those in a group before the group.
pub fn places(trees: &[Tree]) -> Vec<Way> {
    let mut all = vec![];
    collect(trees, &[], &mut all);
    all
}

fn collect(trees: &[Tree], way: &[usize], all: &mut Vec<Way>) {
    for (at, tree) in trees.iter().enumerate() {
        let here = [way, &[at]].concat();
        collect(&tree.children, &here, all);
        all.push(here);
    }
}

/// The list an IE stands in, the group that is (0 for the message), and its place there; `None` where the way leads
/// nowhere.
pub fn around<'a>(trees: &'a mut Vec<Tree>, way: &[usize]) -> Option<(u16, &'a mut Vec<Tree>, usize)> {
    let (last, groups) = way.split_last()?;
    let (mut group, mut list) = (0, trees);
    for at in groups {
        let tree = list.get_mut(*at)?;
        (group, list) = (tree.ie, &mut tree.children);
    }
    (*last < list.len()).then_some((group, list, *last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Vec<Tree> {
        let id = Tree::of(ie::PDR_ID, vec![0, 1]);
        let source = Tree::of(ie::SOURCE_INTERFACE, vec![0]);
        let pdi = Tree { children: vec![source], ..Tree::of(ie::PDI, vec![]) };
        vec![Tree { children: vec![id, pdi], ..Tree::of(ie::CREATE_PDR, vec![]) }]
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let bytes = write(&message());
        assert_eq!(bytes, [0, 1, 0, 15, 0, 56, 0, 2, 0, 1, 0, 2, 0, 5, 0, 20, 0, 1, 0]);
        assert_eq!(parse(&bytes), (message(), vec![]));
        let (whole, rest) = parse(&[&bytes[..], &[0, 1, 0]].concat());
        assert_eq!((whole, rest), (message(), vec![0, 1, 0]));
    }

    #[test]
    fn every_place_can_be_gone_to() {
        let mut trees = message();
        let ways = places(&trees);
        assert_eq!(ways, [vec![0, 0], vec![0, 1, 0], vec![0, 1], vec![0]]);
        let groups: Vec<u16> = ways.iter().map(|way| around(&mut trees, way).unwrap().0).collect();
        assert_eq!(groups, [ie::CREATE_PDR, ie::PDI, ie::CREATE_PDR, 0]);
        assert!(around(&mut trees, &[0, 2]).is_none() && around(&mut trees, &[]).is_none());
    }

    #[test]
    fn a_lie_is_told() {
        let mut trees = message();
        trees[0].lie = Some(2);
        assert_eq!(write(&trees)[..4], [0, 1, 0, 2]);
    }
}
