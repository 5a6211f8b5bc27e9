//! Usage Reporting Rules and reports of usage. Times are seconds; moments are seconds since 1900.

use super::ethernet::EthernetTrafficInformation;
use crate::fields::group;
use crate::value::{
    DroppedTraffic, FlowInformation, NetworkInstance, ReportingTriggers, UeIpAddress, UsageReportTrigger,
    VolumeMeasurement, Volumes,
};

group! {
    /// Create URR (TS 29.244 7.5.2.4).
    #[derive(Default)]
    CreateUrr {
        /// Its name in the session.
        urr_id: one u32 = URR_ID,
        /// Durations, volumes or events: the bits of [`crate::flags`].
        measurement_method: one u8 = MEASUREMENT_METHOD,
        /// When to report.
        reporting_triggers: one ReportingTriggers = REPORTING_TRIGGERS,
        /// Between periodic reports.
        measurement_period: opt u32 = MEASUREMENT_PERIOD,
        /// Report after so much.
        volume_threshold: opt Volumes = VOLUME_THRESHOLD,
        /// So much may pass.
        volume_quota: opt Volumes = VOLUME_QUOTA,
        /// Report after so long.
        time_threshold: opt u32 = TIME_THRESHOLD,
        /// So long packets pass.
        time_quota: opt u32 = TIME_QUOTA,
        /// Report after so many events.
        event_threshold: opt u32 = EVENT_THRESHOLD,
        /// So many events pass.
        event_quota: opt u32 = EVENT_QUOTA,
        /// How long a quota is held without traffic.
        quota_holding_time: opt u32 = QUOTA_HOLDING_TIME,
        /// Report when so much was dropped.
        dropped_dl_traffic_threshold: opt DroppedTraffic = DROPPED_DL_TRAFFIC_THRESHOLD,
        /// How long a quota is valid.
        quota_validity_time: opt u32 = QUOTA_VALIDITY_TIME,
        /// When the subsequent values begin to hold.
        monitoring_time: opt u32 = MONITORING_TIME,
        /// From then on.
        subsequent_volume_threshold: opt Volumes = SUBSEQUENT_VOLUME_THRESHOLD,
        /// From then on.
        subsequent_time_threshold: opt u32 = SUBSEQUENT_TIME_THRESHOLD,
        /// From then on.
        subsequent_volume_quota: opt Volumes = SUBSEQUENT_VOLUME_QUOTA,
        /// From then on.
        subsequent_time_quota: opt u32 = SUBSEQUENT_TIME_QUOTA,
        /// From then on.
        subsequent_event_threshold: opt u32 = SUBSEQUENT_EVENT_THRESHOLD,
        /// From then on.
        subsequent_event_quota: opt u32 = SUBSEQUENT_EVENT_QUOTA,
        /// Time without packets that does not count.
        inactivity_detection_time: opt u32 = INACTIVITY_DETECTION_TIME,
        /// Report when one of these does.
        linked_urr_ids: all u32 = LINKED_URR_ID,
        /// How to measure: the bits of [`crate::flags`].
        measurement_information: opt u8 = MEASUREMENT_INFORMATION,
        /// A MAC address without frames for so long is no longer in use.
        ethernet_inactivity_timer: opt u32 = ETHERNET_INACTIVITY_TIMER,
        /// What becomes of packets beyond the quota.
        quota_far_id: opt u32 = FAR_ID,
        /// More monitoring times, each with values of its own.
        additional_monitoring_times: all AdditionalMonitoringTime = ADDITIONAL_MONITORING_TIME,
    }
}

group! {
    /// Additional Monitoring Time (TS 29.244 7.5.2.4).
    #[derive(Default)]
    AdditionalMonitoringTime {
        /// When these values begin to hold.
        monitoring_time: one u32 = MONITORING_TIME,
        /// From then on.
        subsequent_volume_threshold: opt Volumes = SUBSEQUENT_VOLUME_THRESHOLD,
        /// From then on.
        subsequent_time_threshold: opt u32 = SUBSEQUENT_TIME_THRESHOLD,
        /// From then on.
        subsequent_volume_quota: opt Volumes = SUBSEQUENT_VOLUME_QUOTA,
        /// From then on.
        subsequent_time_quota: opt u32 = SUBSEQUENT_TIME_QUOTA,
        /// From then on.
        subsequent_event_threshold: opt u32 = SUBSEQUENT_EVENT_THRESHOLD,
        /// From then on.
        subsequent_event_quota: opt u32 = SUBSEQUENT_EVENT_QUOTA,
        /// The subsequent one, by the type that readers of table 7.5.2.4-3 take it for.
        event_threshold: opt u32 = EVENT_THRESHOLD,
        /// The subsequent one, by the type that readers of table 7.5.2.4-3 take it for.
        event_quota: opt u32 = EVENT_QUOTA,
    }
}

