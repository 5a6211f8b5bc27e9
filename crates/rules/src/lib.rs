//! A session's forwarding rules: what a control plane wants done with a user's packets.
//!
//! [`Rules`] is the one type every producer (PFCP, our own gateway control, a static file) makes and the data
//! plane obeys. It only holds what the data plane really does; a producer that is asked for more refuses.
//! [`Rules::change`] applies a modification as a whole or not at all, and [`compile`] turns rules into the
//! immutable [`Program`] a worker runs. Everything here is pure: no input, output, clock or randomness.

mod change;
mod check;
mod classifier;
mod compile;
mod error;
mod ethernet;
#[cfg(test)]
mod fixture;
mod ids;
mod intent;
mod list;
mod redirect;
mod rule;
mod sdf;
mod treatment;
mod urr;

pub use change::{BarUpdate, Change, FarUpdate, ForwardingUpdate, PdrUpdate, QerUpdate, UrrUpdate};
pub use classifier::{
    Classifier, EthernetClassifier, FilterMismatch, FrameArrival, FrameTag, Looks, Mismatch,
};
pub use compile::{
    Action, Application, Arrival, Beyond, Direction, Encapsulation, EthernetProgram, Forward, Meter, Program,
    Step, Usage, compile,
};
pub use error::{RuleError, RuleRef};
pub use ethernet::{EthernetFilter, EthernetPdi, MacFilter, MacRange, SeenMac, TagFilter};
pub use ids::{
    ApplicationId, ApplicationTag, BarId, FarId, Instance, PdrId, Policy, QerId, Qfi, Seid, Teid, UrrId,
};
pub use intent::{
    ApplyAction, Bar, BitRates, Extended, FTeid, Far, ForwardingParameters, Gate, Interface, OuterHeader,
    OuterHeaderCreation, PacketRate, PacketRates, Pdi, Pdr, Qer, Rules, limits,
};
pub use list::{Mostly, Mostly1, Mostly2, Names, Places, Rare};
pub use redirect::{Redirect, RedirectAddresses, RedirectTo};
pub use sdf::{Addresses, FlowDescription, FlowEnd, PortRange, SdfError, SdfFilter, TrafficClass};
pub use treatment::{HeaderField, Treatment};
pub use urr::{DroppedDownlink, Methods, Monitoring, Since, Triggers, Urr, Volume};
