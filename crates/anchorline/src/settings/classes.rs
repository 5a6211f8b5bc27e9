//! `[[dpe.port.class]]`: packets of a port that are served before others.

use super::{CrewSettings, DeviceHash};
use config::{Refusal, Spanned};
use dataplane::CLASSES_MAX;
use rules::Interface;
use serde::Deserialize;
use std::fmt::Write;
use steer::Class;

/// Of a name, which is a label of metrics.
const NAME_MAX: usize = 32;
/// What is in no class has this name.
const REST: &str = "rest";

/// A class as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    name: Spanned<String>,
    #[serde(default)]
    qfi: Vec<Spanned<u8>>,
    #[serde(default)]
    dscp: Vec<Spanned<u8>>,
    #[serde(default)]
    pcp: Vec<Spanned<u8>>,
}

/// What a class may name its packets by.
type Kind = fn(&File) -> &[Spanned<u8>];

/// A class of packets of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassSettings {
    pub(crate) name: String,
    pub(crate) class: Class,
}

impl ClassSettings {
    /// What packets are in it, for people.
    pub(crate) fn packets(&self) -> String {
        let Class { qfis, dscps, pcps } = &self.class;
        let mut text = String::new();
        for (what, values) in [("QFI", qfis), ("DSCP", dscps), ("VLAN priority", pcps)] {
            if let [_, ..] = values.as_slice() {
                let values: Vec<String> = values.iter().map(u8::to_string).collect();
                let comma = if text.is_empty() { "" } else { "; " };
                let _ = write!(text, "{comma}{what} {}", values.join(", "));
            }
        }
        text
    }
}

/// What a port is, as far as its classes care.
pub(super) struct Around<'a> {
    pub(super) crew: &'a CrewSettings,
    pub(super) interface: Interface,
    pub(super) ethernet: bool,
    pub(super) hash: DeviceHash,
}

/// The classes of a port, the most urgent first.
pub(super) fn check(files: Vec<File>, around: &Around<'_>) -> Result<Vec<ClassSettings>, Refusal> {
    if let Some(first) = files.first() {
        around.check(&first.name)?;
    }
    if let Some(excess) = files.get(CLASSES_MAX) {
        return Err(Refusal::of(&excess.name, format!("more than {CLASSES_MAX} classes of one port")));
    }
    for (at, file) in files.iter().enumerate() {
        file.check(files.get(..at).unwrap_or_default(), around.interface)?;
    }
    let values = |values: Vec<Spanned<u8>>| values.into_iter().map(Spanned::into_inner).collect();
    let settings = |File { name, qfi, dscp, pcp }| ClassSettings {
        name: name.into_inner(),
        class: Class { qfis: values(qfi), dscps: values(dscp), pcps: values(pcp) },
    };
    Ok(files.into_iter().map(settings).collect())
}

impl Around<'_> {
    /// Whether this port can have classes at all.
    fn check(&self, name: &Spanned<String>) -> Result<(), Refusal> {
        let why = if !self.crew.workers.is_power_of_two() {
            "with classes workers are a power of two, because groups of queues are"
        } else if self.crew.distributors > 0 {
            "classes need a card that leads packets to workers, and with dpe.distributors workers do that"
        } else if self.hash != DeviceHash::Auto {
            "classes need hash = \"auto\": this node sets up the card for them"
        } else if self.ethernet {
            "a port of Ethernet has no classes"
        } else {
            return Ok(());
        };
        Err(Refusal::of(name, why))
    }
}

impl File {
    fn check(&self, before: &[Self], interface: Interface) -> Result<(), Refusal> {
        let name = self.name.get_ref();
        let is_label = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
        if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_label) || name == REST {
            let told = "the name of a class is 1 to 32 letters, digits, - and _, and not \"rest\"";
            return Err(Refusal::of(&self.name, told));
        }
        if before.iter().any(|other| other.name.get_ref() == name) {
            return Err(Refusal::of(&self.name, "another class of this port has this name"));
        }
        self.check_side(interface)?;
        let kinds: [(Kind, u8); 3] = [(|file| &file.qfi, 63), (|file| &file.dscp, 63), (|file| &file.pcp, 7)];
        for (kind, most) in kinds {
            let others: Vec<&Spanned<u8>> = before.iter().flat_map(kind).collect();
            check_values(kind(self), &others, most)?;
        }
        Ok(())
    }

    /// A card tells packets in tunnels apart by QFI, and others by DSCP.
    fn check_side(&self, interface: Interface) -> Result<(), Refusal> {
        let is_access = interface == Interface::Access;
        match (self.qfi.first(), self.dscp.first()) {
            (_, Some(dscp)) if is_access => {
                Err(Refusal::of(dscp, "packets of an access port are told apart by qfi, or pcp"))
            }
            (Some(qfi), _) if !is_access => {
                Err(Refusal::of(qfi, "packets of a core port are told apart by dscp, or pcp"))
            }
            (None, None) if self.pcp.is_empty() => {
                Err(Refusal::of(&self.name, "a class has packets of some qfi, dscp or pcp"))
            }
            _ => Ok(()),
        }
    }
}

/// A packet is in one class at most.
fn check_values(values: &[Spanned<u8>], others: &[&Spanned<u8>], most: u8) -> Result<(), Refusal> {
    for (at, value) in values.iter().enumerate() {
        if *value.get_ref() > most {
            return Err(Refusal::of(value, format!("is 0 to {most}")));
        }
        let mut earlier = values.iter().take(at).chain(others.iter().copied());
        if earlier.any(|other| other.get_ref() == value.get_ref()) {
            return Err(Refusal::of(value, "is in a class already"));
        }
    }
    Ok(())
}
