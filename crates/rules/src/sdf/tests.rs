use super::*;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

fn parsed(text: &str) -> FlowDescription {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> SdfError {
    text.parse::<FlowDescription>().unwrap_err()
}

fn end(prefix: &str, ports: &[(u16, u16)]) -> FlowEnd {
    let ports = ports.iter().map(|(first, last)| PortRange { first: *first, last: *last }).collect();
    let addresses = Some(prefix).filter(|prefix| !prefix.is_empty()).map(|p| match p.strip_prefix('!') {
        Some(others) => Addresses { prefix: others.parse().unwrap(), inverted: true },
        None => p.parse::<IpNet>().unwrap().into(),
    });
    FlowEnd { addresses, ports }
}

fn flow(protocol: impl Into<Option<u8>>, remote: FlowEnd, user: FlowEnd) -> FlowDescription {
    FlowDescription { protocol: protocol.into(), remote, user }
}

/// In the words of Open5GS (router solicitations, IMS), free5GC (ULCL), OMEC's simulator, and of the specification.
#[test]
fn what_control_planes_send_is_read() {
    let any = FlowEnd::default;
    let cases = [
        ("permit out ip from any to assigned", flow(None, any(), any())),
        ("permit out 58 from ff02::2/128 to assigned", flow(58, end("ff02::2/128", &[]), any())),
        ("permit out udp from 10.0.0.0/8 to assigned 80-80", {
            flow(17, end("10.0.0.0/8", &[]), end("", &[(80, 80)]))
        }),
        ("permit out udp from 10.200.136.98/32 23455 to assigned 1-65535", {
            flow(17, end("10.200.136.98/32", &[(23455, 23455)]), end("", &[(1, 65535)]))
        }),
        ("permit out ip from 10.60.0.0/16 to any", flow(None, end("10.60.0.0/16", &[]), any())),
        ("permit in ip from assigned to any", flow(None, any(), any())),
        ("permit out ip from 10.20.30.40 to assigned", flow(None, end("10.20.30.40/32", &[]), any())),
        ("permit out 17 from 10.1.0.0/16 5060 to assigned 1-65535", {
            flow(17, end("10.1.0.0/16", &[(5060, 5060)]), end("", &[(1, 65535)]))
        }),
        ("permit out 6 from 192.0.2.1 80,443,1000-2000 to 10.45.0.2", {
            flow(6, end("192.0.2.1/32", &[(80, 80), (443, 443), (1000, 2000)]), end("10.45.0.2/32", &[]))
        }),
        ("permit out ip from 0.0.0.0/0 to assigned", flow(None, end("0.0.0.0/0", &[]), any())),
        ("permit out 0 from 2001:db8::1 to any", flow(0, end("2001:db8::1/128", &[]), any())),
    ];
    for (text, expected) in cases {
        assert_eq!(parsed(text), expected, "{text}");
    }
}

#[test]
fn spaces_and_capitals_do_not_matter() {
    let plain = parsed("permit out 17 from any 53 to assigned");
    assert_eq!(parsed("  PERMIT\tOut  UDP from  ANY 53   To Assigned \n"), plain);
}

/// RFC 6733 4.3.1 has it; TS 29.212 5.4.2 has not.
#[test]
fn an_inverted_address_is_all_others() {
    let any = FlowEnd::default;
    let cases = [
        ("permit out ip from !10.0.0.1 to any", flow(None, end("!10.0.0.1/32", &[]), any())),
        ("permit out 6 from !10.0.0.0/8 443 to !2001:db8::/32", {
            flow(6, end("!10.0.0.0/8", &[(443, 443)]), end("!2001:db8::/32", &[]))
        }),
        ("permit in ip from !2001:db8::1 to any", flow(None, any(), end("!2001:db8::1/128", &[]))),
    ];
    for (text, expected) in cases {
        assert_eq!(parsed(text), expected, "{text}");
    }
    let error = refused("permit out ip from !any to assigned").to_string();
    assert_eq!(error, "\"!any\" leaves no address: \"!\" stands before an address, or a prefix of some");
}

#[test]
fn inwards_the_ends_change_places() {
    let out = parsed("permit out 6 from 192.0.2.0/24 80 to 10.0.0.1 1000");
    assert_eq!(parsed("permit in 6 from 10.0.0.1 1000 to 192.0.2.0/24 80"), out);
}

#[test]
fn the_assigned_end_is_the_users_whatever_the_direction() {
    let out = parsed("permit out 17 from 192.0.2.1 53 to assigned");
    assert_eq!(parsed("permit in 17 from assigned to 192.0.2.1 53"), out);
    assert_eq!(parsed("permit out 17 from assigned to 192.0.2.1 53"), out);
    assert_eq!(parsed("permit in 17 from 192.0.2.1 53 to assigned"), out);
    assert_eq!(parsed("permit out ip from assigned to any"), FlowDescription::default());
}

#[test]
fn what_is_not_allowed_is_named() {
    let word = |text: &str| text.to_owned();
    let cases = [
        ("deny out ip from any to any", SdfError::Denies(word("deny"))),
        ("permit out ip from any to !any", SdfError::NoAddress(word("!any"))),
        ("permit out ip from !0.0.0.0/0 to any", SdfError::NoAddress(word("!0.0.0.0/0"))),
        ("permit out ip from !10.0.0.1/0 to any", SdfError::NoAddress(word("!10.0.0.1/0"))),
        ("permit out ip from any to !::/0", SdfError::NoAddress(word("!::/0"))),
        ("permit out ip from any to !assigned", SdfError::Address(word("assigned"))),
        ("permit out ip from !!10.0.0.1 to any", SdfError::Address(word("!10.0.0.1"))),
        ("permit out ip from ! 10.0.0.1 to any", SdfError::Address(word(""))),
        ("permit out ip from any to any frag", SdfError::Option(word("frag"))),
        ("permit out 6 from any to assigned 80 established", SdfError::Option(word("established"))),
        ("permit out 6 from any to assigned 80 90", SdfError::Option(word("90"))),
        ("permit out 256 from any to any", SdfError::Protocol(word("256"))),
        ("permit out +6 from any to any", SdfError::Protocol(word("+6"))),
        ("permit out !6 from any to any", SdfError::Protocol(word("!6"))),
        ("permit out ip from 10.0.0.256 to any", SdfError::Address(word("10.0.0.256"))),
        ("permit out ip from 10.0.0.0/33 to any", SdfError::Address(word("10.0.0.0/33"))),
        ("permit out ip from 10.0.0.0:255.0.0.0 to any", SdfError::Address(word("10.0.0.0:255.0.0.0"))),
        ("permit out ip from 2001:db8::/129 to any", SdfError::Address(word("2001:db8::/129"))),
        ("permit out 6 from any 65536 to any", SdfError::Ports(word("65536"))),
        ("permit out 6 from any 90-80 to any", SdfError::Ports(word("90-80"))),
        ("permit out 6 from any 80, to any", SdfError::Ports(word("80,"))),
        ("permit out 6 from any 80-90-100 to any", SdfError::Ports(word("80-90-100"))),
        ("permit out 6 from any 1-+2 to any", SdfError::Ports(word("1-+2"))),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn what_stands_in_the_wrong_place_is_named() {
    let unexpected = |word: &str, expected| SdfError::Unexpected { word: word.to_owned(), expected };
    assert_eq!(refused("allow out ip from any to any"), unexpected("allow", "\"permit\""));
    assert_eq!(refused("permit both ip from any to any"), unexpected("both", "\"out\" or \"in\""));
    assert_eq!(refused("permit out ip any to any"), unexpected("any", "\"from\""));
    assert_eq!(refused("permit out ip from any any"), unexpected("any", "\"to\" or ports"));
    assert_eq!(refused(""), SdfError::Ends("\"permit\""));
    assert_eq!(refused("permit out ip from any to"), SdfError::Ends("an address"));
    assert_eq!(refused("permit out ip from any"), SdfError::Ends("\"to\" or ports"));
    let error = refused("permit out 6 from any x to any").to_string();
    assert_eq!(error, "\"x\" stands where \"to\" or ports should");
}

#[test]
fn the_length_is_limited() {
    let text = format!("permit out ip from any to {}", " ".repeat(1_024));
    assert_eq!(refused(&text), SdfError::TooLong(text.len()));
}

#[test]
fn the_longest_description_a_filter_may_have_can_be_read() {
    let ports = [(10_000, 20_000); crate::limits::PORT_RANGES];
    let widest = "!2001:1db8:1111:2222:3333:4444:5555:6666/127";
    let longest = flow(255, end(widest, &ports), end(widest, &ports));
    assert_eq!(parsed(&longest.to_string()), longest);
}

fn ends() -> impl Strategy<Value = FlowEnd> {
    let v4 = (any::<u32>(), 0..=32_u8).prop_map(|(bits, length)| net(Ipv4Addr::from(bits).into(), length));
    let v6 = (any::<u128>(), 0..=128_u8).prop_map(|(bits, length)| net(Ipv6Addr::from(bits).into(), length));
    let range = (any::<u16>(), any::<u16>())
        .prop_map(|(one, other)| PortRange { first: one.min(other), last: one.max(other) });
    let addresses = (prop_oneof![v4, v6], any::<bool>())
        .prop_map(|(prefix, inverted)| Addresses { prefix, inverted: inverted && prefix.prefix_len() > 0 });
    (proptest::option::of(addresses), proptest::collection::vec(range, 0..5))
        .prop_map(|(addresses, ports)| FlowEnd { addresses, ports })
}

fn net(address: std::net::IpAddr, length: u8) -> ipnet::IpNet {
    ipnet::IpNet::new(address, length).unwrap()
}

/// Words that belong and words that nearly do, in any order.
fn nearly() -> impl Strategy<Value = String> {
    let words = [
        "permit",
        "deny",
        "out",
        "in",
        "ip",
        "17",
        "from",
        "to",
        "any",
        "assigned",
        "!",
        "10.0.0.0/8",
        "::/0",
        "80",
        "80-90",
        "80,90",
        "-",
        ",",
        "frag",
        "10.0.0.1",
        "!10.0.0.1",
        "!::/0",
        "99999999999999999999",
        "é",
        "\0",
    ];
    proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..14).prop_map(|w| w.join(" "))
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(protocol: Option<u8>, remote in ends(), user in ends()) {
        let flow = FlowDescription { protocol, remote, user };
        prop_assert_eq!(flow.to_string().parse::<FlowDescription>(), Ok(flow));
    }

    /// Whatever is accepted means the same when written anew; nothing panics.
    #[test]
    fn any_text_is_read_or_refused(text in prop_oneof![any::<String>(), nearly()]) {
        if let Ok(flow) = text.parse::<FlowDescription>() {
            prop_assert_eq!(flow.to_string().parse::<FlowDescription>(), Ok(flow));
        }
    }
}
