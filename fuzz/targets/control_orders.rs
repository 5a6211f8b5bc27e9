//! Orders to the control plane engine: lines of JSON, of which those about predefined rules are obeyed, one after the
//! other, and what they leave is what the engine starts with again. The executable has no library, so the modules that
//! read orders are built here.

#![no_main]
#![allow(dead_code, unused_imports, reason = "whole modules, of which a part is used")]

#[path = "../../crates/anchorline/src/content.rs"]
mod content;
#[path = "control/cpe.rs"]
mod cpe;
#[path = "../../crates/anchorline/src/exit.rs"]
mod exit;
/// Nobody reads what ends a target.
mod log {
    pub(crate) const fn complain(_: &str) {}
}
#[path = "../../crates/anchorline/src/reach.rs"]
mod reach;
#[path = "../../crates/anchorline/src/settings/mod.rs"]
mod settings;
#[path = "../../crates/anchorline/src/socket.rs"]
mod socket;

use cpe::Engine;
use cpe::control::Order;
use std::collections::BTreeMap;

/// An order is no longer, in octets.
const ORDER_MAX: usize = 1 << 20;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(text) = bytes.get(..bytes.len().min(ORDER_MAX)).and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
        return;
    };
    let mut engine = Engine::start(BTreeMap::new());
    for line in text.lines() {
        let Ok(order) = Order::read(line) else { continue };
        let written = serde_json::to_string(&order).expect("an order can be written");
        assert_eq!(Order::read(&written).ok().as_ref(), Some(&order));
        if let Order::Predefined(wish) = &order {
            engine.obey(wish);
        }
    }
    engine.check();
});
