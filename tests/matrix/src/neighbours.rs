//! Stations beside the user plane: whoever it looks for is there, at an Ethernet address made of its own.

use packet::arp::{LENGTH, Message, Operation, Station};
use packet::ethernet::{self, Header, MacAddress};
use packet::ipv6;
use packet::ndp::{self, NeighbourAdvertisement};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Where a station of this address is.
pub fn mac_of(address: Ipv4Addr) -> MacAddress {
    let [a, b, c, d] = address.octets();
    MacAddress([2, 1, a, b, c, d])
}

/// What a station answers if the frame asks where it is (RFC 826, RFC 4861); `Err` where the frame is about something else.
pub(crate) fn answer(frame: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
    if let Some(answer) = answer6(&frame) {
        return Ok(answer);
    }
    let is_arp = Header::parse(&frame).is_some_and(|header| header.ethertype() == ethernet::ARP);
    let message = frame.get(ethernet::LENGTH..).filter(|_| is_arp).and_then(Message::parse).copied();
    match message.filter(|message| message.operation() == Some(Operation::Request)) {
        Some(asked) => Ok(reply(&asked)),
        None => Err(frame),
    }
}

/// Where a station of this address is.
fn mac_of6(address: Ipv6Addr) -> MacAddress {
    let [.., a, b, c] = address.octets();
    MacAddress([2, 6, 0, a, b, c])
}

fn answer6(frame: &[u8]) -> Option<Vec<u8>> {
    Header::parse(frame).filter(|header| header.ethertype() == ethernet::IPV6)?;
    let packet = ipv6::Packet::parse(frame.get(ethernet::LENGTH..)?).ok()?;
    let Ok(ndp::Message::NeighbourSolicitation { target, source_link }) = ndp::Message::parse(&packet) else {
        return None;
    };
    let advertisement = NeighbourAdvertisement {
        target,
        router: true,
        solicited: true,
        overrides: true,
        target_link: Some(mac_of6(target)),
    };
    let mut answer = vec![0; 256];
    Header::new(source_link?, mac_of6(target), ethernet::IPV6).write(&mut answer)?;
    let (asker, message) = (packet.source(), ndp::Message::NeighbourAdvertisement(advertisement));
    let length = message.write(target, asker, &mut answer[ethernet::LENGTH..])?;
    answer.truncate(ethernet::LENGTH + length);
    Some(answer)
}

fn reply(asked: &Message) -> Vec<u8> {
    let (asker, wanted) = (asked.sender(), asked.target().address);
    let station = Station { mac: mac_of(wanted), address: wanted };
    let mut frame = vec![0; ethernet::LENGTH + LENGTH];
    let (header, payload) = frame.split_at_mut(ethernet::LENGTH);
    Header::new(asker.mac, station.mac, ethernet::ARP).write(header).unwrap();
    Message::new(Operation::Reply, station, asker).write(payload).unwrap();
    frame
}
