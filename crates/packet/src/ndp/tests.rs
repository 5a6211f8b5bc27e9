use super::*;
use crate::ethernet::MacAddress;
use crate::{checksum, ipv6, protocol};
use proptest::prelude::*;

const US: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const THEM: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0x12, 0x3456);
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 3, 1]);

fn parse(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    Message::parse(&ipv6::Packet::parse(bytes).unwrap())
}

fn write(message: Message<'_>, source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    let mut bytes = vec![0; 300];
    let length = message.write(source, destination, &mut bytes).unwrap();
    bytes.truncate(length);
    bytes
}

/// The packet with a new payload and a right checksum.
fn with_message(mut bytes: Vec<u8>, message: &[u8]) -> Vec<u8> {
    bytes.truncate(40);
    bytes.extend(message);
    bytes[5] = message.len() as u8;
    bytes[42..44].fill(0);
    let sum = checksum::add(
        checksum::sum(&bytes[40..]),
        ipv6::Packet::parse(&bytes).unwrap().pseudo_sum(protocol::ICMPV6, message.len()),
    );
    bytes[42..44].copy_from_slice(&(!sum).to_be_bytes());
    bytes
}

fn solicitation() -> Message<'static> {
    Message::NeighbourSolicitation { target: THEM, source_link: Some(MAC) }
}

fn advertisement(solicited: bool) -> Message<'static> {
    Message::NeighbourAdvertisement(NeighbourAdvertisement {
        target: US,
        router: true,
        solicited,
        overrides: true,
        target_link: Some(MAC),
    })
}

#[test]
fn groups_of_an_address() {
    assert_eq!(solicited_node(THEM).to_string(), "ff02::1:ff12:3456");
    assert_eq!(multicast_mac(solicited_node(THEM)).to_string(), "33:33:ff:12:34:56");
}

#[test]
fn each_fault_has_its_name() {
    let good = write(solicitation(), US, solicited_node(THEM));
    assert_eq!(parse(&good), Ok(solicitation()));
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    assert_eq!(parse(&with(6, protocol::UDP)), Err(Malformed::Kind));
    assert_eq!(parse(&with(7, 254)), Err(Malformed::HopLimit));
    assert_eq!(parse(&with(63, 9)), Err(Malformed::Checksum));
    let message = good[40..].to_vec();
    let changed = |at: usize, value: u8| {
        let mut message = message.clone();
        message[at] = value;
        with_message(good.clone(), &message)
    };
    assert_eq!(parse(&changed(0, 137)), Err(Malformed::Kind));
    assert_eq!(parse(&changed(1, 1)), Err(Malformed::Code));
    assert_eq!(parse(&changed(8, 0xff)), Err(Malformed::Address));
    assert_eq!(parse(&changed(25, 0)), Err(Malformed::Option));
    assert_eq!(parse(&changed(25, 2)), Err(Malformed::Option));
    let fragment = [&[protocol::ICMPV6, 0, 0, 0, 0, 0, 0, 1][..], &message].concat();
    let mut bytes = with_message(good.clone(), &fragment);
    bytes[6] = protocol::FRAGMENT;
    assert_eq!(parse(&bytes), Err(Malformed::Fragment));
}

#[test]
fn messages_cut_anywhere_are_refused() {
    let servers = [[1; 16]];
    let advertised = RouterAdvertisement {
        mtu: Some(1400),
        dns: Some(Dns { lifetime_s: 1, servers: &servers }),
        ..RouterAdvertisement::default()
    };
    for message in [solicitation(), advertisement(true), Message::RouterAdvertisement(advertised)] {
        let whole = write(message, US, THEM);
        for length in 0..whole.len() - 40 {
            let cut = with_checksum_if_any(&whole, length);
            match parse(&cut) {
                // Cut between two options, it is a message with fewer of them.
                Ok(fewer) => assert!(fewer != message && length >= 16 && length % 8 == 0, "{length} bytes"),
                Err(fault) => {
                    assert!(matches!(fault, Malformed::Truncated | Malformed::Option), "{length} bytes")
                }
            }
        }
        for length in 0..whole.len() {
            assert_eq!(message.write(US, THEM, &mut vec![0; length]), None);
        }
    }
}

fn with_checksum_if_any(whole: &[u8], length: usize) -> Vec<u8> {
    if length >= 4 {
        return with_message(whole.to_vec(), &whole[40..40 + length]);
    }
    let mut cut = whole[..40 + length].to_vec();
    cut[5] = length as u8;
    cut
}

