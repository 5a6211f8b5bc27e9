//! Rules that one request creates twice in the same words count once, and what is chosen for them is told once. A rule ID stands for one
//! rule of a session (TS 29.244 5.2.1), and SMFs of OpenAirInterface say a Create FAR or Create PDR again. Two that differ are refused
//! later, with the rest of the request.

use pfcp::{CreateFar, CreatePdr, SessionEstablishmentRequest, SessionModificationRequest};
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// The request without repetitions.
pub(crate) fn establishment(
    request: Cow<'_, SessionEstablishmentRequest>,
) -> Cow<'_, SessionEstablishmentRequest> {
    if !is_any(&request.create_pdrs, &request.create_fars) {
        return request;
    }
    let mut once = request.into_owned();
    say_once(&mut once.create_pdrs, &mut once.create_fars);
    Cow::Owned(once)
}

/// As [`establishment`].
pub(crate) fn modification(
    request: Cow<'_, SessionModificationRequest>,
) -> Cow<'_, SessionModificationRequest> {
    if !is_any(&request.create_pdrs, &request.create_fars) {
        return request;
    }
    let mut once = request.into_owned();
    say_once(&mut once.create_pdrs, &mut once.create_fars);
    Cow::Owned(once)
}

/// Whether any rule is there twice.
fn is_any(pdrs: &[CreatePdr], fars: &[CreateFar]) -> bool {
    let (pdrs, fars) = (news(pdrs, |pdr| pdr.pdr_id), news(fars, |far| far.far_id));
    pdrs.contains(&false) || fars.contains(&false)
}

fn say_once(pdrs: &mut Vec<CreatePdr>, fars: &mut Vec<CreateFar>) {
    keep(pdrs, news(pdrs, |pdr| pdr.pdr_id));
    keep(fars, news(fars, |far| far.far_id));
}

fn keep<T>(created: &mut Vec<T>, news: Vec<bool>) {
    let mut news = news.into_iter();
    created.retain(|_| news.next().unwrap_or(true));
}

/// Whether each is another than the first of its ID.
fn news<T: PartialEq, I: Eq + Hash>(created: &[T], id: impl Fn(&T) -> I) -> Vec<bool> {
    let mut firsts = HashMap::with_capacity(created.len());
    let is_new = |rule| match firsts.entry(id(rule)) {
        Entry::Occupied(first) => *first.get() != rule,
        Entry::Vacant(place) => {
            place.insert(rule);
            true
        }
    };
    created.iter().map(is_new).collect()
}
