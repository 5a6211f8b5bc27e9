//! The three namespaces and the wires between them.

use crate::address::{ETHERNET_HOST, GNB_N3, SERVER, SMF_N4, UE, UE_POOL, UPF_N3, UPF_N4, UPF_N6};
use crate::{Namespace, RunDir, Scratch, command, interrupt};
use anyhow::{Result, ensure};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Who forwards between N3 and N6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    /// A data plane engine: the kernel has no address there.
    Engine,
    /// The kernel's own router, without tunnels: shows what the laboratory itself does.
    KernelRouter,
}

/// A laboratory. One is open at a time in a process; two processes do not see each other's.
#[derive(Debug)]
pub struct Lab {
    /// The radio access network: gNB, SMF and users.
    pub ran: Namespace,
    /// The user plane node.
    pub upf: Namespace,
    /// The data network.
    pub dn: Namespace,
    /// Logs, configuration, capture.
    pub dir: RunDir,
    /// In memory, for what is only passed around.
    pub scratch: Scratch,
    _only: MutexGuard<'static, ()>,
}

static ONLY: Mutex<()> = Mutex::new(());

impl Lab {
    /// Opens one; `label` names the run directory.
    ///
    /// # Errors
    /// Where the kernel or `ip` refuses something.
    pub fn open(label: &str, core: Core) -> Result<Self> {
        interrupt::check()?;
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let lab = Self {
            ran: Namespace::create("ran")?,
            upf: Namespace::create("upf")?,
            dn: Namespace::create("dn")?,
            dir: RunDir::create(label)?,
            scratch: Scratch::create()?,
            _only: only,
        };
        lab.wire()?;
        if core == Core::KernelRouter {
            lab.route_by_kernel()?;
        }
        Ok(lab)
    }

    /// Closes it, as dropping it does, and looks whether anything is left.
    ///
    /// # Errors
    /// Where something is.
    pub fn close(self) -> Result<()> {
        drop(self);
        let left = command::line("ip netns list")?;
        ensure!(left.trim().is_empty(), "namespaces are left: {}", command::last_lines(&left, 3));
        Ok(())
    }

    /// Adds an Ethernet data network: another wire from the node to a host.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn wire_ethernet(&self) -> Result<()> {
        cable(&self.upf, &self.dn, "n6e")?;
        self.dn.ip(&format!("addr add {ETHERNET_HOST}/24 dev n6e")).map(drop)
    }

    /// Another namespace, with no wire to it; it goes when dropped.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn namespace(&self, name: &str) -> Result<Namespace> {
        Namespace::create(name)
    }

    fn wire(&self) -> Result<()> {
        cable(&self.ran, &self.upf, "n3")?;
        cable(&self.ran, &self.upf, "n4")?;
        self.ran.ip(&format!("addr add {GNB_N3}/24 dev n3"))?;
        self.ran.ip(&format!("addr add {SMF_N4}/24 dev n4"))?;
        self.upf.ip(&format!("addr add {UPF_N4}/24 dev n4"))?;
        self.wire_n6()
    }

    /// A cable to the data network, where there is none.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn wire_n6(&self) -> Result<()> {
        cable(&self.upf, &self.dn, "n6")?;
        self.dn.ip(&format!("addr add {SERVER}/24 dev n6"))?;
        self.dn.ip(&format!("route add {UE_POOL} via {UPF_N6}")).map(drop)
    }

    fn route_by_kernel(&self) -> Result<()> {
        self.upf.ip(&format!("addr add {UPF_N3}/24 dev n3"))?;
        self.upf.ip(&format!("addr add {UPF_N6}/24 dev n6"))?;
        self.upf.ip(&format!("route add {UE_POOL} via {GNB_N3}"))?;
        self.upf.sysctl("ipv4/ip_forward", "1")?;
        self.ran.ip(&format!("addr add {UE}/32 dev lo"))?;
        self.ran.ip(&format!("route add 10.50.0.0/24 via {UPF_N3} src {UE}")).map(drop)
    }
}

/// A veth pair whose two ends have the same name.
fn cable(from: &Namespace, to: &Namespace, name: &str) -> Result<()> {
    from.ip(&format!("link add {name} type veth peer name {name} netns {}", to.name()))?;
    for end in [from, to] {
        // A veth leaves checksums to a card that never comes. A data path that is not the kernel's would get
        // packets with half a checksum, and TCP would die of it while ping works.
        end.run(&format!("ethtool -K {name} tx off"), command::SHORT)?;
        end.ip(&format!("link set {name} up"))?;
    }
    Ok(())
}
