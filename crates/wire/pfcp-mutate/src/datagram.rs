//! A message as it is sent: a header and IEs (TS 29.244 7.2).

use crate::tree::{self, Tree};

/// Octets before those that the length counts.
const UNCOUNTED: usize = 4;
/// The flag of a header with a SEID.
const S: u8 = 1;

/// A message taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Version and flags, then the type.
    pub first: [u8; 2],
    /// Whose session it is about, where the header has room for it.
    pub seid: Option<u64>,
    /// 24 bits of sequence number, then an octet of priority.
    pub sequence: [u8; 4],
    /// The IEs.
    pub body: Vec<Tree>,
    /// What is behind the last whole IE.
    pub rest: Vec<u8>,
    /// The length it says it has, where that is a lie.
    pub lie: Option<u16>,
}

impl Datagram {
    /// Takes apart what has a header, whatever length that tells; `None` for what has none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let ([flags, kind, _, _], rest) = bytes.split_first_chunk()?;
        let (seid, rest) = match flags & S {
            0 => (None, rest),
            _ => rest.split_first_chunk().map(|(seid, rest)| (Some(u64::from_be_bytes(*seid)), rest))?,
        };
        let (sequence, body) = rest.split_first_chunk()?;
        let (body, rest) = tree::parse(body);
        Some(Self { first: [*flags, *kind], seid, sequence: *sequence, body, rest, lie: None })
    }

    /// As on the wire.
    pub fn write(&self) -> Vec<u8> {
        let mut counted: Vec<u8> = self.seid.iter().flat_map(|seid| seid.to_be_bytes()).collect();
        counted.extend(self.sequence);
        counted.extend(tree::write(&self.body));
        counted.extend(&self.rest);
        let length = self.lie.unwrap_or(u16::try_from(counted.len()).unwrap_or(u16::MAX));
        let mut bytes = self.first.to_vec();
        bytes.extend(length.to_be_bytes());
        bytes.extend(counted);
        bytes
    }

    /// Its type (7.3).
    pub const fn message_type(&self) -> u8 {
        self.first[1]
    }

    /// Its number.
    pub const fn sequence(&self) -> u32 {
        u32::from_be_bytes(self.sequence) >> 8
    }

    /// Gives it a number.
    pub const fn number(&mut self, sequence: u32) {
        let [_, high, middle, low] = sequence.to_be_bytes();
        let [.., priority] = self.sequence;
        self.sequence = [high, middle, low, priority];
    }

    /// Whether its length and its version are those of a message that can be read.
    pub fn is_sound(bytes: &[u8]) -> bool {
        let told = bytes.get(2..UNCOUNTED).and_then(|octets| octets.first_chunk());
        let told = told.map(|octets| usize::from(u16::from_be_bytes(*octets)));
        let header = bytes.first().map_or(usize::MAX, |flags| if flags & S == 0 { 4 } else { 12 });
        told.is_some_and(|told| told >= header && told + UNCOUNTED <= bytes.len())
            && bytes.first().is_some_and(|flags| flags >> 5 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pfcp::{Message, NodeId};

    #[test]
    fn messages_come_out_as_they_went_in() {
        let request =
            pfcp::AssociationReleaseRequest { node_id: NodeId::Ipv4([10, 40, 0, 9].into()), carried: vec![] };
        let deletion = pfcp::SessionDeletionRequest::default();
        for message in [Message::node(0x0001_0203, request), Message::session(5, 7, deletion)] {
            let bytes = pfcp::encode(&message);
            let mut datagram = Datagram::read(&bytes).unwrap();
            assert_eq!((datagram.write(), datagram.sequence()), (bytes.clone(), message.sequence));
            assert_eq!((datagram.seid, datagram.message_type()), (message.seid, bytes[1]));
            assert!(Datagram::is_sound(&bytes) && !Datagram::is_sound(&bytes[..bytes.len() - 1]));
            datagram.number(9);
            assert_eq!(pfcp::decode(&datagram.write()).unwrap().sequence, 9);
        }
    }
}
