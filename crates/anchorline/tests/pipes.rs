//! The executable before a reader that has had enough, and before one that reads nothing.

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::error::Error;
use std::io::{PipeReader, PipeWriter, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// More than anything here takes.
const LONG: Duration = Duration::from_secs(30);

/// Runs it with its standard output going to a pipe nobody reads.
fn unread(words: &[&str]) -> Result<Output, Box<dyn Error>> {
    let (reader, writer) = std::io::pipe()?;
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anchorline"));
    let child = command.args(words).stdout(writer).stderr(std::process::Stdio::piped()).spawn()?;
    Ok(child.wait_with_output()?)
}

#[test]
fn whoever_has_read_enough_ends_what_prints_in_silence() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().to_str().ok_or("the folder has no name")?;
    let rules = folder.path().join("ads.toml");
    let rule = "[[n4.predefined_rule]]\nname = \"ads\"\nfilters = [\"permit out ip from any to assigned\"]\n";
    std::fs::write(&rules, rule)?;
    let rules = rules.to_str().ok_or("the file has no name")?;
    let capture = folder.path().join("10.pcap");
    let capture = capture.to_str().ok_or("the capture has no name")?;
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/upf.toml");
    let report = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/report/steering.json");
    for words in [
        &["doctor", "explain", "memory.huge-pages", "--root", root][..],
        &["doctor", "explain", "memory.huge-pages", "--root", root, "--json"],
        &["tune", "--root", root],
        &["tune", "--root", root, "--json"],
        &["plan", "scaling", "--cores", "4", "--report", report],
        &["traffic", "profiles"],
        &["traffic", "pcap", capture, "--packets", "10"],
        &["ctl", "predefined", "put", "--check", rules, "--config", config],
    ] {
        let ended = unread(words)?;
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && said.is_empty(), "{words:?}: {}, {said}", ended.status);
    }
    Ok(())
}

/// A control plane that says all to a pipe, with an address of its own.
fn control_plane(folder: &Path, listen: &str, output: &PipeWriter) -> Result<Child, Box<dyn Error>> {
    let (run, state) = (folder.join("run"), folder.join("state"));
    let config = folder.join("upf.toml");
    let text = include_str!("../../../config/upf.toml")
        .replacen("/run/anchorline", run.to_str().ok_or("the folder has no name")?, 1)
        .replacen("/var/lib/anchorline", state.to_str().ok_or("the folder has no name")?, 1)
        .replacen("10.40.0.2:8805", listen, 1);
    std::fs::write(&config, text)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_anchorline"));
    command.arg("cpe").arg("--config").arg(config).env("ANCHORLINE_LOG", "info");
    Ok(command.stdout(output.try_clone()?).stderr(output.try_clone()?).spawn()?)
}

/// A pipe that has room for nothing.
fn full() -> Result<(PipeReader, PipeWriter), Box<dyn Error>> {
    let (reader, mut writer) = std::io::pipe()?;
    let size = usize::try_from(fcntl(&writer, FcntlArg::F_GETPIPE_SZ)?)?;
    writer.write_all(&vec![b'.'; size])?;
    Ok((reader, writer))
}

fn within(time: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + time;
    while !is_so() && Instant::now() < until {
        sleep(Duration::from_millis(10));
    }
    is_so()
}

/// It serves observers, and ends when it is told to.
fn serves_and_ends(folder: &Path, child: &mut Child) -> Result<Option<ExitStatus>, Box<dyn Error>> {
    let socket = folder.join("run/cpe.sock");
    let serves = within(LONG, || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    // What is said once it serves is said, too.
    sleep(Duration::from_millis(500));
    kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM)?;
    within(LONG, || child.try_wait().is_ok_and(|ended| ended.is_some()));
    let ended = child.try_wait()?.filter(|_| serves);
    let _ = child.kill().and_then(|()| child.wait());
    Ok(ended)
}

#[test]
fn a_node_works_and_ends_before_a_reader_that_reads_nothing() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (_reader, writer) = full()?;
    let mut child = control_plane(folder.path(), "127.77.31.5:8805", &writer)?;
    let ended = serves_and_ends(folder.path(), &mut child)?.ok_or("it did not serve, or did not end")?;
    assert!(ended.success(), "{ended}");
    // With an error to tell, too: its folder is none.
    let (_reader, writer) = full()?;
    std::fs::remove_dir_all(folder.path().join("state"))?;
    std::fs::write(folder.path().join("state"), "")?;
    let mut child = control_plane(folder.path(), "127.77.31.5:8805", &writer)?;
    assert!(within(LONG, || child.try_wait().is_ok_and(|ended| ended.is_some())), "it does not end");
    assert_eq!(child.wait()?.code(), Some(2));
    Ok(())
}
