//! Files of charging records, for people; and how writing them goes.

use crate::cpe::charging::{Lost, Status, status_file};
use crate::settings::{self, Settings};
use anyhow::Context;
use charging::ber::{Seen, SeenContainer};
use charging::file::{self, File, FileHeader};
use clap::Subcommand;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What to do with charging records.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Print what is in files: records and their containers; needs no running node.
    ///
    /// Files are those the node wrote: PGWRecords or CHFRecords in BER with the headers of TS 32.297, or JSON Lines. Where some cannot be
    /// read, the others are printed all the same, and it ends with an error that names them.
    /// docs/charging.md says what each field means.
    Show {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Say how many records wait, what is wrong, and how many records were lost since the session database was new.
    Status,
}

/// How the writer is, or was when it ended.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    status: Status,
    /// Its process is there.
    running: bool,
    /// When it was written, in UTC.
    as_of: String,
}

impl Args {
    /// Does it, and says what came of it.
    pub(super) fn execute(&self, settings: &settings::Args, json: bool) -> anyhow::Result<String> {
        match &self.task {
            Task::Show { files } => show(files, json).map_err(crate::exit::unusable),
            Task::Status => {
                let settings = settings.load()?;
                let status = status(&settings)?.context("nothing is charged: there is no [charging]")?;
                super::say(&status, json, text_of_status)
            }
        }
    }
}

/// A line for those who look at the node as a whole; none where nothing is charged.
pub(super) fn status_line(settings: &Settings) -> String {
    match status(settings) {
        Ok(None) => String::new(),
        Ok(Some(status)) => format!("\n{}", text_of_status(&status)),
        Err(error) => format!("\ncharging: {error:#}\n"),
    }
}

/// The same for programs: as `ctl cdr status` has it, what is wrong where that cannot be had, null where nothing is charged.
pub(super) fn status_value(settings: &Settings) -> Value {
    match status(settings) {
        Ok(status) => json!(status),
        Err(error) => json!({ "problem": format!("{error:#}") }),
    }
}

fn status(settings: &Settings) -> anyhow::Result<Option<Told>> {
    if settings.charging.is_none() {
        return Ok(None);
    }
    let file = status_file(settings);
    let told = std::fs::read(&file).map_err(|error| {
        let absent = || format!("no control plane engine has written {}; is the node up?", file.display());
        let why = crate::reach::unreadable(&error, &file).unwrap_or_else(absent);
        anyhow::Error::new(error).context(why)
    })?;
    let written = std::fs::metadata(&file).and_then(|about| about.modified());
    let written_ms = crate::cpe::time_of_day(written.unwrap_or_else(|_| SystemTime::now()))?;
    let as_of = charging::time::iso(written_ms);
    Ok(Some(Told { status: serde_json::from_slice(&told)?, running: is_running(settings), as_of }))
}

/// Whether the process is there that writes it. The file outlives it, however it ends.
fn is_running(settings: &Settings) -> bool {
    let absent = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::ConnectionRefused);
    UnixStream::connect(settings.control()).map_or_else(|error| !absent(error.kind()), |_| true)
}

fn text_of_status(told: &Told) -> String {
    let Told { status, running, as_of } = told;
    let Status { waiting, written, files, free_bytes, problem, lost } = status;
    let free_mib = free_bytes >> 20;
    let well = match (running, lost) {
        (true, None) => "all is well",
        (true, Some(_)) => "nothing is wrong now",
        (false, _) => "nothing was wrong then",
    };
    let verdict = problem.as_deref().map_or_else(|| well.to_owned(), |it| format!("PROBLEM: {it}"));
    let lost = lost.as_ref().map_or_else(String::new, text_of_lost);
    let stale = if *running { String::new() } else { format!("the node does not run; as of {as_of}: ") };
    format!(
        "charging: {stale}{waiting} records wait, {written} written in {files} rounds of files, {free_mib} MiB free ({verdict}){lost}\n"
    )
}

/// What was lost stays lost, however long ago that was.
fn text_of_lost(lost: &Lost) -> String {
    let Lost { records, bytes, since, last } = lost;
    format!("; {records} LOST for want of room, from {since} to {last}, {bytes} bytes of users in them")
}

