//! A user plane that asks to be released (TS 29.244 6.2.7.3).

use super::*;
use pfcp::{AssociationUpdateRequest, NodeId, flags};

/// As a user plane asks it that gives a minute, or with other flags.
fn update(sequence: u32, release: Option<u8>) -> Message {
    let request = AssociationUpdateRequest {
        association_release_request: release,
        graceful_release_period: release.map(|_| flags::timer(Some(60))),
        ..AssociationUpdateRequest::new(NodeId::Ipv4(*UPF.ip()))
    };
    Message::node(sequence, request)
}

fn kinds(scene: &Scene) -> Vec<u8> {
    scene.sent.iter().map(|message| message.body.message_type()).collect()
}

#[test]
fn sessions_are_deleted_and_the_association_is_released_when_the_user_plane_asks() {
    let mut scene = Scene::ready(2);
    scene.say(&update(7, Some(flags::RELEASE_SARR)));
    // First the answer, then a deletion of each session.
    assert_eq!((kinds(&scene), &scene.events[..]), (vec![8, 54, 54], &[Event::ReleaseAsked][..]));
    // Who asks again, or tells us to stop, changes nothing.
    scene.say(&update(8, Some(flags::RELEASE_SARR)));
    scene.feed(Input::Stop);
    assert_eq!(kinds(&scene), [8, 54, 54, 8]);
    scene.sent.retain(|message| message.body.message_type() != 8);
    scene.accept_all();
    let over = [Event::ReleaseAsked, Event::SessionDeleted(0), Event::SessionDeleted(1), Event::Stopped];
    assert_eq!((&scene.events[..], scene.smf.next_due()), (&over[..], None));
}

/// It has taken the sessions away itself, as its time was up.
#[test]
fn a_user_plane_that_is_gone_by_then_is_left_all_the_same() {
    let mut scene = Scene::ready(1);
    scene.say(&update(7, Some(flags::RELEASE_SARR)));
    scene.pass(secs(60));
    assert_eq!((scene.events.last(), scene.smf.next_due()), (Some(&Event::Stopped), None));
}

#[test]
fn an_update_that_asks_for_no_release_changes_nothing() {
    for release in [None, Some(0), Some(!flags::RELEASE_SARR)] {
        let mut scene = Scene::ready(1);
        scene.say(&update(7, release));
        assert_eq!((kinds(&scene), &scene.events[..]), (vec![8], &[][..]), "{release:?}");
    }
}
