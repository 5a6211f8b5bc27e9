//! Every URR, BAR and usage report there can be.

use super::ethernet::traffic_information;
use super::values::{carried, network_instance, ue_ip_address};
use pfcp::*;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn volumes() -> impl Strategy<Value = Volumes> {
    any::<(Option<u64>, Option<u64>, Option<u64>)>().prop_map(|(total, uplink, downlink)| Volumes {
        total,
        uplink,
        downlink,
    })
}

fn triggers() -> impl Strategy<Value = ReportingTriggers> {
    (0u32..1 << 18).prop_map(ReportingTriggers::new)
}

prop_compose! {
    fn additional_monitoring_time()(
        (monitoring_time, subsequent_time_threshold) in any::<(u32, Option<u32>)>(),
        (subsequent_volume_threshold, subsequent_volume_quota) in (of(volumes()), of(volumes())),
        [subsequent_time_quota, subsequent_event_threshold, subsequent_event_quota] in any::<[Option<u32>; 3]>(),
        [event_threshold, event_quota] in any::<[Option<u32>; 2]>(),
    ) -> AdditionalMonitoringTime {
        AdditionalMonitoringTime { monitoring_time, subsequent_volume_threshold, subsequent_time_threshold,
            subsequent_volume_quota, subsequent_time_quota, subsequent_event_threshold, subsequent_event_quota,
            event_threshold, event_quota, carried: vec![] }
    }
}

prop_compose! {
    pub fn update_urr()(
        (urr_id, measurement_method, monitoring_time) in (any::<u32>(), of(0u8..8), any::<Option<u32>>()),
        reporting_triggers in of(triggers()),
        (volume_threshold, volume_quota) in (of(volumes()), of(volumes())),
        (subsequent_volume_threshold, subsequent_volume_quota) in (of(volumes()), of(volumes())),
        (measurement_period, time_threshold, time_quota) in any::<(Option<u32>, Option<u32>, Option<u32>)>(),
        (quota_holding_time, quota_validity_time) in any::<(Option<u32>, Option<u32>)>(),
        (subsequent_time_threshold, subsequent_time_quota) in any::<(Option<u32>, Option<u32>)>(),
        [event_threshold, event_quota, subsequent_event_threshold, subsequent_event_quota] in any::<[Option<u32>; 4]>(),
        (packets, bytes) in any::<(Option<u64>, Option<u64>)>(),
        (inactivity_detection_time, quota_far_id, ethernet_inactivity_timer) in any::<(Option<u32>, Option<u32>, Option<u32>)>(),
        (linked_urr_ids, measurement_information) in (vec(any::<u32>(), 0..3), any::<Option<u8>>()),
        additional_monitoring_times in vec(additional_monitoring_time().boxed(), 0..3),
        carried in carried(),
    ) -> UpdateUrr {
        let dropped_dl_traffic_threshold = packets.map(|packets| DroppedTraffic { packets: Some(packets), bytes });
        UpdateUrr { urr_id, measurement_method, reporting_triggers, measurement_period, volume_threshold,
            volume_quota, time_threshold, time_quota, event_threshold, event_quota, quota_holding_time, dropped_dl_traffic_threshold,
            quota_validity_time, monitoring_time, subsequent_volume_threshold, subsequent_time_threshold,
            subsequent_volume_quota, subsequent_time_quota, subsequent_event_threshold, subsequent_event_quota,
            inactivity_detection_time, linked_urr_ids,
            measurement_information, ethernet_inactivity_timer, quota_far_id, additional_monitoring_times, carried }
    }
}

prop_compose! {
    pub fn create_urr()(u in update_urr().boxed(), method in 0u8..8, triggers in triggers()) -> CreateUrr {
        CreateUrr { urr_id: u.urr_id, measurement_method: method, reporting_triggers: triggers,
            measurement_period: u.measurement_period, volume_threshold: u.volume_threshold,
            volume_quota: u.volume_quota, time_threshold: u.time_threshold, time_quota: u.time_quota,
            event_threshold: u.event_threshold, event_quota: u.event_quota,
            quota_holding_time: u.quota_holding_time,
            dropped_dl_traffic_threshold: u.dropped_dl_traffic_threshold,
            quota_validity_time: u.quota_validity_time, monitoring_time: u.monitoring_time,
            subsequent_volume_threshold: u.subsequent_volume_threshold,
            subsequent_time_threshold: u.subsequent_time_threshold,
            subsequent_volume_quota: u.subsequent_volume_quota,
            subsequent_time_quota: u.subsequent_time_quota,
            subsequent_event_threshold: u.subsequent_event_threshold,
            subsequent_event_quota: u.subsequent_event_quota,
            inactivity_detection_time: u.inactivity_detection_time, linked_urr_ids: u.linked_urr_ids,
            measurement_information: u.measurement_information,
            ethernet_inactivity_timer: u.ethernet_inactivity_timer, quota_far_id: u.quota_far_id,
            additional_monitoring_times: u.additional_monitoring_times, carried: u.carried }
    }
}