/// What is in files, which is all that there is to return where none is refused.
///
/// # Errors
/// Files are refused: which, and why. What is in the others is printed before.
fn show(files: &[PathBuf], json: bool) -> anyhow::Result<String> {
    match told_of(files, json) {
        (told, None) => Ok(told),
        (told, Some(error)) => crate::exit::say(&told).and(Err(error)),
    }
}

/// What is in those files that can be read, and why others cannot.
fn told_of(files: &[PathBuf], json: bool) -> (String, Option<anyhow::Error>) {
    let (mut good, mut refused) = (Vec::new(), Vec::new());
    for path in files {
        match read(path) {
            Ok(file) => good.push((path.as_path(), file)),
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    let told = if json { json_of(&good) } else { good.iter().map(|(path, file)| text(path, file)).collect() };
    (told, (!refused.is_empty()).then(|| anyhow::anyhow!(refused.join("; "))))
}

fn json_of(files: &[(&Path, File)]) -> String {
    let all = files.iter().map(|(path, file)| {
        let header = file.header.as_ref().map(header);
        json!({ "file": path, "header": header, "records": file.records })
    });
    json!({ "files": all.collect::<Vec<_>>() }).to_string() + "\n"
}

fn read(path: &Path) -> anyhow::Result<File> {
    let shown = path.display();
    let octets = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    file::read(&octets).with_context(|| format!("{shown} is refused"))
}

/// As programs read it: `lost` are records that should be in the file.
fn header(header: &FileHeader) -> Value {
    let FileHeader { sequence, address, closure, lost, .. } = header;
    json!({ "sequence": sequence, "address": address, "closure": format!("{closure:?}").to_lowercase(), "lost": lost })
}

fn text(path: &Path, file: &File) -> String {
    let mut text = format!("{}: {} records", path.display(), file.records.len());
    if let Some(header) = &file.header {
        let _ =
            write!(text, ", file {} of {}, closed by {:?}", header.sequence, header.address, header.closure);
        if header.lost > 0 {
            let _ = write!(text, ", {} LOST BEFORE THEM", header.lost);
        }
    }
    let _ = writeln!(
        text,
        "\n{:>8} {:<16} {:<16} {:>4} {:<25} {:>7} {:>5} {:>10} {:>8} {:>14} {:>14}",
        "serial", "user", "address", "part", "opened", "seconds", "cause", "group", "service", "up", "down"
    );
    file.records.iter().for_each(|record| lines(&mut text, record));
    text
}

/// A line for each container; a record without any has one as well.
fn lines(text: &mut String, record: &Seen) {
    let dash = || "-".to_owned();
    let Seen { serial, sequence, opened, duration_s, cause, .. } = record;
    let user = record.subscriber.clone().unwrap_or_else(dash);
    let address = record.address.map_or_else(dash, |address| address.to_string());
    let head =
        format!("{serial:>8} {user:<16} {address:<16} {sequence:>4} {opened:<25} {duration_s:>7} {cause:>5}");
    if record.containers.is_empty() {
        let _ = writeln!(text, "{head} {:>10} {:>8} {:>14} {:>14}", "-", "-", 0, 0);
    }
    for container in &record.containers {
        let SeenContainer { rating_group, service_id, uplink_bytes, downlink_bytes, .. } = container;
        let service = service_id.map_or_else(dash, |service| service.to_string());
        let _ =
            writeln!(text, "{head} {rating_group:>10} {service:>8} {uplink_bytes:>14} {downlink_bytes:>14}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"serial":7,"seid":"e000000100000001","sequence":2,"imsi":"001010000000001","ipv4":"10.60.0.1",
        "opened":"2026-01-01T00:00:00.000Z","duration_s":60,"cause_number":17,
        "containers":[{"rating_group":10,"service_id":3,"uplink_bytes":5,"downlink_bytes":6,"time_s":null}]}"#;

    fn shown(octets: &[u8], json: bool) -> anyhow::Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, octets).unwrap();
        show(&[file], json)
    }

    #[test]
    fn records_are_shown_line_by_line() {
        let text = shown(LINE.replace('\n', "").as_bytes(), false).unwrap();
        let line = text.lines().nth(2).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..3], ["7", "001010000000001", "10.60.0.1"]);
        assert_eq!(words[words.len() - 5..], ["17", "10", "3", "5", "6"]);
        let json = shown(LINE.replace('\n', "").as_bytes(), true).unwrap();
        assert!(json.contains("\"uplink_bytes\":5") && json.contains("\"header\":null"), "{json}");
        let of_file = FileHeader {
            opened: charging::time::Calendar::of(0, 0),
            last_appended: charging::time::Calendar::of(0, 0),
            cdrs: 1,
            sequence: 4,
            closure: file::Closure::Size,
            address: "192.0.2.1".parse().unwrap(),
            lost: 3,
        };
        assert_eq!(
            header(&of_file),
            json!({ "sequence": 4, "address": "192.0.2.1", "closure": "size", "lost": 3 })
        );
    }

    #[test]
    fn what_is_no_file_of_records_is_refused_with_the_reason() {
        for (octets, expected) in [
            (&b"{\"serial\":1}"[..], "line 1: this is no CDR"),
            (b"{", "line 1: EOF"),
            (b"\0\0\0\x09\0\0\0\x36", "its lengths do not fit"),
            (b"", "it is cut off"),
        ] {
            let error = format!("{:#}", shown(octets, false).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn each_file_that_is_refused_is_named_and_the_good_ones_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let files = [("bad", "{"), ("good", &LINE.replace('\n', "")), ("empty", "")].map(|(name, octets)| {
            let file = folder.path().join(name);
            std::fs::write(&file, octets).unwrap();
            file
        });
        let (good, error) = told_of(&files, false);
        assert!(good.contains(": 1 records\n") && good.lines().count() == 3, "{good}");
        let error = format!("{:#}", error.unwrap());
        let [bad, shown, empty] = files.map(|file| file.display().to_string());
        assert!(error.starts_with(&format!("{bad} is refused: line 1: EOF")), "{error}");
        assert!(error.contains(&format!("; {empty} is refused: ")) && !error.contains(&shown), "{error}");
    }

    #[test]
    fn status_says_what_is_wrong() {
        let text = |status| text_of_status(&Told { status, running: true, as_of: String::new() });
        let full = text(Status { waiting: 3, problem: Some("no room".to_owned()), ..Status::default() });
        assert!(full.starts_with("charging: 3 records wait") && full.contains("PROBLEM: no room"), "{full}");
        assert!(text(Status::default()).ends_with("(all is well)\n"));
        let since = "2026-01-01T00:00:00.000Z".to_owned();
        let lost = Lost { records: 3, bytes: 12, since: since.clone(), last: since.replace("00Z", "07Z") };
        let lossy = text(Status { lost: Some(lost), ..Status::default() });
        let expected = "(nothing is wrong now); 3 LOST for want of room, from 2026-01-01T00:00:00.000Z to \
                        2026-01-01T00:00:00.007Z, 12 bytes of users in them\n";
        assert!(lossy.ends_with(expected), "{lossy}");
    }

    #[test]
    fn programs_are_told_of_charging_as_people_are() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::parse(include_str!("../../../../config/upf.toml")).unwrap();
        settings.run_dir = folder.path().to_owned();
        assert_eq!((status_value(&settings), status_line(&settings)), (Value::Null, String::new()));
        let charged = "\n[charging]\ndirectory = \"/cdr\"\nformats = [\"json\"]\ndefault_rating_group = 1\n";
        let text = include_str!("../../../../config/upf.toml").to_owned() + charged;
        settings.charging = Settings::parse(&text).unwrap().charging;
        let unknown = status_value(&settings);
        assert!(unknown["problem"].as_str().unwrap().contains("is the node up?"), "{unknown}");
        let known = Status { waiting: 3, problem: Some("no room".to_owned()), ..Status::default() };
        std::fs::write(status_file(&settings), serde_json::to_vec(&known).unwrap()).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(settings.control()).unwrap();
        let told = status_value(&settings);
        assert_eq!((&told["waiting"], &told["problem"]), (&json!(3), &json!("no room")));
        assert_eq!(told["running"], json!(true));
        // A crash leaves the file behind, and the socket.
        drop(listener);
        std::fs::write(status_file(&settings), serde_json::to_vec(&Status::default()).unwrap()).unwrap();
        let (told, line) = (status_value(&settings), status_line(&settings));
        assert_eq!(told["running"], json!(false));
        let as_of = told["as_of"].as_str().unwrap();
        let stale = format!("charging: the node does not run; as of {as_of}: 0 records wait");
        assert!(as_of.starts_with("20") && line.contains(&stale) && !line.contains("all is well"), "{line}");
    }
}
