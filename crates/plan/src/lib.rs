//! What more cores than this machine has would carry: a queueing model, calibrated with what a packet was measured to cost.
//! **Everything it says is modelled**, and printed so; nothing of it was run.
//!
//! Three ways for packets to get to the workers that own their users ([`scaling`]):
//!
//! - *inner hash*: each core receives its own users' packets and runs them to completion, `direct` cycles each where it is alone,
//!   and what was measured of several workers at once where it is not ([`Costs::direct_of`]);
//! - *outer hash*: the card spreads uplink packets by the gNB they come from, so that each gNB is one core's, and downlink
//!   packets evenly. A core keeps what is its own and hands over the rest: `distribute` cycles where a packet comes in, and
//!   `owner` where it goes;
//! - *distribution*: some cores do nothing but distribute, the others process; of all ways to share the cores out, the best.
//!
//! **Throughput** is what the busiest core allows. Users are alike and many; a card and the engine share them out over 128
//! table entries, and those over cores, so a core's users are multinomial, and the busiest core's share is the expected
//! maximum: by normal approximation for users (order statistics of normal variates, taken as independent), exactly for gNBs
//! (balls into bins, by generating function). Where the cores do not divide 128, some have an entry more.
//!
//! **Latency** is that of a core that polls: in each turn it takes all that waits, and sends it when the turn is over. A turn
//! of `n` packets takes `turn + n * cost`, so turns follow each other as a branching process with immigration; packets
//! arrive as a Poisson process and are served in gated batches (the M/D/1 queue with vacations and gated service; Bailey's
//! bulk service without a limit to the batch). Mean and distribution are computed from the stationary length of turns. A
//! packet that is handed over waits at two cores, taken as independent with Poisson arrivals (Kleinrock's approximation).
//!
//! **Not modelled**: memory bandwidth, caches and interconnects shared by more cores than were measured at once, frequency that falls when more cores work,
//! the card and its bus, queues that overflow, batches of limited size (below nine tenths of the full rate they hardly occur),
//! bursts, and users of unlike rates. So real systems scale worse, as the published figures beside it show.

mod costs;
mod published;
mod scaling;
mod share;
mod sojourn;

pub use costs::{Costs, OfSeveral, Unreadable};
pub use published::{Nearest, PUBLISHED, PUBLISHED_CORES, Published};
pub use scaling::{LOAD, Latency, Modelled, Scaling, Way, scaling};
pub use share::{busiest_of_few, busiest_of_many};
pub use sojourn::{Polled, Sojourn};