prop_compose! {
    fn application_detection()(
        (application_id, application_instance_id) in (vec(any::<u8>(), 1..20), of(vec(any::<u8>(), 1..20))),
        flows in vec((0u8..4, "permit out (6|17|ip) from [1-9]\\.0\\.0\\.1 80 to assigned"), 0..3),
    ) -> ApplicationDetectionInformation {
        let flow = |(direction, text): (u8, String)| FlowInformation { direction, description: text.into() };
        let flow_information = flows.into_iter().map(flow).collect();
        ApplicationDetectionInformation { application_id, application_instance_id, flow_information,
            carried: vec![] }
    }
}

prop_compose! {
    fn usage_report()(
        (urr_id, ur_seqn, trigger) in (any::<u32>(), any::<u32>(), 0u32..1 << 22),
        (octets, packets) in (volumes(), volumes()),
        (start_time, end_time, duration_measurement) in any::<(Option<u32>, Option<u32>, Option<u32>)>(),
        (time_of_first_packet, time_of_last_packet) in any::<(Option<u32>, Option<u32>)>(),
        (usage_information, query_urr_reference) in (of(0u8..16), any::<Option<u32>>()),
        event_time_stamps in vec(any::<u32>(), 0..4),
        ethernet_traffic_information in of(traffic_information()),
        application_detection_information in of(application_detection()),
        (ue_ip_address, network_instance) in (of(ue_ip_address()), of(network_instance())),
        carried in carried(),
    ) -> UsageReport {
        UsageReport { urr_id, ur_seqn, usage_report_trigger: UsageReportTrigger(trigger), start_time, end_time,
            volume_measurement: Some(VolumeMeasurement { octets, packets }), duration_measurement,
            application_detection_information, ue_ip_address, network_instance,
            time_of_first_packet, time_of_last_packet, usage_information, query_urr_reference,
            event_time_stamps, ethernet_traffic_information, carried }
    }
}

pub fn reports() -> impl Strategy<Value = Vec<UsageReport>> {
    vec(usage_report().boxed(), 0..3)
}

prop_compose! {
    pub fn update_bar()(
        (bar_id, delay, count) in any::<(u8, Option<u8>, Option<u8>)>(),
        carried in carried(),
    ) -> UpdateBar {
        UpdateBar { bar_id, downlink_data_notification_delay: delay, suggested_buffering_packets_count: count,
            carried }
    }
}

prop_compose! {
    pub fn create_bar()(bar in update_bar()) -> CreateBar {
        CreateBar { bar_id: bar.bar_id, downlink_data_notification_delay: bar.downlink_data_notification_delay,
            suggested_buffering_packets_count: bar.suggested_buffering_packets_count, carried: bar.carried }
    }
}

prop_compose! {
    pub fn update_bar_in_report()(
        bar in update_bar(),
        duration in of(any::<u8>()),
        count in of(any::<u16>().prop_map(PacketCount)),
    ) -> UpdateBarInReport {
        UpdateBarInReport { bar_id: bar.bar_id,
            downlink_data_notification_delay: bar.downlink_data_notification_delay,
            dl_buffering_duration: duration, dl_buffering_suggested_packet_count: count,
            suggested_buffering_packets_count: bar.suggested_buffering_packets_count, carried: bar.carried }
    }
}

pub fn service_information() -> impl Strategy<Value = DownlinkDataServiceInformation> {
    (of(0u8..64), of(0u8..64)).prop_map(|(paging_policy_indication, qfi)| DownlinkDataServiceInformation {
        paging_policy_indication,
        qfi,
    })
}