#[test]
fn which_addresses_may_be_where() {
    let nobody = Ipv6Addr::UNSPECIFIED;
    let global = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let address = |message, source, destination| parse(&write(message, source, destination)).err();
    let wrong = Some(Malformed::Address);
    let probe = Message::NeighbourSolicitation { target: THEM, source_link: None };
    assert_eq!(address(probe, nobody, solicited_node(THEM)), None);
    assert_eq!(address(probe, nobody, THEM), wrong);
    assert_eq!(address(solicitation(), nobody, solicited_node(THEM)), wrong);
    assert_eq!(address(advertisement(true), US, ALL_NODES), wrong);
    assert_eq!(address(advertisement(false), US, ALL_NODES), None);
    let router = Message::RouterAdvertisement(RouterAdvertisement::default());
    assert_eq!((address(router, US, ALL_NODES), address(router, global, ALL_NODES)), (None, wrong));
    let ask = |source_link| Message::RouterSolicitation { source_link };
    assert_eq!(
        (address(ask(None), nobody, ALL_ROUTERS), address(ask(Some(MAC)), nobody, ALL_ROUTERS)),
        (None, wrong)
    );
    assert_eq!(address(ask(Some(MAC)), US, ALL_ROUTERS), None);
}

#[test]
fn too_many_options_are_refused() {
    let plain = write(Message::RouterSolicitation { source_link: None }, US, ALL_ROUTERS);
    let with = |count: usize| {
        let options = [14, 1, 0, 0, 0, 0, 0, 0].repeat(count);
        let mut bytes = [&plain[..], &options].concat();
        let length = 8 + options.len();
        bytes[4..6].copy_from_slice(&(length as u16).to_be_bytes());
        bytes[42..44].fill(0);
        let pseudo = ipv6::pseudo_sum(US, ALL_ROUTERS, protocol::ICMPV6, length);
        let sum = checksum::add(checksum::sum(&bytes[40..]), pseudo);
        bytes[42..44].copy_from_slice(&(!sum).to_be_bytes());
        bytes
    };
    assert!(parse(&with(32)).is_ok());
    assert_eq!(parse(&with(33)), Err(Malformed::Option));
}

fn mac() -> impl Strategy<Value = Option<MacAddress>> {
    proptest::option::of(any::<[u8; 6]>().prop_map(MacAddress))
}

fn prefix() -> impl Strategy<Value = Option<Prefix>> {
    let values = (any::<Ipv6Addr>(), 0u8..=128, any::<(bool, bool, u32, u32)>());
    proptest::option::of(values.prop_map(|(address, length, (on_link, autonomous, valid_s, preferred_s))| {
        Prefix { address, length, on_link, autonomous, valid_s, preferred_s }
    }))
}

proptest! {
    #[test]
    fn a_router_advertisement_reads_as_it_was_written(
        fixed: (u8, bool, bool, u16, u32, u32),
        source_link in mac(),
        mtu: Option<u32>,
        prefix in prefix(),
        servers in proptest::collection::vec(any::<[u8; 16]>(), 0..4),
        lifetime_s: u32,
    ) {
        let (hop_limit, managed, other, router_lifetime, reachable_ms, retransmit_ms) = fixed;
        let dns = (!servers.is_empty()).then_some(Dns { lifetime_s, servers: &servers });
        let sent = Message::RouterAdvertisement(RouterAdvertisement {
            hop_limit, managed, other, lifetime_s: router_lifetime, reachable_ms, retransmit_ms, source_link, mtu, prefix, dns,
        });
        let bytes = write(sent, US, ALL_NODES);
        prop_assert_eq!(parse(&bytes), Ok(sent));
    }

    #[test]
    fn a_solicitation_reads_as_it_was_written(target: [u8; 16], source_link in mac()) {
        let target = Ipv6Addr::from(target);
        let sent = Message::NeighbourSolicitation { target, source_link };
        let bytes = write(sent, US, THEM);
        prop_assert_eq!(parse(&bytes), if target.is_multicast() { Err(Malformed::Address) } else { Ok(sent) });
    }

    #[test]
    fn any_message_reads_or_fails(kind in 133u8..137, body in proptest::collection::vec(any::<u8>(), 0..100)) {
        let good = write(solicitation(), US, THEM);
        let bytes = with_message(good, &[&[kind, 0, 0, 0][..], &body].concat());
        if let Ok(read) = parse(&bytes) {
            prop_assert!(body.len() >= 4, "{read:?} of {} bytes", body.len());
        }
    }
}
