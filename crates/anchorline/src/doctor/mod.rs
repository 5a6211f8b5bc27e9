//! Examines this host: what of it slows packets down, what that is worth, and what to do.

mod flow_rules;
mod layout;
mod node;

pub(crate) use node::node;

use crate::exit;
use clap::{Parser, Subcommand};
use host::{Colours, Facts, Finding, Root, State};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Which host, and what for.
#[derive(Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    view: Option<View>,
    #[command(flatten)]
    host: HostArgs,
    /// Print one JSON object with all facts and findings.
    #[arg(long, global = true)]
    json: bool,
}

/// The host and the configuration it is for.
#[derive(clap::Args)]
pub(crate) struct HostArgs {
    /// Check the host for this configuration of a node too.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read /sys, /proc, /dev and /lib/firmware below this folder: a copy of another machine's.
    #[arg(long, global = true, value_name = "FOLDER", default_value = "/")]
    root: PathBuf,
}

impl HostArgs {
    /// The tree to read.
    ///
    /// # Errors
    /// There is none: of that nothing can be said, where of a machine without this or that a lot is.
    pub(crate) fn root(&self) -> anyhow::Result<Root> {
        let folder = self.root.display();
        let absent = || crate::exit::unusable(anyhow::anyhow!("--root {folder}: there is no such folder"));
        self.root.is_dir().then(|| Root::at(&self.root)).ok_or_else(absent)
    }

    /// What there is, with what has to be measured where it is this machine.
    fn facts(&self) -> anyhow::Result<Facts> {
        let root = self.root()?;
        Ok(if self.root == Path::new("/") { Facts::measured() } else { Facts::read(&root) })
    }

    /// The node the configuration asks for, if there is one.
    pub(crate) fn node(&self) -> anyhow::Result<Option<host::Node>> {
        let Some(path) = &self.config else { return Ok(None) };
        let settings = crate::settings::Settings::read(path).map_err(exit::unusable)?;
        Ok(Some(node(&settings.dpe)))
    }
}

#[derive(Subcommand)]
enum View {
    /// Say what one finding means and what it is worth.
    Explain {
        /// As the table names it, such as memory.huge-pages.
        id: String,
    },
    /// Print the flow rules that a network card would get, as DPDK's testpmd reads them.
    ///
    /// Generated; the grammar is checked by testpmd of DPDK 22.11; run on no network card so far.
    FlowRules(flow_rules::Args),
    /// Print which CPUs workers are best given, as lines of a configuration, and why: on the ports' NUMA node, one a core, and
    /// none on the core of CPU 0.
    Layout(layout::Args),
}

/// Examines and prints; fails if there is a problem.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.view {
        None => examine(args),
        Some(View::Explain { id }) => explain(args, id),
        Some(View::FlowRules(rules)) => flow_rules(args, rules),
        Some(View::Layout(layout)) => {
            let (node, facts) = (args.host.node()?, Facts::read(&args.host.root()?));
            exit::say(&layout.text(&facts, node.as_ref(), args.json)?)
        }
    }
}

/// Of a card that is named, for workers and classes that are: with a configuration they would look like its.
fn flow_rules(args: &Args, rules: &flow_rules::Args) -> anyhow::Result<()> {
    if args.host.config.is_some() {
        return Err(exit::unusable(anyhow::anyhow!(
            "flow-rules reads no configuration (--config): name the card (--device), as many --queues as there are workers, \
             and every --class"
        )));
    }
    exit::say(&rules.text(&args.host.root()?, args.json)?)
}

#[derive(Serialize)]
struct Report<'a> {
    facts: &'a Facts,
    findings: &'a [Finding],
}

fn examine(args: &Args) -> anyhow::Result<()> {
    let node = args.host.node()?;
    let facts = args.host.facts()?;
    let findings = host::examine(&facts, node.as_ref());
    exit::say(&match args.json {
        true => serde_json::to_string(&Report { facts: &facts, findings: &findings })? + "\n",
        false => host::table(&findings, colours()),
    })?;
    let problems = findings.iter().filter(|finding| finding.state == State::Problem).count();
    anyhow::ensure!(
        problems == 0,
        "{problems} of the findings are problems: the node would not do what it is for"
    );
    Ok(())
}

fn explain(args: &Args, id: &str) -> anyhow::Result<()> {
    let node = args.host.node()?;
    let facts = args.host.facts()?;
    let Some(findings) = host::explain(id, &facts, node.as_ref()) else {
        let known: Vec<&str> = host::identifiers().collect();
        return Err(exit::unusable(anyhow::anyhow!(
            "there is no finding {id}; there are {}",
            known.join(", ")
        )));
    };
    exit::say(&match args.json {
        true => serde_json::to_string(&findings)? + "\n",
        false => host::explained(&findings, colours()),
    })
}

fn colours() -> Colours {
    match std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        true => Colours::Yes,
        false => Colours::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitCode;

    #[test]
    fn a_root_that_is_no_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let look =
            |root: PathBuf| run(&Args { view: None, host: HostArgs { config: None, root }, json: false });
        let absent = folder.path().join("absent");
        let refused = look(absent.clone()).unwrap_err();
        assert_eq!(refused.to_string(), format!("--root {}: there is no such folder", absent.display()));
        assert_eq!(crate::exit::code(Err(refused)), ExitCode::from(crate::exit::UNUSABLE));
        assert!(look(folder.path().to_owned()).is_ok());
    }

    /// It would be believed to have been read.
    #[test]
    fn flow_rules_of_a_configuration_are_refused() {
        let ask = |words: &[&str]| {
            let all = ["doctor", "flow-rules", "--family", "ice"].iter().chain(words);
            run(&Args::try_parse_from(all).unwrap())
        };
        let refused = ask(&["--config", "/nonexistent.toml"]).unwrap_err();
        assert!(refused.to_string().starts_with("flow-rules reads no configuration (--config): "));
        assert_eq!(crate::exit::code(Err(refused)), ExitCode::from(crate::exit::UNUSABLE));
        assert!(ask(&[]).is_ok());
    }
}
