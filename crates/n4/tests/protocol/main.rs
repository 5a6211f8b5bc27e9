//! The node from outside: control planes of all kinds speak bytes to it, and a pretended data plane obeys or does not. One program,
//! as each would have to be linked anew.
#![allow(missing_docs, unreachable_pub)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod addresses;
mod advertised;
mod again;
mod allowed;
mod applications;
mod bad_input;
mod begun;
mod books;
mod capabilities;
mod captures;
mod chaos;
mod charging;
mod charging_changes;
mod charging_files;
mod charging_lives;
mod charging_records;
mod clock;
mod common;
mod conversations;
mod copies;
mod deletion;
mod dialects;
mod ending;
mod ending_amid;
mod ending_crossed;
mod ending_lives;
mod ending_moves;
mod endpoints;
mod endpoints_kept;
mod ethernet;
mod events;
mod events_limits;
mod extended_buffering;
mod farewell;
mod features;
mod forwarding;
mod forwarding_ports;
mod framed;
mod further;
mod fuzz_seeds;
mod game;
mod gone;
mod heartbeats;
mod heirs;
mod ie_support;
mod ipv6;
mod leaving;
mod leaving_one;
mod losses;
mod monitoring;
mod mutations;
mod networks;
mod nobodys;
mod node;
mod node_paths;
mod omissions;
mod online;
mod oracle;
mod orphans;
mod outlived;
mod overview;
mod paging;
mod peers;
mod peers_named;
mod personas;
mod pfds;
mod predefined;
mod predefined_anew;
mod predefined_charged;
mod predefined_treated;
mod quotas;
mod refusals;
mod replaced;
mod reports;
mod restated;
mod restoration;
mod resync;
mod retained;
mod room;
mod sessions;
mod sets;
mod sets_left;
mod sets_taken_over;
mod silent;
mod stale;
mod strangers;
mod sweeps;
mod turns;
mod unkept;
mod usage;
mod usage_gaps;
mod usage_lives;
mod usage_monitored;
mod usage_quotas;
