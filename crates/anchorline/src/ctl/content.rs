//! Content rules: whether a file is right, before an engine is asked to load it.

use super::progress;
use crate::charged::Charged;
use crate::content::{Format, RuleText, Sources, Whole};
use crate::settings;
use anyhow::Context;
use clap::Subcommand;
use dpi::matching::Shape;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What to do with rules.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Read a rule file and build what an engine would search; needs no running node.
    ///
    /// Every mistake is told with its line. docs/content-rules.md describes the file. With --config, the node's categories
    /// are checked, too, and rating groups are told that it does not charge.
    Check(Check),
    /// Say which rule of a file a flow goes by; needs no running node.
    ///
    /// Categories of hosts that the node's configuration (--config) names stand beside the file, as they do in the node.
    Explain(super::matched::Args),
    /// Check a rule file and put it in the place of the node's; waits until its rules are in force.
    ///
    /// Flows that begin from then on go by the new rules. A file with a mistake changes nothing.
    Load {
        /// The file.
        file: PathBuf,
    },
}

#[derive(clap::Args)]
struct Check {
    /// The file.
    file: PathBuf,
    /// Lines or a CSV table; without it, a table where the file's name ends in .csv.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Print the rules as lines, for example those of a table.
    #[arg(long)]
    print: bool,
}

/// What is told of rules that are right.
#[derive(Serialize)]
struct Summary {
    rules: usize,
    names: usize,
    paths: usize,
    loose_automata: usize,
    memory_kib: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

impl Args {
    /// Does it, and says what came of it; `None` where the node is needed.
    pub(super) fn execute(&self, settings: &settings::Args, json: bool) -> Option<anyhow::Result<String>> {
        match &self.task {
            Task::Explain(flow) => Some(flow.execute(settings, json).map_err(crate::exit::unusable)),
            Task::Check(check) => Some(check.execute(settings, json).map_err(crate::exit::unusable)),
            Task::Load { .. } => None,
        }
    }

    /// Does what needs the node, whose rule file, what it charges and data plane these are.
    pub(super) async fn execute_on(
        &self,
        (rules, charged): (Option<&Sources>, Option<&Charged>),
        link: &Path,
        json: bool,
    ) -> anyhow::Result<String> {
        let Task::Load { file } = &self.task else { return Ok(String::new()) };
        let place =
            rules.context("the node has no content rules: name a file in its configuration, [content] rules");
        let sources = place.map_err(crate::exit::unusable)?;
        let rules = load(file, sources, link).await?;
        let warning = charged.and_then(|charged| charged.warning(&rules));
        let told = json!({ "file": file, "place": sources.rules, "in_force": true, "warning": warning,
            "rules": rules.lines.len() });
        super::say(&told, json, |_| in_force(file, &rules) + &line(&warning))
    }
}

/// More than a data plane takes to build rules.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks whether they are in force.
const PAUSE: Duration = Duration::from_millis(100);

/// That they are; of a file without any, that what there was is gone.
fn in_force(file: &Path, rules: &Whole) -> String {
    match rules.lines.is_empty() {
        false => format!("the rules of {} are in force\n", file.display()),
        true => "0 rules: all rules of the node's file are taken out of force\n".to_owned(),
    }
}

/// A warning, if any, as people read it.
fn line(warning: &Option<String>) -> String {
    warning.as_ref().map_or(String::new(), |warning| format!("WARNING: {warning}\n"))
}

async fn load(file: &Path, sources: &Sources, link: &Path) -> anyhow::Result<Whole> {
    let place = sources.rules.as_path();
    let whole = sources.read_whole(file, Format::of(file)).map_err(crate::exit::unusable)?;
    let rules = whole.text();
    // Lines go in the place of lines, a table in that of a table.
    if Format::of(file) != Format::of(place) {
        let (from, to) = (file.display(), place.display());
        let error =
            anyhow::anyhow!("{from} and {to} must both be tables, or neither; `check --print` makes lines");
        return Err(crate::exit::unusable(error));
    }
    let beside = place.with_extension("new");
    std::fs::copy(file, &beside).with_context(|| format!("{} cannot be written", beside.display()))?;
    std::fs::rename(&beside, place).with_context(|| format!("{} cannot be written", place.display()))?;
    let in_force = progress::during("rules are put in force", PATIENCE, until_in_force(&rules, link)).await?;
    anyhow::ensure!(
        in_force,
        "{} is in its place, but its rules are not in force; the node's log says why",
        place.display()
    );
    Ok(whole)
}

/// Whether they have come to be, with some patience.
async fn until_in_force(rules: &RuleText, link: &Path) -> anyhow::Result<bool> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let statistics = crate::observer::statistics(link).await?;
        if statistics.workers.iter().all(|worker| rules.is_of_file(worker.content.revision)) {
            return Ok(true);
        }
        sleep(PAUSE).await;
    }
    Ok(false)
}

