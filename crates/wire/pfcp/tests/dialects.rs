//! Single values as real control planes send them, and as nobody should.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

use pfcp::{
    ApplyAction, Body, Cause, CreatePdr, ErrorKind, FTeid, Gate, NodeId, OuterHeaderCreation,
    SessionEstablishmentRequest, SessionModificationRequest, decode, ie,
};

fn ie(number: u16, value: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat()
}

fn message(message_type: u8, ies: &[Vec<u8>]) -> Vec<u8> {
    let body = ies.concat();
    let length = (body.len() as u16 + 12).to_be_bytes();
    [&[0x21, message_type], &length[..], &[0; 8], &[0, 0, 7, 0], &body].concat()
}

fn establishment(pdr: &[Vec<u8>], far: &[Vec<u8>]) -> Vec<u8> {
    let f_seid = [&[2][..], &[0, 0, 0, 0, 0, 0, 0, 9], &[10, 0, 0, 9]].concat();
    message(
        50,
        &[
            ie(ie::NODE_ID, &[0, 10, 0, 0, 9]),
            ie(ie::F_SEID, &f_seid),
            ie(ie::CREATE_PDR, &pdr.concat()),
            ie(ie::CREATE_FAR, &far.concat()),
        ],
    )
}

fn pdr(f_teid: &[u8]) -> Vec<Vec<u8>> {
    let pdi = [ie(ie::SOURCE_INTERFACE, &[0]), ie(ie::F_TEID, f_teid)].concat();
    vec![ie(ie::PDR_ID, &[0, 1]), ie(ie::PDI, &pdi), ie(ie::FAR_ID, &[0, 0, 0, 1])]
}

fn far(apply_action: &[u8]) -> Vec<Vec<u8>> {
    vec![ie(ie::FAR_ID, &[0, 0, 0, 1]), ie(ie::APPLY_ACTION, apply_action)]
}

fn request(bytes: &[u8]) -> Result<SessionEstablishmentRequest, ErrorKind> {
    match decode(bytes) {
        Ok(message) => match message.body {
            Body::SessionEstablishmentRequest(request) => Ok(request),
            other => panic!("{other:?}"),
        },
        Err(error) => {
            assert_eq!(error.header.map(|header| header.sequence), Some(7));
            assert_eq!(error.cp_f_seid.map(|f_seid| f_seid.seid), Some(9));
            Err(error.kind)
        }
    }
}

fn f_teid(value: &[u8]) -> Result<Option<FTeid>, ErrorKind> {
    request(&establishment(&pdr(value), &far(&[1]))).map(|request| request.create_pdrs[0].pdi.f_teid)
}

#[test]
fn every_way_to_ask_for_an_f_teid_is_understood() {
    let choose = |ipv4, ipv6, choose_id| Ok(Some(FTeid::Choose { ipv4, ipv6, choose_id }));
    assert_eq!(f_teid(&[0x04]), choose(false, false, None));
    assert_eq!(f_teid(&[0x05]), choose(true, false, None));
    assert_eq!(f_teid(&[0x07]), choose(true, true, None));
    assert_eq!(f_teid(&[0x0F, 5]), choose(true, true, Some(5)));
    let explicit = FTeid::Explicit { teid: 2, ipv4: Some([10, 20, 0, 1].into()), ipv6: None };
    assert_eq!(f_teid(&[0x01, 0, 0, 0, 2, 10, 20, 0, 1]), Ok(Some(explicit)));
}

#[test]
fn f_teids_that_are_none_are_blamed() {
    assert_eq!(f_teid(&[]), Err(ErrorKind::InvalidLength(ie::F_TEID)));
    assert_eq!(f_teid(&[0x0C]), Err(ErrorKind::InvalidLength(ie::F_TEID)));
    assert_eq!(f_teid(&[0x01, 0, 0, 0, 2]), Err(ErrorKind::InvalidLength(ie::F_TEID)));
    assert_eq!(f_teid(&[0x00, 0, 0, 0, 2]), Err(ErrorKind::MandatoryIeIncorrect(ie::F_TEID)));
}

#[test]
fn an_apply_action_has_one_octet_or_two_but_not_none() {
    let action = |octets: &[u8]| {
        request(&establishment(&pdr(&[5]), &far(octets))).map(|r| r.create_fars[0].apply_action)
    };
    assert_eq!(action(&[2]), Ok(ApplyAction::short(2)));
    assert_eq!(action(&[12, 0]), Ok(ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP)));
    assert_eq!(action(&[]), Err(ErrorKind::InvalidLength(ie::APPLY_ACTION)));
}

#[test]
fn what_is_missing_is_named_wherever_it_is_missing() {
    let whole = establishment(&pdr(&[5]), &far(&[1]));
    assert!(request(&whole).is_ok());
    let no_pdi = [pdr(&[5])[0].clone(), pdr(&[5])[2].clone()];
    assert_eq!(request(&establishment(&no_pdi, &far(&[1]))), Err(ErrorKind::MandatoryIeMissing(ie::PDI)));
    assert_eq!(request(&establishment(&pdr(&[5]), &[])), Err(ErrorKind::MandatoryIeMissing(ie::FAR_ID)));
    let empty = decode(&message(50, &[])).unwrap_err();
    assert_eq!(empty.kind, ErrorKind::MandatoryIeMissing(ie::NODE_ID));
    assert_eq!(empty.kind.cause(), Some((Cause::MandatoryIeMissing, ie::NODE_ID)));
}

