//! What is done to a port, in order.

use crate::rule::hexadecimal;
use crate::{Action, Rule};

/// `RTE_ETH_FLOW_L2_PAYLOAD`.
const L2_PAYLOAD: u8 = 14;

/// What must be set before or beside rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setup {
    /// Hash nothing (`rte_eth_dev_rss_hash_update` with no type), so that no rule of the driver's own is more specific than
    /// ours.
    NoDefaultRss,
    /// The same where the driver does nothing if it is asked for no type: ask for `RTE_ETH_RSS_L2_PAYLOAD` alone. `ice`
    /// takes all rules of its own away before it makes those of the types asked for, and for this one it makes none; with no
    /// type at all it only remembers that (`ice_rss_hash_update`, `ice_rss_hash_set`).
    NothingKnownRss,
    /// The port's hash key (`rte_eth_dev_rss_hash_update`).
    Key(Vec<u8>),
    /// Lead the table from hash to queue to the first so many queues in turn (`rte_eth_dev_rss_reta_update`): those after
    /// them are of classes, and the hash alone must not come there.
    Table(u16),
    /// Load a DDP profile from this file (`rte_pmd_i40e_process_ddp_package`), the port being stopped.
    Profile(&'static str),
    /// Give a packet type of the profile a flow type (`rte_pmd_i40e_flow_type_mapping_update`).
    FlowType {
        /// The packet classifier type.
        pctype: u8,
        /// DPDK's flow type.
        flow_type: u8,
    },
    /// Hash these 16-bit words of the field vector, for a packet type (`rte_pmd_i40e_inset_set`).
    HashWords {
        /// The packet classifier type.
        pctype: u8,
        /// Numbers of words.
        words: Vec<u8>,
    },
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// What follows is for this.
    Note(String),
    /// Something of the request that the family cannot do.
    Unmet(String),
    /// A setting.
    Set(Setup),
    /// A flow rule.
    Create(Rule),
}

impl Step {
    pub(crate) fn note(text: &str) -> Self {
        Self::Note(text.to_owned())
    }

    /// The class whose queues a rule leads to, where there are so many workers.
    pub fn class(&self, workers: u16) -> Option<usize> {
        let Self::Create(rule) = self else { return None };
        let queue = match &rule.action {
            // A table of all queues is no group: it has no pattern.
            Action::Rss(rss) if !rule.pattern.is_empty() => *rss.queues.first()?,
            Action::Queue(queue) => *queue,
            _ => return None,
        };
        usize::from(queue.checked_div(workers)?).checked_sub(1)
    }

    /// Lines for testpmd; a note becomes a comment.
    pub fn testpmd(&self, port: u16) -> Vec<String> {
        match self {
            Self::Note(text) | Self::Unmet(text) => vec![format!("# {text}")],
            Self::Create(rule) => vec![rule.testpmd("create", port)],
            Self::Set(setup) => setup.testpmd(port),
        }
    }
}

impl Setup {
    fn testpmd(&self, port: u16) -> Vec<String> {
        match self {
            Self::NoDefaultRss => vec!["port config all rss none".to_owned()],
            Self::NothingKnownRss => vec![format!("port config all rss {L2_PAYLOAD}")],
            Self::Key(key) => {
                let hash_type = "ipv4";
                vec![format!("port config {port} rss-hash-key {hash_type} {}", hexadecimal(key))]
            }
            Self::Table(queues) => vec![format!(
                "# the table from hash to queue (port config {port} rss reta) leads to the first {queues} in turn, to no class"
            )],
            Self::Profile(path) => {
                vec![
                    format!("port stop {port}"),
                    format!("ddp add {port} {path}"),
                    format!("port start {port}"),
                ]
            }
            Self::FlowType { pctype, flow_type } => {
                vec![format!("port config {port} pctype mapping update {pctype} {flow_type}")]
            }
            Self::HashWords { pctype, words } => {
                let clear = format!("port config {port} pctype {pctype} hash_inset clear all");
                let set =
                    |word: &u8| format!("port config {port} pctype {pctype} hash_inset set field {word}");
                stopped(std::iter::once(clear).chain(words.iter().map(set)).collect())
            }
        }
    }
}

/// testpmd takes some commands only while no port runs.
fn stopped(mut lines: Vec<String>) -> Vec<String> {
    lines.insert(0, "port stop all".to_owned());
    lines.push("port start all".to_owned());
    lines
}
