//! Traffic of real programs, live: every flow is charged under the service it is labelled with, all of it and nothing else.
//!
//! Each service has a server address of its own, which is its label: no rule knows of it. Rules name hosts, and what was
//! charged under each rating group is compared with what was on the wires by the server's address, to the byte.
//!
//! With `ANCHORLINE_CAPTURES` naming a folder, the captures of the N6 wire are put there, as `programs.pcap` and
//! `chromium.pcap`: `crates/dpi/golden` has them, and tests of the crates replay them.

mod clients;
mod ledger;
mod servers;

use crate::Test;
use anyhow::{Context, Result};
use lab::anchorline::{Node, Ran};
use lab::{Core, Lab, config, wait};
use ledger::Wire;
use servers::Servers;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

pub(crate) const TESTS: &[Test] = &[
    ("real_programs_are_charged_by_what_they_do", Core::Engine, |lab| run(lab, By::Applications, programs)),
    ("real_programs_are_charged_by_content_rules_alone", Core::Engine, |lab| {
        run(lab, By::ContentRules, programs)
    }),
    ("chromium_is_charged_by_what_it_does", Core::Engine, |lab| match clients::has_chromium() {
        true => run(lab, By::Applications, chromium),
        false => {
            println!("skipped: there is no /usr/bin/chromium; `apt-get install chromium` brings it");
            Ok(())
        }
    }),
];

/// Charged for what is of no service.
const OTHER: u32 = 1;

/// A service of the data network.
struct Service {
    /// The last octet of its address, and its rating group.
    number: u8,
    host: &'static str,
    /// Over TCP without TLS.
    is_clear: bool,
}

impl Service {
    const fn over_tls(number: u8, host: &'static str) -> Self {
        Self { number, host, is_clear: false }
    }

    const fn in_the_clear(number: u8, host: &'static str) -> Self {
        Self { number, host, is_clear: true }
    }

    const fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 50, 0, self.number)
    }

    const fn rating_group(&self) -> u32 {
        self.number as u32
    }
}

static HTTP: Service = Service::in_the_clear(11, "http.example");
static TLS_1_2: Service = Service::over_tls(12, "tls12.example");
static TLS_1_3: Service = Service::over_tls(13, "tls13.example");
static HTTP_2: Service = Service::over_tls(14, "h2.example");
/// Its requests are compressed: whom they ask is known from the lookup before.
static HTTP_2_CLEAR: Service = Service::in_the_clear(15, "h2c.example");
static HTTP_3: Service = Service::over_tls(16, "h3.example");
static DNS: Service = Service::in_the_clear(17, "resolver.example");
static PAGE: Service = Service::in_the_clear(18, "page.example");
static PAGE_HTTP_2: Service = Service::over_tls(19, "page-h2.example");
static PAGE_HTTP_3: Service = Service::over_tls(20, "page-h3.example");

static SERVICES: [&Service; 10] =
    [&HTTP, &TLS_1_2, &TLS_1_3, &HTTP_2, &HTTP_2_CLEAR, &HTTP_3, &DNS, &PAGE, &PAGE_HTTP_2, &PAGE_HTTP_3];

/// Makes traffic; the rating groups that it is of.
type Traffic = fn(&Lab, &Servers) -> Result<Vec<u32>>;

fn programs(lab: &Lab, servers: &Servers) -> Result<Vec<u32>> {
    // More than one connection of each: the second may be known by what the first taught.
    for _ in 0..2 {
        clients::curl(lab, &HTTP, ("--http1.1", "HTTP/1.1"))?;
        clients::curl(lab, &TLS_1_2, ("--tls-max 1.2 --http1.1", "HTTP/1.1"))?;
        clients::curl(lab, &TLS_1_3, ("--tlsv1.3 --http1.1", "HTTP/1.1"))?;
        clients::curl(lab, &HTTP_2, ("--http2", "HTTP/2.0"))?;
        clients::dig(lab, &HTTP_2_CLEAR)?;
        clients::curl(lab, &HTTP_2_CLEAR, ("--http2-prior-knowledge", "HTTP/2.0"))?;
        clients::quinn(lab, &HTTP_3, &servers.certificate)?;
        clients::curl_by_address(lab)?;
    }
    let used = [&HTTP, &TLS_1_2, &TLS_1_3, &HTTP_2, &HTTP_2_CLEAR, &HTTP_3, &DNS];
    Ok(used.map(|service| service.rating_group()).into_iter().chain([OTHER]).collect())
}

