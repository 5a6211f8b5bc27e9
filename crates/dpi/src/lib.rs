//! Content awareness, the pure half.
pub mod extract;
pub mod learn;
pub mod matching;
pub mod rule_file;
