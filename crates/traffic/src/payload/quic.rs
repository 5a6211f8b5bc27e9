//! QUIC version 1 Initial packets (RFC 9000 17.2.2), protected with the keys everybody can derive (RFC 9001 5), and
//! Handshake packets (RFC 9000 17.2.4), whose keys nobody else has.

use super::put_random;
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey, quic::HeaderProtectionKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

/// Bytes of connection IDs, where there is one.
pub(crate) const ID: usize = 8;
/// A connection ID.
pub(crate) type ConnectionId = [u8; ID];

/// Bytes of a datagram with an Initial packet (RFC 9000 14.1).
pub(crate) const DATAGRAM: usize = 1_200;
/// Most bytes of a ClientHello that one Initial packet carries here.
pub(crate) const CRYPTO_MAX: usize = 1_100;

const VERSION_1: [u8; 4] = [0, 0, 0, 1];
/// Long header, fixed bit, type Initial; the packet number's length follows in the low bits.
const INITIAL: u8 = 0xc0;
/// The same of type Handshake, and what header protection makes of the low bits.
const HANDSHAKE: u8 = 0xe5;
/// Bytes of a client's only Handshake packet behind its header: an acknowledgement and a Finished message.
const CLIENT_HANDSHAKE: usize = 72;
/// The first byte of all later packets: fixed bit, and what header protection makes of the rest.
pub(crate) const SHORT: u8 = 0x53;
const PACKET_NUMBER: usize = 2;
const LENGTH_FIELD: usize = 2;
const TAG: usize = 16;
const ACK_OF_PACKET_0: [u8; 5] = [2, 0, 0, 0, 0];
const CRYPTO: u8 = 6;

/// RFC 9001 5.2.
#[rustfmt::skip]
const SALT: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17,
    0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
];

/// The keys of one direction.
pub(crate) struct Keys {
    packet: LessSafeKey,
    iv: [u8; 12],
    header: HeaderProtectionKey,
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

impl Keys {
    /// A client's, when it first sends to the connection ID `id`. `None` only if the library refused lengths that are
    /// constant here.
    pub(crate) fn client(id: ConnectionId) -> Option<Self> {
        Self::side(id, "client in")
    }

    /// Those of the server that it sends to.
    pub(crate) fn server(id: ConnectionId) -> Option<Self> {
        Self::side(id, "server in")
    }

    fn side(id: ConnectionId, label: &str) -> Option<Self> {
        let secret: [u8; 32] = expand(&Salt::new(HKDF_SHA256, &SALT).extract(&id), label)?;
        Self::new(&Prk::new_less_safe(HKDF_SHA256, &secret))
    }

    fn new(secret: &Prk) -> Option<Self> {
        let key: [u8; 16] = expand(secret, "quic key")?;
        let header: [u8; 16] = expand(secret, "quic hp")?;
        Some(Self {
            packet: LessSafeKey::new(UnboundKey::new(&aead::AES_128_GCM, &key).ok()?),
            iv: expand(secret, "quic iv")?,
            header: HeaderProtectionKey::new(&aead::quic::AES_128, &header).ok()?,
        })
    }

    /// Protects a packet in place: `header` bytes, the packet number their last `number_length`, then the payload.
    fn protect(
        &self,
        packet: &mut Vec<u8>,
        (header, number_length): (usize, usize),
        number: u32,
    ) -> Option<()> {
        let (head, payload) = packet.split_at_mut_checked(header)?;
        let tag = self.packet.seal_in_place_separate_tag(self.nonce(number), Aad::from(&*head), payload);
        let tag = tag.ok()?;
        packet.extend(tag.as_ref());
        self.mask(packet, header, number_length)
    }

    /// RFC 9001 5.3.
    fn nonce(&self, number: u32) -> Nonce {
        let mut nonce = self.iv;
        nonce.iter_mut().rev().zip(number.to_le_bytes()).for_each(|(byte, part)| *byte ^= part);
        Nonce::assume_unique_for_key(nonce)
    }

