//! The configuration of the programs: the examples we ship, with what a run has to change.

use crate::address::{STATIONS, UPF_N3};
use crate::privilege;
use anyhow::{Context, Result};
use nix::sys::resource::{Resource, getrlimit};
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Where the shipped examples are.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config");

/// Where a node of ours serves metrics, in its namespace.
pub const METRICS: &str = "127.0.0.1:9100";

/// The text of a shipped example.
///
/// # Errors
/// Where it is not there.
pub fn example(name: &str) -> Result<String> {
    let path = Path::new(EXAMPLES).join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Which DPDK driver serves the ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// Packet sockets: work everywhere.
    #[default]
    AfPacket,
    /// XDP sockets: faster, and need root outside of any user namespace.
    AfXdp,
}

impl Driver {
    /// The DPDK device for an interface.
    fn device(self, number: usize, interface: &str) -> String {
        match self {
            Self::AfPacket => format!("net_af_packet{number},iface={interface},framecnt={}", frames()),
            Self::AfXdp => format!("net_af_xdp{number},iface={interface}"),
        }
    }
}

/// Has the node of a configuration written by [`write_upf`] run so many workers.
///
/// # Errors
/// Where the file cannot be read or written.
pub fn set_workers(path: &Path, workers: u32) -> Result<()> {
    let mut config: Table = fs::read_to_string(path)?.parse()?;
    let dpe = config.get_mut("dpe").and_then(Value::as_table_mut).context("upf.toml has no [dpe]")?;
    dpe.insert("workers".into(), workers.into());
    // All queues of all ports are in memory that an ordinary user has little of.
    let ports = dpe.get_mut("port").and_then(Value::as_array_mut).context("upf.toml has no [[dpe.port]]")?;
    for port in ports.iter_mut().filter_map(Value::as_table_mut) {
        let device = port.get("device").and_then(Value::as_str).context("a port has no device")?;
        let less = (frames() / u64::from(workers)) & !1;
        let device = device.replace(&format!("framecnt={}", frames()), &format!("framecnt={less}"));
        port.insert("device".into(), device.into());
    }
    fs::write(path, config.to_string()).with_context(|| format!("cannot write {}", path.display()))
}

/// Has the node of a configuration written by [`write_upf`] tell what is used within so many seconds; 0 for never.
///
/// # Errors
/// Where the file cannot be read or written.
pub fn set_interim_usage(path: &Path, seconds: u32) -> Result<()> {
    let mut config: Table = fs::read_to_string(path)?.parse()?;
    let dpe = config.get_mut("dpe").and_then(Value::as_table_mut).context("upf.toml has no [dpe]")?;
    dpe.insert("interim_usage_s".into(), seconds.into());
    fs::write(path, config.to_string()).with_context(|| format!("cannot write {}", path.display()))
}

/// Gives ports of a configuration written by [`write_upf`] interfaces in the kernel, and an IPv6 address besides, of a prefix of 64
/// bits: each port's name, the interface's, and the address.
///
/// # Errors
/// Where the file cannot be read or written, or has no such port.
pub fn set_punting(path: &Path, ports: &[(&str, &str, Option<&str>)]) -> Result<()> {
    let mut config: Table = fs::read_to_string(path)?.parse()?;
    let all = config.get_mut("dpe").and_then(|dpe| dpe.get_mut("port")).and_then(Value::as_array_mut);
    let all = all.context("upf.toml has no [[dpe.port]]")?;
    for (name, interface, ipv6) in ports {
        let mut tables = all.iter_mut().filter_map(Value::as_table_mut);
        let is_it = |port: &&mut Table| port.get("name").and_then(Value::as_str) == Some(name);
        let port = tables.find(is_it).with_context(|| format!("upf.toml has no port {name}"))?;
        port.insert("punt".into(), (*interface).into());
        if let Some(address) = ipv6 {
            port.insert("ipv6".into(), format!("{address}/64").into());
        }
    }
    fs::write(path, config.to_string()).with_context(|| format!("cannot write {}", path.display()))
}

