//! Which content rule a flow goes by, and what is done to it: asked of a file, before or without a node.

use super::values::{End, Protocol};
use crate::content::{Format, Sources, Whole};
use crate::settings;
use crate::settings::predefined::does;
use anyhow::ensure;
use dpi::extract::Protocols;
use dpi::matching::{Facts, Layer, Outcome};
use dpi::rule_file::CATEGORY_RULES;
use n4::{Predefined, PredefinedRule};
use serde::Serialize;
use std::net::Ipv6Addr;
use std::path::PathBuf;

/// A flow.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The file.
    file: PathBuf,
    /// Lines or a CSV table; without it, a table where the file's name ends in .csv.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The server: 203.0.113.7, 203.0.113.7:443 or [2001:db8::1]:443.
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    to: End,
    /// udp, tcp, icmp, sctp or a number.
    #[arg(long, value_name = "PROTOCOL", default_value = "tcp")]
    protocol: Protocol,
    /// The host: of a request, of a ClientHello, or what DNS told; read as in packets, with a port or a dot at the end or without.
    #[arg(long, value_name = "HOST", value_parser = host)]
    host: Option<String>,
    /// Path and query of a request in the clear.
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// What the first packets were: http, http2, tls, quic, dns, stun or rtp.
    #[arg(long, value_name = "LAYER", value_parser = layer)]
    layer: Option<Layer>,
    /// The ClientHello has Encrypted ClientHello.
    #[arg(long)]
    ech: bool,
    /// Application protocols that the ClientHello offers, with commas between: h2,http/1.1.
    #[arg(long, value_name = "PROTOCOLS", value_delimiter = ',', value_parser = protocol)]
    alpn: Vec<String>,
    /// Differentiated services code point.
    #[arg(long, value_name = "DSCP", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: u8,
    /// Also say what the predefined rules of the node's configuration do to the application.
    #[arg(long)]
    predefined: bool,
}

/// What is told.
#[derive(Debug, Serialize)]
struct Answer {
    rule: Option<Matched>,
    /// Predefined rules that name the application, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    predefined: Option<Vec<Named>>,
}

/// A content rule.
#[derive(Debug, Serialize)]
struct Matched {
    id: u32,
    precedence: u32,
    rating_group: u32,
    service: Option<u32>,
    application: Option<String>,
    /// As the file would say it; of a category, which has many hosts, that it is one.
    line: String,
}

/// A predefined rule.
#[derive(Debug, Serialize)]
struct Named {
    name: String,
    does: Vec<String>,
}

fn layer(name: &str) -> Result<Layer, &'static str> {
    name.parse().map_err(|()| "a layer is http, http2, tls, quic, dns, stun or rtp")
}

fn protocol(name: &str) -> Result<String, &'static str> {
    match name.len() {
        1..=255 => Ok(name.to_owned()),
        _ => Err("an application protocol has 1 to 255 letters, as h2 or http/1.1"),
    }
}

/// As the node reads what a client says, but that an IPv6 address needs no brackets here.
fn host(said: &str) -> Result<String, &'static str> {
    const NONE: &str = "a host is a name or an address, with a port or without, as www.a.example:80; flows with this have none";
    if said.parse::<Ipv6Addr>().is_ok() {
        return Ok(said.to_owned());
    }
    let host = dpi::extract::host(said.as_bytes()).ok_or(NONE)?;
    str::from_utf8(host).map(str::to_owned).map_err(|_| NONE)
}

impl Args {
    /// Asks the rules of the file, and what else the node has beside it.
    pub(super) fn execute(&self, settings: &settings::Args, json: bool) -> anyhow::Result<String> {
        self.check_what_has_them()?;
        let format = self.format.unwrap_or_else(|| Format::of(&self.file));
        let node = settings.load_if_any()?;
        let sources = node.and_then(|node| node.content).unwrap_or_else(Sources::default);
        let rules = sources.read_whole(&self.file, format)?;
        let offered: Vec<u8> = self.alpn.iter().flat_map(|name| on_the_wire(name)).collect();
        let facts = Facts { alpn: Protocols::new(&offered), ..self.facts() };
        let rule = rules.classifier.classify(&facts).map(|outcome| Matched::of(outcome, &rules));
        let application = rule.as_ref().and_then(|rule| rule.application.as_deref());
        let predefined = match self.predefined {
            true => Some(named(&settings.load()?.n4.predefined, application)),
            false => None,
        };
        super::say(&Answer { rule, predefined }, json, Answer::text)
    }

