//! Whatever comes, nothing breaks.

use super::*;
use proptest::prelude::*;

/// A phase to be in, by how many requests were accepted.
fn scene(accepted: usize) -> Scene {
    let mut scene = Scene::of(2, FTeidMode::Choose);
    for _ in 0..accepted.min(5) {
        let request = scene.sent.remove(0);
        let answer = scene.accept(&request);
        scene.say(&answer);
    }
    scene
}

proptest! {
    #[test]
    fn noise_never_panics(accepted in 0usize..6, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        scene(accepted).smf.handle(Input::Datagram(UPF, &bytes), Time::ZERO);
    }

    #[test]
    fn a_damaged_answer_never_panics(
        accepted in 0usize..5, at in 0usize..120, value: u8, cut in 0usize..120
    ) {
        let mut scene = scene(accepted);
        let request = scene.sent.remove(0);
        let mut bytes = pfcp::encode(&scene.accept(&request));
        let length = bytes.len();
        bytes[at % length] = value;
        bytes.truncate(length - cut % length);
        scene.smf.handle(Input::Datagram(UPF, &bytes), Time::ZERO);
        scene.smf.handle(Input::Stop, Time::ZERO);
    }
}