fn chromium(lab: &Lab, servers: &Servers) -> Result<Vec<u32>> {
    let pages = [(&PAGE, "HTTP/1.1"), (&PAGE_HTTP_2, "HTTP/2.0"), (&PAGE_HTTP_3, "HTTP/3.0")];
    // Browsers open more connections than they use: of one that says nothing, only the lookup before it tells.
    clients::dig(lab, &PAGE)?;
    for (service, version) in pages {
        clients::chromium(lab, service, (&servers.certificate, version))?;
    }
    Ok(pages.map(|(service, _)| service.rating_group()).into_iter().chain([DNS.rating_group()]).collect())
}

/// What has the rating groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Predefined rules for applications, which users' sessions activate.
    Applications,
    /// Content rules: sessions know of nothing, and half of the rules have no application.
    ContentRules,
}

fn run(lab: &Lab, by: By, traffic: Traffic) -> Result<()> {
    let (dir, folder) = (lab.dir.path(), lab.dir.path().join("cdr"));
    let (_, config) = config::write_upf_content(dir, &content(by), &charging(by, &folder))?;
    let servers = Servers::start(lab)?;
    let n3 = Wire::start(&lab.ran, "n3", dir)?;
    let n6 = Wire::start(&lab.dn, "n6", dir)?;
    let node = Node::start_by(lab, config)?;
    let hosts: Vec<&str> = match by {
        By::Applications => SERVICES.iter().map(|service| service.host).collect(),
        By::ContentRules => vec![],
    };
    let ran = Ran::run(lab, &config::write_ran_predefined(dir, &hosts)?)?;
    node.wait_sessions(ran.sessions)?;
    node.wait_content()?;
    let used = traffic(lab, &servers)?;
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance()?;
    let charged = wait::until("records", Duration::from_secs(20), || {
        Ok(Some(ledger::charged(&folder)?).filter(|charged| !charged.is_empty()))
    })?;
    node.stop()?;
    let (n3, n6) = (n3.finish()?, n6.finish()?);
    keep(&n6, lab.dir.path())?;
    ledger::compare(&ledger::forwarded(&n3, &n6)?, &charged, &used)
}

/// Copies a capture to where it is asked for.
fn keep(capture: &Path, dir: &Path) -> Result<()> {
    let Some(folder) = env::var_os("ANCHORLINE_CAPTURES") else { return Ok(()) };
    let is_of = |name: &str| dir.file_name().is_some_and(|dir| dir.to_string_lossy().starts_with(name));
    let name = if is_of("chromium") { "chromium.pcap" } else { "programs.pcap" };
    let to = Path::new(&folder).join(name);
    fs::copy(capture, &to).with_context(|| format!("cannot write {}", to.display())).map(drop)
}

/// A rule for each service: what it is asked for, or what is spoken.
fn content(by: By) -> String {
    let line = |service: &&Service| {
        let Service { number, host, .. } = service;
        let what = if *number == DNS.number { "layer=dns".to_owned() } else { format!("host={host}") };
        let has_application = by == By::Applications || number % 2 == 0;
        let application = if has_application { format!("application={host}") } else { String::new() };
        format!("id={number} precedence={number} rating-group={number} {application} {what}\n")
    };
    SERVICES.iter().map(line).collect()
}

/// Charging, of what is of no service, too; and what charges each service.
fn charging(by: By, folder: &Path) -> String {
    let of_service = |service: &&Service| {
        let Service { number, host, .. } = service;
        match by {
            By::Applications => format!(
                "[[n4.predefined_rule]]\nname = \"{host}\"\napplication = \"{host}\"\nprecedence = {number}\n\
                 rating_group = {number}\n"
            ),
            By::ContentRules => format!("[[charging.content]]\nrating_group = {number}\n"),
        }
    };
    let charging = format!(
        "[charging]\ndirectory = \"{}\"\nformats = [\"json\"]\ndefault_rating_group = {OTHER}\nfile_max_s = 1\n\
         min_free_mb = 0\n",
        folder.display()
    );
    [charging].into_iter().chain(SERVICES.iter().map(of_service)).collect()
}