    /// No flow has all that may be asked for: a rule that counts for such counts for none.
    fn check_what_has_them(&self) -> anyhow::Result<()> {
        let layer = self.layer.map_or("any", Layer::name);
        let is_clear = self.layer.is_none_or(|layer| layer == Layer::Http);
        ensure!(
            self.path.is_none() || is_clear,
            "only requests of HTTP/1.x in the clear show their path, and none with --layer {layer} do; leave --path out, or say --layer http"
        );
        let has_hello = self.layer.is_none_or(|layer| matches!(layer, Layer::Tls | Layer::Quic));
        ensure!(
            has_hello || !self.ech && self.alpn.is_empty(),
            "only --layer tls and --layer quic have a ClientHello, and --layer {layer} has none; leave --ech and --alpn out"
        );
        Ok(())
    }

    fn facts(&self) -> Facts<'_> {
        let End { address, port } = self.to;
        Facts {
            server: address,
            server_port: port.unwrap_or_default(),
            protocol: self.protocol.number(address.is_ipv6()),
            dscp: self.dscp,
            layer: self.layer,
            host: self.host.as_ref().map(String::as_bytes),
            path: self.path.as_ref().map(String::as_bytes),
            ech: self.ech,
            ..Facts::default()
        }
    }
}

/// A name behind its length, which was looked at as it was read.
fn on_the_wire(name: &str) -> impl Iterator<Item = u8> {
    std::iter::once(name.len() as u8).chain(name.bytes())
}

impl Matched {
    fn of(outcome: &Outcome, all: &Whole) -> Self {
        let Outcome { id, precedence, rating_group, service, .. } = *outcome;
        let rule = all.rules.iter().find(|rule| rule.id == id);
        let application = rule.and_then(|rule| rule.application.as_ref()).map(ToString::to_string);
        let line = match (CATEGORY_RULES.contains(&id), &application) {
            (true, Some(name)) => format!("a host of the category {name}"),
            _ => rule.map_or(String::new(), ToString::to_string),
        };
        Self { id, precedence, rating_group, service, application, line }
    }
}

/// Predefined rules of an application; a flow of none goes by none of them.
fn named(table: &Predefined, application: Option<&str>) -> Vec<Named> {
    let name =
        |rule: &PredefinedRule| rule.application.as_ref().map(|application| application.name().to_owned());
    let of_it = table.rules().filter(|rule| application.is_some() && name(rule).as_deref() == application);
    of_it.map(|rule| Named { name: rule.name.clone(), does: does(rule) }).collect()
}

impl Answer {
    fn text(&self) -> String {
        let mut text = self.rule.as_ref().map_or("no rule matches: it is of no application\n".to_owned(), |rule| {
            let Matched { id, precedence, rating_group, line, .. } = rule;
            let application =
                rule.application.as_ref().map_or("no application".to_owned(), |name| format!("application {name}"));
            let service = rule.service.map_or(String::new(), |service| format!(", service {service}"));
            format!(
                "rule {id} counts, of precedence {precedence}: {application}, rating group {rating_group}{service}\n{line}\n"
            )
        });
        for Named { name, does } in self.predefined.iter().flatten() {
            let does = if does.is_empty() { "does nothing by itself".to_owned() } else { does.join(", ") };
            text += &format!("predefined rule {name}: {does}\n");
        }
        if self.predefined.as_ref().is_some_and(Vec::is_empty) {
            text += "no predefined rule names it\n";
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
        #[command(flatten)]
        settings: settings::Args,
    }

    const RULES: &str = "id=1 precedence=10 rating-group=7 service=3 application=ads host=.ads.example path=/a*\n\
                         id=2 precedence=20 rating-group=8 layer=quic port=443\n";

    const EXAMPLE: &str = include_str!("../../../../config/upf.toml");

    fn ask(options: &[&str], config: &str) -> String {
        answer(options, config).unwrap()
    }

    fn answer(options: &[&str], config: &str) -> anyhow::Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let (file, node) = (folder.path().join("content.rules"), folder.path().join("upf.toml"));
        std::fs::write(&file, RULES).unwrap();
        std::fs::write(&node, config).unwrap();
        let arguments = ["explain", file.to_str().unwrap(), "--config", node.to_str().unwrap()];
        let cli = Cli::try_parse_from(arguments.into_iter().chain(options.iter().copied())).unwrap();
        cli.args.execute(&cli.settings, false)
    }

