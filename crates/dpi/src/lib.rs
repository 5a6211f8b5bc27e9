//! Service awareness, the pure half: what the first packets of a flow say, which content rule it therefore belongs to,
//! and what the names of servers are. No input or output, no clock, no threads; whatever comes from a user is bounded in
//! bytes, packets and time, and cannot make it panic.
//!
//! A worker that opens a flow takes an [`Inspection`](extract::Inspection) from its [`Pool`](extract::Pool), shows it the
//! flow's packets until it has a [`Verdict`](extract::Verdict), asks the [`Classifier`](matching::Classifier) once, keeps
//! the answer with the flow, and gives the inspection back:
//!
//! ```
//! use anchorline_dpi::extract::{Pool, Verdict};
//! use anchorline_dpi::matching::Facts;
//! use anchorline_dpi::rule_file;
//!
//! let file = "id=7 precedence=1 rating-group=10 url=www.a.example/video/*";
//! let classifier = rule_file::read_lines(file).unwrap().compile().unwrap();
//!
//! let mut pool = Pool::new(256);
//! let ticket = pool.take();
//! let packet = b"GET /video/1 HTTP/1.1\r\nHost: www.a.example\r\n\r\n";
//! let facts = Facts { server: "192.0.2.1".parse().unwrap(), server_port: 80, protocol: 6, ..Facts::default() };
//! let facts = match pool.get(ticket).unwrap().segment(1, packet) {
//!     Verdict::Seen(seen) => facts.with(&seen),
//!     // Wait for the next packet, or go by the addresses.
//!     Verdict::More | Verdict::Unknown(_) => facts,
//! };
//! assert_eq!(classifier.classify(&facts).map(|found| found.rating_group), Some(10));
//! pool.put(ticket);
//! ```
//!
//! | memory | bytes |
//! |---|---|
//! | a flow that is looked at | 4,352 in the pool, 8 for the ticket |
//! | a rule of the `zte` profile | 140, with all that is beside it 280 |
//! | a learned name | 168 |
//! | a query that waits for its answer | 24 |

pub mod extract;
pub mod learn;
pub mod matching;
pub mod rule_file;
