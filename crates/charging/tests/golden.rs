//! Files as they are written, held against `tests/golden/cdr`, which decoders that nobody here wrote read in every
//! run of the tests: `check.py` there, by `scripts/decoders.sh`. `ANCHORLINE_WRITE_GOLDEN=1` writes them anew.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

use charging::ber::Context;
use charging::file::{self, Closure, Format, Frame};
use charging::{Cause, Cdr, Conditions, Container, Key, Session, Slice, User, Zone};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// 2026-01-31 22:30:00 UTC.
const MOMENT: u64 = charging::time::UNIX_EPOCH_MS + 1_769_898_600_000;

fn container(sequence: u32, service_id: Option<u32>, conditions: Conditions) -> Container {
    Container {
        key: Key { rating_group: 4_000_000_000, service_id },
        sequence,
        uplink_bytes: 200,
        downlink_bytes: 5_000_000_000_000,
        duration_ms: 59_999,
        from_ms: MOMENT,
        until_ms: MOMENT + 60_000,
        first_packet_ms: Some(MOMENT + 1_000),
        last_packet_ms: Some(MOMENT + 59_000),
        conditions,
        serving_nodes: vec![[10, 30, 0, 9].into()],
    }
}

/// All that can be told, in a record in the middle of a session.
fn full() -> Cdr {
    let user = User {
        imsi: Some("001010123456789".to_owned()),
        msisdn: Some("4917212345".to_owned()),
        imei: Some("3534567890123456".to_owned()),
        nai: Some("user@example.org".to_owned()),
        supi: None,
        gpsi: None,
        pei: None,
        dnn: Some("internet".to_owned()),
        slice: Some(Slice { sst: 1, sd: Some([0, 1, 0xAB]) }),
        ipv4: Some([10, 60, 0, 1].into()),
        ipv6: Some(("2001:db8:60:1::".parse().unwrap(), 64)),
    };
    let session = Session {
        seid: 0xE000_0001_0000_0007,
        owner: "smf1.5gc.example".to_owned(),
        cp_seid: 77,
        cp_address: [10, 40, 0, 9].into(),
        serving_nodes: vec![[10, 30, 0, 9].into(), "2001:db8:30::9".parse().unwrap(), [10, 30, 0, 8].into()],
        user,
    };
    let all = Conditions::NAMES.iter().fold(Conditions::default(), |all, (one, _)| all.and(*one));
    Cdr {
        serial: 300,
        session,
        started_ms: MOMENT - 3_600_000,
        opened_ms: MOMENT,
        closed_ms: MOMENT + 60_000,
        sequence: 2,
        cause: Cause::VolumeLimit,
        containers: vec![
            container(3, Some(7), Conditions::TARIFF_SWITCH),
            container(4, None, Conditions::VOLUME_LIMIT),
            Container {
                key: Key { rating_group: 1, service_id: None },
                serving_nodes: vec!["2001:db8:30::9".parse().unwrap(), [10, 30, 0, 8].into()],
                ..container(5, None, all)
            },
        ],
    }
}

/// The least that can be told, in the only record of a session.
fn least() -> Cdr {
    let session = Session {
        seid: 5,
        owner: "10.40.0.9".to_owned(),
        cp_seid: 0,
        cp_address: "2001:db8:40::9".parse().unwrap(),
        serving_nodes: vec![],
        user: User { ipv6: Some(("2001:db8::7".parse().unwrap(), 128)), ..User::default() },
    };
    let (cause, containers) = (Cause::AbnormalRelease, vec![]);
    Cdr {
        serial: 301,
        session,
        started_ms: MOMENT,
        opened_ms: MOMENT,
        sequence: 1,
        cause,
        containers,
        ..full()
    }
}