#[test]
fn an_ie_longer_than_its_group_is_blamed() {
    let mut long = ie(ie::PDR_ID, &[0, 1]);
    long[3] = 200;
    assert_eq!(request(&establishment(&[long], &far(&[1]))), Err(ErrorKind::InvalidLength(ie::PDR_ID)));
    assert_eq!(
        request(&establishment(&[vec![0, 56]], &far(&[1]))),
        Err(ErrorKind::InvalidLength(ie::CREATE_PDR))
    );
}

#[test]
fn the_gates_are_where_the_specification_puts_them() {
    let gates = |octet| {
        let qer = [ie(ie::QER_ID, &[0, 0, 0, 1]), ie(ie::GATE_STATUS, &[octet])].concat();
        match decode(&message(52, &[ie(ie::CREATE_QER, &qer)])).unwrap().body {
            Body::SessionModificationRequest(request) => request.create_qers[0].gate_status,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((gates(0b0100).uplink, gates(0b0100).downlink), (Gate::Closed, Gate::Open));
    assert_eq!((gates(0b0001).uplink, gates(0b0001).downlink), (Gate::Open, Gate::Closed));
}

#[test]
fn in_an_update_nothing_asks_for_removal() {
    let update = [ie(ie::PDR_ID, &[0, 1]), ie(ie::QER_ID, &[])].concat();
    let body = decode(&message(52, &[ie(ie::UPDATE_PDR, &update)])).unwrap().body;
    let Body::SessionModificationRequest(SessionModificationRequest { update_pdrs, .. }) = body else {
        panic!("{body:?}")
    };
    assert!(update_pdrs[0].removes(ie::QER_ID) && !update_pdrs[0].removes(ie::FAR_ID));
    assert!(update_pdrs[0].qer_ids.is_empty());
}

#[test]
fn unknown_and_vendor_ies_are_carried() {
    let odd = [ie(0x8005, &[0, 1, 2]), ie(399, &[]), ie(ie::PRECEDENCE, &[0, 0, 0, 1])].concat();
    let mut ies = pdr(&[5]);
    ies.push(odd);
    let pdr: CreatePdr = request(&establishment(&ies, &far(&[1]))).unwrap().create_pdrs.remove(0);
    assert_eq!(pdr.carried.iter().map(|other| other.ie).collect::<Vec<_>>(), [0x8005, 399]);
    assert_eq!(pdr.precedence, Some(1));
}

#[test]
fn headers_decide_between_silence_and_an_answer() {
    let kind = |bytes: &[u8]| decode(bytes).unwrap_err().kind;
    assert_eq!(kind(&[]), ErrorKind::Garbage);
    assert_eq!(kind(&[0x20, 1, 0]), ErrorKind::Garbage);
    assert_eq!(kind(&[0x20, 1, 0, 200, 0, 0, 1, 0]), ErrorKind::Garbage);
    assert_eq!(kind(&[0x40, 1, 0, 4, 0, 0, 1, 0]), ErrorKind::UnsupportedVersion(2));
    assert_eq!(kind(&[0x20, 99, 0, 4, 0, 0, 1, 0]), ErrorKind::UnknownMessage(99));
    assert_eq!(kind(&[0x20, 1, 0, 4, 0, 0, 1, 0]), ErrorKind::MandatoryIeMissing(ie::RECOVERY_TIME_STAMP));
}

#[test]
fn host_names_come_as_labels_or_as_text() {
    for name in [&b"\x02\x03smf\x03lab"[..], b"\x02smf.lab"] {
        let body = decode(&message(9, &[ie(ie::NODE_ID, name)])).unwrap().body;
        let Body::AssociationReleaseRequest(request) = body else { panic!("{body:?}") };
        assert_eq!(request.node_id, NodeId::Fqdn("smf.lab".to_owned()));
    }
}

#[test]
fn outer_headers_of_other_kinds_are_recognised_as_such() {
    let parameters = |value: &[u8]| {
        let group = [ie(ie::DESTINATION_INTERFACE, &[0]), ie(ie::OUTER_HEADER_CREATION, value)].concat();
        let far = [far(&[2]), vec![ie(ie::FORWARDING_PARAMETERS, &group)]].concat();
        let request = request(&establishment(&pdr(&[5]), &far)).unwrap();
        request.create_fars[0].forwarding_parameters.clone().unwrap().outer_header_creation.unwrap()
    };
    let gtpu = OuterHeaderCreation::GtpuIpv4 { teid: 1, address: [127, 0, 0, 4].into() };
    assert_eq!(parameters(&[1, 0, 0, 0, 0, 1, 127, 0, 0, 4]), gtpu);
    let n19 = [1, 1, 0, 0, 0, 1, 127, 0, 0, 4];
    assert_eq!(parameters(&n19), OuterHeaderCreation::Other(n19.to_vec()));
}
