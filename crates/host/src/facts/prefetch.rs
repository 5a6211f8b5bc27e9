//! The hardware's prefetchers, of the register that switches them.

use crate::{Cpu, Root};
use serde::Serialize;

/// A register, and what each of its bits switches off when it is 1.
struct Switches {
    register: u32,
    bits: &'static [(u32, &'static str)],
}

/// `MSR_MISC_FEATURE_CONTROL` (Intel's manual, volume 4); both threads of a core have one.
const INTEL: Switches = Switches {
    register: 0x1a4,
    bits: &[(0, "L2 stream"), (1, "L2 adjacent line"), (2, "L1 stream"), (3, "L1 by instruction")],
};
/// `PrefetchControl`, from family 19h models 10h on (AMD's processor programming reference); older ones have none.
const AMD: Switches = Switches {
    register: 0xc000_0108,
    bits: &[(0, "L1 stream"), (1, "L1 stride"), (2, "L1 region"), (3, "L2 stream"), (5, "L2 up and down")],
};

/// Which of them work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prefetchers {
    /// Those that do.
    pub on: Vec<&'static str>,
    /// Those that were switched off.
    pub off: Vec<&'static str>,
}

impl Prefetchers {
    /// Those of one CPU: firmware sets all alike. Or why they are not known; this goes on after "because".
    pub(super) fn read(root: &Root, cpu: &Cpu, first: usize, is_virtual: bool) -> Result<Self, String> {
        if is_virtual {
            return Err("this is a virtual machine: the register it is shown is not its host's".to_owned());
        }
        let switches = match cpu.vendor.as_deref() {
            Some("GenuineIntel") => INTEL,
            Some("AuthenticAMD") => AMD,
            Some(maker) => return Err(format!("no such register of {maker}'s processors is known")),
            None => return Err(cpu.not_intel().to_owned()),
        };
        let path = format!("/dev/cpu/{first}/msr");
        let register = switches.register;
        let value = root.register(&path, register).map_err(|absent| match absent.why.as_str() {
            "does not exist" => format!("{path} does not exist (modprobe msr)"),
            "not permitted" => format!("{path} may be read by root alone"),
            why => format!("MSR {register:#x} cannot be read, which this processor may not have ({why})"),
        })?;
        let (off, on): (Vec<_>, Vec<_>) = switches.bits.iter().partition(|(bit, _)| value >> bit & 1 == 1);
        let names = |bits: Vec<&(u32, &'static str)>| bits.into_iter().map(|(_, name)| *name).collect();
        Ok(Self { on: names(on), off: names(off) })
    }
}
