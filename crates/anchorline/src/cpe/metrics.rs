//! What Prometheus is told: the counters of `ctl`, and those of the PFCP node. Names are stable and say their unit;
//! labels are ports, workers, nodes, reasons and control planes (no more than `[n4] control_planes`), never sessions or users,
//! so that there are as many series whatever the load.

mod associations;
mod data_plane;
mod plain;

use super::charging::Figures;
use dplink::Statistics;
use n4::{AssociationStatus, Counters, Node};
pub(super) use plain::plain;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// What the PFCP node has to tell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pfcp {
    counters: Counters,
    sessions: u64,
    tunnels: u64,
    /// Where anything is charged.
    charging: Option<Figures>,
    has_store_problem: bool,
}

impl Pfcp {
    pub(crate) fn of(node: &Node, charging: Option<Figures>) -> Self {
        Self {
            counters: *node.counters(),
            sessions: node.sessions() as u64,
            tunnels: node.tunnels() as u64,
            charging,
            has_store_problem: false,
        }
    }

    /// Whether the session database takes nothing.
    pub(crate) const fn with_store_problem(self, has_store_problem: bool) -> Self {
        Self { has_store_problem, ..self }
    }
}

/// All that is told at once; nothing of associations or the data plane where nobody answers.
#[derive(Debug)]
struct Snapshot {
    pfcp: Pfcp,
    associations: Option<Vec<AssociationStatus>>,
    dpe: Option<Statistics>,
}

/// The text of a scrape (OpenMetrics 1.0).
///
/// # Errors
/// None that can be met with: a string takes any text.
pub(super) fn exposition(
    pfcp: Pfcp,
    associations: Option<Vec<AssociationStatus>>,
    dpe: Option<Statistics>,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("anchorline");
    registry.register_collector(Box::new(Snapshot { pfcp, associations, dpe }));
    let mut told = String::new();
    text::encode(&mut told, &registry)?;
    Ok(told)
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families(encoder);
        families.gauge(
            "build_info",
            "The version of the control plane engine; always 1",
            [(vec![("version", env!("CARGO_PKG_VERSION").to_owned())], 1)],
        )?;
        families.gauge(
            "dpe_up",
            "Whether the data plane answers",
            [(NO_LABELS, u64::from(self.dpe.is_some()))],
        )?;
        pfcp(&mut families, &self.pfcp)?;
        if let Some(all) = &self.associations {
            associations::tell(&mut families, all)?;
        }
        charging(&mut families, &self.pfcp)?;
        self.dpe.as_ref().map_or(Ok(()), |dpe| data_plane::tell(&mut families, dpe))
    }
}

/// Names and values of labels.
type Labels = Vec<(&'static str, String)>;

const NO_LABELS: Labels = Vec::new();

struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    /// The name ends in `_total` by itself.
    fn counter(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        samples.into_iter().try_for_each(|(labels, value)| {
            // An empty list of labels would be written as one.
            match labels.is_empty() {
                true => family.encode_counter::<Labels, u64, u64>(&value, None),
                false => family.encode_family(&labels)?.encode_counter::<Labels, u64, u64>(&value, None),
            }
        })
    }

    fn gauge(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        samples.into_iter().try_for_each(|(labels, value)| {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            match labels.is_empty() {
                true => family.encode_gauge(&value),
                false => family.encode_family(&labels)?.encode_gauge(&value),
            }
        })
    }
}

fn pfcp(families: &mut Families<'_>, pfcp: &Pfcp) -> fmt::Result {
    let Counters {
        received,
        sent,
        garbage,
        not_allowed,
        unexpected,
        repeated,
        restated,
        refused,
        accepted,
        unanswered,
        reports_held_back,
        reports_delayed,
        usage_reports,
        downlink_data_reports,
        ..
    } = pfcp.counters;
    let one = |value| [(NO_LABELS, value)];
    let by = |label, values: Vec<(&'static str, u64)>| {
        values.into_iter().map(move |(name, value)| (vec![(label, name.to_owned())], value))
    };
    families.gauge("pfcp_sessions", "PFCP sessions, confirmed or not", one(pfcp.sessions))?;
    let problem = u64::from(pfcp.has_store_problem);
    families.gauge("store_problem", "Whether the session database takes nothing", one(problem))?;
    families.gauge("pfcp_tunnels", "Tunnel endpoints of ours in use", one(pfcp.tunnels))?;
    families.counter("pfcp_received_messages", "PFCP datagrams received", one(received))?;
    families.counter("pfcp_sent_messages", "PFCP datagrams sent, repetitions included", one(sent))?;
    let ignored =
        by("reason", vec![("garbage", garbage), ("unexpected", unexpected), ("not_allowed", not_allowed)]);
    families.counter("pfcp_ignored_messages", "PFCP messages nothing could be done with", ignored)?;
    let requests = vec![("accepted", accepted), ("refused", refused), ("repeated", repeated)];
    families.counter("pfcp_requests", "Requests of control planes by outcome", by("outcome", requests))?;
    let help = "Rules removed that were gone, or created that were there";
    families.counter("pfcp_restated_rules", help, one(restated))?;
    families.counter("pfcp_unanswered_requests", "Requests of ours nobody answered", one(unanswered))?;
    let reports = vec![("usage", usage_reports), ("downlink_data", downlink_data_reports)];
    families.counter("pfcp_reports", "Reports to control planes by kind", by("kind", reports))?;
    let help = "Usage reports that waited for their turn (n4.usage_reports_per_s)";
    families.counter("pfcp_reports_delayed", help, one(reports_delayed))?;
    families.counter("pfcp_reports_held_back", "Error Indications not reported", one(reports_held_back))
}

