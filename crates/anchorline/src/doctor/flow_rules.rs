//! The flow rules of a network card, without one.

use super::super::exit::unusable;
use dataplane::CLASSES_MAX;
use host::{Facts, Root};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use steer::{Class, Family, Request, Side, Steered, script};

/// Which card, and what is steered.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The card's family: i40e, ice, iavf or mlx5; of others, what every card may do.
    #[arg(long, required_unless_present = "device", conflicts_with = "device")]
    family: Option<Family>,
    /// A card of this host, by its PCI address, such as 0000:3b:00.0.
    #[arg(long, value_name = "ADDRESS")]
    device: Option<String>,
    /// Queues of one class: as many as there are workers, 1 to 32.
    #[arg(long, default_value_t = 4, value_name = "NUMBER")]
    queues: u16,
    /// DPDK's number of the port.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    port: u16,
    /// The side the port is on: access (N3) or core (N6); both, unless named.
    #[arg(long)]
    side: Option<SideName>,
    /// A class with queues of its own, the most urgent first, at most 3, such as qfi=1,qfi=5,dscp=46 (i40e: pcp=5).
    #[arg(long = "class", value_name = "WHAT")]
    classes: Vec<ClassText>,
    /// A session with a rule of its own (flow director), such as teid=0x100,ue=10.60.0.1,queue=2.
    #[arg(long = "session", value_name = "WHAT")]
    sessions: Vec<SessionText>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum SideName {
    Access,
    Core,
}

/// Workers of a node, as `dpe.workers` has it.
const WORKERS: RangeInclusive<u16> = 1..=32;

/// What a class names its packets by.
type Values = fn(&Class) -> &[u8];

/// Parts like `key=value,key=value`.
fn parts(text: &str) -> impl Iterator<Item = Result<(&str, &str), String>> {
    let part = |part| str::split_once(part, '=').ok_or_else(|| format!("{part:?} is not like key=value"));
    text.split(',').map(part)
}

fn number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number
        .ok()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("{text:?} is no number that fits"))
}

#[derive(Clone)]
struct ClassText(Class);

impl FromStr for ClassText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut class = Class::default();
        for part in parts(text) {
            match part? {
                ("qfi", value) => class.qfis.push(number(value)?),
                ("dscp", value) => class.dscps.push(number(value)?),
                ("pcp", value) => class.pcps.push(number(value)?),
                (key, _) => return Err(format!("a class is named by qfi, dscp and pcp, not {key:?}")),
            }
        }
        Ok(Self(class))
    }
}

#[derive(Clone)]
struct SessionText(Steered);

impl FromStr for SessionText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut teid, mut ue, mut queue) = (None, None, None);
        for part in parts(text) {
            match part? {
                ("teid", value) => teid = Some(number(value)?),
                ("ue", value) => ue = value.parse::<IpAddr>().ok(),
                ("queue", value) => queue = Some(number(value)?),
                (key, _) => return Err(format!("a session is named by teid, ue and queue, not {key:?}")),
            }
        }
        let all = teid.zip(ue).zip(queue).map(|((teid, ue), queue)| Self(Steered { teid, ue, queue }));
        all.ok_or_else(|| "a session has a teid, an address (ue) and a queue".to_owned())
    }
}

impl Args {
    /// The rules, side by side.
    pub(super) fn text(&self, root: &Root, json: bool) -> anyhow::Result<String> {
        if !self.classes.is_empty() && !self.sessions.is_empty() {
            return Err(unusable(anyhow::anyhow!(
                "--session leads to one queue, and with --class a worker has several: a port has one or the other"
            )));
        }
        self.check().map_err(|why| unusable(anyhow::anyhow!(why)))?;
        let request = Request {
            port: self.port,
            classes: self.classes.iter().map(|class| class.0.clone()).collect(),
            steered: self.sessions.iter().map(|session| session.0).collect(),
            ..Request::new(self.family(root)?, self.queues)
        };
        let sides = [("access", Side::Access), ("core", Side::Core)]
            .into_iter()
            .filter(|(_, side)| self.wants(*side));
        let rules = sides.map(|(name, side)| Ok((name, script(&request, side).map_err(unusable)?.testpmd())));
        let rules: BTreeMap<&str, String> = rules.collect::<anyhow::Result<_>>()?;
        if json {
            let lines = rules.iter().map(|(side, text)| (side, text.lines().collect::<Vec<_>>()));
            return Ok(serde_json::to_string(&lines.collect::<BTreeMap<_, _>>())? + "\n");
        }
        let queues = request.total_queues();
        let head = format!(
            "# {}, {queues} queues; generated, grammar checked by testpmd, run on no card\n",
            request.family
        );
        Ok(rules.iter().fold(head, |text, (side, rules)| format!("{text}\n# {side} side\n{rules}")))
    }

