//! Trees of made servers.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod kernel;
pub(crate) mod servers;

use anchorline_host::{Facts, Root};
use std::fs;
use std::path::{Path, PathBuf};

/// Against a golden file, which `BLESS=1` writes anew.
pub(crate) fn compare(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert!(golden == text, "{name} differs from {}:\n{text}", path.display());
}

pub(crate) struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(self.folder.path())
    }

    pub(crate) fn facts(&self) -> Facts {
        Facts::read(&self.root())
    }

    pub(crate) fn place(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    fn parent(&self, path: &str) -> PathBuf {
        let place = self.place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }

    pub(crate) fn file(&self, path: &str, text: &str) -> &Self {
        fs::write(self.parent(path), format!("{text}\n")).unwrap();
        self
    }

    pub(crate) fn link(&self, path: &str, target: &str) -> &Self {
        std::os::unix::fs::symlink(target, self.parent(path)).unwrap();
        self
    }

    pub(crate) fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.place(path)).unwrap();
        self
    }

    /// A tree as a file of lines: `PATH = TEXT`, `PATH <<` with indented lines after it, `PATH -> TARGET`, `PATH/`.
    pub(crate) fn of_file(name: &str) -> Self {
        let made = Self::new();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(name);
        let text = fs::read_to_string(path).unwrap();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some((path, text)) = line.split_once(" = ") {
                made.file(path, text);
            } else if let Some((path, target)) = line.split_once(" -> ") {
                made.link(path, target);
            } else if let Some(path) = line.strip_suffix(" <<") {
                let mut block = Vec::new();
                while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                    block.push(line.trim_start_matches("  "));
                }
                made.file(path, &block.join("\n"));
            } else if let Some(path) = line.strip_suffix(" =") {
                made.file(path, "");
            } else {
                made.folder(line);
            }
        }
        made
    }

    pub(crate) fn cpuinfo(&self, vendor: &str, model: &str, flags: &str) -> &Self {
        let text =
            format!("processor\t: 0\nvendor_id\t: {vendor}\nmodel name\t: {model}\nflags\t\t: {flags}\n");
        self.file("/proc/cpuinfo", &text)
    }

    /// Sockets of cores of two threads each, the second threads numbered behind all first ones; a node a socket.
    pub(crate) fn cpus(&self, sockets: usize, cores: usize) -> &Self {
        let all = sockets * cores;
        let cpus = "/sys/devices/system/cpu";
        self.file(&format!("{cpus}/online"), &format!("0-{}", 2 * all - 1));
        self.file(&format!("{cpus}/smt/control"), "on");
        for cpu in 0..2 * all {
            let (core, folder) = (cpu % all, format!("{cpus}/cpu{cpu}"));
            self.file(&format!("{folder}/topology/physical_package_id"), &(core / cores).to_string());
            self.file(&format!("{folder}/topology/core_id"), &(core % cores).to_string());
            self.file(&format!("{folder}/topology/thread_siblings_list"), &format!("{core},{}", core + all));
        }
        for node in 0..sockets {
            let (first, folder) = (node * cores, format!("/sys/devices/system/node/node{node}"));
            let list = format!("{first}-{},{}-{}", first + cores - 1, first + all, first + all + cores - 1);
            self.file(&format!("{folder}/cpulist"), &list);
            let distances: Vec<&str> =
                (0..sockets).map(|other| if other == node { "10" } else { "21" }).collect();
            self.file(&format!("{folder}/distance"), &distances.join(" "));
        }
        self
    }

    /// A file of some CPUs.
    pub(crate) fn of_cpus(&self, cpus: &[usize], file: &str, text: &str) -> &Self {
        cpus.iter().for_each(|cpu| {
            self.file(&format!("/sys/devices/system/cpu/cpu{cpu}/{file}"), text);
        });
        self
    }

    pub(crate) fn sleep_states(&self, cpus: &[usize], states: &[(&str, u32)]) -> &Self {
        self.file("/sys/devices/system/cpu/cpuidle/current_driver", "intel_idle");
        for (number, (name, latency)) in states.iter().enumerate() {
            self.of_cpus(cpus, &format!("cpuidle/state{number}/name"), name);
            self.of_cpus(cpus, &format!("cpuidle/state{number}/latency"), &latency.to_string());
            self.of_cpus(cpus, &format!("cpuidle/state{number}/disable"), "0");
        }
        self
    }

    pub(crate) fn huge_pages(&self, node: usize, size_kb: u64, [total, free]: [u64; 2]) -> &Self {
        let folder = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-{size_kb}kB");
        self.file(&format!("{folder}/nr_hugepages"), &total.to_string());
        self.file(&format!("{folder}/free_hugepages"), &free.to_string())
    }

    pub(crate) fn nic(&self, address: &str, id: (&str, &str), (driver, node): (&str, i32)) -> &Self {
        let file = |name: &str, text: &str| {
            self.file(&format!("/sys/bus/pci/devices/{address}/{name}"), text);
        };
        file("class", "0x020000");
        file("vendor", id.0);
        file("device", id.1);
        file("numa_node", &node.to_string());
        self.link(
            &format!("/sys/bus/pci/devices/{address}/driver"),
            &format!("../../../bus/pci/drivers/{driver}"),
        )
    }

    pub(crate) fn pcie(&self, address: &str, links: [(&str, u32); 2]) -> &Self {
        for (name, (speed, width)) in ["current", "max"].into_iter().zip(links) {
            let folder = format!("/sys/bus/pci/devices/{address}/{name}_link");
            self.file(&format!("{folder}_speed"), speed);
            self.file(&format!("{folder}_width"), &width.to_string());
        }
        self
    }

    pub(crate) fn interrupt(&self, number: u32, affinity: &str) -> &Self {
        self.file(&format!("/proc/irq/{number}/smp_affinity_list"), affinity)
    }
}
