//! TLS handshakes (RFC 8446, RFC 5246): what a client and a server say in the clear.

use super::{counted8, counted16, put_random, put16};

/// Bytes of a record's header.
pub(crate) const RECORD_HEADER: usize = 5;

const HANDSHAKE: u8 = 22;
const CHANGE_CIPHER_SPEC: u8 = 20;
const APPLICATION_DATA: u8 = 23;
const TLS_1_0: u16 = 0x0301;
const TLS_1_2: u16 = 0x0303;
const TLS_1_3: u16 = 0x0304;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const AES_128_GCM_SHA256: u16 = 0x1301;
const ECDHE_RSA_AES_128_GCM_SHA256: u16 = 0xc02f;

/// Values nobody understands, which clients send so that servers keep ignoring such (RFC 8701).
const GREASE: u16 = 0x2a2a;

/// Types of extensions, from IANA's registry.
mod extension {
    pub(super) const SERVER_NAME: u16 = 0;
    pub(super) const STATUS_REQUEST: u16 = 5;
    pub(super) const SUPPORTED_GROUPS: u16 = 10;
    pub(super) const EC_POINT_FORMATS: u16 = 11;
    pub(super) const SIGNATURE_ALGORITHMS: u16 = 13;
    pub(super) const ALPN: u16 = 16;
    pub(super) const SIGNED_CERTIFICATE_TIMESTAMP: u16 = 18;
    pub(super) const EXTENDED_MASTER_SECRET: u16 = 23;
    pub(super) const SESSION_TICKET: u16 = 35;
    pub(super) const SUPPORTED_VERSIONS: u16 = 43;
    pub(super) const PSK_KEY_EXCHANGE_MODES: u16 = 45;
    pub(super) const KEY_SHARE: u16 = 51;
    pub(super) const QUIC_TRANSPORT_PARAMETERS: u16 = 57;
    pub(super) const RENEGOTIATION_INFO: u16 = 0xff01;
}

const X25519: u16 = 29;
const SECP256R1: u16 = 23;
const SECP384R1: u16 = 24;
const X25519_MLKEM768: u16 = 0x11ec;
/// An encapsulation key of ML-KEM-768 and a point of X25519.
const X25519_MLKEM768_LENGTH: usize = 1_184 + 32;

/// What kind of client it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// TLS 1.2 at most.
    Tls12,
    /// TLS 1.3.
    Tls13,
    /// TLS 1.3 with a key share that fills a segment of its own.
    Tls13Large,
}

/// A ClientHello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hello<'a> {
    pub(crate) host: &'a str,
    pub(crate) client: Client,
    /// The server name stands last of the extensions, else first: clients differ, and some shuffle.
    pub(crate) name_last: bool,
    /// The transport parameters: this is QUIC.
    pub(crate) quic: Option<&'a [u8]>,
    /// Of all that looks random.
    pub(crate) seed: u64,
}

/// Appends a ClientHello in its record.
pub(crate) fn client_record(out: &mut Vec<u8>, hello: &Hello<'_>) {
    out.push(HANDSHAKE);
    // The version of a first record (RFC 8446 5.1).
    put16(out, &[TLS_1_0]);
    counted16(out, |out| client_hello(out, hello));
}

/// Appends a ClientHello without record, as QUIC carries it (RFC 9001 4).
pub(crate) fn client_hello(out: &mut Vec<u8>, hello: &Hello<'_>) {
    handshake(out, CLIENT_HELLO, |out| {
        put16(out, &[TLS_1_2]);
        put_random(out, 32, hello.seed);
        // QUIC has no use for a session (RFC 9001 8.4).
        counted8(out, |out| put_random(out, if hello.quic.is_some() { 0 } else { 32 }, !hello.seed));
        counted16(out, |out| put_cipher_suites(out, hello));
        out.extend([1, 0]);
        counted16(out, |out| put_extensions(out, hello));
    });
}

fn handshake(out: &mut Vec<u8>, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
    // A length of three bytes, of which the first stays 0 here.
    out.extend([kind, 0]);
    counted16(out, content);
}

fn put_cipher_suites(out: &mut Vec<u8>, hello: &Hello<'_>) {
    put16(out, &[GREASE]);
    if hello.client != Client::Tls12 {
        put16(out, &[AES_128_GCM_SHA256, 0x1302, 0x1303]);
    }
    if hello.quic.is_none() {
        put16(out, &[0xc02b, ECDHE_RSA_AES_128_GCM_SHA256, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0x009c, 0x002f]);
    }
}

