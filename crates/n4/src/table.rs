//! What becomes of every IE (TS 29.244 8.1.2), worked out from the groups that are decoded and the lists of what is
//! refused: `docs/ie-support.md` is made of it.

use crate::{partly, reasons, support};
use pfcp::*;

/// What becomes of an IE in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It is done.
    Obeyed,
    /// We say it.
    Sent,
    /// It is taken, and there is nothing to do for us.
    WithoutEffect,
    /// Whoever asks for it is refused, by its name.
    Refused,
}

/// One IE in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IeSupport {
    /// The message or grouped IE it is in.
    pub group: &'static str,
    /// Its number.
    pub ie: u16,
    /// The name of the field that holds it, where it is decoded.
    pub field: Option<&'static str>,
    /// What becomes of it.
    pub standing: Standing,
    /// Where it is taken: the values that are refused, in words and each in octets.
    pub refused_values: Option<(&'static str, &'static [&'static [u8]])>,
    /// Where somebody may expect more of it than there is: why, or what it comes to.
    pub reason: Option<&'static str>,
}

impl IeSupport {
    const fn new(group: &'static str, ie: u16, field: Option<&'static str>, standing: Standing) -> Self {
        Self { group, ie, field, standing, refused_values: None, reason: None }
    }

    /// With the values that are refused though the IE is not.
    fn received(self) -> Self {
        let everywhere = partly::PARTLY.iter().map(|(ie, words, values)| (self.group, *ie, *words, *values));
        let mut all = everywhere.chain(partly::PARTLY_IN.iter().copied());
        let it = all.find(|(group, ie, ..)| (*group, *ie) == (self.group, self.ie));
        Self { refused_values: it.map(|(_, _, words, values)| (words, values)), ..self }
    }
}

type Fields = &'static [(u16, &'static str)];

/// Groups that come to us, and what is refused in them although or because it is not decoded.
fn received() -> Vec<(&'static str, Fields, Vec<u16>)> {
    let both = |one: &[u16], other: &[u16]| [one, other].concat();
    let none = Vec::new;
    vec![
        ("Heartbeat Request", HeartbeatRequest::FIELDS, none()),
        ("PFD Management Request", PfdManagementRequest::FIELDS, none()),
        ("Application ID's PFDs", ApplicationPfds::FIELDS, none()),
        ("PFD context", PfdContext::FIELDS, none()),
        ("Association Setup Request", AssociationSetupRequest::FIELDS, none()),
        ("Association Update Request", AssociationUpdateRequest::FIELDS, none()),
        ("Association Release Request", AssociationReleaseRequest::FIELDS, none()),
        ("Session Set Deletion Request", SessionSetDeletionRequest::FIELDS, none()),
        ("Session Set Modification Request", SessionSetModificationRequest::FIELDS, none()),
        ("PFCP Session Change Info", SessionChangeInfo::FIELDS, none()),
        ("Node Report Response", NodeReportResponse::FIELDS, none()),
        ("Session Establishment Request", SessionEstablishmentRequest::FIELDS, support::IN_SESSION.to_vec()),
        (
            "Session Modification Request",
            SessionModificationRequest::FIELDS,
            both(support::IN_SESSION, support::IN_MODIFICATION),
        ),
        ("Session Report Response", SessionReportResponse::FIELDS, none()),
        ("Create PDR", CreatePdr::FIELDS, support::IN_PDR.to_vec()),
        ("Update PDR", UpdatePdr::FIELDS, support::IN_PDR.to_vec()),
        ("Remove PDR", RemovePdr::FIELDS, none()),
        ("PDI", Pdi::FIELDS, support::IN_PDI.to_vec()),
        ("Ethernet Packet Filter", EthernetPacketFilter::FIELDS, none()),
        ("Create FAR", CreateFar::FIELDS, support::IN_FAR.to_vec()),
        ("Update FAR", UpdateFar::FIELDS, support::IN_FAR.to_vec()),
        ("Remove FAR", RemoveFar::FIELDS, none()),
        ("Forwarding Parameters", ForwardingParameters::FIELDS, support::IN_FORWARDING.to_vec()),
        ("Update Forwarding Parameters", UpdateForwardingParameters::FIELDS, support::IN_FORWARDING.to_vec()),
        ("Duplicating Parameters", DuplicatingParameters::FIELDS, support::IN_DUPLICATING.to_vec()),
        (
            "Update Duplicating Parameters",
            UpdateDuplicatingParameters::FIELDS,
            support::IN_DUPLICATING.to_vec(),
        ),
        ("Create QER", CreateQer::FIELDS, support::IN_QER.to_vec()),
        ("Update QER", UpdateQer::FIELDS, support::IN_QER.to_vec()),
        ("Remove QER", RemoveQer::FIELDS, none()),
        ("Create URR", CreateUrr::FIELDS, support::IN_URR.to_vec()),
        ("Update URR", UpdateUrr::FIELDS, support::IN_URR.to_vec()),
        ("Additional Monitoring Time", AdditionalMonitoringTime::FIELDS, none()),
        ("Remove URR", RemoveUrr::FIELDS, none()),
        ("Query URR", QueryUrr::FIELDS, none()),
        ("Create BAR", CreateBar::FIELDS, support::IN_BAR.to_vec()),
        ("Update BAR", UpdateBar::FIELDS, support::IN_BAR.to_vec()),
        ("Update BAR (Session Report Response)", UpdateBarInReport::FIELDS, none()),
        ("Remove BAR", RemoveBar::FIELDS, none()),
        ("Create Traffic Endpoint", CreateTrafficEndpoint::FIELDS, support::IN_TRAFFIC_ENDPOINT.to_vec()),
        ("Update Traffic Endpoint", UpdateTrafficEndpoint::FIELDS, support::IN_TRAFFIC_ENDPOINT.to_vec()),
        ("Remove Traffic Endpoint", RemoveTrafficEndpoint::FIELDS, none()),
    ]
}

