//! What of the values of an IE is refused though others are obeyed. The refusals themselves are where the values are read
//! (`values`, `translate`, `support`); a test asks for each of these.

use pfcp::{flags, ie};

/// Values that are refused of IEs that are obeyed: in words, and in octets that say one each where the cause is that the service
/// is not supported. Those refused with another cause, or with some other IE only, have tests of their own.
pub(crate) const PARTLY: &[(u16, &str, &[&[u8]])] = &[
    (ie::SOURCE_INTERFACE, "5G VN internal; CP-function without a tunnel", &[&[4]]),
    (
        ie::DESTINATION_INTERFACE,
        "5G VN internal; CP-function without a tunnel; LI-function, but for copies",
        &[&[5]],
    ),
    (
        ie::F_TEID,
        "IPv6 where the node has none; a TEID that the session has at another address of ours, too (cause 73)",
        &[&[2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]],
    ),
    (
        ie::UE_IP_ADDRESS,
        "CHOOSE of a prefix that is not /64; prefixes of 0 and of 65 to 127 bits; a second address of a family; none at all, one that is \
         unspecified, of multicast, of loopback, the broadcast or of a port of ours in that network (cause 69)",
        &[&[0x60, 56]],
    ),
    (
        ie::APPLY_ACTION,
        "IPMA, IPMD, DFRT, EDRT, BDPN, DDPN, FSSM, MBSU",
        &[&[0x22], &[0x42], &[0x81], &[2, 1], &[2, 2], &[2, 4], &[2, 8], &[2, 16]],
    ),
    (
        ie::OUTER_HEADER_CREATION,
        "IP alone, VLAN tags, N19, N6, multicast, UDP of both families at once; IPv6 where the node has none; UDP to an address of \
         ours or to port 0 (cause 69)",
        &[
            &[12, 0, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 7],
            &[16, 0, 10, 0, 0, 1],
            &[64, 0, 0, 0, 1],
        ],
    ),
    (
        ie::OUTER_HEADER_REMOVAL,
        "UDP alone, as no IE tells the port at which its packets come (TS 29.561 9.2), IP alone, VLAN tags",
        &[&[2], &[3], &[4], &[5], &[7], &[8]],
    ),
    (ie::REDIRECT_INFORMATION, "SIP URIs, ports", &[&[3, 0, 5, b's', b'i', b'p', b':', b'a'], &[5, 0, 80]]),
    (ie::HEADER_ENRICHMENT, "of other protocols than HTTP", &[&[1, 1, b'a', 1, b'b']]),
    (
        ie::SDF_FILTER,
        "flow descriptions of more than 1,024 octets, with `deny`, with `!` before any address or /0, with options (cause 73); no \
         condition at all (cause 69)",
        &[],
    ),
    (ie::APPLICATION_ID, "names that neither content rules nor PFDs tell of (cause 81)", &[]),
    (ie::FRAMED_ROUTING, "all but 0", &[&[0, 0, 0, 1]]),
    (
        ie::MEASUREMENT_METHOD,
        "none of EVENT where thresholds or quotas of events are given, or EVETH or EVEQU is asked for (cause 69)",
        &[],
    ),
    (
        ie::PFD_CONTENTS,
        "custom contents, whose meaning no specification tells; domain name protocols of certificates (TLS_SAN, TLS_SCN), encrypted since TLS 1.3; flow descriptions that name both ends, or with `!`",
        &[],
    ),
    (ie::PDN_TYPE, "Non-IP", &[&[4]]),
    (ie::REPORTING_TRIGGERS, "ENVCL, IPMJL, REEMR, UPINT", &[&[0, 0x04], &[0, 0x40], &[0, 0, 1], &[0, 0, 2]]),
    (ie::MEASUREMENT_INFORMATION, "SSPOC, ASPOC, CIAM", &[&[0x20], &[0x40], &[0x80]]),
    (
        ie::QER_CORRELATION_ID,
        "one of sessions that are with another worker, where this session cannot come there, as it shares another one where it is, as \
         they are with several, or as that worker is full (cause 75)",
        &[],
    ),
    (ie::PACKET_RATE, "APRC", &[&[5, 0, 0, 9, 0, 1]]),
];

/// As those, in one message: what belongs to a pause of charging.
pub(crate) const PARTLY_IN: &[(&str, u16, &str, &[&[u8]])] = &[
    ("Session Establishment Request", ie::PFCPSEREQ_FLAGS, "SUMPC", &[&[flags::PFCPSE_SUMPC]]),
    (
        "Session Modification Request",
        ie::PFCPSMREQ_FLAGS,
        "SUMPC, RUMUC",
        &[&[flags::PFCPSM_SUMPC], &[flags::PFCPSM_RUMUC]],
    ),
];
