//! From text to [`Config`]: what each value alone must be is its type's business; what values must be together is
//! checked here.

use super::values::{AddressText, EndpointText, RouteText};
use super::{Config, FTeidMode, GnbConfig, Mtu, SmfConfig, TunName, UeConfig};
use crate::smf::Dialect;
use ::config::{NodeIdText, Refusal, Spanned};
use pfcp::NodeId;
use rules::{BitRates, Qfi};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    smf: Smf,
    gnb: Gnb,
    #[serde(default)]
    ue: Vec<Ue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Smf {
    node_id: NodeIdText,
    listen: Spanned<EndpointText>,
    upf: Spanned<EndpointText>,
    f_teid: Spanned<FTeid>,
    upf_n3: Option<Spanned<AddressText>>,
    dialect: Option<Spanned<Dialect>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FTeid {
    Choose,
    Explicit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gnb {
    address: Spanned<AddressText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ue {
    tun: Spanned<TunName>,
    address: Spanned<AddressText>,
    qfi: Qfi,
    #[serde(default)]
    mtu: Mtu,
    #[serde(default)]
    routes: Vec<RouteText>,
    mbr: Option<Spanned<Mbr>>,
    report_after_bytes: Option<Spanned<u64>>,
    #[serde(default)]
    ethernet: bool,
    #[serde(default)]
    predefined_rules: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mbr {
    uplink_kbps: u64,
    downlink_kbps: u64,
}

/// The largest bit rate of PFCP (TS 29.244 8.2.8).
const MAX_RATE_KBPS: u64 = (1 << 40) - 1;

/// The user plane is told this address: it must be one that can be reached.
const UNSPECIFIED: &str = "must be an address of this host, not 0.0.0.0";

pub(super) fn check(file: File) -> Result<Config, Refusal> {
    check_ues(&file.ue)?;
    Ok(Config { smf: smf(file.smf)?, gnb: gnb(&file.gnb)?, ues: file.ue.into_iter().map(ue).collect() })
}

fn smf(smf: Smf) -> Result<SmfConfig, Refusal> {
    if smf.listen.get_ref().0.ip().is_unspecified() {
        return Err(Refusal::of(&smf.listen, UNSPECIFIED));
    }
    if smf.upf.get_ref() == smf.listen.get_ref() {
        return Err(Refusal::of(&smf.upf, "must differ from smf.listen"));
    }
    let f_teid = f_teid_mode(&smf)?;
    let dialect = dialect(&smf)?;
    Ok(SmfConfig {
        node_id: match smf.node_id {
            NodeIdText::Ipv4(address) => NodeId::Ipv4(address),
            NodeIdText::Ipv6(address) => NodeId::Ipv6(address),
            NodeIdText::Fqdn(name) => NodeId::Fqdn(name),
        },
        listen: smf.listen.into_inner().0,
        upf: smf.upf.into_inner().0,
        f_teid,
        dialect,
    })
}

fn gnb(gnb: &Gnb) -> Result<GnbConfig, Refusal> {
    match gnb.address.get_ref() {
        AddressText(address) if address.is_unspecified() => Err(Refusal::of(&gnb.address, UNSPECIFIED)),
        AddressText(address) => Ok(GnbConfig { address: *address }),
    }
}

fn f_teid_mode(smf: &Smf) -> Result<FTeidMode, Refusal> {
    match (*smf.f_teid.get_ref(), &smf.upf_n3) {
        (FTeid::Choose, None) => Ok(FTeidMode::Choose),
        (FTeid::Explicit, Some(address)) => Ok(FTeidMode::Explicit(address.get_ref().0)),
        (FTeid::Explicit, None) => {
            Err(Refusal::of(&smf.f_teid, "needs smf.upf_n3, the user plane's N3 address"))
        }
        (FTeid::Choose, Some(address)) => {
            Err(Refusal::of(address, "smf.upf_n3 goes only with f_teid = \"explicit\""))
        }
    }
}

/// A control plane that picks endpoints itself never asks for one, and the other way round.
fn dialect(smf: &Smf) -> Result<Dialect, Refusal> {
    let Some(spanned) = &smf.dialect else { return Ok(Dialect::default()) };
    let (dialect, picks) = (*spanned.get_ref(), matches!(smf.f_teid.get_ref(), FTeid::Explicit));
    match dialect.picks_endpoints() {
        _ if dialect.is_between() => {
            Err(Refusal::of(spanned, "is that of a gateway between two others; a RAN alone is not enough"))
        }
        Some(true) if !picks => Err(Refusal::of(spanned, "goes only with f_teid = \"explicit\"")),
        Some(false) if picks => Err(Refusal::of(spanned, "goes only with f_teid = \"choose\"")),
        _ => Ok(dialect),
    }
}

fn check_ues(ues: &[Ue]) -> Result<(), Refusal> {
    if ues.is_empty() {
        return Err(Refusal::absent("at least one [[ue]] is needed"));
    }
    for (n, ue) in ues.iter().enumerate() {
        let others = || ues.iter().take(n);
        if others().any(|other| other.tun.get_ref() == ue.tun.get_ref()) {
            return Err(Refusal::of(&ue.tun, "another UE has this device; each needs its own"));
        }
        if others().any(|other| other.address.get_ref() == ue.address.get_ref()) {
            return Err(Refusal::of(&ue.address, "another UE has this address; each needs its own"));
        }
        check_limits(ue)?;
    }
    Ok(())
}

fn check_limits(ue: &Ue) -> Result<(), Refusal> {
    let fits = |rate: u64| (1..=MAX_RATE_KBPS).contains(&rate);
    if let Some(mbr) = &ue.mbr
        && !(fits(mbr.get_ref().uplink_kbps) && fits(mbr.get_ref().downlink_kbps))
    {
        return Err(Refusal::of(mbr, "rates are 1 to 1099511627775 kbit/s"));
    }
    match &ue.report_after_bytes {
        Some(bytes) if *bytes.get_ref() == 0 => Err(Refusal::of(bytes, "must be at least 1")),
        _ => Ok(()),
    }
}

fn ue(ue: Ue) -> UeConfig {
    let mbr = ue.mbr.map(Spanned::into_inner);
    UeConfig {
        tun: ue.tun.into_inner(),
        address: ue.address.into_inner().0,
        qfi: ue.qfi,
        mtu: ue.mtu,
        routes: ue.routes.iter().map(|route| route.0.trunc()).collect(),
        mbr: mbr.map(|mbr| BitRates { uplink_kbps: mbr.uplink_kbps, downlink_kbps: mbr.downlink_kbps }),
        report_after_bytes: ue.report_after_bytes.map(Spanned::into_inner),
        ethernet: ue.ethernet,
        predefined_rules: ue.predefined_rules,
    }
}