impl Check {
    fn execute(&self, settings: &settings::Args, json: bool) -> anyhow::Result<String> {
        let shown = self.file.display();
        let format = self.format.unwrap_or_else(|| Format::of(&self.file));
        let rules = Sources::default().read_whole(&self.file, format)?;
        if self.print {
            let lines: Vec<String> = rules.rules.iter().map(ToString::to_string).collect();
            return super::say(&json!({ "lines": lines }), json, |_| {
                lines.iter().map(|line| format!("{line}\n")).collect()
            });
        }
        let node = if settings.is_named() { Some(settings.load()?) } else { settings.load().ok() };
        if let Some(sources) = node.as_ref().and_then(|node| node.content.as_ref()) {
            sources.read_whole(&self.file, format)?;
        }
        let charged = node.as_ref().and_then(Charged::of);
        let warning = charged.and_then(|charged| charged.warning(&rules));
        let summary = Summary { warning, ..Summary::of(rules.classifier.shape()) };
        super::say(&summary, json, |summary| format!("{shown} is right: {}", summary.text()))
    }
}

impl Summary {
    const fn of(shape: Shape) -> Self {
        let Shape { rules, names, paths, loose_automata, bytes } = shape;
        Self { rules, names, paths, loose_automata, memory_kib: bytes >> 10, warning: None }
    }

    fn text(&self) -> String {
        let Self { rules, names, paths, loose_automata, memory_kib, warning } = self;
        let mut text = format!(
            "{rules} rules, of {names} hosts and domains and {paths} paths, which take {memory_kib} KiB\n"
        );
        if *loose_automata > 0 {
            text += &format!(
                "every new flow with a host is searched by {loose_automata} automata: a host, network or path beside \
                 a regular expression saves that\n"
            );
        }
        text + &line(warning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use tokio::io::AsyncWriteExt;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
        #[command(flatten)]
        settings: settings::Args,
    }

    fn run(name: &str, text: &str, options: &[&str]) -> anyhow::Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let arguments = ["rules", "check", file].into_iter().chain(options.iter().copied());
        let (arguments, is_json): (Vec<&str>, Vec<&str>) = arguments.partition(|word| *word != "--json");
        let cli = Cli::try_parse_from(arguments).unwrap();
        cli.args.execute(&cli.settings, !is_json.is_empty()).unwrap()
    }

    #[test]
    fn a_file_that_is_right_is_summed_up() {
        let text = "id=1 precedence=1 rating-group=1 host=a.example,.b.example\n\
                    id=2 precedence=2 rating-group=1 host-regex=^x\n";
        let told = run("content.rules", text, &[]).unwrap();
        assert!(told.contains("is right: 2 rules, of 2 hosts and domains and 0 paths"), "{told}");
        assert!(told.contains("searched by 1 automata"), "{told}");
    }

    /// A node that charges, but not by content rules.
    fn charged_node(folder: &Path) -> settings::Args {
        let charging = "[charging]\ndirectory = \"/cdr\"\nformats = [\"json\"]\ndefault_rating_group = 9\n";
        let config = folder.join("upf.toml");
        let text = format!("{}\n{charging}", include_str!("../../../../config/upf.toml"));
        std::fs::write(&config, text).unwrap();
        settings::Args { config }
    }

