//! The router of the data network, over IPv6: it is where it is looked for.

use packet::ethernet::{self, Header, IPV6, MacAddress};
use packet::ipv6;
use packet::ndp::{Message, NeighbourAdvertisement};

const ROUTER: MacAddress = MacAddress([2, 9, 9, 9, 9, 9]);

/// The advertisement that answers a frame, where that is a solicitation (RFC 4861 7.2.4).
pub fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let asker = Header::parse(frame).filter(|header| header.ethertype() == IPV6)?.source;
    let packet = ipv6::Packet::parse(frame.get(ethernet::LENGTH..)?).ok()?;
    let Ok(Message::NeighbourSolicitation { target, .. }) = Message::parse(&packet) else { return None };
    let advertisement = Message::NeighbourAdvertisement(NeighbourAdvertisement {
        target,
        router: true,
        solicited: true,
        overrides: true,
        target_link: Some(ROUTER),
    });
    let mut answer = vec![0; 200];
    let (header, rest) = answer.split_at_mut(ethernet::LENGTH);
    Header::new(asker, ROUTER, IPV6).write(header).unwrap();
    let length = advertisement.write(target, packet.source(), rest)?;
    answer.truncate(ethernet::LENGTH + length);
    Some(answer)
}
