//! What is asked and not done: answers that name what is wrong.

use super::sessions::{establish, modify, setup};
use super::{About, Conversation, Step};
use crate::common::SMF;
use crate::common::smf::{establishment, path_switch};
use pfcp::*;

fn ask(body: impl Into<Body>) -> Step {
    Step::Ask(SMF, About::Node, body.into())
}

fn of_nodes() -> [Step; 3] {
    let contents = PfdContents { urls: vec![b"(".to_vec()], ..PfdContents::default() };
    let contexts = vec![PfdContext { contents: vec![contents], carried: vec![] }];
    let news = ApplicationPfds { application_id: b"news".to_vec(), contexts, carried: vec![] };
    let nowhere = SessionChangeInfo {
        fq_csids: vec![],
        group_ids: vec![],
        cp_ip_addresses: vec![],
        alternative: CpIpAddress::default(),
        carried: vec![],
    };
    let (node_id, carried) = (NodeId::Ipv4(SMF), vec![]);
    [
        ask(PfdManagementRequest { applications: vec![news], ..PfdManagementRequest::default() }),
        ask(SessionSetDeletionRequest { node_id: node_id.clone(), fq_csids: vec![], carried: vec![] }),
        ask(SessionSetModificationRequest { node_id, changes: vec![nowhere], carried }),
    ]
}

pub fn whole() -> Conversation {
    let mut of_no_type = establishment(77);
    of_no_type.pdn_type = Some(PdnType::NonIp);
    let mut dangling = establishment(77);
    dangling.create_pdrs[0].far_id = Some(40);
    let pause = SessionModificationRequest {
        pfcpsm_req_flags: Some(flags::PFCPSM_SUMPC),
        ..SessionModificationRequest::default()
    };
    let mut unknown = path_switch(9);
    unknown.update_fars[0].far_id = 40;
    let mut steps = vec![setup()];
    steps.extend(of_nodes());
    steps.extend([establish(of_no_type), establish(dangling), establish(establishment(77))]);
    steps.extend([modify(pause), modify(unknown)]);
    Conversation { is_refused: true, ..Conversation::new("requests that are refused", steps) }
}