/// Packets a packet socket holds while the worker, which shares its core here, does not run. Both ports keep a
/// ring for each direction in locked memory, of which an ordinary user has little.
fn frames() -> u64 {
    const MOST: u64 = 4096;
    const FRAME_BYTES: u64 = 2048;
    const RINGS: u64 = 2 * 2;
    const SPARE_BYTES: u64 = 1 << 20;
    if privilege::is_real_root() {
        return MOST;
    }
    let lockable = getrlimit(Resource::RLIMIT_MEMLOCK).map_or(0, |(soft, _)| soft);
    // Two frames make a block, and only whole blocks will do.
    (lockable.saturating_sub(SPARE_BYTES) / (RINGS * FRAME_BYTES)).min(MOST) & !1
}

/// Who gives the tunnel endpoint its TEID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FTeid {
    /// The user plane (CHOOSE).
    Choose,
    /// The SMF.
    Explicit,
}

/// Writes `upf.toml` into `dir`: the example, with its state in `dir` and its ports on `driver`.
///
/// # Errors
/// Where the example lacks what must change, or the file cannot be written.
pub fn write_upf(dir: &Path, driver: Driver) -> Result<PathBuf> {
    let mut config: Table = example("upf.toml")?.parse()?;
    let state = dir.join("state").display().to_string();
    set(&mut config, "node", "state_dir", &state)?;
    // Programs, kernel and data plane share few cores here: a spinning worker would take one from the others.
    set(&mut config, "dpe", "idle", "sleep")?;
    let dpe = config.get_mut("dpe").context("upf.toml has no [dpe]")?;
    // Nobody here waits a minute to hear whether a peer is there.
    let echo = dpe.get_mut("echo").and_then(Value::as_table_mut).context("upf.toml has no [dpe.echo]")?;
    ["period_s", "t3_s", "n3"].into_iter().for_each(|key| {
        echo.insert(key.into(), 1.into());
    });
    let ports = dpe.get_mut("port").and_then(Value::as_array_mut).context("upf.toml has no [[dpe.port]]")?;
    for (number, port) in ports.iter_mut().enumerate() {
        let name = port.get("name").and_then(Value::as_str).context("a port has no name")?;
        let device = driver.device(number, name);
        port.as_table_mut().context("a port is no table")?.insert("device".into(), device.into());
    }
    let metrics = Table::from_iter([("listen".to_owned(), Value::from(METRICS))]);
    config.insert("metrics".into(), metrics.into());
    write(dir, "upf.toml", &config.to_string())
}

/// Writes `upf.toml` into `dir`, as [`write_upf`], for a node that charges: the folder its files are in, and the file.
///
/// # Errors
/// Where the example lacks what must change, or the file cannot be written.
pub fn write_upf_charging(dir: &Path, driver: Driver) -> Result<(PathBuf, PathBuf)> {
    let config = write_upf(dir, driver)?;
    let folder = dir.join("cdr");
    let charging = format!(
        "\n[charging]\ndirectory = \"{}\"\nformats = [\"pgw\", \"chf\", \"json\"]\ndefault_rating_group = 1\n\
         file_max_s = 1\nmin_free_mb = 0\n",
        folder.display()
    );
    let text = fs::read_to_string(&config)? + &charging;
    Ok((folder, write(dir, "upf.toml", &text)?))
}

/// Writes `upf.toml` into `dir`, as [`write_upf`], with a port of an Ethernet data network besides.
///
/// # Errors
/// Where the example lacks what must change, or the file cannot be written.
pub fn write_upf_ethernet(dir: &Path) -> Result<PathBuf> {
    let path = write_upf(dir, Driver::AfPacket)?;
    // Three ports share the memory of two.
    let less = (frames() * 2 / 3) & !1;
    let text =
        fs::read_to_string(&path)?.replace(&format!("framecnt={}", frames()), &format!("framecnt={less}"));
    let mut config: Table = text.parse()?;
    let ports = config.get_mut("dpe").and_then(|dpe| dpe.get_mut("port")).and_then(Value::as_array_mut);
    let device = format!("net_af_packet2,iface=n6e,framecnt={less}");
    let port: [(&str, Value); 5] = [
        ("name", "n6e".into()),
        ("device", device.into()),
        ("interface", "core".into()),
        ("ethernet", true.into()),
        ("mtu", 1500.into()),
    ];
    let port = Table::from_iter(port.map(|(key, value)| (key.to_owned(), value)));
    ports.context("upf.toml has no [[dpe.port]]")?.push(port.into());
    write(dir, "upf.toml", &config.to_string())
}