/// As many containers as a record may have, and then some: its length needs three octets. Its user has names that only 5G
/// knows.
fn long() -> Cdr {
    let changes = [Conditions::QOS_CHANGE, Conditions::RULE_CHANGE].into_iter().cycle();
    let containers = (0..300)
        .zip(changes)
        .map(|(at, change)| Container { serving_nodes: vec![], ..container(at + 1, Some(at), change) });
    let containers = containers.collect();
    let user = User {
        supi: Some("gci-00-00-5E-00-53-01@5gc.example".to_owned()),
        gpsi: Some("extid-user@example.org".to_owned()),
        pei: Some("mac-00-00-5E-00-53-01".to_owned()),
        ..User::default()
    };
    let session = Session { user, ..full().session };
    Cdr { serial: 4_294_967_302, session, cause: Cause::MaxChangeConditions, containers, ..full() }
}

fn golden(format: Format) -> (PathBuf, Vec<u8>) {
    let frame = Frame {
        context: Context { node: "upf1.example", zone: &Zone::Fixed(120) },
        address: [10, 40, 0, 2].into(),
        sequence: 12,
        closure: Closure::Count,
        lost: 1,
        now_ms: MOMENT + 90_000,
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/cdr");
    let octets = file::encode(&[full(), least(), long()], format, frame);
    (folder.join(file::name(format, &frame)), octets)
}

#[test]
fn files_are_written_as_they_were_when_others_read_them() {
    for format in [Format::Pgw, Format::Chf, Format::Json] {
        let (path, octets) = golden(format);
        if std::env::var_os("ANCHORLINE_WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &octets).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == octets, "{} is written otherwise", path.display());
    }
}

#[test]
fn files_are_read_as_they_were_written() {
    for format in [Format::Pgw, Format::Chf, Format::Json] {
        let read = file::read(&golden(format).1).unwrap();
        assert_eq!(read.records.len(), 3);
        let first = &read.records[0];
        assert_eq!((first.sequence, first.charging_id, first.duration_s), (2, 7, 60));
        assert_eq!((first.subscriber.as_deref(), first.cause), (Some("001010123456789"), 16));
        assert_eq!(first.address, Some([10, 60, 0, 1].into()));
        let group: Vec<u64> = first.containers.iter().map(|it| it.rating_group).collect();
        assert!(group.contains(&4_000_000_000) && group.contains(&1));
        let bytes: u64 = first.containers.iter().map(|it| it.downlink_bytes).sum();
        assert_eq!((bytes, first.containers[0].time_s), (15_000_000_000_000, Some(59)));
        assert_eq!(read.records[1].address, Some("2001:db8::7".parse().unwrap()));
        assert_eq!((read.records[1].sequence, read.records[2].containers.len()), (1, 300));
        let named = read.records[2].subscriber.as_deref();
        assert_eq!(named, (format != Format::Pgw).then_some("gci-00-00-5E-00-53-01@5gc.example"));
        let header = read.header.map(|header| (header.cdrs, header.sequence, header.closure, header.lost));
        assert_eq!(header, (format != Format::Json).then_some((3, 12, Closure::Count, 1)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Files that were damaged, cut off or made up are read or refused; what is read of them is no more than they hold.
    #[test]
    fn damaged_files_are_read_or_refused(
        damage in prop::collection::vec((0usize..24_000, any::<u8>()), 1..20),
        cut in 0usize..24_000,
        made_up in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        for format in [Format::Pgw, Format::Chf, Format::Json] {
            let (_, whole) = golden(format);
            let mut damaged = whole.clone();
            for (at, octet) in &damage {
                let at = at % damaged.len();
                damaged[at] = *octet;
            }
            for octets in [&damaged[..], &whole[..cut.min(whole.len() - 1)], &made_up] {
                if let Ok(read) = file::read(octets) {
                    prop_assert!(read.records.len() * 4 <= octets.len());
                }
            }
        }
    }

    #[test]
    fn anything_may_be_a_user_id(octets in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut user = User::default();
        user.read_user_id(&octets);
        let digits = [user.imsi, user.msisdn, user.imei].into_iter().flatten();
        prop_assert!(digits.into_iter().all(|it| it.len() <= 16 && it.bytes().all(|it| it.is_ascii_digit())));
    }
}
