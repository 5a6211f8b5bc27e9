//! Network cards.

use super::{Check, NO_FIGURE, View};
use crate::finding::Outcome;
use crate::{Ddp, Facts, Nic};
use steer::{Abilities, Family, I40E_PROFILE, Mode, Package, decide};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "nic.steering",
        means: "One gNB is one outer address and port: a card that does not look into GTP-U leads all its users to one core. \
                The others then get their packets handed over by software.",
        worth: "Chunghwa MEC: 1.97 times (512 bytes), 2.07 (1280) with inner hashing on an X710; ZTE UPF: 150 to 74 us one way",
        ask: |view| each(view, steering),
    },
    Check {
        id: "nic.package",
        means: "Intel 700 and 800 series look into GTP-U only with a package (DDP) that is loaded at the start.",
        worth: "as nic.steering: without the package there is none of it",
        ask: |view| each(view, package),
    },
    Check {
        id: "nic.driver",
        means: "DPDK drives a card from user space when vfio-pci has it (mlx5: beside the kernel's driver); over AF_PACKET or \
                AF_XDP the kernel stays in between.",
        worth: NO_FIGURE,
        ask: |view| each(view, driver),
    },
    Check {
        id: "nic.link",
        means: "A slot with fewer or slower lanes than the card has caps it: 100 Gb/s need 16 lanes of 8 GT/s.",
        worth: NO_FIGURE,
        ask: |view| each(view, link),
    },
    Check {
        id: "nic.numa",
        means: "Packets land in memory of the card's node: workers there find them in their cache.",
        worth: "the published UPFs use the cards of a socket from that socket alone; no figure for crossing",
        ask: |view| each(view, numa),
    },
    Check {
        id: "nic.functions",
        means: "Virtual functions give a card to several programs or machines; each has queues and rules of its own.",
        worth: "ZTE UPF distributed GTP-U on virtual functions of an XXV710; Samsung's got by with fewer of them by DDP",
        ask: |view| each(view, functions),
    },
    Check {
        id: "nic.firmware",
        means: "DDP packages and flow rules ask for firmware of a certain age (i40e: 6.0 and later for profiles).",
        worth: "ZTE UPF: i40e firmware 6.02; no figure for it alone",
        ask: |view| each(view, firmware),
    },
    Check {
        id: "nic.vfio",
        means: "The kernel's vfio-pci gives a card to user space safely; the uio drivers work without an IOMMU and without safety.",
        worth: NO_FIGURE,
        ask: vfio,
    },
];

fn each(view: &View<'_>, ask: fn(&Facts, &Nic) -> Option<Outcome>) -> Vec<Outcome> {
    let named = |nic: &Nic| {
        let mut outcome = ask(view.facts, nic)?;
        outcome.found = format!("{} ({}): {}", nic.address, nic.family, outcome.found);
        Some(outcome)
    };
    view.facts.nics.iter().filter_map(named).collect()
}

fn steering(facts: &Facts, nic: &Nic) -> Option<Outcome> {
    /// As many as matter for the question.
    const WORKERS: u16 = 2;
    let abilities = Abilities::of(nic.family, facts.ddp.package(nic), WORKERS);
    let decision = decide(abilities, WORKERS);
    let rules = format!("anchorline doctor flow-rules --family {} prints its rules", nic.family);
    Some(match (decision.mode, nic.family) {
        (Mode::InnerHash, Family::Iavf | Family::Mlx5) => {
            Outcome::advice("should hash inside GTP-U; its host's package or its firmware decides", rules)
        }
        (Mode::InnerHash, _) => Outcome::good(format!("hashes inside GTP-U; {rules}")),
        (Mode::TeidHash, _) => Outcome::good(decision.reason),
        (Mode::Software, family) => Outcome::advice(
            format!("{}: packets are handed over by software", decision.reason),
            match family {
                _ if nic.is_function_of_700() => {
                    "of a 700 series: where its host has loaded the profile and the card hashes inside GTP-U, hash = \"inner\""
                }
                Family::I40e | Family::Ice => "as nic.package says: with it this card looks into GTP-U",
                _ => "a card that looks into GTP-U: Intel E810 or X710 with its package, ConnectX-6",
            },
        ),
    })
}

fn package(facts: &Facts, nic: &Nic) -> Option<Outcome> {
    let ddp = &facts.ddp;
    match (nic.family, ddp.package(nic)) {
        (Family::I40e, Package::Present) => Some(Outcome::good(ddp.i40e.clone().unwrap_or_default())),
        (Family::I40e, _) => Some(match &ddp.i40e_spare {
            Some(spare) => Outcome::warning(
                format!("{spare} is not loaded: the data plane takes {I40E_PROFILE} alone"),
                format!("have the profile as {I40E_PROFILE}, not compressed and by this very name"),
            ),
            None => Outcome::warning(
                format!("no profile for GTP-U: there is no {I40E_PROFILE}"),
                format!("get the GTPv1 profile of the 700 series from Intel, as {I40E_PROFILE}"),
            ),
        }),
        (Family::Ice, package) => Some(comms(ddp, package)),
        _ => None,
    }
}

