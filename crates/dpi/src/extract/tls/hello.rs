//! The ClientHello (RFC 8446 4.1.2), as TLS and QUIC carry it.

use crate::extract::name;
use crate::extract::reader::Reader;

/// Type of the handshake message.
pub(super) const CLIENT_HELLO: u8 = 1;
/// Type of a server's name that is a host's, and the only one that is defined (RFC 6066 3).
const HOST_NAME: u8 = 0;

/// Types of extensions, from IANA's registry.
mod extension {
    pub(super) const SERVER_NAME: u16 = 0;
    pub(super) const ALPN: u16 = 16;
    pub(super) const SUPPORTED_VERSIONS: u16 = 43;
    pub(super) const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
}

/// What a client says first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientHello<'a> {
    /// The server's name (RFC 6066 3); with [`Self::is_encrypted`], that of the provider in front of it.
    pub server_name: Option<&'a [u8]>,
    /// Application protocols (RFC 7301).
    pub protocols: Protocols<'a>,
    /// An Encrypted ClientHello stands inside, or something that looks like one (draft-ietf-tls-esni, 6.2 "GREASE"):
    /// from outside nobody can tell, so the name may not be the true one.
    pub is_encrypted: bool,
    /// The highest version offered: 0x0303 is TLS 1.2, 0x0304 is TLS 1.3.
    pub version: u16,
    /// All of it was there.
    pub is_whole: bool,
}

impl<'a> ClientHello<'a> {
    /// Reads the message behind its type and length, cut short or whole. `None` where it is malformed, or cut short
    /// before its extensions.
    pub(super) fn parse(body: &'a [u8], is_whole: bool) -> Option<Self> {
        let mut reader = Reader::new(body);
        let version = reader.u16()?;
        let random = reader.take(32)?;
        let session = reader.counted8()?;
        let suites = reader.counted16()?;
        let compressions = reader.counted8()?;
        debug_assert_eq!(random.len(), 32);
        if session.len() > 32 || suites.is_empty() || suites.len() % 2 != 0 || compressions.is_empty() {
            return None;
        }
        let mut hello = Self { version, is_whole, ..Self::default() };
        // Without extensions it is TLS 1.2 or older (RFC 5246 7.4.1.2).
        if is_whole && reader.rest().is_empty() {
            return Some(hello);
        }
        let length = usize::from(reader.u16()?);
        let present = reader.rest().len();
        if is_whole && length != present {
            return None;
        }
        hello.extensions(Reader::new(reader.take(length.min(present))?)).then_some(hello)
    }

    /// Reads extensions; whether they are well-formed as far as they are there.
    fn extensions(&mut self, mut reader: Reader<'a>) -> bool {
        while !reader.rest().is_empty() {
            let (Some(kind), Some(content)) = (reader.u16(), reader.counted16()) else {
                return !self.is_whole;
            };
            let right = match kind {
                extension::SERVER_NAME => self.names(content),
                extension::ALPN => self.alpn(content),
                extension::SUPPORTED_VERSIONS => self.versions(content),
                extension::ENCRYPTED_CLIENT_HELLO => {
                    self.is_encrypted = true;
                    true
                }
                _ => true,
            };
            if !right {
                return false;
            }
        }
        true
    }

    /// A list with one host's name; those of other types are passed over. Two of one type, or two extensions, are an error for
    /// every server (RFC 6066 3, RFC 8446 4.2).
    fn names(&mut self, content: &'a [u8]) -> bool {
        let list = alone(content, Reader::counted16).filter(|_| self.server_name.is_none());
        let Some(list) = list else { return false };
        let mut list = Reader::new(list);
        while !list.rest().is_empty() {
            let (Some(kind), Some(name)) = (list.u8(), list.counted16()) else { return false };
            if kind == HOST_NAME {
                let name = name::host(name).filter(|_| self.server_name.is_none());
                if name.is_none() {
                    return false;
                }
                self.server_name = name;
            }
        }
        self.server_name.is_some()
    }

    /// Some protocols, none of which is empty (RFC 7301 3.1).
    fn alpn(&mut self, content: &'a [u8]) -> bool {
        let Some(list) = alone(content, Reader::counted16) else { return false };
        self.protocols = Protocols(list);
        let mut protocols = Reader::new(list);
        while !protocols.rest().is_empty() {
            if protocols.counted8().is_none_or(<[u8]>::is_empty) {
                return false;
            }
        }
        !list.is_empty()
    }

    /// Some versions (RFC 8446 4.2.1).
    fn versions(&mut self, content: &'a [u8]) -> bool {
        let Some(list) = alone(content, Reader::counted8) else { return false };
        let (pairs, rest) = list.as_chunks::<2>();
        let versions = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
        // Others are values nobody understands (RFC 8701).
        self.version = versions.filter(|version| version >> 8 == 3).max().unwrap_or(self.version);
        !pairs.is_empty() && rest.is_empty()
    }
}

