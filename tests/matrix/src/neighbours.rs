//! Stations beside the user plane: whoever it looks for is there, at an Ethernet address made of its own.

use packet::arp::{LENGTH, Message, Operation, Station};
use packet::ethernet::{self, Header, MacAddress};
use std::net::Ipv4Addr;

/// Where a station of this address is.
pub fn mac_of(address: Ipv4Addr) -> MacAddress {
    let [a, b, c, d] = address.octets();
    MacAddress([2, 1, a, b, c, d])
}

/// What a station answers if the frame asks where it is (RFC 826); `Err` where the frame is about something else.
pub(crate) fn answer(frame: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
    let is_arp = Header::parse(&frame).is_some_and(|header| header.ethertype() == ethernet::ARP);
    let message = frame.get(ethernet::LENGTH..).filter(|_| is_arp).and_then(Message::parse).copied();
    match message.filter(|message| message.operation() == Some(Operation::Request)) {
        Some(asked) => Ok(reply(&asked)),
        None => Err(frame),
    }
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
