//! Conditions that no flow has together. A rule with such never counts, which nobody wants who wrote it.

use super::error::What;
use super::field::protocol_name;
use crate::matching::{Conditions, Layer};

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// Over what a layer is looked for.
const fn carriers(layer: Layer) -> &'static [u8] {
    match layer {
        Layer::Http | Layer::Http2 | Layer::Tls => &[TCP],
        Layer::Quic | Layer::Stun | Layer::Rtp => &[UDP],
        Layer::Dns => &[TCP, UDP],
    }
}

/// Every pair of conditions that contradict each other.
pub(super) fn of(when: &Conditions) -> Vec<What> {
    let layers = with_layers(when).into_iter().flatten();
    let protocol = when.protocol.into_iter().flat_map(|protocol| with_protocol(when, protocol));
    let both = path(when).zip(hello(when)).map(|(path, hello)| What::Contradiction {
        one: path.to_owned(),
        other: hello.to_owned(),
        why: "a request in the clear has no ClientHello".to_owned(),
    });
    layers.chain(protocol.flatten()).chain(both).collect()
}

/// What of a rule asks for a ClientHello.
fn hello(when: &Conditions) -> Option<&'static str> {
    when.asks_for_hello().then_some(if when.ech { "ech" } else { "alpn" })
}

/// What of a rule asks for the path of a request.
fn path(when: &Conditions) -> Option<&'static str> {
    match (when.paths.is_empty(), when.url_regex.is_some()) {
        (false, _) => Some("a path"),
        (true, true) => Some("url-regex"),
        (true, false) => None,
    }
}

fn with_layers(when: &Conditions) -> [Option<What>; 2] {
    let other = format!("layer={}", names(&when.layers, ","));
    let has = |wanted: &[Layer]| when.layers.is_empty() || wanted.iter().any(|it| when.layers.contains(it));
    let against = |one: &str, why: &str| What::Contradiction {
        one: one.to_owned(),
        other: other.clone(),
        why: why.to_owned(),
    };
    [
        path(when)
            .filter(|_| !has(&[Layer::Http]))
            .map(|path| against(path, "only layer=http shows what is asked for")),
        hello(when)
            .filter(|_| !has(&[Layer::Tls, Layer::Quic]))
            .map(|hello| against(hello, "only layer=tls and layer=quic have a ClientHello")),
    ]
}

fn with_protocol(when: &Conditions, protocol: u8) -> [Option<What>; 4] {
    let one = format!("protocol={}", protocol_name(protocol));
    let against = |other: String, why: String| What::Contradiction { one: one.clone(), other, why };
    let is_over = |layer: &Layer| carriers(*layer).contains(&protocol);
    let is_none_over = !when.layers.is_empty() && !when.layers.iter().any(is_over);
    let layers = is_none_over.then(|| {
        let others = [TCP, UDP].into_iter();
        let others = others.filter(|it| when.layers.iter().any(|layer| carriers(*layer).contains(it)));
        let others: Vec<String> = others.map(protocol_name).collect();
        let why = format!("{} is over {}", names(&when.layers, " or "), others.join(" or "));
        against(format!("layer={}", names(&when.layers, ",")), why)
    });
    let path = path(when).filter(|_| protocol != TCP);
    let path = path.map(|path| against(path.to_owned(), "requests in the clear are over tcp".to_owned()));
    let hello = hello(when).filter(|_| ![TCP, UDP].contains(&protocol));
    let hello = hello.map(|hello| against(hello.to_owned(), "a ClientHello is over tcp or udp".to_owned()));
    let ports = !when.ports.is_empty() && ![TCP, UDP, SCTP].contains(&protocol);
    let ports = ports.then(|| against("port".to_owned(), "only tcp, udp and sctp have ports".to_owned()));
    [layers, path, hello, ports]
}

fn names(layers: &[Layer], between: &str) -> String {
    layers.iter().map(|layer| layer.name()).collect::<Vec<_>>().join(between)
}
