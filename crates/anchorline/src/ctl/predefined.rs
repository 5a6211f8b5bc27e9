//! Predefined rules: which there are, and others while the node runs.

use crate::cpe::control::{self, Order};
use crate::cpe::predefined::{Entry, Granted, Kind, Origin, Wish};
use crate::settings::Settings;
use anyhow::Context;
use clap::Subcommand;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What to do with them.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Those of the configuration, and those that were put.
    List,
    /// Put rules and groups, in the place of those of the same names that were put before.
    ///
    /// The file has tables as the configuration does, [[n4.predefined_rule]] and [[n4.predefined_group]], and nothing else. A file with
    /// a mistake changes nothing. Control planes can activate them at once; sessions that have activated what is changed follow
    /// within seconds. They are kept in the session database, and there after the next start. Those of the configuration are changed
    /// there.
    Put {
        /// The file; - for standard input.
        file: PathBuf,
        /// Only say whether all of it is right by itself; needs no running node.
        #[arg(long)]
        check: bool,
    },
    /// Remove rules and groups that were put.
    ///
    /// A PDR that has activated nothing else goes on by itself. What a group has is not removed.
    Remove {
        /// Their names.
        #[arg(required = true)]
        names: Vec<String>,
    },
}

impl Args {
    /// Does it, and says what came of it.
    pub(super) async fn execute(&self, settings: &Settings, json: bool) -> anyhow::Result<String> {
        let (wish, does) = match &self.task {
            Task::List => (Wish::List, ""),
            Task::Put { file, check } => {
                let text = read(file)?;
                let checked = crate::settings::predefined::read(&text, settings.dpe.around());
                let refused = || format!("{} is refused", file.display());
                checked.with_context(refused).map_err(crate::exit::unusable)?;
                if *check {
                    let told = serde_json::json!({ "file": file, "right_by_itself": true });
                    return super::say(&told, json, |_| format!("{} is right by itself\n", file.display()));
                }
                (Wish::Put { text }, "put")
            }
            Task::Remove { names } => (Wish::Remove { names: names.clone() }, "removed"),
        };
        let granted = order(&settings.control(), wish).await?;
        super::say(&granted, json, |granted| words(granted, does))
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    if file != Path::new("-") {
        let read = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
        return read.map_err(crate::exit::unusable);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    Ok(text)
}

async fn order(control: &Path, wish: Wish) -> anyhow::Result<Granted> {
    let done = control::order(control, Order::Predefined(wish)).await?;
    let granted = done.predefined.context("the control plane is of another version")?;
    match granted.refused {
        Some(why) => Err(crate::exit::unusable(anyhow::anyhow!("nothing is changed: {why}"))),
        None => Ok(granted),
    }
}

fn words(granted: &Granted, does: &str) -> String {
    let warning = granted.warning.as_ref().map_or(String::new(), |warning| format!("WARNING: {warning}\n"));
    if does.is_empty() {
        let lines: String = granted.entries.iter().map(line).collect();
        return if lines.is_empty() {
            "there are no predefined rules\n".to_owned()
        } else {
            lines + &warning
        };
    }
    let names: Vec<&str> = granted.entries.iter().map(|entry| entry.name.as_str()).collect();
    let mut text = format!("{does}: {}\n", names.join(", "));
    if granted.unrenewed > 0 {
        text += &format!("{} sessions are looked at for what has changed\n", granted.unrenewed);
    }
    if granted.is_unkept {
        text += "the session database takes nothing now: they are kept once it does, and lost if the node ends before that\n";
    }
    text + &warning
}

fn line(entry: &Entry) -> String {
    let from = match entry.from {
        Origin::Configuration => "configuration",
        Origin::Operator => "put",
    };
    let precedence = match entry.precedence {
        Some(precedence) => format!("precedence {precedence}"),
        None => "no precedence".to_owned(),
    };
    let does = match (entry.kind, &entry.does[..]) {
        (Kind::Rule, []) => format!("{precedence}  does nothing by itself"),
        (Kind::Rule, does) => format!("{precedence}  {}", does.join(", ")),
        (Kind::Group, rules) => format!("group of {}", rules.join(", ")),
    };
    match &entry.idle {
        Some(why) => format!("{}  {from}  not in force: {why}\n", entry.name),
        None => format!("{}  {from}  {does}\n", entry.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpe::control::{Control, Done};

    fn entry(name: &str, kind: Kind, does: &[&str]) -> Entry {
        let does = does.iter().map(ToString::to_string).collect();
        let (name, from) = (name.to_owned(), Origin::Operator);
        Entry { name, kind, from, text: None, precedence: None, does, idle: None }
    }

    #[test]
    fn what_there_is_and_what_was_done_is_said() {
        let idle = Entry { idle: Some("it has gone".to_owned()), ..entry("x", Kind::Group, &[]) };
        let file = Entry { from: Origin::Configuration, ..entry("plain", Kind::Rule, &[]) };
        let entries = vec![
            Entry { precedence: Some(10), ..entry("ads", Kind::Rule, &["drops its packets"]) },
            entry("all", Kind::Group, &["ads", "b"]),
            file,
            idle,
        ];
        let granted = Granted { entries, ..Granted::default() };
        let told = "ads  put  precedence 10  drops its packets\nall  put  group of ads, b\n\
                    plain  configuration  no precedence  does nothing by itself\nx  put  not in force: it has gone\n";
        assert_eq!(words(&granted, ""), told);
        let json = super::super::say(&granted, true, |_| String::new()).unwrap();
        assert_eq!(json.matches(r#""precedence":10"#).count(), 1, "{json}");
        let granted = Granted {
            entries: vec![entry("ads", Kind::Rule, &[])],
            unrenewed: 3,
            is_unkept: true,
            warning: Some("it matches nothing".to_owned()),
            refused: None,
        };
        let told = words(&granted, "put");
        assert!(told.ends_with("\nWARNING: it matches nothing\n"), "{told}");
        assert!(
            told.starts_with("put: ads\n3 sessions are looked at") && told.contains("takes nothing now"),
            "{told}"
        );
    }

    /// No node is asked.
    #[test]
    fn a_file_that_is_right_is_told_to_people_and_programs() {
        let settings = Settings::parse(include_str!("../../../../config/upf.toml")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ads.toml");
        std::fs::write(
            &file,
            "[[n4.predefined_rule]]\nname = \"ads\"\nfilters = [\"permit out ip from any to assigned\"]\n",
        )
        .unwrap();
        let args = Args { task: Task::Put { file: file.clone(), check: true } };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let told = |json| runtime.block_on(args.execute(&settings, json)).unwrap();
        assert_eq!(told(false), format!("{} is right by itself\n", file.display()));
        let json: serde_json::Value = serde_json::from_str(&told(true)).unwrap();
        assert_eq!(json, serde_json::json!({ "file": file, "right_by_itself": true }));
    }

    #[test]
    fn what_is_refused_is_an_error_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpe.sock");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut control = Control::listen(&path).unwrap();
            let engine = async {
                let (asked, answer) = control.next().await;
                let refused = Some("line 1: name".to_owned());
                let predefined = Some(Granted { refused, ..Granted::default() });
                answer.send(Done { predefined, ..Done::default() }).unwrap();
                asked
            };
            // Longer than a socket's buffer takes at once.
            let wish = Wish::Put { text: "# much\n".repeat(100_000) };
            let (asked, told) = tokio::join!(engine, order(&path, wish.clone()));
            assert_eq!(asked, Order::Predefined(wish));
            assert_eq!(told.unwrap_err().to_string(), "nothing is changed: line 1: name");
        });
    }
}