/// Writes `upf.toml` into `dir`, as [`write_upf`], with a port besides whose other end is a memif of another data plane, and the
/// configuration of that: this node's, and the other's.
///
/// # Errors
/// Where the example lacks what must change, or a file cannot be written.
pub fn write_upf_memif(dir: &Path) -> Result<(PathBuf, PathBuf)> {
    let socket = dir.join("memif.sock");
    let port = |role, (side, address)| {
        format!(
            "\n[[dpe.port]]\nname = \"shared\"\ndevice = \"net_memif0,role={role},socket={},socket-abstract=no\"\n\
             interface = \"{side}\"\naddress = \"{address}/24\"\n",
            socket.display()
        )
    };
    let config = write_upf(dir, Driver::AfPacket)?;
    let text = fs::read_to_string(&config)? + &port("client", ("core", "10.60.0.2"));
    let other = dir.join("other");
    fs::create_dir_all(&other)?;
    let place = other.display();
    let base = format!(
        "[node]\nid = \"10.60.0.1\"\nrun_dir = \"/run/other\"\nstate_dir = \"{place}\"\n\n[n4]\nlisten = \"127.0.0.1:8805\"\n\n\
         [dpe]\nmemory_mb = 32\nhuge_pages = \"never\"\nidle = \"sleep\"\nsessions = 100\nflows = 2048\n"
    );
    let server = write(&other, "upf.toml", &(base + &port("server", ("access", "10.60.0.1"))))?;
    Ok((write(dir, "upf.toml", &text)?, server))
}

/// Writes `ran.toml` into `dir`: the example's user, and two whose sessions carry Ethernet frames.
///
/// # Errors
/// Where the example lacks what must change, or the file cannot be written.
pub fn write_ran_ethernet(dir: &Path) -> Result<PathBuf> {
    let mut config: Table = example("ran.toml")?.parse()?;
    let ues = config.get_mut("ue").and_then(Value::as_array_mut).context("ran.toml has no [[ue]]")?;
    for (number, station) in STATIONS.into_iter().enumerate() {
        let routes: Vec<Value> = if number == 0 { vec!["10.70.0.0/24".into()] } else { vec![] };
        let ue: [(&str, Value); 5] = [
            ("tun", format!("tap{number}").into()),
            ("address", station.to_string().into()),
            ("qfi", 9.into()),
            ("ethernet", true.into()),
            ("routes", routes.into()),
        ];
        ues.push(Table::from_iter(ue.map(|(key, value)| (key.to_owned(), value))).into());
    }
    write(dir, "ran.toml", &config.to_string())
}

/// Writes `upf.toml` into `dir`, as [`write_upf`], for a node with content rules and predefined rules (TOML): the file of
/// content rules, and the configuration.
///
/// # Errors
/// Where the example lacks what must change, or a file cannot be written.
pub fn write_upf_content(dir: &Path, content: &str, predefined: &str) -> Result<(PathBuf, PathBuf)> {
    let config = write_upf(dir, Driver::AfPacket)?;
    let rules = write(dir, "content.rules", content)?;
    let section = format!("\n[content]\nrules = \"{}\"\n{predefined}", rules.display());
    let text = fs::read_to_string(&config)? + &section;
    Ok((rules, write(dir, "upf.toml", &text)?))
}

/// Writes `ran.toml` into `dir`: the example, whose users' sessions activate rules by name.
///
/// # Errors
/// Where the example lacks what must change, or the file cannot be written.
pub fn write_ran_predefined(dir: &Path, rules: &[&str]) -> Result<PathBuf> {
    let mut config: Table = example("ran.toml")?.parse()?;
    let ues = config.get_mut("ue").and_then(Value::as_array_mut).context("ran.toml has no [[ue]]")?;
    for ue in ues.iter_mut().filter_map(Value::as_table_mut) {
        let rules: Vec<Value> = rules.iter().map(|rule| Value::from(*rule)).collect();
        ue.insert("predefined_rules".into(), rules.into());
    }
    write(dir, "ran.toml", &config.to_string())
}

