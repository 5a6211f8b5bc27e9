//! Of the tables of TS 29.244 (7.4, 7.5): what they are called, and what is mandatory in them.

use pfcp::ie;

/// Messages by the names of their tables, and their types (TS 29.244 7.3).
pub const MESSAGES: &[(&str, u8)] = &[
    ("Heartbeat Request", 1),
    ("Heartbeat Response", 2),
    ("PFD Management Request", 3),
    ("PFD Management Response", 4),
    ("Association Setup Request", 5),
    ("Association Setup Response", 6),
    ("Association Update Request", 7),
    ("Association Update Request (ours)", 7),
    ("Association Update Response", 8),
    ("Association Release Request", 9),
    ("Association Release Response", 10),
    ("Node Report Request", 12),
    ("Node Report Response", 13),
    ("Session Set Deletion Request", 14),
    ("Session Set Deletion Response", 15),
    ("Session Set Modification Request", 16),
    ("Session Set Modification Response", 17),
    ("Session Establishment Request", 50),
    ("Session Establishment Response", 51),
    ("Session Modification Request", 52),
    ("Session Modification Response", 53),
    ("Session Deletion Request", 54),
    ("Session Deletion Response", 55),
    ("Session Report Request", 56),
    ("Session Report Response", 57),
];

/// What no message of a type goes without.
const IN_MESSAGES: &[(u8, &[u16])] = &[
    (1, &[ie::RECOVERY_TIME_STAMP]),
    (5, &[ie::NODE_ID, ie::RECOVERY_TIME_STAMP]),
    (7, &[ie::NODE_ID]),
    (9, &[ie::NODE_ID]),
    (13, &[ie::NODE_ID, ie::CAUSE]),
    (14, &[ie::NODE_ID]),
    (16, &[ie::NODE_ID, ie::PFCP_SESSION_CHANGE_INFO]),
    (50, &[ie::NODE_ID, ie::F_SEID, ie::CREATE_PDR, ie::CREATE_FAR]),
    (57, &[ie::CAUSE]),
];

/// What no group goes without. A Create PDR without Precedence is tolerated, as control planes in use send it.
const IN_GROUPS: &[(u16, &[u16])] = &[
    (ie::APPLICATION_IDS_PFDS, &[ie::APPLICATION_ID]),
    (ie::PFD_CONTEXT, &[ie::PFD_CONTENTS]),
    (ie::PFCP_SESSION_CHANGE_INFO, &[ie::ALTERNATIVE_SMF_IP_ADDRESS]),
    (ie::CREATE_PDR, &[ie::PDR_ID, ie::PDI]),
    (ie::PDI, &[ie::SOURCE_INTERFACE]),
    (ie::CREATE_FAR, &[ie::FAR_ID, ie::APPLY_ACTION]),
    (ie::FORWARDING_PARAMETERS, &[ie::DESTINATION_INTERFACE]),
    (ie::DUPLICATING_PARAMETERS, &[ie::DESTINATION_INTERFACE]),
    (ie::CREATE_URR, &[ie::URR_ID, ie::MEASUREMENT_METHOD, ie::REPORTING_TRIGGERS]),
    (ie::CREATE_QER, &[ie::QER_ID, ie::GATE_STATUS]),
    (ie::CREATE_BAR, &[ie::BAR_ID]),
    (ie::CREATE_TRAFFIC_ENDPOINT, &[ie::TRAFFIC_ENDPOINT_ID]),
    (ie::UPDATE_PDR, &[ie::PDR_ID]),
    (ie::UPDATE_FAR, &[ie::FAR_ID]),
    (ie::UPDATE_URR, &[ie::URR_ID]),
    (ie::UPDATE_QER, &[ie::QER_ID]),
    (ie::UPDATE_BAR, &[ie::BAR_ID]),
    (ie::UPDATE_BAR_IN_SESSION_REPORT, &[ie::BAR_ID]),
    (ie::UPDATE_TRAFFIC_ENDPOINT, &[ie::TRAFFIC_ENDPOINT_ID]),
    (ie::ADDITIONAL_MONITORING_TIME, &[ie::MONITORING_TIME]),
    (ie::REMOVE_PDR, &[ie::PDR_ID]),
    (ie::REMOVE_FAR, &[ie::FAR_ID]),
    (ie::REMOVE_URR, &[ie::URR_ID]),
    (ie::REMOVE_QER, &[ie::QER_ID]),
    (ie::REMOVE_BAR, &[ie::BAR_ID]),
    (ie::REMOVE_TRAFFIC_ENDPOINT, &[ie::TRAFFIC_ENDPOINT_ID]),
    (ie::QUERY_URR, &[ie::URR_ID]),
];

/// Groups in which an IE without octets takes away what it names (5.6.3), and the message that has such.
const UPDATES: &[u16] = &[
    ie::UPDATE_PDR,
    ie::UPDATE_FAR,
    ie::UPDATE_FORWARDING_PARAMETERS,
    ie::UPDATE_DUPLICATING_PARAMETERS,
    ie::UPDATE_URR,
    ie::UPDATE_QER,
    ie::UPDATE_BAR,
    ie::UPDATE_BAR_IN_SESSION_REPORT,
    ie::UPDATE_TRAFFIC_ENDPOINT,
];

/// Where an IE stands: in a message of a type, or in a group of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub message_type: u8,
    /// 0 for the message.
    pub group: u16,
    pub ie: u16,
}

impl Place {
    pub fn is_mandatory(self) -> bool {
        let (group, message) = (self.group, self.message_type);
        let in_group = IN_GROUPS.iter().any(|(other, all)| *other == group && all.contains(&self.ie));
        let in_message = IN_MESSAGES.iter().any(|(other, all)| *other == message && all.contains(&self.ie));
        if group == 0 { in_message } else { in_group }
    }

    pub fn is_of_an_update(self) -> bool {
        UPDATES.contains(&self.group) || (self.group == 0 && self.message_type == 52)
    }
}

/// How many mandatory IEs there are in all tables.
pub fn mandatory() -> usize {
    let in_messages = IN_MESSAGES.iter().map(|(_, all)| all.len());
    in_messages.chain(IN_GROUPS.iter().map(|(_, all)| all.len())).sum()
}