    /// Whether a node could be configured like this.
    fn check(&self) -> Result<(), String> {
        if !WORKERS.contains(&self.queues) {
            let (least, most) = WORKERS.into_inner();
            return Err(format!(
                "--queues {}: a node has {least} to {most} workers, and a queue for each",
                self.queues
            ));
        }
        if self.classes.len() > CLASSES_MAX {
            return Err(format!(
                "--class: {} classes are more than the {CLASSES_MAX} of one port",
                self.classes.len()
            ));
        }
        let kinds: [(&str, Values); 3] =
            [("qfi", |class| &class.qfis), ("dscp", |class| &class.dscps), ("pcp", |class| &class.pcps)];
        for (kind, values) in kinds {
            let mut seen = BTreeSet::new();
            let mut all = self.classes.iter().flat_map(|class| values(&class.0));
            if let Some(twice) = all.find(|value| !seen.insert(**value)) {
                return Err(format!("--class {kind}={twice}: is in a class already"));
            }
        }
        Ok(())
    }

    fn wants(&self, side: Side) -> bool {
        match self.side {
            None => true,
            Some(SideName::Access) => side == Side::Access,
            Some(SideName::Core) => side == Side::Core,
        }
    }

    fn family(&self, root: &Root) -> anyhow::Result<Family> {
        if let Some(family) = self.family {
            return Ok(family);
        }
        let device = self.device.as_deref().unwrap_or_default();
        let address = host::device(device);
        let nics = Facts::read(root).nics;
        let nic = nics.iter().find(|nic| Some(&nic.address) == address.as_ref());
        nic.map(|nic| nic.family)
            .ok_or_else(|| unusable(anyhow::anyhow!("there is no network card at {device}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn text(line: &str) -> anyhow::Result<String> {
        let words = std::iter::once("rules").chain(line.split_whitespace());
        Line::try_parse_from(words)?.args.text(&Root::system(), false)
    }

    #[test]
    fn rules_are_asked_for_by_family() {
        let rules = text("--family ice --queues 2 --class qfi=5,dscp=46").unwrap();
        assert!(
            rules.contains("# access side")
                && rules.contains("gtp_psc qfi is 5 / end actions rss queues 2 3 end")
        );
        let rules = text("--family ice --queues 2 --session teid=0x10,ue=10.0.0.1,queue=1").unwrap();
        assert!(rules.contains("gtpu teid is 0x00000010") && rules.contains("ipv4 dst is 10.0.0.1"));
        let core = text("--family mlx5 --side core --port 3").unwrap();
        assert!(!core.contains("# access side") && core.contains("flow create 3 ingress"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |line: &str| text(line).unwrap_err().to_string();
        let session = "--family virtio --session teid=1,ue=10.0.0.1,queue=0";
        assert!(error(session).contains("cannot be led by rules of their own"));
        assert!(error("--family e810").contains("a family is one of"));
        assert!(error("--device 0000:ff:1f.7").contains("there is no network card"));
        assert!(error("--family ice --class qci=1").contains("qfi, dscp and pcp"));
        assert!(error("--family ice --class qfi=300").contains("no number that fits"));
        let both = "--family ice --queues 2 --class qfi=5 --session teid=0x10,ue=10.0.0.1,queue=1";
        assert!(error(both).contains("a port has one or the other"));
        assert!(error("--family ice --session teid=1").contains("a session has a teid"));
        assert!(error("--family ice --queues 3 --class qfi=1").contains("power of two"));
    }

    #[test]
    fn what_no_node_could_have_is_refused() {
        let error = |line: &str| text(&format!("--family ice {line}")).unwrap_err().to_string();
        let four = "--class qfi=1 --class qfi=2 --class qfi=3 --class qfi=4";
        assert_eq!(error(four), "--class: 4 classes are more than the 3 of one port");
        for twice in ["--class dscp=46 --class qfi=5,dscp=46", "--class dscp=46,dscp=46"] {
            assert_eq!(error(twice), "--class dscp=46: is in a class already");
        }
        for wrong in [0, 33, 64] {
            let expected = format!("--queues {wrong}: a node has 1 to 32 workers, and a queue for each");
            assert_eq!(error(&format!("--queues {wrong}")), expected);
        }
        assert!(text("--family ice --queues 32 --class qfi=1 --class dscp=1 --class qfi=2").is_ok());
    }
}
