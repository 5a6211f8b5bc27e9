//! Forwarding policies: two routers on N6 beside the way that the routes say, and a control plane that has a user's packets go by
//! one, by the other, and by neither.

use crate::Test;
use crate::gateways::{ControlPlane, ENB_TEID, Radio, endpoint, far, pdi, pdr};
use anyhow::{Context, Result, bail, ensure};
use lab::address::{GNB_N3, SERVER, SMF_N4, UE, UE_POOL, UPF_N6};
use lab::anchorline::Node;
use lab::config::{self, Driver};
use lab::{Core, Lab, Namespace, command};
use pfcp::{
    Body, Cause, CreateFar, DestinationInterface, FSeid, FTeid, ForwardingParameters, Message, NodeId,
    PdnType, RawIe, SessionEstablishmentRequest, SessionEstablishmentResponse, SessionModificationRequest,
    SourceInterface, UeIpAddress, UpdateFar, UpdateForwardingParameters, ie,
};
use std::fs;

pub(crate) const TESTS: &[Test] =
    &[("packets_of_a_user_go_by_the_next_hop_of_their_policy", Core::Engine, steered)];

const POLICIES: &str = r#"
[[dpe.forwarding_policy]]
name = "scrub"
via = "10.50.0.77"
[[dpe.forwarding_policy]]
name = "wash"
via = "10.50.0.78"
"#;
const PINGS: u16 = 10;

fn steered(lab: &Lab) -> Result<()> {
    bridge(lab)?;
    let (scrub, wash) = (router(lab, "scrub", "10.50.0.77")?, router(lab, "wash", "10.50.0.78")?);
    let path = config::write_upf(lab.dir.path(), Driver::AfPacket)?;
    fs::write(&path, fs::read_to_string(&path)? + POLICIES)?;
    let node = Node::start_by(lab, path)?;
    let mut control = ControlPlane::associate(lab)?;

    let refused = establish(&mut control, 1, "shine")?;
    let blamed = (refused.cause, refused.offending_ie, refused.up_f_seid.is_some());
    ensure!(blamed == (Cause::InvalidForwardingPolicy, Some(ie::FORWARDING_POLICY), false), "{refused:?}");
    node.wait_sessions(0)?;

    let created = establish(&mut control, 2, "scrub")?;
    ensure!(created.cause.is_accepted(), "{created:?}");
    let seid = created.up_f_seid.context("no F-SEID")?.seid;
    let radio = Radio::open(lab, endpoint(&created.created_pdrs, 1)?.0)?;
    let both = || Ok::<_, anyhow::Error>((forwarded(&scrub)?, forwarded(&wash)?));
    for (policy, expected) in
        [(None, (PINGS, 0)), (Some("wash"), (0, PINGS)), (Some(""), (0, 0)), (Some("scrub"), (PINGS, 0))]
    {
        policy.map_or(Ok(()), |policy| modify(&mut control, seid, policy))?;
        let before = both()?;
        (0..PINGS).try_for_each(|number| radio.ping(number))?;
        let after = both()?;
        let seen = (after.0 - before.0, after.1 - before.1);
        ensure!(seen == (expected.0.into(), expected.1.into()), "{policy:?}: {seen:?} by scrub and wash");
    }
    let told = node.ctl(&format!("explain --ue {UE} --to {SERVER} --protocol icmp"))?;
    ensure!(told.contains("policy:   \"scrub\"") && told.contains("10.50.0.77"), "{told}");
    node.wait_balance()?;
    node.stop()
}

/// N6 becomes a wire of more than two ends.
fn bridge(lab: &Lab) -> Result<()> {
    for words in [
        "link add name lan type bridge".to_owned(),
        format!("addr del {SERVER}/24 dev n6"),
        "link set n6 master lan".to_owned(),
        "link set lan up".to_owned(),
        format!("addr add {SERVER}/24 dev lan"),
        format!("route replace {UE_POOL} via {UPF_N6}"),
    ] {
        lab.dn.ip(&words)?;
    }
    Ok(())
}

