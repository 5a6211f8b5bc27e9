//! What an operator gets right, and what of it wrong.

use super::*;

const EXAMPLE: &str = include_str!("../../../../config/ran.toml");

/// The example with its only line of that beginning replaced: the error, which must be about that line.
fn error(beginning: &str, line: &str) -> String {
    let lines: Vec<&str> = EXAMPLE.lines().collect();
    let at = lines.iter().position(|l| l.starts_with(beginning)).expect("no such line in the example");
    let mut changed = lines.clone();
    changed[at] = line;
    let error = Config::parse(&changed.join("\n")).expect_err("it is accepted");
    assert_eq!(error.line(), Some(at + 1), "{error}");
    let text = error.to_string();
    assert!(text.starts_with(&format!("configuration, line {}: {line}: ", at + 1)), "{text}");
    text
}

#[test]
fn the_example_is_right() {
    let config = Config::parse(EXAMPLE).unwrap();
    assert_eq!(config.smf.node_id, NodeId::Ipv4(Ipv4Addr::new(10, 40, 0, 1)));
    assert_eq!(config.smf.upf.to_string(), "10.40.0.2:8805");
    assert_eq!(config.smf.f_teid, FTeidMode::Choose);
    assert_eq!(config.gnb.address, Ipv4Addr::new(10, 30, 0, 1));
    let [ue] = &config.ues[..] else { panic!("one UE") };
    assert_eq!((ue.tun.as_str(), ue.qfi.value(), ue.mtu.bytes()), ("ue0", 9, 1400));
    assert_eq!(ue.routes, ["10.50.0.0/24".parse().unwrap()]);
    assert_eq!((ue.mbr, ue.report_after_bytes), (None, None));
}

#[test]
fn what_may_be_left_out_has_a_default() {
    let without: Vec<&str> =
        EXAMPLE.lines().filter(|line| !line.starts_with("mtu") && !line.starts_with("routes")).collect();
    let config = Config::parse(&without.join("\n")).unwrap();
    assert_eq!((config.ues[0].mtu.bytes(), config.ues[0].routes.len()), (1400, 0));
}

#[test]
fn a_dialect_goes_by_its_name() {
    assert_eq!(Config::parse(EXAMPLE).unwrap().smf.dialect, Dialect::Plain);
    let text =
        |dialect: &str| EXAMPLE.replace("# dialect = \"open5gs\"", &format!("dialect = \"{dialect}\""));
    let given = |text: String| {
        text.replace("f_teid = \"choose\"", "f_teid = \"explicit\"").replace("# upf_n3", "upf_n3")
    };
    for dialect in Dialect::ALL.into_iter().filter(|dialect| !dialect.is_between()) {
        let text = text(dialect.name());
        let text = if dialect.picks_endpoints() == Some(true) { given(text) } else { text };
        assert_eq!(Config::parse(&text).unwrap().smf.dialect, dialect);
    }
    let error = Config::parse(&given(text("oai"))).unwrap_err().to_string();
    assert!(error.contains("only with f_teid = \"choose\""), "{error}");
}

#[test]
fn rates_and_reports_are_asked_for_by_ue() {
    let text = EXAMPLE.replace("# mbr = ", "mbr = ").replace("# report_after", "report_after");
    let ue = Config::parse(&text).unwrap().ues.remove(0);
    assert_eq!(ue.mbr, Some(BitRates { uplink_kbps: 10_000, downlink_kbps: 50_000 }));
    assert_eq!(ue.report_after_bytes, Some(1_000_000));
}

#[test]
fn an_unknown_key_is_refused_with_those_there_are() {
    let error = error("qfi", "qci = 9");
    assert!(error.contains("unknown field `qci`, expected one of `tun`, `address`, `qfi`"), "{error}");
}

#[test]
fn a_wrong_value_is_refused_with_what_is_allowed() {
    for (beginning, line, allowed) in [
        ("qfi", "qfi = 90", "a QFI is 0 to 63"),
        ("mtu", "mtu = 100", "an MTU is 576 to 9000"),
        ("mtu", "mtu = -1", "an MTU is 576 to 9000"),
        ("tun", "tun = \"a name too long\"", "1 to 15 letters"),
        ("node_id", "node_id = \"10.40.0.256\"", "an IPv4 address or a host name"),
        ("listen", "listen = \"0.0.0.0:8805\"", "not 0.0.0.0"),
        ("upf", "upf = \"10.40.0.1:8805\"", "must differ from smf.listen"),
        ("f_teid", "f_teid = \"maybe\"", "expected `choose` or `explicit`"),
        ("f_teid", "f_teid = \"explicit\"", "needs smf.upf_n3"),
        ("# dialect", "dialect = \"latin\"", "expected one of `plain`, `open5gs`"),
        ("# dialect", "dialect = \"free5gc\"", "only with f_teid = \"explicit\""),
        ("# dialect", "dialect = \"open5gs-sgw-c\"", "a RAN alone is not enough"),
        ("# upf_n3", "upf_n3 = \"10.30.0.2\"", "only with f_teid = \"explicit\""),
        ("routes", "routes = [\"10.50.0.0/33\"]", "must be IPv4 prefixes such as 10.50.0.0/24"),
        ("listen", "listen = 8805", "expected a string"),
        ("# mbr", "mbr = { uplink_kbps = 0, downlink_kbps = 5 }", "rates are 1 to"),
        ("# mbr", "mbr = { uplink_kbps = 1 }", "missing field `downlink_kbps`"),
        ("# report_after_bytes", "report_after_bytes = 0", "must be at least 1"),
        ("listen", "listen = \"10.40.0.1\"", "must be an IPv4 address and a UDP port"),
    ] {
        let error = error(beginning, line);
        assert!(error.contains(allowed), "{error}");
    }
}

#[test]
fn ues_share_neither_device_nor_address() {
    let ue =
        |tun: &str, address: &str| format!("[[ue]]\ntun = \"{tun}\"\naddress = \"{address}\"\nqfi = 9\n");
    let error = |second: String| Config::parse(&format!("{EXAMPLE}{second}")).unwrap_err().to_string();
    assert!(error(ue("ue0", "10.60.0.2")).contains("tun = \"ue0\": another UE has this device"));
    assert!(error(ue("ue1", "10.60.0.1")).contains("address = \"10.60.0.1\": another UE has this address"));
    assert!(Config::parse(&format!("{EXAMPLE}{}", ue("ue1", "10.60.0.2"))).is_ok());
}

#[test]
fn without_a_ue_there_is_nothing_to_do() {
    let text = EXAMPLE.split("[[ue]]").next().unwrap();
    let error = Config::parse(text).unwrap_err();
    assert_eq!((error.line(), error.to_string().contains("at least one [[ue]]")), (None, true));
}

#[test]
fn a_missing_key_is_named_with_its_table() {
    let text: Vec<&str> = EXAMPLE.lines().filter(|line| !line.starts_with("upf = ")).collect();
    let error = Config::parse(&text.join("\n")).unwrap_err();
    assert!(error.to_string().contains("[smf]: missing field `upf`"), "{error}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Config::read(Path::new("/nowhere/ran.toml")).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/ran.toml: cannot be read"), "{error}");
}