group! {
    /// Update URR (TS 29.244 7.5.4.4): what is absent stays.
    #[derive(Default)]
    UpdateUrr {
        /// The rule.
        urr_id: one u32 = URR_ID,
        /// New methods.
        measurement_method: set u8 = MEASUREMENT_METHOD,
        /// New triggers: all of them.
        reporting_triggers: set ReportingTriggers = REPORTING_TRIGGERS,
        /// Between periodic reports.
        measurement_period: set u32 = MEASUREMENT_PERIOD,
        /// Report after so much.
        volume_threshold: set Volumes = VOLUME_THRESHOLD,
        /// So much may pass from now on.
        volume_quota: set Volumes = VOLUME_QUOTA,
        /// Report after so long.
        time_threshold: set u32 = TIME_THRESHOLD,
        /// So long packets pass from now on.
        time_quota: set u32 = TIME_QUOTA,
        /// Report after so many events.
        event_threshold: set u32 = EVENT_THRESHOLD,
        /// So many events pass from now on.
        event_quota: set u32 = EVENT_QUOTA,
        /// How long a quota is held without traffic.
        quota_holding_time: set u32 = QUOTA_HOLDING_TIME,
        /// Report when so much was dropped.
        dropped_dl_traffic_threshold: set DroppedTraffic = DROPPED_DL_TRAFFIC_THRESHOLD,
        /// How long a quota is valid.
        quota_validity_time: set u32 = QUOTA_VALIDITY_TIME,
        /// When the subsequent values begin to hold.
        monitoring_time: set u32 = MONITORING_TIME,
        /// From then on.
        subsequent_volume_threshold: set Volumes = SUBSEQUENT_VOLUME_THRESHOLD,
        /// From then on.
        subsequent_time_threshold: set u32 = SUBSEQUENT_TIME_THRESHOLD,
        /// From then on.
        subsequent_volume_quota: set Volumes = SUBSEQUENT_VOLUME_QUOTA,
        /// From then on.
        subsequent_time_quota: set u32 = SUBSEQUENT_TIME_QUOTA,
        /// From then on.
        subsequent_event_threshold: set u32 = SUBSEQUENT_EVENT_THRESHOLD,
        /// From then on.
        subsequent_event_quota: set u32 = SUBSEQUENT_EVENT_QUOTA,
        /// Time without packets that does not count.
        inactivity_detection_time: set u32 = INACTIVITY_DETECTION_TIME,
        /// Replaces the whole list, if there are any.
        linked_urr_ids: each u32 = LINKED_URR_ID,
        /// How to measure: the bits of [`crate::flags`].
        measurement_information: set u8 = MEASUREMENT_INFORMATION,
        /// A MAC address without frames for so long is no longer in use.
        ethernet_inactivity_timer: set u32 = ETHERNET_INACTIVITY_TIMER,
        /// What becomes of packets beyond the quota.
        quota_far_id: set u32 = FAR_ID,
        /// Replaces the whole list, if there are any.
        additional_monitoring_times: each AdditionalMonitoringTime = ADDITIONAL_MONITORING_TIME,
    }
}

group! {
    /// Remove URR (TS 29.244 7.5.4.8).
    #[derive(Default)]
    RemoveUrr {
        /// The rule.
        urr_id: one u32 = URR_ID,
    }
}

group! {
    /// Query URR (TS 29.244 7.5.4.10).
    #[derive(Default)]
    QueryUrr {
        /// The rule.
        urr_id: one u32 = URR_ID,
    }
}

group! {
    /// Usage Report (TS 29.244 7.5.5.2, 7.5.7.2 and 7.5.8.3).
    #[derive(Default)]
    UsageReport {
        /// The rule.
        urr_id: one u32 = URR_ID,
        /// Counts the rule's reports.
        ur_seqn: one u32 = UR_SEQN,
        /// Why it is made.
        usage_report_trigger: one UsageReportTrigger = USAGE_REPORT_TRIGGER,
        /// When what it tells of began.
        start_time: opt u32 = START_TIME,
        /// When it ended.
        end_time: opt u32 = END_TIME,
        /// How much.
        volume_measurement: opt VolumeMeasurement = VOLUME_MEASUREMENT,
        /// How long.
        duration_measurement: opt u32 = DURATION_MEASUREMENT,
        /// Of what application traffic has started or stopped.
        application_detection_information: opt ApplicationDetectionInformation = APPLICATION_DETECTION_INFORMATION,
        /// Whose it is, where the PDI does not say.
        ue_ip_address: opt UeIpAddress = UE_IP_ADDRESS,
        /// The network of that address.
        network_instance: opt NetworkInstance = NETWORK_INSTANCE,
        /// When the first packet came.
        time_of_first_packet: opt u32 = TIME_OF_FIRST_PACKET,
        /// When the last one came.
        time_of_last_packet: opt u32 = TIME_OF_LAST_PACKET,
        /// Before or after the monitoring time: the bits of [`crate::flags`].
        usage_information: opt u8 = USAGE_INFORMATION,
        /// Of the query it answers.
        query_urr_reference: opt u32 = QUERY_URR_REFERENCE,
        /// When each event came; in a request alone (table 7.5.8.3-1).
        event_time_stamps: all u32 = EVENT_TIME_STAMP,
        /// MAC addresses of the user.
        ethernet_traffic_information: opt EthernetTrafficInformation = ETHERNET_TRAFFIC_INFORMATION,
    }
}

group! {
    /// Application Detection Information (TS 29.244 7.5.8.3).
    #[derive(Default)]
    ApplicationDetectionInformation {
        /// As in the PDI.
        application_id: one Vec<u8> = APPLICATION_ID,
        /// Tells this start and its stop from others.
        application_instance_id: opt Vec<u8> = APPLICATION_INSTANCE_ID,
        /// The flows, where they can be told.
        flow_information: all FlowInformation = FLOW_INFORMATION,
    }
}
