//! Rules that one request creates twice in the same words count once, and what is chosen for them is told once. A rule ID stands for one
//! rule of a session (TS 29.244 5.2.1), and SMFs of OpenAirInterface say a Create FAR or Create PDR again. Two that differ are refused
//! later, with the rest of the request.

use pfcp::{SessionEstablishmentRequest, SessionModificationRequest};
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// The request without repetitions.
pub(crate) fn establishment(
    request: Cow<'_, SessionEstablishmentRequest>,
) -> Cow<'_, SessionEstablishmentRequest> {
    let (pdrs, fars) = (&request.create_pdrs, &request.create_fars);
    if !repeats(pdrs, |pdr| pdr.pdr_id) && !repeats(fars, |far| far.far_id) {
        return request;
    }
    let mut once = request.into_owned();
    say_once(&mut once.create_pdrs, |pdr| pdr.pdr_id);
    say_once(&mut once.create_fars, |far| far.far_id);
    Cow::Owned(once)
}

/// As [`establishment`].
pub(crate) fn modification(
    request: Cow<'_, SessionModificationRequest>,
) -> Cow<'_, SessionModificationRequest> {
    let (pdrs, fars) = (&request.create_pdrs, &request.create_fars);
    if !repeats(pdrs, |pdr| pdr.pdr_id) && !repeats(fars, |far| far.far_id) {
        return request;
    }
    let mut once = request.into_owned();
    say_once(&mut once.create_pdrs, |pdr| pdr.pdr_id);
    say_once(&mut once.create_fars, |far| far.far_id);
    Cow::Owned(once)
}

fn repeats<T: PartialEq, I: Eq + Hash>(created: &[T], id: impl Fn(&T) -> I) -> bool {
    created.len() > 1 && news(created, id).contains(&false)
}

fn say_once<T: PartialEq, I: Eq + Hash>(created: &mut Vec<T>, id: impl Fn(&T) -> I) {
    let mut news = news(created, id).into_iter();
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
