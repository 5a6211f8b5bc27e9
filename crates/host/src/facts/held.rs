//! Huge pages that data planes of ours have: another start of theirs has them again.

use crate::Root;
use serde::Serialize;

/// What the kernel calls our processes.
const OURS: &str = "anchorline";

/// Huge pages of one process on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldPages {
    /// The NUMA node; `None` where the kernel does not say.
    pub node: Option<usize>,
    /// All of them, in KiB.
    pub kb: u64,
}

/// Of all processes of ours that have some.
pub(super) fn read(root: &Root) -> Vec<HeldPages> {
    let processes =
        root.list("/proc").into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    processes.flat_map(|process| of_process(root, &process)).collect()
}

/// Where they are is told to its owner and to root alone.
fn of_process(root: &Root, process: &str) -> Vec<HeldPages> {
    let status = root.text(&format!("/proc/{process}/status")).unwrap_or_default();
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let kb = field("HugetlbPages:").and_then(|kb| kb.parse().ok()).unwrap_or(0);
    if field("Name:") != Some(OURS) || kb == 0 {
        return Vec::new();
    }
    let maps = root.text(&format!("/proc/{process}/numa_maps")).unwrap_or_default();
    let by_node: Vec<HeldPages> = maps.lines().flat_map(of_mapping).collect();
    if by_node.is_empty() { vec![HeldPages { node: None, kb }] } else { by_node }
}

/// `100200000 bind:0 file=/memfd:rtemap_0 huge dirty=16 N0=16 kernelpagesize_kB=2048`.
fn of_mapping(line: &str) -> Vec<HeldPages> {
    let mut words = line.split_whitespace();
    let value = |key| line.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
    let Some(size_kb) = value("kernelpagesize_kB=").filter(|_| words.clone().any(|word| word == "huge"))
    else {
        return Vec::new();
    };
    let of_node = |word: &str| {
        let (node, pages) = word.strip_prefix('N')?.split_once('=')?;
        let kb = pages.parse::<u64>().ok()?.saturating_mul(size_kb);
        Some(HeldPages { node: Some(node.parse().ok()?), kb })
    };
    words.by_ref().filter_map(of_node).collect()
}
