//! How a port leads the packets of one user, both ways, to one worker: what each family of network cards can do, which
//! of three ways follows ([`decide`]), the flow rules for it ([`script`]), and TEIDs that hash where they should
//! ([`Completer`], [`Matching`]). Sessions that a card's hash leads elsewhere may have exact rules ([`exact`], [`ExactRules`]).
//!
//! Pure: nothing here opens a port. Rules are values; [`Step::testpmd`] writes them as DPDK's testpmd reads them.
//!
//! **What has run where.** Generated; the grammar of every line is checked by testpmd of DPDK 22.11
//! (`scripts/check-flow-rules.sh`); patterns and RSS types are those the drivers' sources of that time list. The engine gives
//! them to the driver at the start, each validated first (`anchorline`, `dpe/steering.rs`), and does without what is refused.
//! No rule has run on any network card.

mod exact;
mod family;
mod hash;
mod key;
mod matching;
mod mode;
mod period;
mod request;
mod rule;
mod rules;
mod step;
mod teid;

pub use exact::{Budget, ExactCard, ExactRules, ExactState, Takes};
pub use family::Family;
pub use hash::hash64;
pub use key::{KEY, queue_of_address, toeplitz};
pub use matching::Matching;
pub use mode::{Abilities, Decision, Mode, Package, Reach, decide};
pub use period::{PERIOD, agrees, period};
pub use request::{Class, Refused, Request, Side, Steered, Target};
pub use rule::{Action, Item, Rss, RssType, Rule};
pub use rules::{I40E_PROFILE, Script, exact, script};
pub use step::{Setup, Step};
pub use teid::{Completer, Table};
