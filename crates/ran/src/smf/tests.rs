//! The machine against a scripted user plane.

mod again;
mod billing;
mod leaving;
mod noise;
mod order;
mod paging;
mod recovery;
mod refusal;
mod scripted;

use super::*;
use crate::config::FTeidMode;
use pfcp::SessionEstablishmentRequest;
use scripted::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn establishment(message: &Message) -> &SessionEstablishmentRequest {
    match &message.body {
        Body::SessionEstablishmentRequest(request) => request,
        other => panic!("not an establishment: {other:?}"),
    }
}

fn failures(scene: &Scene) -> Vec<String> {
    let failed = |event: &Event| match event {
        Event::Failed(failure) => Some(failure.to_string()),
        _ => None,
    };
    scene.events.iter().filter_map(failed).collect()
}