    /// Hides the packet number (RFC 9001 5.4). The sample stands where it would with a packet number of four bytes.
    fn mask(&self, packet: &mut [u8], header: usize, number_length: usize) -> Option<()> {
        let start = header + 4 - number_length;
        let mask = self.header.new_mask(packet.get(start..start + 16)?).ok()?;
        let [first, rest @ ..] = mask;
        *packet.first_mut()? ^= first & 0x0f;
        let number = packet.get_mut(header - number_length..header)?;
        number.iter_mut().zip(rest).for_each(|(byte, mask)| *byte ^= mask);
        Some(())
    }
}

/// HKDF-Expand-Label without context (RFC 8446 7.1).
fn expand<const N: usize>(secret: &Prk, label: &str) -> Option<[u8; N]> {
    let length = (N as u16).to_be_bytes();
    let label_length = [b"tls13 ".len() as u8 + label.len() as u8];
    let info: [&[u8]; 5] = [&length, &label_length, b"tls13 ", label.as_bytes(), &[0]];
    let mut out = [0; N];
    secret.expand(&info, Bytes(N)).ok()?.fill(&mut out).ok()?;
    Some(out)
}

/// Part of a ClientHello or ServerHello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) offset: usize,
    pub(crate) bytes: &'a [u8],
}

/// Writes a client's Initial packet number `number` to the server's `id`, padded to a datagram. The client's own
/// connection ID is empty.
pub(crate) fn client_initial(out: &mut Vec<u8>, id: ConnectionId, number: u32, part: Part<'_>) -> Option<()> {
    out.clear();
    out.push(INITIAL | (PACKET_NUMBER as u8 - 1));
    out.extend(VERSION_1);
    out.push(ID as u8);
    out.extend(id);
    out.push(0);
    let header = put_rest_of_header(out, number);
    put_crypto(out, part);
    out.resize(DATAGRAM - TAG, 0);
    Keys::client(id)?.protect(out, (header, PACKET_NUMBER), number)
}

/// Writes the server's first Initial packet in answer to those to `id`, which gives it the connection ID `own`.
pub(crate) fn server_initial(
    out: &mut Vec<u8>,
    id: ConnectionId,
    own: ConnectionId,
    part: Part<'_>,
) -> Option<()> {
    out.clear();
    out.push(INITIAL | (PACKET_NUMBER as u8 - 1));
    out.extend(VERSION_1);
    out.extend([0, ID as u8]);
    out.extend(own);
    let header = put_rest_of_header(out, 0);
    out.extend(ACK_OF_PACKET_0);
    put_crypto(out, part);
    out.resize(DATAGRAM - TAG, 0);
    Keys::server(id)?.protect(out, (header, PACKET_NUMBER), 0)
}

/// Writes a full Handshake packet of a server with the connection ID `own`, to a client whose own is empty.
pub(crate) fn server_handshake(out: &mut Vec<u8>, own: ConnectionId, seed: u64) {
    out.push(HANDSHAKE);
    out.extend(VERSION_1);
    out.extend([0, ID as u8]);
    out.extend(own);
    let rest = DATAGRAM - out.len() - LENGTH_FIELD;
    put_number(out, rest);
    put_random(out, rest, seed);
}

/// Writes a client's Handshake packet to the server with the connection ID `id`.
pub(crate) fn client_handshake(out: &mut Vec<u8>, id: ConnectionId, seed: u64) {
    out.push(HANDSHAKE);
    out.extend(VERSION_1);
    out.push(ID as u8);
    out.extend(id);
    out.push(0);
    put_number(out, CLIENT_HANDSHAKE);
    put_random(out, CLIENT_HANDSHAKE, seed);
}

/// An empty token, the length, and the packet number; returns the length of the header.
fn put_rest_of_header(out: &mut Vec<u8>, number: u32) -> usize {
    out.push(0);
    let rest = DATAGRAM - out.len() - LENGTH_FIELD;
    put_number(out, rest);
    out.extend((number as u16).to_be_bytes());
    out.len()
}

fn put_crypto(out: &mut Vec<u8>, part: Part<'_>) {
    out.push(CRYPTO);
    put_number(out, part.offset);
    put_number(out, part.bytes.len());
    out.extend(part.bytes);
}

/// A variable-length integer of two bytes (RFC 9000 16), which is enough here.
fn put_number(out: &mut Vec<u8>, number: usize) {
    out.extend((number as u16 & 0x3fff | 0x4000).to_be_bytes());
}