    #[test]
    fn the_rule_that_counts_is_told() {
        let web = ["--to", "192.0.2.1:80", "--host", "www.ads.example", "--path", "/a/b"];
        let told = ask(&web, EXAMPLE);
        assert!(told.starts_with(
            "rule 1 counts, of precedence 10: application ads, rating group 7, service 3\nid=1 "
        ));
        let quic =
            ["--to", "[2001:db8::1]:443", "--protocol", "udp", "--layer", "quic", "--host", "ads.example"];
        let told = ask(&quic, EXAMPLE);
        assert!(
            told.starts_with("rule 2 counts, of precedence 20: no application, rating group 8\n"),
            "{told}"
        );
        assert_eq!(ask(&["--to", "192.0.2.1"], EXAMPLE), "no rule matches: it is of no application\n");
    }

    #[test]
    fn what_no_flow_has_together_is_refused() {
        let flow = ["--to", "192.0.2.1:443", "--host", "ads.example"];
        for (more, why) in [
            (
                &["--path", "/a", "--layer", "tls"][..],
                "show their path, and none with --layer tls do; leave --path out",
            ),
            (&["--path", "/a", "--layer", "quic"], "none with --layer quic do"),
            (&["--ech", "--layer", "http"], "only --layer tls and --layer quic have a ClientHello"),
            (&["--alpn", "h2", "--layer", "dns"], "and --layer dns has none; leave --ech and --alpn out"),
        ] {
            let refused = answer(&[&flow, more].concat(), EXAMPLE).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
        for more in [&["--path", "/a", "--layer", "http"][..], &["--ech", "--layer", "tls"]] {
            assert!(answer(&[&flow, more].concat(), EXAMPLE).is_ok());
        }
    }

    #[test]
    fn a_host_is_read_as_in_packets() {
        for said in ["WWW.ADS.EXAMPLE.", "www.ads.example:80", "Ads.Example.:8080"] {
            let told = ask(&["--to", "192.0.2.1:80", "--host", said, "--path", "/a"], EXAMPLE);
            assert!(told.starts_with("rule 1 counts"), "{said}: {told}");
        }
        assert_eq!(host("2001:db8::1"), Ok("2001:db8::1".to_owned()));
        assert_eq!(host("[2001:db8::1]:80"), Ok("2001:db8::1".to_owned()));
        for none in ["", "a..example", "ads.example/a", "..", "a b"] {
            assert!(
                host(none).is_err_and(|error| error.starts_with("a host is a name or an address")),
                "{none}"
            );
        }
    }

    #[test]
    fn categories_of_the_node_stand_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = folder.path().join("games.hosts");
        std::fs::write(&hosts, "games.example\n").unwrap();
        let category = format!("[[content.category]]\nname = \"games\"\nfile = {hosts:?}\nprecedence = 15\n");
        let config = format!("{EXAMPLE}\n[content]\nrules = \"/nowhere\"\n{category}");
        let told = ask(&["--to", "192.0.2.1:443", "--host", "www.games.example", "--layer", "quic"], &config);
        assert_eq!(
            told,
            "rule 4100000000 counts, of precedence 15: application games, rating group 0\na host of the category games\n"
        );
    }

    #[test]
    fn what_the_node_does_to_the_application_is_told() {
        let rules = "[[n4.predefined_rule]]\nname = \"no-ads\"\napplication = \"ads\"\naction = \"reset\"\n\
                     [[n4.predefined_rule]]\nname = \"seen\"\napplication = \"ads\"\ndscp = 10\n\
                     mirror = { address = \"192.0.2.9\", teid = 7 }\n\
                     [[n4.predefined_rule]]\nname = \"other\"\napplication = \"video\"\naction = \"drop\"\n";
        let config = format!("{EXAMPLE}\n{rules}");
        let web = ["--to", "192.0.2.1:80", "--host", "ads.example", "--path", "/a", "--predefined"];
        let told = ask(&web, &config);
        assert!(told.contains("predefined rule no-ads: resets its connections\n"), "{told}");
        assert!(
            told.contains("seen: marks its packets DSCP 10, copies its packets to 192.0.2.9, tunnel"),
            "{told}"
        );
        assert!(!told.contains("other"), "{told}");
        assert!(
            ask(&["--to", "192.0.2.1", "--predefined"], &config).ends_with("no predefined rule names it\n")
        );
    }
}