fn comms(ddp: &Ddp, package: Package) -> Outcome {
    let loaded = ddp.ice.clone().unwrap_or_default();
    // What is not compressed, and of the same name, goes first.
    let stem = loaded.split_once(".pkg").map_or("/lib/firmware/intel/ice/ddp/ice", |(stem, _)| stem);
    let act = match &ddp.ice_spare {
        Some(spare) => format!("ln -sf {spare} {stem}.pkg, then load the driver anew"),
        None => format!("get the comms package of the 800 series from Intel, as {stem}.pkg"),
    };
    let whose = match ddp.ice_by_serial.as_slice() {
        [] => "",
        several if several.contains(&loaded) => ", if the serial number in its name is this card's",
        _ => ", unless a file beside it has this card's serial number in its name",
    };
    match (package, ddp.ice.is_some()) {
        (Package::Present, _) => Outcome::good(format!("{loaded} is the comms package{whose}")),
        (Package::Unknown, _) => {
            Outcome::advice(format!("{loaded} is compressed: which package it is cannot be seen{whose}"), act)
        }
        (Package::Absent, true) => {
            Outcome::warning(format!("{loaded} is not the comms package: no GTP-U{whose}"), act)
        }
        (Package::Absent, false) => {
            Outcome::warning("no ice.pkg under /lib/firmware/intel/ice/ddp: safe mode, one queue", act)
        }
    }
}

fn driver(facts: &Facts, nic: &Nic) -> Option<Outcome> {
    let bound = nic.driver.as_deref().unwrap_or("none");
    let found = match nic.interfaces.is_empty() {
        true => bound.to_owned(),
        false => format!("{bound}, {}{}", nic.interfaces.join(", "), if nic.up { " (up)" } else { "" }),
    };
    let bind = format!(
        "dpdk-devbind.py --bind=vfio-pci {}, unless it carries the machine's own traffic",
        nic.address
    );
    Some(match nic.family {
        _ if nic.in_user_space() => Outcome::good(found),
        Family::Mlx5 => Outcome::good(found),
        _ if facts.kernel.user_drivers.is_empty() => Outcome::advice(
            found,
            "usable over AF_PACKET or AF_XDP as it is; for DPDK's own driver load vfio-pci",
        ),
        _ => Outcome::advice(found, bind),
    })
}

fn link(_: &Facts, nic: &Nic) -> Option<Outcome> {
    let (Some(now), Some(best)) = (&nic.link, &nic.link_max) else {
        return Some(Outcome::not_here("the device shows no PCIe link"));
    };
    let text = |link: &crate::Link| format!("{} x{}", link.speed, link.width);
    let short = now.transfers().zip(best.transfers()).is_some_and(|(now, best)| now < best);
    Some(match short {
        false => Outcome::good(text(now)),
        true => Outcome::warning(
            format!("{} of {}", text(now), text(best)),
            "put the card into a slot with all its lanes",
        ),
    })
}

fn numa(facts: &Facts, nic: &Nic) -> Option<Outcome> {
    let nodes = &facts.topology.nodes;
    let cpus =
        |node: usize| nodes.iter().find(|other| other.node == node).map(|other| other.cpus.to_string());
    Some(match (nic.numa_node, nodes.len()) {
        (_, 0 | 1) => Outcome::good("there is one node"),
        (Some(node), _) => Outcome::good(format!("node {node}, CPUs {}", cpus(node).unwrap_or_default())),
        (None, _) => Outcome::advice(
            "of no node",
            "look for a BIOS update: the firmware does not say where the slot is",
        ),
    })
}

fn functions(_: &Facts, nic: &Nic) -> Option<Outcome> {
    Some(match (nic.is_function, nic.functions) {
        (true, _) => Outcome::good("is a virtual function"),
        (false, Some((used, most))) if most > 0 => Outcome::good(format!("{used} of {most} in use")),
        _ => Outcome::not_here("the device has no virtual functions (SR-IOV), or BIOS: SR-IOV is disabled"),
    })
}

fn firmware(_: &Facts, nic: &Nic) -> Option<Outcome> {
    Some(match (&nic.firmware, nic.interfaces.first()) {
        (Some(version), _) => Outcome::good(version.clone()),
        (None, Some(name)) => Outcome::not_here(format!(
            "neither a file of the kernel nor, where it is asked, ethtool -i {name} says it"
        )),
        (None, None) => Outcome::not_here(
            "no file of the kernel says it, and no driver of the kernel has the card that could be asked; of a card that a \
             running node has, `anchorline ctl ports` may tell",
        ),
    })
}

fn vfio(view: &View<'_>) -> Vec<Outcome> {
    let drivers = &view.facts.kernel.user_drivers;
    let has = |name: &str| drivers.iter().any(|driver| driver == name);
    vec![match (has("vfio_pci"), drivers.is_empty(), view.facts.iommu.groups) {
        (true, _, 1..) => Outcome::good("vfio-pci, with an IOMMU"),
        (true, _, _) if view.facts.iommu.no_iommu => Outcome::advice(
            "vfio-pci without an IOMMU (unsafe mode)",
            "switch the IOMMU on, where there is one",
        ),
        (true, _, _) => Outcome::advice(
            "vfio-pci, without an IOMMU",
            "switch the IOMMU on, or echo Y > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
        ),
        (false, false, _) => Outcome::advice(drivers.join(", "), "modprobe vfio-pci"),
        (false, true, _) => {
            Outcome::not_here("the kernel has no vfio-pci loaded (modprobe vfio-pci), or has no modules")
        }
    }]
}
