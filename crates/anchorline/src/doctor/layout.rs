//! Which CPUs workers are best given: the lines of a configuration.

use crate::exit;
use host::{Asked, Facts, Layout, Node};

/// How many workers, and where.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Workers, 1 to 32; those of the configuration, or one a core, unless said.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=32))]
    workers: Option<u32>,
    /// Put workers on all threads of a core, once every core has one.
    #[arg(long)]
    threads: bool,
}

impl Args {
    /// The lines, with their reasons.
    ///
    /// # Errors
    /// There is nothing to propose.
    pub(super) fn text(&self, facts: &Facts, node: Option<&Node>, json: bool) -> anyhow::Result<String> {
        let asked = Asked { workers: self.workers.map(|workers| workers as usize), threads: self.threads };
        let layout = Layout::propose(facts, node, asked);
        let layout =
            layout.map_err(|why| exit::unusable(anyhow::anyhow!("not available here, because {why}")))?;
        Ok(if json { serde_json::to_string(&layout)? + "\n" } else { layout.toml() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use host::{Root, State};
    use std::fmt::Write;
    use std::path::Path;

    /// Two sockets of so many cores, two threads a core, and the only card at the second.
    fn host(folder: &Path, cores: usize) -> Facts {
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let (cpus, all) = ("sys/devices/system/cpu", 2 * cores);
        write(&format!("{cpus}/online"), &format!("0-{}\n", 2 * all - 1));
        for cpu in 0..2 * all {
            let list = format!("{},{}\n", cpu % all, cpu % all + all);
            write(&format!("{cpus}/cpu{cpu}/topology/thread_siblings_list"), &list);
        }
        for node in 0..2 {
            let (first, last) = (node * cores, (node + 1) * cores - 1);
            let list = format!("{first}-{last},{}-{}\n", first + all, last + all);
            write(&format!("sys/devices/system/node/node{node}/cpulist"), &list);
        }
        for (name, text) in
            [("class", "0x020000"), ("vendor", "0x8086"), ("device", "0x1592"), ("numa_node", "1")]
        {
            write(&format!("sys/bus/pci/devices/0000:81:00.0/{name}"), text);
        }
        Facts::read(&Root::at(folder))
    }

    /// The example with these lines in the place of those that are commented out, and a port over the card.
    fn settings(lines: &str) -> Settings {
        let mut keys = lines.lines().filter(|line| !line.starts_with(['#', '[']));
        let (workers, cpus) = (keys.next().unwrap(), keys.next().unwrap());
        assert_eq!(keys.next(), None, "{lines}");
        let text = include_str!("../../../../config/upf.toml");
        let text = text.replace("# workers = 2", workers).replace("# cpus = [1, 2]", cpus);
        let mut settings = Settings::parse(&text).unwrap();
        settings.dpe.ports[0].device = "0000:81:00.0".to_owned();
        settings
    }

    #[test]
    fn what_is_proposed_is_taken_by_the_configuration_and_not_warned_of() {
        let folder = tempfile::tempdir().unwrap();
        let mut facts = host(folder.path(), 4);
        let port = host::NodePort { name: "n3".to_owned(), device: "0000:81:00.0".to_owned() };
        let node = Node { ports: vec![port], worker_count: 1, ..Node::default() };
        for (args, expected) in [
            (Args { workers: None, threads: false }, vec![4, 5, 6, 7]),
            (Args { workers: Some(2), threads: false }, vec![4, 5]),
            (Args { workers: Some(6), threads: true }, vec![4, 5, 6, 7, 12, 13]),
        ] {
            let lines = args.text(&facts, Some(&node), false).unwrap();
            let dpe = settings(&lines).dpe;
            assert_eq!((dpe.crew.workers, &dpe.crew.cpus), (expected.len(), &expected), "{lines}");
            let node = super::super::node(&dpe);
            // As the kernel's command line would have it that goes with it.
            facts.topology.isolated = "4-7,12-15".parse().unwrap();
            let judged = ["node.workers", "node.siblings", "node.placement"]
                .iter()
                .filter_map(|id| host::explain(id, &facts, Some(&node)))
                .flatten();
            let mut told = String::new();
            judged
                .filter(|finding| finding.state != State::Good)
                .for_each(|finding| _ = writeln!(told, "{}", finding.found));
            assert_eq!(told, "", "{lines}");
            facts.topology.isolated = host::CpuSet::default();
        }
    }

    #[test]
    fn there_are_no_more_workers_than_a_node_has() {
        let folder = tempfile::tempdir().unwrap();
        let facts = host(folder.path(), 40);
        let lines = Args { workers: None, threads: true }.text(&facts, None, false).unwrap();
        assert_eq!(settings(&lines).dpe.crew.cpus, (40..72).collect::<Vec<usize>>());
    }

    #[test]
    fn one_core_is_the_kernels() {
        let folder = tempfile::tempdir().unwrap();
        let facts = Facts::read(&Root::at(folder.path()));
        let refused = Args { workers: None, threads: false }.text(&facts, None, false).unwrap_err();
        assert!(refused.to_string().starts_with("not available here, because /sys/devices"), "{refused}");
    }
}