/// Writes `ran.toml` into `dir`: the example, with TEIDs given by `f_teid`.
///
/// # Errors
/// Where the example lacks what must change, or the file cannot be written.
pub fn write_ran(dir: &Path, f_teid: FTeid) -> Result<PathBuf> {
    write_ran_dialect(dir, f_teid, "plain")
}

/// The same in a dialect, by its name.
///
/// # Errors
/// Where the example lacks what must change, or the file cannot be written.
pub fn write_ran_dialect(dir: &Path, f_teid: FTeid, dialect: &str) -> Result<PathBuf> {
    let mut config: Table = example("ran.toml")?.parse()?;
    set(&mut config, "smf", "dialect", dialect)?;
    match f_teid {
        FTeid::Choose => set(&mut config, "smf", "f_teid", "choose")?,
        FTeid::Explicit => {
            set(&mut config, "smf", "f_teid", "explicit")?;
            set(&mut config, "smf", "upf_n3", &UPF_N3.to_string())?;
        }
    }
    write(dir, "ran.toml", &config.to_string())
}

/// Writes `ran.toml` into `dir`: the example, its users with a quota of so many bytes down, which is all that they get.
///
/// # Errors
/// Where the example lacks what must change, or the file cannot be written.
pub fn write_ran_quota(dir: &Path, bytes: u64) -> Result<PathBuf> {
    let mut config: Table = example("ran.toml")?.parse()?;
    // Its SMF charges online by the downlink alone.
    set(&mut config, "smf", "dialect", "open5gs")?;
    let ues = config.get_mut("ue").and_then(Value::as_array_mut).context("ran.toml has no [[ue]]")?;
    for ue in ues.iter_mut().filter_map(Value::as_table_mut) {
        ue.insert("report_after_bytes".into(), i64::try_from(bytes)?.into());
    }
    write(dir, "ran.toml", &config.to_string())
}

/// What the SMF has a user held to, and told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The most that passes from the user.
    pub uplink_kbps: u32,
    /// The most that passes to the user.
    pub downlink_kbps: u32,
    /// Usage is reported each time it is so much.
    pub report_after_bytes: u32,
}

/// Writes `ran.toml` into `dir`: the example, its users held to a contract.
///
/// # Errors
/// Where the example lacks what must change, or the file cannot be written.
pub fn write_ran_with(dir: &Path, contract: Contract) -> Result<PathBuf> {
    let mut config: Table = example("ran.toml")?.parse()?;
    let ues = config.get_mut("ue").and_then(Value::as_array_mut).context("ran.toml has no [[ue]]")?;
    for ue in ues.iter_mut().filter_map(Value::as_table_mut) {
        let rates = [("uplink_kbps", contract.uplink_kbps), ("downlink_kbps", contract.downlink_kbps)];
        let mbr = rates.map(|(key, kbps)| (key.to_owned(), Value::from(kbps)));
        ue.insert("mbr".into(), Table::from_iter(mbr).into());
        ue.insert("report_after_bytes".into(), contract.report_after_bytes.into());
    }
    write(dir, "ran.toml", &config.to_string())
}

/// Writes a text into `dir`.
///
/// # Errors
/// Where it cannot be written.
pub fn write(dir: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = dir.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn set(config: &mut Table, section: &str, key: &str, value: &str) -> Result<()> {
    let table = config.get_mut(section).and_then(Value::as_table_mut);
    table.with_context(|| format!("no section [{section}]"))?.insert(key.into(), value.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_node_becomes_this_runs_node() {
        let dir = tempfile::tempdir().unwrap();
        let written = fs::read_to_string(write_upf(dir.path(), Driver::AfXdp).unwrap()).unwrap();
        assert!(written.contains("net_af_xdp0,iface=n3") && written.contains("net_af_xdp1,iface=n6"));
        assert!(written.contains(&dir.path().join("state").display().to_string()));
    }
}
