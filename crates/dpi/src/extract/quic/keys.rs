//! Initial keys and packet protection (RFC 9001 5, RFC 9369 3.3).

use super::PACKET_MAX;
use super::header::{Packet, Version};
use hmac::{Hmac, KeyInit, Mac};
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey, quic::HeaderProtectionKey};
use sha2::Sha256;
use std::sync::LazyLock;

/// RFC 9001 5.2.
#[rustfmt::skip]
static SALT_V1: LazyLock<Prepared> = LazyLock::new(|| prepared(&[
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17,
    0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
]));

/// RFC 9369 3.3.1.
#[rustfmt::skip]
static SALT_V2: LazyLock<Prepared> = LazyLock::new(|| prepared(&[
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93,
    0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
]));

/// What keys are expanded by: HkdfLabel without context (RFC 8446 7.1; the bytes are in RFC 9001 A.1), and behind it the
/// number of HKDF's only block.
const CLIENT_IN: &[u8] = b"\x00\x20\x0ftls13 client in\x00\x01";
/// For packets, nonces and headers.
const LABELS_V1: [&[u8]; 3] = [
    b"\x00\x10\x0etls13 quic key\x00\x01",
    b"\x00\x0c\x0dtls13 quic iv\x00\x01",
    b"\x00\x10\x0dtls13 quic hp\x00\x01",
];
/// RFC 9369 3.3.2.
const LABELS_V2: [&[u8]; 3] = [
    b"\x00\x10\x10tls13 quicv2 key\x00\x01",
    b"\x00\x0c\x0ftls13 quicv2 iv\x00\x01",
    b"\x00\x10\x0ftls13 quicv2 hp\x00\x01",
];

/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;

/// A key that messages are authenticated with; half the work is done when it is prepared.
type Prepared = Hmac<Sha256>;

/// Bytes of the sample that the packet number is hidden with.
const SAMPLE: usize = 16;
/// Where the sample stands behind the beginning of the packet number (RFC 9001 5.4.2).
const SAMPLE_AT: usize = 4;

/// The keys of one side, as bytes: a tenth of the memory of what the library makes of them.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    packet: [u8; 16],
    iv: [u8; 12],
    header: [u8; 16],
}

impl Keys {
    /// A client's, which come from the connection ID that it first sends to.
    pub(super) fn client(version: Version, id: &[u8]) -> Self {
        let (salt, labels) = match version {
            Version::V1 => (&*SALT_V1, &LABELS_V1),
            Version::V2 => (&*SALT_V2, &LABELS_V2),
        };
        // HKDF-Extract (RFC 5869 2.2), then HKDF-Expand of one block each (2.3).
        let initial = prepared(&tag(salt, id));
        let secret = prepared(&tag(&initial, CLIENT_IN));
        let [packet, iv, header] = labels;
        Self {
            packet: first_of(&tag(&secret, packet)),
            iv: first_of(&tag(&secret, iv)),
            header: first_of(&tag(&secret, header)),
        }
    }

    /// Decrypts a packet into `memory` and returns its frames; `None` where the keys are not its, or it is longer than
    /// the memory.
    pub(super) fn open<'m>(&self, packet: &Packet<'_>, memory: &'m mut [u8; PACKET_MAX]) -> Option<&'m [u8]> {
        let copy = memory.get_mut(..packet.bytes.len())?;
        copy.copy_from_slice(packet.bytes);
        let (number, length) = self.unmask(copy, packet.number_at)?;
        let (header, payload) = copy.split_at_mut_checked(packet.number_at + length)?;
        let key = LessSafeKey::new(UnboundKey::new(&aead::AES_128_GCM, &self.packet).ok()?);
        let plain = key.open_in_place(self.nonce(number), Aad::from(&*header), payload).ok()?;
        Some(plain)
    }

    /// Uncovers the packet number (RFC 9001 5.4); returns it and its length. Those of Initial packets are small, so what
    /// is sent of it is all of it.
    fn unmask(&self, packet: &mut [u8], at: usize) -> Option<(u32, usize)> {
        let sample = packet.get(at + SAMPLE_AT..at + SAMPLE_AT + SAMPLE)?;
        let key = HeaderProtectionKey::new(&aead::quic::AES_128, &self.header).ok()?;
        let [mask, rest @ ..] = key.new_mask(sample).ok()?;
        let first = packet.first_mut()?;
        *first ^= mask & 0x0f;
        let length = usize::from(*first & 3) + 1;
        let bytes = packet.get_mut(at..at + length)?;
        bytes.iter_mut().zip(rest).for_each(|(byte, mask)| *byte ^= mask);
        Some((bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)), length))
    }

    /// RFC 9001 5.3.
    fn nonce(&self, number: u32) -> Nonce {
        let mut nonce = self.iv;
        nonce.iter_mut().rev().zip(number.to_le_bytes()).for_each(|(byte, part)| *byte ^= part);
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Keys shorter than a block have zeros behind them (RFC 2104 2).
fn prepared(key: &[u8]) -> Prepared {
    let mut block = [0; BLOCK];
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    Prepared::new(&block.into())
}

fn tag(key: &Prepared, message: &[u8]) -> [u8; 32] {
    key.clone().chain_update(message).finalize().into_bytes().into()
}

fn first_of<const N: usize>(tag: &[u8; 32]) -> [u8; N] {
    std::array::from_fn(|at| tag.get(at).copied().unwrap_or_default())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::extract::quic::tests::hex;

    const ID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

    impl Keys {
        /// Protects a packet: `header` up to and with a packet number of four bytes, then the frames.
        pub(in crate::extract) fn seal(&self, header: &[u8], plain: &[u8]) -> Vec<u8> {
            let (_, number) = header.split_last_chunk::<4>().unwrap();
            let key = LessSafeKey::new(UnboundKey::new(&aead::AES_128_GCM, &self.packet).unwrap());
            let mut payload = plain.to_vec();
            let nonce = self.nonce(u32::from_be_bytes(*number));
            key.seal_in_place_append_tag(nonce, Aad::from(header), &mut payload).unwrap();
            let key = HeaderProtectionKey::new(&aead::quic::AES_128, &self.header).unwrap();
            let [mask, rest @ ..] = key.new_mask(&payload[..SAMPLE]).unwrap();
            let mut packet = header.to_vec();
            packet[0] ^= mask & 0x0f;
            packet[header.len() - 4..].iter_mut().zip(rest).for_each(|(byte, mask)| *byte ^= mask);
            packet.extend(payload);
            packet
        }
    }

    #[test]
    fn keys_are_those_of_rfc_9001_a_1_and_rfc_9369_a_1() {
        for (version, key, iv, header) in [
            (
                Version::V1,
                "1f369613dd76d5467730efcbe3b1a22d",
                "fa044b2f42a3fd3b46fb255c",
                "9f50449e04a0e810283a1e9933adedd2",
            ),
            (
                Version::V2,
                "8b1a0bc121284290a29e0971b5cd045d",
                "91f73e2351d8fa91660e909f",
                "45b95e15235d6f45a6b19cbcb0294ba9",
            ),
        ] {
            let keys = Keys::client(version, &ID);
            assert_eq!((keys.packet.to_vec(), keys.iv.to_vec()), (hex(key), hex(iv)), "{version:?}");
            assert_eq!(keys.header.to_vec(), hex(header), "{version:?}");
        }
    }
}
