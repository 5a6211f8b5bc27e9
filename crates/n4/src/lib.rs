//! The PFCP node of a user plane (TS 29.244): N4, Sxa and Sxb, as a machine without clock, socket or randomness.
//!
//! [`Node::handle`] takes what came ([`Input`]) and the time, and gives back what is to be done ([`Output`]). A
//! request that changes a session is answered only when the data plane has said that it obeys; until then its
//! retransmissions meet silence, afterwards the same answer. What the data plane does not do is refused, never
//! accepted and forgotten: `support` is the list of it.
//!
//! | file | what it is about |
//! |---|---|
//! | `node`, `exchange` | the machine: what comes in, what is due, requests and answers both ways |
//! | `asking` | whom we may ask, and what waits for those who do not answer |
//! | `peers`, `association`, `resources`, `heartbeat`, `leaving`, `gone` | control planes we work with, and how that ends |
//! | `overview` | associations as operators see them |
//! | `registry`, `slot`, `sessions` | all sessions, asleep and awake |
//! | `establishment`, `modification`, `deletion`, `asked_first`, `apply` | their sessions, and the data plane's word |
//! | `ending` | very many sessions that end together |
//! | `replacement`, `stale`, `user_index` | sessions that give way to new ones |
//! | `support`, `values`, `translate` | from PFCP to rules |
//! | `usage`, `metering` | what sessions use, and when and how control planes hear of it |
//! | `offline` | what of it goes into charging data records |
//! | `paging` | packets kept for users who sleep |
//! | `tunnels`, `pools`, `report` | our tunnel endpoints, users' addresses, and peers' tunnels that are no more |
//! | `sets`, `load`, `paths` | what is about many sessions, or about none |
//! | `pfds` | what applications look like, as control planes say |
//! | `predefined` | rules the operator knows by name |

mod advertised;
mod apply;
mod asked_first;
mod asking;
mod association;
mod capabilities;
mod clock;
mod config;
mod deletion;
mod ending;
mod establishment;
mod exchange;
mod families;
mod few_kinds;
mod few_lines;
mod gone;
mod heartbeat;
mod interface;
mod kept;
mod late;
mod leaving;
mod load;
mod losses;
mod metering;
mod modification;
mod networks;
mod node;
mod offline;
mod overview;
mod pace;
mod paging;
mod partly;
mod paths;
mod peers;
mod pfds;
mod pools;
mod predefined;
mod reasons;
mod refusal;
mod registry;
mod repeated;
mod replacement;
mod report;
mod resources;
mod resync;
mod room;
mod sequences;
mod sessions;
mod set_index;
mod sets;
mod silence;
mod slot;
mod stale;
mod support;
mod table;
mod translate;
mod tunnels;
mod unkept;
mod usage;
mod user_index;
mod values;
mod wanted;

pub use config::{Config, ForwardingPolicy, GtpuAddress, InterfaceTypes, Limits};
pub use interface::{Counters, Input, Level, Note, Output, Start};
pub use node::Node;
pub use offline::Charging;
pub use overview::{AssociationState, AssociationStatus};
pub use pools::UePool;
pub use predefined::{ComesOf, Predefined, PredefinedError, PredefinedRule};
pub use table::{IeSupport, Standing, ie_support};