/// Transport parameters of a client with an empty connection ID (RFC 9000 18.2).
#[rustfmt::skip]
pub(crate) const TRANSPORT_PARAMETERS: &[u8] = &[
    0x01, 4, 0x80, 0x00, 0x75, 0x30, // max_idle_timeout: 30 s
    0x03, 2, 0x45, 0xc0,             // max_udp_payload_size: 1,472
    0x04, 4, 0x80, 0xf0, 0x00, 0x00, // initial_max_data
    0x05, 4, 0x80, 0x60, 0x00, 0x00, // initial_max_stream_data_bidi_local
    0x06, 4, 0x80, 0x60, 0x00, 0x00, // initial_max_stream_data_bidi_remote
    0x07, 4, 0x80, 0x60, 0x00, 0x00, // initial_max_stream_data_uni
    0x08, 2, 0x40, 0x64,             // initial_max_streams_bidi: 100
    0x09, 2, 0x40, 0x67,             // initial_max_streams_uni: 103
    0x0f, 0,                         // initial_source_connection_id: empty
];

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001 appendix A.
    const ID_OF_APPENDIX: ConnectionId = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    #[test]
    fn keys_are_those_of_appendix_a_1() {
        let secret = Salt::new(HKDF_SHA256, &SALT).extract(&ID_OF_APPENDIX);
        let check = |label, [own, key, iv, header]: [&str; 4]| {
            let bytes: [u8; 32] = expand(&secret, label).unwrap();
            assert_eq!(bytes.to_vec(), hex(own));
            let side = Prk::new_less_safe(HKDF_SHA256, &bytes);
            assert_eq!(expand::<16>(&side, "quic key").unwrap().to_vec(), hex(key));
            assert_eq!(expand::<12>(&side, "quic iv").unwrap().to_vec(), hex(iv));
            assert_eq!(expand::<16>(&side, "quic hp").unwrap().to_vec(), hex(header));
        };
        let client = "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea";
        let of_client = ["1f369613dd76d5467730efcbe3b1a22d", "fa044b2f42a3fd3b46fb255c"];
        check("client in", [client, of_client[0], of_client[1], "9f50449e04a0e810283a1e9933adedd2"]);
        let server = "3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b";
        let of_server = ["cf3a5331653c364c88f0f379b6067e37", "0ac1493ca1905853b0bba03e"];
        check("server in", [server, of_server[0], of_server[1], "c206b8d9b9f0f37644430b490eeaa314"]);
    }

    /// The CRYPTO frame of A.2; padding makes the payload 1,162 bytes.
    const CLIENT_FRAME: &str = "
        060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868
        04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578
        616d706c652e636f6dff01000100000a00080006001d00170018001000070005
        04616c706e000500050100000000003300260024001d00209370b2c9caa47fba
        baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400
        0d0010000e0403050306030203080408050806002d00020101001c0002400100
        3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000
        75300901100f088394c8f03e51570806048000ffff";

    #[test]
    fn a_clients_packet_is_that_of_appendix_a_2() {
        let mut packet = hex("c300000001088394c8f03e5157080000449e00000002");
        let header = packet.len();
        packet.extend(hex(CLIENT_FRAME));
        packet.resize(header + 1_162, 0);
        Keys::client(ID_OF_APPENDIX).unwrap().protect(&mut packet, (header, 4), 2).unwrap();
        assert_eq!(packet.len(), 1_200);
        let first = "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9b";
        assert_eq!(packet[..38], hex(first));
        // The tag vouches for all that is between.
        let last = "7e78bfe706ca4cf5e9c5453e9f7cfd2b8b4c8d169a44e55c88d4a9a7f9474241
            e221af44860018ab0856972e194cd934";
        assert_eq!(packet[1_200 - 48..], hex(last));
    }

    #[test]
    fn a_servers_packet_is_that_of_appendix_a_3() {
        let mut packet = hex("c1000000010008f067a5502a4262b50040750001");
        let header = packet.len();
        packet.extend(hex("02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739
            88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94
            0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00020304"));
        Keys::server(ID_OF_APPENDIX).unwrap().protect(&mut packet, (header, 2), 1).unwrap();
        let expected = "
            cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a
            5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3
            dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84
            022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4
            2158407dd074ee";
        assert_eq!(packet, hex(expected));
    }

    #[test]
    fn handshake_packets_are_as_long_as_they_say() {
        let (mut server, mut client) = (vec![], vec![]);
        server_handshake(&mut server, [2; ID], 1);
        client_handshake(&mut client, [2; ID], 1);
        assert_eq!((server.len(), server[15..17].to_vec()), (DATAGRAM, vec![0x44, 0x9f]));
        assert_eq!((client.len(), client[15..17].to_vec()), (17 + CLIENT_HANDSHAKE, vec![0x40, 72]));
    }

    #[test]
    fn initial_packets_fill_a_datagram() {
        let part = Part { offset: 0, bytes: &[7; CRYPTO_MAX] };
        let mut out = vec![];
        client_initial(&mut out, [1; ID], 0, part).unwrap();
        assert_eq!(out.len(), DATAGRAM);
        server_initial(&mut out, [1; ID], [2; ID], part).unwrap();
        assert_eq!(out.len(), DATAGRAM);
    }
}