fn charging(families: &mut Families<'_>, pfcp: &Pfcp) -> fmt::Result {
    let Some(figures) = pfcp.charging else { return Ok(()) };
    let one = |value| [(NO_LABELS, value)];
    families.counter("charging_records", "Charging records closed", one(pfcp.counters.cdrs))?;
    families.counter(
        "charging_written_records",
        "Charging records written to files",
        one(figures.written),
    )?;
    families.counter("charging_files", "Rounds of charging files, one of each format", one(figures.files))?;
    families.counter("charging_lost_records", "Charging records without room", one(figures.lost))?;
    families.counter("charging_lost_bytes", "Users' bytes in lost records", one(figures.lost_bytes))?;
    families.gauge("charging_waiting_records", "Charging records in the database", one(figures.waiting))?;
    families.gauge("charging_waiting_limit_records", "Room for those that wait", one(figures.limit))?;
    families.gauge("charging_free_bytes", "Free on the disk of charging files", one(figures.free_bytes))?;
    let problem = u64::from(figures.has_problem);
    families.gauge("charging_problem", "Whether files cannot be written, or soon will not be", one(problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctl::associations::fixture::status;
    use dplink::{Books, NodeStatistics, PathStatistics, PortStatistics, WorkerStatistics};
    use std::collections::HashSet;

    fn statistics() -> Statistics {
        let port = PortStatistics {
            name: "n\"3".to_owned(),
            device: "net_null0".to_owned(),
            received: 10,
            received_bytes: 640,
            sent: 0,
            sent_bytes: 0,
            missed: 0,
            unsent: 0,
            link: dplink::PortLink::Up,
            punting: Some(dplink::Punting {
                interface: "n3-host".to_owned(),
                punted: 21,
                from_kernel: 22,
                refused: 23,
            }),
            spread: dplink::Spread::OneWorker,
            steering: dplink::PortSteering {
                classes: vec![dplink::PortClass { name: "voice".to_owned(), ..Default::default() }],
                exact: Some(steer::ExactState {
                    limit: 1_024,
                    installed: 12,
                    refused: 3,
                    over_budget: 4,
                    over_limit: 5,
                    ..Default::default()
                }),
                ..Default::default()
            },
            classes: vec![4, 0, 0],
        };
        let worker = WorkerStatistics {
            sessions: 2,
            busy_permille: 0,
            flows: 3,
            pdrs: 8,
            pdrs_most: 64,
            paths: PathStatistics {
                peers: 5,
                failed: 2,
                echo_requests: 9,
                echo_responses: 4,
                failures: 3,
                restarts: 6,
            },
            content: dplink::ContentStatistics::default(),
            books: Books { received: 10, dropped: 10, ..Books::default() },
            nodes: vec![NodeStatistics { name: "far".to_owned(), vectors: 1, packets: 10, cycles: 250 }],
            drops: vec![("no_pdr".to_owned(), 10)],
            gave_way: vec![],
        };
        Statistics { uptime_ms: 2_500, sessions: 2, ports: vec![port], workers: vec![worker], idle: vec![] }
    }

    #[test]
    fn counters_and_levels_stand_under_their_names() {
        let all = vec![
            status(),
            AssociationStatus { node_id: None, state: n4::AssociationState::Wanted, ..status() },
        ];
        let charging = Some(Figures { waiting: 3, lost: 1, has_problem: true, ..Figures::default() });
        let told =
            exposition(Pfcp { sessions: 7, charging, ..Pfcp::default() }, Some(all), Some(statistics()))
                .unwrap();
        for line in [
            concat!("anchorline_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
            "anchorline_dpe_up 1",
            "anchorline_dpe_uptime_seconds 2",
            "anchorline_pfcp_sessions 7",
            "anchorline_pfcp_ignored_messages_total{reason=\"not_allowed\"} 0",
            "anchorline_pfcp_associations{state=\"up\"} 0",
            "anchorline_pfcp_associations{state=\"silent\"} 1",
            "anchorline_pfcp_associations{state=\"wanted\"} 1",
            "anchorline_pfcp_association_sessions{node_id=\"smf.example\"} 12",
            "anchorline_pfcp_association_requests{node_id=\"smf.example\"} 3",
            "anchorline_charging_waiting_records 3",
            "anchorline_charging_lost_records_total 1",
            "anchorline_charging_problem 1",
            "anchorline_pfcp_requests_total{outcome=\"refused\"} 0",
            "anchorline_port_received_packets_total{port=\"n\\\"3\"} 10",
            "anchorline_port_received_bytes_total{port=\"n\\\"3\"} 640",
            "anchorline_port_class_received_packets_total{port=\"n\\\"3\",class=\"voice\"} 4",
            "anchorline_port_exact_rules{port=\"n\\\"3\"} 12",
            "anchorline_port_exact_rules_limit{port=\"n\\\"3\"} 1024",
            "anchorline_port_exact_rules_refused_total{port=\"n\\\"3\"} 3",
            "anchorline_port_exact_rules_over_budget_total{port=\"n\\\"3\"} 4",
            "anchorline_port_exact_rules_over_limit_total{port=\"n\\\"3\"} 5",
            "anchorline_port_punted_packets_total{port=\"n\\\"3\",interface=\"n3-host\"} 21",
            "anchorline_port_from_kernel_packets_total{port=\"n\\\"3\",interface=\"n3-host\"} 22",
            "anchorline_port_punt_refused_packets_total{port=\"n\\\"3\",interface=\"n3-host\"} 23",
            "anchorline_worker_punted_packets_total{worker=\"0\"} 0",
            "anchorline_sessions{worker=\"0\"} 2",
            "anchorline_flows{worker=\"0\"} 3",
            "anchorline_pdrs{worker=\"0\"} 8",
            "anchorline_pdrs_most{worker=\"0\"} 64",
            "anchorline_gtpu_failed_paths{worker=\"0\"} 2",
            "anchorline_gtpu_path_failures_total{worker=\"0\"} 3",
            "anchorline_gtpu_peer_restarts_total{worker=\"0\"} 6",
            "anchorline_node_cycles_total{worker=\"0\",node=\"far\"} 250",
            "anchorline_drops_total{worker=\"0\",reason=\"no_pdr\"} 10",
            "anchorline_drops_total{worker=\"0\",reason=\"far_drop\"} 0",
        ] {
            assert!(told.lines().any(|told| told == line), "no `{line}` in\n{told}");
        }
        assert!(told.ends_with("# EOF\n"));
    }

    #[test]
    fn every_sample_is_typed_explained_and_told_once() {
        let pfcp = Pfcp { charging: Some(Figures::default()), ..Pfcp::default() };
        let told = exposition(pfcp, Some(vec![status()]), Some(statistics())).unwrap();
        let comments = |kind: &'static str| {
            told.lines().filter_map(move |line| line.strip_prefix(kind)?.split_once(' ')).collect::<Vec<_>>()
        };
        let (types, helps) = (comments("# TYPE "), comments("# HELP "));
        assert_eq!(types.len(), helps.len());
        let mut seen = HashSet::new();
        for line in told.lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(seen.insert(series), "{series} stands twice");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let name = series.split('{').next().unwrap();
            let is_of = |(family, kind): &(&str, &str)| match *kind {
                "counter" => name.strip_suffix("_total") == Some(family),
                _ => name == *family,
            };
            assert_eq!(types.iter().filter(|of| is_of(of)).count(), 1, "{name}");
        }
    }

    #[test]
    fn a_dead_data_plane_is_a_value_not_an_error() {
        let told = exposition(Pfcp::default(), None, None).unwrap();
        assert!(told.contains("\nanchorline_dpe_up 0\n") && told.contains("anchorline_pfcp_sessions 0"));
        assert!(!told.contains("anchorline_pfcp_associations"));
        assert!(!told.contains("anchorline_drops") && !told.contains("anchorline_charging"));
    }
}