fn put_extensions(out: &mut Vec<u8>, hello: &Hello<'_>) {
    if !hello.name_last {
        put_server_name(out, hello.host);
    }
    extension(out, GREASE, |_| ());
    put_common_extensions(out, hello.client);
    put_alpn(out, if hello.quic.is_some() { &["h3"] } else { &["h2", "http/1.1"] });
    if hello.quic.is_none() {
        put_tcp_extensions(out);
    }
    if hello.client != Client::Tls12 {
        put_tls13_extensions(out, hello);
    }
    if let Some(parameters) = hello.quic {
        extension(out, extension::QUIC_TRANSPORT_PARAMETERS, |out| out.extend(parameters));
    }
    if hello.name_last {
        put_server_name(out, hello.host);
    }
}

/// Of all clients, of either version.
fn put_common_extensions(out: &mut Vec<u8>, client: Client) {
    extension(out, extension::SUPPORTED_GROUPS, |out| {
        let first = if client == Client::Tls13Large { X25519_MLKEM768 } else { GREASE };
        counted16(out, |out| put16(out, &[first, X25519, SECP256R1, SECP384R1]));
    });
    extension(out, extension::SIGNATURE_ALGORITHMS, |out| {
        counted16(out, |out| put16(out, &[0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601]));
    });
    extension(out, extension::STATUS_REQUEST, |out| out.extend([1, 0, 0, 0, 0]));
    extension(out, extension::SIGNED_CERTIFICATE_TIMESTAMP, |_| ());
}

/// Those that mean nothing without TLS 1.2.
fn put_tcp_extensions(out: &mut Vec<u8>) {
    extension(out, extension::EXTENDED_MASTER_SECRET, |_| ());
    extension(out, extension::RENEGOTIATION_INFO, |out| out.push(0));
    extension(out, extension::EC_POINT_FORMATS, |out| out.extend([1, 0]));
    extension(out, extension::SESSION_TICKET, |_| ());
}

fn put_tls13_extensions(out: &mut Vec<u8>, hello: &Hello<'_>) {
    extension(out, extension::PSK_KEY_EXCHANGE_MODES, |out| out.extend([1, 1]));
    extension(out, extension::SUPPORTED_VERSIONS, |out| {
        counted8(out, |out| put16(out, &[GREASE, TLS_1_3, TLS_1_2]));
    });
    extension(out, extension::KEY_SHARE, |out| {
        counted16(out, |out| {
            if hello.client == Client::Tls13Large {
                put_key_share(out, (X25519_MLKEM768, X25519_MLKEM768_LENGTH), hello.seed);
            }
            put_key_share(out, (X25519, 32), hello.seed ^ 1 << 63);
        });
    });
}

fn put_key_share(out: &mut Vec<u8>, (group, length): (u16, usize), seed: u64) {
    put16(out, &[group]);
    counted16(out, |out| put_random(out, length, seed));
}

/// RFC 6066 3.
fn put_server_name(out: &mut Vec<u8>, host: &str) {
    extension(out, extension::SERVER_NAME, |out| {
        counted16(out, |out| {
            out.push(0);
            counted16(out, |out| out.extend(host.as_bytes()));
        });
    });
}

/// RFC 7301 3.1.
fn put_alpn(out: &mut Vec<u8>, protocols: &[&str]) {
    extension(out, extension::ALPN, |out| {
        counted16(out, |out| {
            protocols.iter().for_each(|protocol| counted8(out, |out| out.extend(protocol.as_bytes())));
        });
    });
}

fn extension(out: &mut Vec<u8>, kind: u16, content: impl FnOnce(&mut Vec<u8>)) {
    put16(out, &[kind]);
    counted16(out, content);
}

/// Bytes of a server's first flight of TLS 1.3 that are encrypted: two certificates, mostly.
const ENCRYPTED: usize = 3_000;
/// Bytes of a Finished message of TLS 1.3, encrypted, and of two tickets.
const FINISHED: usize = 53;
const TICKETS: usize = 506;
/// The same of TLS 1.2, with its nonce.
const FINISHED_OF_TLS12: usize = 40;

