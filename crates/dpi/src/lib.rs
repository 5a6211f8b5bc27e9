//! Content awareness, the pure half.
pub mod extract;
pub mod matching;
