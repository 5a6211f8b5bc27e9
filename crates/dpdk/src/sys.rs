//! What bindgen makes of DPDK's headers.
#![allow(
    missing_docs,
    unreachable_pub,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    dead_code
)]
#![allow(
    clippy::all,
    clippy::too_many_lines,
    clippy::undocumented_unsafe_blocks,
    clippy::indexing_slicing,
    unsafe_op_in_unsafe_fn
)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