/// Appends a server's first flight: of TLS 1.3, or of TLS 1.2 where both remember the session.
pub(crate) fn server_records(out: &mut Vec<u8>, client: Client, seed: u64) {
    out.push(HANDSHAKE);
    put16(out, &[TLS_1_2]);
    counted16(out, |out| server_hello(out, (client, true), seed));
    // In TLS 1.3 for middleboxes that know TLS 1.2 alone (RFC 8446 D.4).
    put_change_of_ciphers(out);
    match client {
        Client::Tls12 => put_finished_of_tls12(out, seed ^ 1 << 62),
        Client::Tls13 | Client::Tls13Large => put_encrypted(out, ENCRYPTED, seed ^ 1 << 62),
    }
}

/// Appends the end of a client's handshake.
pub(crate) fn client_finished(out: &mut Vec<u8>, client: Client, seed: u64) {
    put_change_of_ciphers(out);
    match client {
        Client::Tls12 => put_finished_of_tls12(out, seed ^ 1 << 57),
        Client::Tls13 | Client::Tls13Large => put_encrypted(out, FINISHED, seed ^ 1 << 57),
    }
}

/// Appends what a server of TLS 1.3 says next.
pub(crate) fn ticket(out: &mut Vec<u8>, seed: u64) {
    put_encrypted(out, TICKETS, seed ^ 1 << 56);
}

fn put_change_of_ciphers(out: &mut Vec<u8>) {
    out.push(CHANGE_CIPHER_SPEC);
    put16(out, &[TLS_1_2]);
    counted16(out, |out| out.push(1));
}

fn put_finished_of_tls12(out: &mut Vec<u8>, seed: u64) {
    out.push(HANDSHAKE);
    put16(out, &[TLS_1_2]);
    counted16(out, |out| put_random(out, FINISHED_OF_TLS12, seed));
}

fn put_encrypted(out: &mut Vec<u8>, length: usize, seed: u64) {
    out.extend(record_header(length));
    put_random(out, length, seed);
}

/// Appends a ServerHello without record; `session`: with the session of the ClientHello of this `seed`.
pub(crate) fn server_hello(out: &mut Vec<u8>, (client, session): (Client, bool), seed: u64) {
    handshake(out, SERVER_HELLO, |out| {
        put16(out, &[TLS_1_2]);
        put_random(out, 32, seed ^ 1 << 61);
        counted8(out, |out| put_random(out, if session { 32 } else { 0 }, !seed));
        let old = client == Client::Tls12;
        put16(out, &[if old { ECDHE_RSA_AES_128_GCM_SHA256 } else { AES_128_GCM_SHA256 }]);
        out.push(0);
        counted16(out, |out| if old { put_tls12_choices(out) } else { put_tls13_choices(out, seed) });
    });
}

fn put_tls12_choices(out: &mut Vec<u8>) {
    extension(out, extension::RENEGOTIATION_INFO, |out| out.push(0));
    extension(out, extension::EXTENDED_MASTER_SECRET, |_| ());
    put_alpn(out, &["h2"]);
}

fn put_tls13_choices(out: &mut Vec<u8>, seed: u64) {
    extension(out, extension::SUPPORTED_VERSIONS, |out| put16(out, &[TLS_1_3]));
    extension(out, extension::KEY_SHARE, |out| put_key_share(out, (X25519, 32), seed ^ 1 << 60));
}

/// Of a record with `length` bytes of application data.
#[inline]
pub(crate) fn record_header(length: usize) -> [u8; RECORD_HEADER] {
    let [major, minor] = TLS_1_2.to_be_bytes();
    let [high, low] = (length as u16).to_be_bytes();
    [APPLICATION_DATA, major, minor, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(client: Client) -> Vec<u8> {
        let mut out = vec![];
        client_record(&mut out, &Hello { host: "a.example", client, name_last: true, quic: None, seed: 7 });
        out
    }

    #[test]
    fn lengths_of_record_and_handshake_fit() {
        for client in [Client::Tls12, Client::Tls13, Client::Tls13Large] {
            let record = record(client);
            let at = |place: usize| usize::from(u16::from_be_bytes([record[place], record[place + 1]]));
            assert_eq!((at(3), at(7)), (record.len() - 5, record.len() - 9));
            assert_eq!((record[5], record[6]), (CLIENT_HELLO, 0));
        }
    }

    #[test]
    fn a_large_hello_needs_two_segments_and_the_others_one() {
        assert!(record(Client::Tls12).len() < 1_000 && record(Client::Tls13).len() < 1_000);
        assert!((1_400..2_000).contains(&record(Client::Tls13Large).len()));
    }
}