/// A router on N6 that leads what comes to where it is sent.
fn router(lab: &Lab, name: &str, address: &str) -> Result<Namespace> {
    let namespace = lab.namespace(name)?;
    lab.dn.ip(&format!("link add {name} type veth peer name n6 netns {}", namespace.name()))?;
    lab.dn.run(&format!("ethtool -K {name} tx off"), command::SHORT)?;
    lab.dn.ip(&format!("link set {name} master lan"))?;
    lab.dn.ip(&format!("link set {name} up"))?;
    namespace.run("ethtool -K n6 tx off", command::SHORT)?;
    namespace.ip(&format!("addr add {address}/24 dev n6"))?;
    namespace.ip("link set n6 up")?;
    namespace.ip(&format!("route add default via {SERVER}"))?;
    namespace.sysctl("ipv4/ip_forward", "1")?;
    // Its user is to hear of no shorter way: we go the one we are told.
    namespace.sysctl("ipv4/conf/n6/send_redirects", "0")?;
    namespace.sysctl("ipv4/conf/all/send_redirects", "0")?;
    Ok(namespace)
}

/// Packets a router has forwarded (RFC 4293, ipForwDatagrams).
fn forwarded(router: &Namespace) -> Result<u64> {
    let text = router.run("cat /proc/net/snmp", command::SHORT)?;
    let mut lines = text.lines().filter(|line| line.starts_with("Ip:")).map(str::split_whitespace);
    let (names, values) = lines.next().zip(lines.next()).context("no counts of IP")?;
    let count = names.zip(values).find(|(name, _)| *name == "ForwDatagrams");
    Ok(count.context("no count of packets forwarded")?.1.parse()?)
}

fn policy(name: &str) -> RawIe {
    let length = if name.is_empty() { vec![] } else { vec![name.len() as u8] };
    RawIe { ie: ie::FORWARDING_POLICY, value: [&length, name.as_bytes()].concat() }
}

fn establish(control: &mut ControlPlane, seid: u64, name: &str) -> Result<SessionEstablishmentResponse> {
    let n3 = pdi(SourceInterface::Access, Some(FTeid::choose(None)));
    let ue = UeIpAddress { ipv4: Some(UE), is_destination: true, ..UeIpAddress::default() };
    let n6 = pfcp::Pdi { ue_ip_addresses: vec![ue], ..pdi(SourceInterface::Core, None) };
    let mut out: CreateFar = far(1, (DestinationInterface::Core, None));
    let to = out.forwarding_parameters.get_or_insert(ForwardingParameters::new(DestinationInterface::Core));
    to.carried.push(policy(name));
    let back = far(2, (DestinationInterface::Access, Some((ENB_TEID, GNB_N3))));
    let (node_id, f_seid) = (NodeId::Ipv4(SMF_N4), FSeid::new(seid, SMF_N4.into()));
    let request = SessionEstablishmentRequest {
        pdn_type: Some(PdnType::Ipv4),
        ..SessionEstablishmentRequest::new(node_id, f_seid, vec![pdr(1, n3), pdr(2, n6)], vec![out, back])
    };
    let number = control.number();
    match control.ask(&Message::session(0, number, request))? {
        Body::SessionEstablishmentResponse(response) => Ok(response),
        other => bail!("no answer to an establishment: {other:?}"),
    }
}

/// Without a name, the policy goes (TS 29.244 5.6.3).
fn modify(control: &mut ControlPlane, seid: u64, name: &str) -> Result<()> {
    let to = UpdateForwardingParameters { carried: vec![policy(name)], ..Default::default() };
    let update = UpdateFar { update_forwarding_parameters: Some(to), far_id: 1, ..UpdateFar::default() };
    let request = SessionModificationRequest { update_fars: vec![update], ..Default::default() };
    let number = control.number();
    match control.ask(&Message::session(seid, number, request))? {
        Body::SessionModificationResponse(response) if response.cause.is_accepted() => Ok(()),
        other => bail!("not modified: {other:?}"),
    }
}
