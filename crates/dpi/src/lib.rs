//! Content awareness, the pure half.
pub mod extract;