/// What an extension holds that is one list: servers refuse one behind which anything stands (RFC 8446 4.2, 6.2).
fn alone<'a>(content: &'a [u8], list: impl Fn(&mut Reader<'a>) -> Option<&'a [u8]>) -> Option<&'a [u8]> {
    let mut reader = Reader::new(content);
    list(&mut reader).filter(|_| reader.rest().is_empty())
}

/// Application protocols in the order of preference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocols<'a>(&'a [u8]);

impl<'a> Protocols<'a> {
    /// As they stand on the wire: each behind an octet with its length.
    pub const fn new(list: &'a [u8]) -> Self {
        Self(list)
    }
}

impl<'a> Iterator for Protocols<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let mut reader = Reader::new(self.0);
        let protocol = reader.counted8()?;
        self.0 = reader.rest();
        Some(protocol)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &(content.len() as u16).to_be_bytes(), content].concat()
    }

    fn name(host: &str) -> Vec<u8> {
        names(&[(HOST_NAME, host)])
    }

    fn names(all: &[(u8, &str)]) -> Vec<u8> {
        let one = |(kind, name): &(u8, &str)| {
            [&[*kind][..], &(name.len() as u16).to_be_bytes(), name.as_bytes()].concat()
        };
        let list: Vec<u8> = all.iter().flat_map(one).collect();
        extension(extension::SERVER_NAME, &[&(list.len() as u16).to_be_bytes()[..], &list].concat())
    }

    fn with(extensions: &[Vec<u8>]) -> Vec<u8> {
        let extensions = extensions.concat();
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        body
    }

    /// A whole handshake message.
    pub(crate) fn sample(host: &str) -> Vec<u8> {
        let body = with(&[
            extension(0x2a2a, &[]),
            name(host),
            extension(extension::ALPN, b"\0\x0c\x02h2\x08http/1.1"),
            extension(extension::SUPPORTED_VERSIONS, &[6, 0x2a, 0x2a, 3, 4, 3, 3]),
            extension(51, &[1; 1_300]),
        ]);
        let [_, length @ ..] = (body.len() as u32).to_be_bytes();
        [&[CLIENT_HELLO], &length[..], &body].concat()
    }

    #[test]
    fn name_protocols_and_version_are_read() {
        let sample = sample("a.example");
        let hello = ClientHello::parse(&sample[4..], true).unwrap();
        assert_eq!(hello.server_name, Some(&b"a.example"[..]));
        assert_eq!(hello.protocols.collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
        assert_eq!((hello.version, hello.is_encrypted, hello.is_whole), (0x0304, false, true));
    }

    #[test]
    fn an_encrypted_hello_is_told_with_its_outer_name() {
        let body = with(&[name("front.example"), extension(extension::ENCRYPTED_CLIENT_HELLO, &[0; 200])]);
        let hello = ClientHello::parse(&body, true).unwrap();
        assert!(hello.is_encrypted);
        assert_eq!(hello.server_name, Some(&b"front.example"[..]));
        assert_eq!(hello.version, 0x0303);
    }

    #[test]
    fn names_of_types_that_nobody_knows_are_passed_over() {
        let body = with(&[names(&[(7, "b.example"), (0, "a.example"), (9, "")])]);
        assert_eq!(ClientHello::parse(&body, true).unwrap().server_name, Some(&b"a.example"[..]));
    }

    #[test]
    fn what_servers_refuse_is_refused() {
        let refused = [
            with(&[name("a.example"), name("b.example")]),
            with(&[name("a b")]),
            with(&[name("")]),
            with(&[extension(extension::SERVER_NAME, &[0])]),
            with(&[names(&[(0, "a.example"), (0, "b.example")])]),
            with(&[names(&[(1, "a.example")])]),
            with(&[name("a.example"), names(&[(1, "b.example")])]),
            with(&[names(&[])]),
            with(&[extension(extension::SERVER_NAME, b"\0\x04\0\0\x01a\0")]),
            with(&[extension(extension::ALPN, &[0, 9, 1])]),
            with(&[extension(extension::ALPN, &[0, 0])]),
            with(&[extension(extension::ALPN, b"\0\x04\0\x02h2")]),
            with(&[extension(extension::ALPN, b"\0\x03\x02h2\0")]),
            with(&[extension(extension::SUPPORTED_VERSIONS, &[0])]),
            with(&[extension(extension::SUPPORTED_VERSIONS, &[3, 3, 4, 3])]),
            with(&[extension(extension::SUPPORTED_VERSIONS, &[2, 3, 4, 3])]),
            [with(&[]), vec![0]].concat(),
        ];
        for body in refused {
            assert_eq!(ClientHello::parse(&body, true), None, "{body:02x?}");
        }
        let mut without = with(&[]);
        without.truncate(without.len() - 2);
        assert_eq!(ClientHello::parse(&without, true).unwrap().server_name, None);
    }
}
