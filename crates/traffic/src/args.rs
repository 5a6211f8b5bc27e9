//! The command line.

use crate::catalogue;
use crate::flows::Flows;
use crate::frame::Endpoints;
use crate::profile::{PROFILES, Profile, profile};
use crate::record::record;
use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Traffic models, and captures of their packets.
#[derive(Clone, Debug, Parser)]
#[group(id = "traffic")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// List the models and their figures.
    Profiles,
    /// Write the content rules by which the applications in these packets are told, 50,000 of 50 services.
    Rules(Rules),
    /// Write the packets of a model as a capture, the same for the same seed.
    Pcap(Pcap),
}

#[derive(Clone, Debug, Parser)]
struct Rules {
    /// The rule file: a line for each.
    file: PathBuf,
}

#[derive(Clone, Debug, Parser)]
struct Pcap {
    /// The capture: classic pcap with nanoseconds, N3 and N6 in one file.
    file: PathBuf,
    /// Traffic model; `anchorline traffic profiles` lists them.
    #[arg(long, value_name = "NAME", default_value = "zte")]
    profile: String,
    /// Packets to write.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    packets: u64,
    /// Of everything random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Users that send and receive; those of the profile unless given.
    #[arg(long, value_name = "N")]
    active: Option<u32>,
    /// Flows that are open at once; those of the profile unless given.
    #[arg(long, value_name = "N")]
    flows: Option<u32>,
    /// Share of the packets that open flows, 0 to 1; that of the profile unless given.
    #[arg(long, value_name = "SHARE")]
    opening: Option<f64>,
    /// Write what each flow is about to this file, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
}

/// Most packets of a capture: about 7 GB.
const PACKETS_MAX: u64 = 10_000_000;
/// Most flows that are open at once.
const FLOWS_MAX: u32 = 16_000_000;

impl Args {
    /// Lists or writes, and gives what there is to tell whoever asked.
    ///
    /// # Errors
    /// Parameters that cannot be, or a file that cannot be written.
    pub fn execute(&self) -> anyhow::Result<String> {
        match &self.what {
            What::Profiles => Ok(PROFILES.iter().map(described).collect()),
            What::Rules(rules) => {
                let text: String = catalogue::applications().map(|rule| format!("{rule}\n")).collect();
                let unwritten = || format!("{} cannot be written", rules.file.display());
                std::fs::write(&rules.file, text).with_context(unwritten).map(|()| String::new())
            }
            What::Pcap(pcap) => pcap.execute(),
        }
    }
}

impl Pcap {
    fn execute(&self) -> anyhow::Result<String> {
        let profile = self.model()?;
        let mut flows = Flows::new(&profile, Endpoints::EXAMPLE, self.seed)?;
        let recorded = record(&mut flows, self.packets, &self.file, self.labels.as_deref())?;
        Ok(format!(
            "{}: {} packets ({} up, {} bytes) of {} flows, profile {} version {}, seed {}\n",
            self.file.display(),
            recorded.packets,
            recorded.uplink,
            recorded.bytes,
            recorded.flows,
            profile.name,
            profile.version,
            self.seed,
        ))
    }

    fn model(&self) -> anyhow::Result<Profile> {
        let Some(model) = profile(&self.profile) else {
            let names: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
            bail!("there is no profile \"{}\"; there are {}", self.profile, names.join(", "));
        };
        let active = self.active.unwrap_or(model.active);
        let flows = self.flows.unwrap_or(model.flows);
        let opening = self.opening.unwrap_or(model.opening);
        if !(1..=model.subscribers).contains(&active) {
            bail!("--active {active}: 1 to the number of subscribers, {}, can be active", model.subscribers);
        }
        if !(1..=FLOWS_MAX).contains(&flows) {
            bail!("--flows {flows}: 1 to {FLOWS_MAX} can be open at once");
        }
        if !(0.0..=1.0).contains(&opening) {
            bail!("--opening {opening}: a share is from 0 to 1");
        }
        if !(1..=PACKETS_MAX).contains(&self.packets) {
            bail!("--packets {}: 1 to {PACKETS_MAX} can be written", self.packets);
        }
        Ok(Profile { active, flows, opening, ..*model })
    }
}

fn described(profile: &Profile) -> String {
    let percent = |share: f64| (share * 1_000.0).round() / 10.0;
    let mut text = format!(
        "{} version {}: {} subscribers, {} active, {} flows, mean {:.0} bytes\n  {} % of packets up, {} % open flows, \
         {} % of named flows looked up\n",
        profile.name,
        profile.version,
        profile.subscribers,
        profile.active,
        profile.flows,
        profile.mean_bytes(),
        percent(profile.uplink),
        percent(profile.opening),
        percent(profile.lookups),
    );
    for service in profile.services {
        let [up, down] = [service.uplink, service.downlink].map(percent);
        let transport = format!("{:?}", service.transport).to_uppercase();
        text += &format!(
            "  {:<6} over {transport:<5} {up:>5} % of uplink {down:>5} % of downlink\n",
            service.name
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(words: &[&str]) -> anyhow::Result<Profile> {
        match Args::parse_from([&["traffic", "pcap", "-"], words].concat()).what {
            What::Pcap(pcap) => pcap.model(),
            What::Profiles | What::Rules(_) => panic!("not asked for"),
        }
    }

    #[test]
    fn a_profile_is_taken_as_it_is_unless_told_otherwise() {
        assert_eq!(model(&[]).unwrap(), *profile("zte").unwrap());
        let model = model(&["--profile", "samsung", "--flows", "10", "--opening", "0.5"]).unwrap();
        assert_eq!((model.name, model.flows, model.opening), ("samsung", 10, 0.5));
    }

    #[test]
    fn impossible_parameters_name_the_limit() {
        for (words, expected) in [
            (["--profile", "zet"], "there are zte, samsung"),
            (["--active", "600001"], "600000, can be active"),
            (["--flows", "0"], "1 to 16000000"),
            (["--opening", "1.5"], "from 0 to 1"),
            (["--packets", "10000001"], "1 to 10000000"),
        ] {
            let error = model(&words).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn descriptions_name_profile_version_and_services() {
        let text = described(profile("epc-us").unwrap());
        assert!(text.starts_with("epc-us version 2: 1000000 subscribers"), "{text}");
        assert_eq!(text.lines().count(), 2 + 8);
        assert!(text.contains("volte  over UDP      32 % of uplink     5 % of downlink"), "{text}");
    }
}
