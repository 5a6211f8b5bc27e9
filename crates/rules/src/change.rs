//! A modification of a session's rules: applied whole or not at all (TS 29.244 6.3.3).
//!
//! In every update `None` leaves a field as it is. A field that a rule may lack is an `Option` in an `Option`:
//! `Some(None)` takes it away, which PFCP says by an information element of length 0.

mod apply;
mod references;
mod restated;
#[cfg(test)]
mod tests;

use crate::ids::{BarId, FarId, Instance, PdrId, Policy, QerId, Qfi, UrrId};
use crate::intent::{
    ApplyAction, BitRates, Extended, ForwardingParameters, Gate, Interface, OuterHeaderCreation, PacketRates,
    Pdi, Rules,
};
use crate::list::Names;
use crate::redirect::Redirect;
use crate::treatment::HeaderField;
use crate::urr::{DroppedDownlink, Methods, Monitoring, Triggers, Volume};

/// What an Update PDR replaces (TS 29.244 7.5.4.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PdrUpdate {
    /// The rule to update.
    pub id: PdrId,
    /// New precedence.
    pub precedence: Option<u32>,
    /// Replaces the whole PDI.
    pub pdi: Option<Pdi>,
    /// New outer header removal.
    pub outer_header_removal: Option<bool>,
    /// New FAR.
    pub far: Option<FarId>,
    /// Replaces the whole list.
    pub qers: Option<Names<QerId>>,
    /// Replaces the whole list.
    pub urrs: Option<Names<UrrId>>,
}

/// What Update Forwarding Parameters replace (TS 29.244 7.5.4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardingUpdate {
    /// New destination interface; needed where the FAR has no forwarding parameters yet.
    pub destination_interface: Option<Interface>,
    /// New network.
    pub instance: Option<Instance>,
    /// New tunnel, or none.
    pub outer_header_creation: Option<Option<OuterHeaderCreation>>,
    /// New DSCP of the outermost header, or none.
    pub dscp: Option<Option<u8>>,
    /// New forwarding policy, or none.
    pub policy: Option<Option<Policy>>,
}

/// What an Update FAR replaces (TS 29.244 7.5.4.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FarUpdate {
    /// The rule to update.
    pub id: FarId,
    /// New action.
    pub apply_action: Option<ApplyAction>,
    /// New NOCP.
    pub notify: Option<bool>,
    /// Merged into the forwarding parameters the FAR has.
    pub forwarding: Option<ForwardingUpdate>,
    /// New DUPL.
    pub duplicating: Option<bool>,
    /// Replaces the whole list.
    pub duplicates: Option<Vec<ForwardingParameters>>,
    /// New BAR, or none.
    pub bar: Option<Option<BarId>>,
    /// New redirection, or none.
    pub redirect: Option<Option<Redirect>>,
    /// New header enrichment, or none.
    pub enrichment: Option<Option<HeaderField>>,
}

/// What an Update QER replaces (TS 29.244 7.5.4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QerUpdate {
    /// The rule to update.
    pub id: QerId,
    /// New uplink and downlink gate.
    pub gates: Option<(Gate, Gate)>,
    /// New maximum, or none.
    pub mbr: Option<Option<BitRates>>,
    /// New packet rates: both ways.
    pub packet_rates: Option<PacketRates>,
    /// New correlation, or none.
    pub correlation: Option<Option<u64>>,
    /// New guarantee, or none.
    pub gbr: Option<Option<BitRates>>,
    /// New QFI, or none.
    pub qfi: Option<Option<Qfi>>,
    /// New RQI.
    pub reflective: Option<bool>,
}

