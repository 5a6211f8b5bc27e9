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

/// Huge pages of 1 GiB that hold so many MiB.
pub(crate) const fn pages_of_1g(mb: u64) -> u64 {
    mb.div_ceil(1024)
}

/// A port of the node.
#[derive(Clone, Debug)]
pub struct NodePort {
    /// As the operator calls it.
    pub name: String,
    /// As DPDK calls its device: a PCI address, as [`device`] writes it, or a virtual device.
    pub device: String,
}

/// A device as configured, with a PCI address in the one form that DPDK and the kernel's files know: with its domain, which
/// `lspci` leaves out, and in lower case (`0000:3b:00.0`). Options after a comma stay as they are.
///
/// `None`: it has a colon where only PCI addresses have one, and is none.
pub fn device(text: &str) -> Option<String> {
    let (name, options) = text.split_at(text.find(',').unwrap_or(text.len()));
    if !name.contains(':') {
        return Some(text.to_owned());
    }
    let domain = if name.matches(':').count() == 1 { "0000:" } else { "" };
    let address = format!("{domain}{}", name.to_ascii_lowercase());
    is_pci(&address).then(|| address + options)
}

/// Whether a device is a PCI address in that form, with options or without.
pub fn is_pci(device: &str) -> bool {
    const FORM: &str = "0000:00:00.0";
    let name = device.split(',').next().unwrap_or_default();
    let fits = |(byte, form): (u8, u8)| match form {
        b'0' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        separator => byte == separator,
    };
    name.len() == FORM.len() && name.bytes().zip(FORM.bytes()).all(fits)
}

impl NodePort {
    /// The PCI address, if it is a PCI device; options after a comma are left out.
    pub fn pci(&self) -> Option<&str> {
        self.device.split(',').next().filter(|address| is_pci(address))
    }

    /// Whether its driver makes the kernel's interface when it starts; others want one that is there.
    pub fn makes_its_interface(&self) -> bool {
        const MAKERS: [&str; 4] = ["net_tap", "net_tun", "net_virtio_user", "virtio_user"];
        MAKERS.iter().any(|maker| self.device.starts_with(maker))
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
        assert_eq!(port("0000:3b:00.0").pci(), Some("0000:3b:00.0"));
        assert_eq!(port("0000:3b:00.1,safe-mode-support=1").pci(), Some("0000:3b:00.1"));
        // No driver finds a device by these: they are written anew where the configuration is read.
        assert!(["3b:00.0", "0000:3B:00.0"].iter().all(|other| port(other).pci().is_none()));
        assert_eq!(port("net_af_packet0,iface=n3").pci(), None);
        assert_eq!(port("net_af_packet0,iface=n3,framecnt=4096").interface(), Some("n3"));
    }

    #[test]
    fn a_pci_address_has_one_form() {
        for (text, expected) in [
            ("0000:3b:00.0", Some("0000:3b:00.0")),
            ("3b:00.0", Some("0000:3b:00.0")),
            ("3B:0A.1,safe-mode-support=1", Some("0000:3b:0a.1,safe-mode-support=1")),
            ("0001:AF:00.0", Some("0001:af:00.0")),
            ("net_tap0,iface=T0,mac=02:00:00:00:00:01", Some("net_tap0,iface=T0,mac=02:00:00:00:00:01")),
            ("3b:00", None),
            ("0000:3b:00:0", None),
            ("0000.3b:00.0", None),
            ("0000:3b.00.0", None),
            ("0000:3b:00.0.1", None),
            ("0000:3b:00.00", None),
            ("pci:0000:3b:00.0", None),
            ("0000:3g:00.0", None),
        ] {
            assert_eq!(device(text).as_deref(), expected, "{text}");
            assert_eq!(
                expected.is_some_and(is_pci),
                expected.is_some() && !text.starts_with("net"),
                "{text}"
            );
        }
    }
}