    #[test]
    fn rating_groups_that_the_node_does_not_charge_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let node = charged_node(folder.path());
        let options = ["--config", node.config.to_str().unwrap()];
        let text = "id=1 precedence=1 rating-group=77 host=a.example\nid=2 precedence=2 rating-group=9 any\n";
        let told = run("content.rules", text, &options).unwrap();
        assert!(
            told.contains(
                "\nWARNING: no [[charging.content]] lists these rating groups of content rules: 77 (line 1); "
            ),
            "{told}"
        );
        assert!(!run("content.rules", text, &[]).unwrap().contains("WARNING"));
    }

    #[test]
    fn a_file_with_mistakes_is_refused_with_their_lines() {
        let error = run("content.rules", "\nid=1 host=a..b\nhost\n", &[]).unwrap_err();
        let told = format!("{error:#}");
        assert!(told.contains("content.rules is refused: line 2: host \"a..b\""), "{told}");
        assert!(told.contains("\nline 3: "), "{told}");
        let usual = settings::Args { config: "/etc/anchorline/upf.toml".into() };
        let missing = Check { file: "/nowhere".into(), format: None, print: false };
        assert!(
            format!("{:#}", missing.execute(&usual, false).unwrap_err())
                .contains("cannot read /nowhere: No such file")
        );
    }

    #[test]
    fn categories_of_the_node_are_checked_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let [hosts, config] = ["games.hosts", "upf.toml"].map(|name| folder.path().join(name));
        let category = format!("[[content.category]]\nname = \"games\"\nfile = {hosts:?}\n");
        let example = include_str!("../../../../config/upf.toml");
        std::fs::write(&config, format!("{example}\n[content]\nrules = \"/nowhere\"\n{category}")).unwrap();
        let options = ["--config", config.to_str().unwrap()];
        let told = |text: &str| {
            std::fs::write(&hosts, text).unwrap();
            let told = run("content.rules", "id=1 precedence=1 rating-group=1 any\n", &options);
            told.map_err(|error| format!("{error:#}"))
        };
        assert!(told("games.example\n").unwrap().contains("is right: 1 rules"));
        let error = told("games.example\nnot a host\n").unwrap_err();
        assert!(error.contains("games.hosts is refused: line 2: host"), "{error}");
    }

    #[test]
    fn a_table_is_printed_as_lines_that_are_right() {
        let table = "id,precedence,rating-group,host\n7,1,2,a.example\n";
        let lines = run("content.CSV", table, &["--print"]).unwrap();
        assert_eq!(lines, "id=7 precedence=1 rating-group=2 host=a.example\n");
        assert_eq!(run("lines.rules", &lines, &["--print"]).unwrap(), lines);
        let json = run("lines.rules", &lines, &["--print", "--json"]).unwrap();
        assert_eq!(json, format!("{{\"lines\":[\"{}\"]}}\n", lines.trim_end()));
        assert!(run("lines.rules", table, &[]).is_err());
        assert_eq!(run("lines.rules", table, &["--format", "csv", "--print"]).unwrap(), lines);
    }

    #[test]
    fn a_file_without_rules_says_what_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("content.rules");
        let told = |text: &str| {
            std::fs::write(&file, text).unwrap();
            in_force(&file, &Sources::default().read_whole(&file, Format::Lines).unwrap())
        };
        for empty in ["#", "# id=1 precedence=1 rating-group=1 any\n\n"] {
            assert_eq!(told(empty), "0 rules: all rules of the node's file are taken out of force\n");
        }
        let one = told("id=1 precedence=1 rating-group=1 any\n");
        assert!(one.starts_with("the rules of ") && one.ends_with(" are in force\n"), "{one}");
    }

    /// A data plane whose rules are of a revision; it answers one question after the other.
    async fn engine(listener: tokio::net::UnixListener, revision: u64) {
        let mut statistics = super::super::fixture::statistics();
        statistics.workers[0].content.revision = revision;
        let mut answer = Vec::new();
        dplink::frame::write(&dplink::Notice::Statistics(statistics), &mut answer).unwrap();
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(&answer).await.unwrap();
        }
    }

    #[test]
    fn rules_that_are_in_force_are_told_to_people_and_programs() {
        let folder = tempfile::tempdir().unwrap();
        let [file, place, link] =
            ["new.rules", "content.rules", "dpe.sock"].map(|name| folder.path().join(name));
        let text = "id=1 precedence=1 rating-group=1 any\n";
        std::fs::write(&file, text).unwrap();
        let sources = Sources { rules: place.clone(), ..Sources::default() };
        let revision = sources.read_whole(&file, Format::Lines).unwrap().text().revision;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tokio::spawn(engine(tokio::net::UnixListener::bind(&link).unwrap(), revision));
            let args = Args { task: Task::Load { file: file.clone() } };
            let told = args.execute_on((Some(&sources), None), &link, false).await.unwrap();
            assert_eq!(told, format!("the rules of {} are in force\n", file.display()));
            let charged = Charged::of(&charged_node(folder.path()).load().unwrap());
            let told = args.execute_on((Some(&sources), charged.as_ref()), &link, false).await.unwrap();
            assert!(told.contains(" are in force\nWARNING: no [[charging.content]] lists "), "{told}");
            assert_eq!(std::fs::read_to_string(&place).unwrap(), text);
            let told = args.execute_on((Some(&sources), None), &link, true).await.unwrap();
            let told: serde_json::Value = serde_json::from_str(&told).unwrap();
            assert_eq!(
                told,
                json!({ "file": file, "place": place, "in_force": true, "warning": null, "rules": 1 })
            );
        });
    }
}
