//! What no file tells, and programs of the system do. They are asked of this machine alone, only to say what is, and are waited
//! for no longer than it takes a healthy machine to answer.

use crate::{Facts, Root};
use serde::Serialize;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// What a program has to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks at whether it has.
const LOOK: Duration = Duration::from_millis(5);
/// More is not read.
const ANSWER_MAX: u64 = 1 << 20;
/// Where distributions have it.
const ETHTOOL: [&str; 3] = ["/usr/sbin/ethtool", "/sbin/ethtool", "/usr/bin/ethtool"];

/// Speed Select, core power, over all packages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CorePower {
    /// Of all packages the processor has it.
    pub supported: bool,
    /// On all of them cores get frequency by their class.
    pub enabled: bool,
    /// As `proportional` or `ordered`.
    pub priority: Option<String>,
}

/// Adds to a system's facts what its programs say.
pub(crate) fn ask_programs(facts: &mut Facts, root: &Root) {
    if let Some(tool) = facts.power.sst.tool.clone().filter(|_| facts.power.sst.interface) {
        let answer = ask(&tool, &["core-power", "info"]);
        facts.power.sst.core_power = Some(answer.and_then(|text| core_power(&text)));
    }
    let Some(ethtool) = ETHTOOL.iter().find(|path| root.exists(path)) else { return };
    for nic in facts.nics.iter_mut().filter(|nic| nic.firmware.is_none()) {
        let answer = nic.interfaces.first().and_then(|name| ask(ethtool, &["-i", name]).ok());
        nic.firmware = answer.and_then(|text| firmware(&text));
    }
}

/// `firmware-version` of `ethtool -i`; drivers without any leave it empty, or say so.
fn firmware(text: &str) -> Option<String> {
    let version = text.lines().find_map(|line| line.strip_prefix("firmware-version:"))?.trim();
    (!version.is_empty() && version != "N/A").then(|| version.to_owned())
}

/// `intel-speed-select core-power info`: for each package, die by die, names and values with a colon between.
fn core_power(text: &str) -> Result<CorePower, String> {
    let all = |name: &str| -> Vec<&str> {
        let pairs = text.lines().filter_map(|line| line.trim().split_once(':'));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).collect()
    };
    let (supported, enabled) = (all("support-status"), all("clos-enable-status"));
    if enabled.is_empty() {
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("nothing");
        return Err(format!("the tool says: {last}"));
    }
    Ok(CorePower {
        supported: supported.iter().all(|value| *value == "supported"),
        // Older versions of the tool write numbers.
        enabled: enabled.iter().all(|value| matches!(*value, "enabled" | "1")),
        priority: all("priority-type").first().map(|value| (*value).to_owned()),
    })
}

/// What a program writes, to whichever of its outputs: the tool of Speed Select has it in that for errors.
fn ask(program: &str, arguments: &[&str]) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{program} cannot be asked: {error}");
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
    command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
    let mut child = command.spawn().map_err(failed)?;
    // It keeps the other end of the pipe open.
    drop(command);
    let (told, answer) = mpsc::channel();
    let read = move || {
        let mut octets = Vec::new();
        let _ = reader.take(ANSWER_MAX).read_to_end(&mut octets);
        let _ = told.send(String::from_utf8_lossy(&octets).into_owned());
    };
    thread::Builder::new().spawn(read).map_err(failed)?;
    let has_ended = wait(&mut child).map_err(failed)?;
    match (has_ended, answer.recv_timeout(LOOK * 20)) {
        (true, Ok(text)) => Ok(text),
        _ => Err(format!("{program} does not answer")),
    }
}

/// Until it ends by itself, or is ended.
fn wait(child: &mut Child) -> std::io::Result<bool> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait().map(|_| false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firmware_is_what_the_driver_says() {
        let text = "driver: i40e\nversion: 6.1.0\nfirmware-version: 9.20 0x8000d8c5 1.3353.0\nbus-info: 0000:af:00.0\n";
        assert_eq!(firmware(text).as_deref(), Some("9.20 0x8000d8c5 1.3353.0"));
        for none in [
            "driver: virtio_net\nfirmware-version: \n",
            "firmware-version: N/A\n",
            "Cannot get driver information",
        ] {
            assert_eq!(firmware(none), None, "{none}");
        }
    }

    /// As the kernel's documentation of the tool shows it.
    #[test]
    fn core_power_is_on_only_where_all_packages_have_it_on() {
        let package = |number: u32, enabled: &str| {
            format!(
                " package-{number}\n  die-0\n    cpu-{number}\n      core-power\n        support-status:supported\n        \
                 enable-status:enabled\n        clos-enable-status:{enabled}\n        priority-type:proportional\n"
            )
        };
        let head = "Intel(R) Speed Select Technology\nExecuting on CPU model:106[0x6a]\n";
        for (second, enabled) in [("enabled", true), ("1", true), ("disabled", false), ("0", false)] {
            let found =
                core_power(&format!("{head}{}{}", package(0, "enabled"), package(1, second))).unwrap();
            let priority = Some("proportional".to_owned());
            assert_eq!(found, CorePower { supported: true, enabled, priority }, "{second}");
        }
        let refused = core_power("Intel(R) Speed Select Technology\nMust run as root\n").unwrap_err();
        assert_eq!(refused, "the tool says: Must run as root");
    }

    #[test]
    fn programs_are_read_and_not_waited_for_without_end() {
        assert_eq!(ask("/bin/sh", &["-c", "echo out; echo err >&2"]).unwrap(), "out\nerr\n");
        let start = Instant::now();
        assert!(ask("/bin/sh", &["-c", "exec sleep 60"]).unwrap_err().ends_with("does not answer"));
        assert!(start.elapsed() < PATIENCE * 5);
        assert!(ask("/nowhere/tool", &[]).unwrap_err().contains("cannot be asked"));
    }
}
