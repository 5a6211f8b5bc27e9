//! What the product is configured for, as far as the host matters to it.

/// What workers do while no packet waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Look on.
    #[default]
    Poll,
    /// Rest for a time, on the CPU.
    Pause,
    /// Sleep, and leave the CPU to others.
    Sleep,
    /// Rest until a packet comes, on the CPU.
    Monitor,
    /// Look on, at a lower frequency after a while.
    Scale,
}

/// What a node's configuration asks of the host.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// CPUs that workers are bound to; none if they may run anywhere.
    pub workers: Vec<usize>,
    /// How many workers there are.
    pub worker_count: usize,
    /// Packet memory, in MiB.
    pub memory_mb: u32,
    /// Whether packet memory is to be had from huge pages; `required`: or the node does not start.
    pub huge_pages: bool,
    /// See above.
    pub required: bool,
    /// What workers do while no packet waits.
    pub idle: Idle,
    /// Most sessions.
    pub sessions: usize,
    /// Most PDRs of all sessions.
    pub pdrs: usize,
    /// Flows remembered.
    pub flows: usize,
    /// What is taken for these.
    pub tables: Tables,
    /// Its ports.
    pub ports: Vec<NodePort>,
}

/// Bytes of the data plane's tables, and of what else sessions take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tables {
    /// For sessions of two PDRs, from the start on.
    pub sessions_bytes: u64,
    /// For flows, from the start on.
    pub flows_bytes: u64,
    /// For all other PDRs there may be, once they are there.
    pub pdrs_bytes: u64,
    /// For what rules have besides, which is refused beyond that.
    pub rules_bytes: u64,
    /// In the control process, about.
    pub control_bytes: u64,
}

/// A port of the node.
#[derive(Clone, Debug)]
pub struct NodePort {
    /// As the operator calls it.
    pub name: String,
    /// As DPDK calls its device: a PCI address, or a virtual device.
    pub device: String,
}

impl NodePort {
    /// The PCI address, in full (`0000:3b:00.0`), if it is a PCI device; options after a comma are left out.
    pub fn pci(&self) -> Option<String> {
        let address = self.device.split(',').next()?;
        let address = match address.matches(':').count() {
            1 => format!("0000:{address}"),
            _ => address.to_owned(),
        };
        let parts: Vec<&str> = address.split([':', '.']).collect();
        let hexadecimal =
            |part: &&str| !part.is_empty() && part.chars().all(|digit| digit.is_ascii_hexdigit());
        (parts.len() == 4 && parts.iter().all(hexadecimal)).then_some(address)
    }

    /// The kernel's interface under it, of AF_PACKET and AF_XDP ports.
    pub fn interface(&self) -> Option<&str> {
        self.device.split(',').find_map(|part| part.strip_prefix("iface="))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_told_apart() {
        let port = |device: &str| NodePort { name: "n3".to_owned(), device: device.to_owned() };
        assert_eq!(port("0000:3b:00.0").pci().as_deref(), Some("0000:3b:00.0"));
        assert_eq!(port("3b:00.1,safe-mode-support=1").pci().as_deref(), Some("0000:3b:00.1"));
        assert_eq!(port("net_af_packet0,iface=n3").pci(), None);
        assert_eq!(port("net_af_packet0,iface=n3,framecnt=4096").interface(), Some("n3"));
    }
}
