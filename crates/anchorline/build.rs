//! How the executable is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Drivers that DPDK loads are to find it here before the C library's: see `c/fanout.c` of the dpdk crate.
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=setsockopt");
}