/// What an Update URR replaces (TS 29.244 7.5.4.4); the fields are those of [`Urr`](crate::Urr).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrrUpdate {
    /// The rule to update.
    pub id: UrrId,
    /// New methods.
    pub methods: Option<Methods>,
    /// New triggers: all of them.
    pub triggers: Option<Triggers>,
    /// New measurement period, or none.
    pub measurement_period_s: Option<Option<u32>>,
    /// New volume threshold, or none: all three volumes.
    pub volume_threshold: Option<Option<Volume>>,
    /// New volume quota, or none: all three volumes.
    pub volume_quota: Option<Option<Volume>>,
    /// New time threshold, or none.
    pub time_threshold_s: Option<Option<u32>>,
    /// New time quota, or none.
    pub time_quota_s: Option<Option<u32>>,
    /// New event threshold, or none.
    pub event_threshold: Option<Option<u32>>,
    /// New event quota, or none.
    pub event_quota: Option<Option<u32>>,
    /// New quota holding time, or none.
    pub quota_holding_time_s: Option<Option<u32>>,
    /// New quota validity time, or none.
    pub quota_validity_time_s: Option<Option<u32>>,
    /// New threshold of dropped downlink traffic, or none.
    pub dropped_downlink: Option<Option<DroppedDownlink>>,
    /// New inactivity detection time, or none.
    pub inactivity_detection_time_s: Option<Option<u32>>,
    /// New monitoring time, or none.
    pub monitoring_time: Option<Option<u32>>,
    /// New volume threshold from the monitoring time on, or none.
    pub subsequent_volume_threshold: Option<Option<Volume>>,
    /// New time threshold from the monitoring time on, or none.
    pub subsequent_time_threshold_s: Option<Option<u32>>,
    /// New volume quota from the monitoring time on, or none.
    pub subsequent_volume_quota: Option<Option<Volume>>,
    /// New time quota from the monitoring time on, or none.
    pub subsequent_time_quota_s: Option<Option<u32>>,
    /// New event threshold from the monitoring time on, or none.
    pub subsequent_event_threshold: Option<Option<u32>>,
    /// New event quota from the monitoring time on, or none.
    pub subsequent_event_quota: Option<Option<u32>>,
    /// Replaces the whole list.
    pub additional_monitoring: Option<Vec<Monitoring>>,
    /// Replaces the whole list.
    pub linked: Option<Vec<UrrId>>,
    /// New MBQE.
    pub before_qos: Option<bool>,
    /// New INAM.
    pub inactive: Option<bool>,
    /// New ISTM.
    pub immediate_start: Option<bool>,
    /// New inactivity timer of MAC addresses, or none.
    pub ethernet_inactivity_s: Option<Option<u32>>,
    /// New FAR for the time after the quota, or none.
    pub quota_far: Option<Option<FarId>>,
}

/// What an Update BAR replaces (TS 29.244 7.5.4.11 and 7.5.9.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BarUpdate {
    /// The rule to update.
    pub id: BarId,
    /// New delay of the notification, in units of 50 ms.
    pub notification_delay_50ms: Option<u8>,
    /// New number of packets to keep, or none.
    pub suggested_packets: Option<Option<u16>>,
    /// Extended buffering from now on, or none any more.
    pub extended: Option<Option<Extended>>,
}

/// One modification request: removals, then creations, then updates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// PDRs to remove.
    pub remove_pdrs: Vec<PdrId>,
    /// FARs to remove.
    pub remove_fars: Vec<FarId>,
    /// QERs to remove.
    pub remove_qers: Vec<QerId>,
    /// URRs to remove.
    pub remove_urrs: Vec<UrrId>,
    /// BARs to remove.
    pub remove_bars: Vec<BarId>,
    /// Rules to create.
    pub create: Rules,
    /// PDRs to update.
    pub update_pdrs: Vec<PdrUpdate>,
    /// FARs to update.
    pub update_fars: Vec<FarUpdate>,
    /// QERs to update.
    pub update_qers: Vec<QerUpdate>,
    /// URRs to update.
    pub update_urrs: Vec<UrrUpdate>,
    /// BARs to update.
    pub update_bars: Vec<BarUpdate>,
}
