//! Initial keys and packet protection (RFC 9001 5, RFC 9369 3.3).

use super::PACKET_MAX;
use super::header::{Packet, Version};
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey, quic::HeaderProtectionKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

/// RFC 9001 5.2.
#[rustfmt::skip]
const SALT_V1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17,
    0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
];

/// RFC 9369 3.3.1.
#[rustfmt::skip]
const SALT_V2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93,
    0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
];

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

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

impl Keys {
    /// A client's, which come from the connection ID that it first sends to. `None` only if the library refused lengths
    /// that are constant here.
    pub(super) fn client(version: Version, id: &[u8]) -> Option<Self> {
        let (salt, labels) = match version {
            Version::V1 => (&SALT_V1, ["quic key", "quic iv", "quic hp"]),
            Version::V2 => (&SALT_V2, ["quicv2 key", "quicv2 iv", "quicv2 hp"]),
        };
        let secret: [u8; 32] = expand(&Salt::new(HKDF_SHA256, salt).extract(id), "client in")?;
        let secret = Prk::new_less_safe(HKDF_SHA256, &secret);
        let [key, iv, header] = labels;
        Some(Self {
            packet: expand(&secret, key)?,
            iv: expand(&secret, iv)?,
            header: expand(&secret, header)?,
        })
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

/// HKDF-Expand-Label without context (RFC 8446 7.1).
fn expand<const N: usize>(secret: &Prk, label: &str) -> Option<[u8; N]> {
    let length = (N as u16).to_be_bytes();
    let label_length = [b"tls13 ".len() as u8 + label.len() as u8];
    let info: [&[u8]; 5] = [&length, &label_length, b"tls13 ", label.as_bytes(), &[0]];
    let mut out = [0; N];
    secret.expand(&info, Bytes(N)).ok()?.fill(&mut out).ok()?;
    Some(out)
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
            let keys = Keys::client(version, &ID).unwrap();
            assert_eq!((keys.packet.to_vec(), keys.iv.to_vec()), (hex(key), hex(iv)), "{version:?}");
            assert_eq!(keys.header.to_vec(), hex(header), "{version:?}");
        }
    }
}