/// Groups that we send.
const SENT: &[(&str, Fields)] = &[
    ("Heartbeat Response", HeartbeatResponse::FIELDS),
    ("PFD Management Response", PfdManagementResponse::FIELDS),
    ("Association Setup Response", AssociationSetupResponse::FIELDS),
    ("UE IP Address Pool Information", PoolInformation::FIELDS),
    ("Association Update Request (ours)", AssociationUpdateRequest::FIELDS),
    ("Association Update Response", AssociationUpdateResponse::FIELDS),
    ("Association Release Response", AssociationReleaseResponse::FIELDS),
    ("Session Set Deletion Response", SessionSetDeletionResponse::FIELDS),
    ("Session Set Modification Response", SessionSetModificationResponse::FIELDS),
    ("Node Report Request", NodeReportRequest::FIELDS),
    ("User Plane Path Failure, Recovery or Peer UP Restart Report", PathReport::FIELDS),
    ("Session Establishment Response", SessionEstablishmentResponse::FIELDS),
    ("Created PDR", CreatedPdr::FIELDS),
    ("Created Traffic Endpoint", CreatedTrafficEndpoint::FIELDS),
    ("Load Control Information", LoadControlInformation::FIELDS),
    ("Overload Control Information", OverloadControlInformation::FIELDS),
    ("Session Modification Response", SessionModificationResponse::FIELDS),
    ("Session Deletion Response", SessionDeletionResponse::FIELDS),
    ("Session Report Request", SessionReportRequest::FIELDS),
    ("Downlink Data Report", DownlinkDataReport::FIELDS),
    ("Error Indication Report", ErrorIndicationReport::FIELDS),
    ("Usage Report", UsageReport::FIELDS),
    ("Application Detection Information", ApplicationDetectionInformation::FIELDS),
    ("Ethernet Traffic Information", EthernetTrafficInformation::FIELDS),
];

fn give_reason(row: &mut IeSupport) {
    let it = reasons::REASONS.iter().find(|(ie, _)| *ie == row.ie);
    row.reason = it.map(|(_, words)| *words);
}

/// Every IE in every group we know, group by group.
pub fn ie_support() -> Vec<IeSupport> {
    let mut rows = Vec::new();
    for (group, fields, refused) in received() {
        for (ie, field) in fields {
            let standing = match (refused.contains(ie), support::WITHOUT_EFFECT.contains(&(group, *ie))) {
                (true, _) => Standing::Refused,
                (false, true) => Standing::WithoutEffect,
                (false, false) => Standing::Obeyed,
            };
            rows.push(IeSupport::new(group, *ie, Some(*field), standing).received());
        }
        let obeyed = support::OBEYED.iter().filter(|(other, ..)| *other == group);
        rows.extend(
            obeyed.map(|(group, ie, name)| {
                IeSupport::new(group, *ie, Some(*name), Standing::Obeyed).received()
            }),
        );
        let undecoded = refused.iter().filter(|ie| !fields.iter().any(|(field, _)| field == *ie));
        rows.extend(undecoded.map(|ie| IeSupport::new(group, *ie, None, Standing::Refused)));
    }
    rows.iter_mut().for_each(give_reason);
    for (group, fields) in SENT {
        let row =
            |(ie, field): &(u16, &'static str)| IeSupport::new(group, *ie, Some(*field), Standing::Sent);
        // What only control planes put into a message that goes both ways.
        let ours = fields.iter().filter(|(ie, _)| !support::NOT_OURS.contains(&(*group, *ie)));
        rows.extend(ours.map(row));
        let whole = support::SENT_WHOLE.iter().filter(|(other, ..)| other == group);
        rows.extend(whole.map(|(_, ie, name)| row(&(*ie, *name))));
    }
    rows
}
