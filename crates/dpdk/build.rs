//! Bindings over DPDK's headers and a C shim for its inline functions.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The libraries linked; drivers are loaded by DPDK at run time.
const LIBRARIES: [&str; 6] = ["rte_ethdev", "rte_net_ring", "rte_mbuf", "rte_mempool", "rte_ring", "rte_eal"];

/// The baseline DPDK's own headers are read with; the bindings do not depend on it.
const PARSE_CPU: &str = "-march=corei7";

const FUNCTIONS: &str = "anchorline_.*|rte_dev_(probe|remove)|rte_eal_(init|cleanup)|rte_errno|\
    rte_eth_(dev_(configure|start|stop|close|fw_version_get|info_get|get_port_by_name|socket_id|set_mtu|adjust_nb_rx_tx_desc)|\
    from_rings|link_get_nowait|macaddr_get|promiscuous_enable|rx_queue_setup|stats_get|tx_queue_setup)|\
    rte_get_tsc_hz|rte_log_set_global_level|rte_mempool_(free|in_use_count)|\
    rte_ring_(create|free)|rte_strerror|rte_thread_(register|unregister)";

const CONSTANTS: &str = "ANCHORLINE_.*|RTE_ETH_LINK_UP|RTE_LOG_(ERR|WARNING)|RTE_PKTMBUF_HEADROOM|RTE_MEMPOOL_CACHE_MAX_SIZE|\
    RTE_ETH_MQ_RX_RSS";

/// Types bindgen would lay out wrongly (packed and aligned at once) or that nobody looks into.
const OPAQUE: [&str; 9] = [
    "rte_arp_hdr",
    "rte_arp_ipv4",
    "rte_l2tpv2.*",
    "rte_gtp_psc.*",
    "rte_ether_hdr",
    "rte_mempool",
    "rte_ring",
    "rte_device",
    "rte_mbuf_ext_shared_info",
];

fn main() {
    for file in ["c/wrapper.h", "c/shim.h", "c/shim.c", "c/flow.c", "c/power.c", "c/fanout.c"] {
        println!("cargo:rerun-if-changed={file}");
    }
    for variable in ["ANCHORLINE_CPU", "LIBCLANG_PATH", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let dpdk = find_dpdk();
    compile_shim(&dpdk);
    generate_bindings(&dpdk);
    link(&dpdk);
}

/// Stops the build with one clear sentence.
fn stop(message: &str) -> ! {
    println!("cargo:warning={message}");
    eprintln!("error: {message}");
    std::process::exit(1);
}

fn find_dpdk() -> pkg_config::Library {
    let found = pkg_config::Config::new().cargo_metadata(false).atleast_version("22.11").probe("libdpdk");
    found.unwrap_or_else(|error| {
        eprintln!("{error}");
        stop("DPDK 22.11 or newer is not installed: apt-get install libdpdk-dev pkg-config")
    })
}

/// The CPU the shim is compiled for: this machine's, unless `ANCHORLINE_CPU` or rustc's `target-cpu` names one.
fn cpu() -> String {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let of_rustc =
        flags.split('\x1f').find_map(|flag| flag.split_once("target-cpu=").map(|(_, cpu)| cpu.to_owned()));
    env::var("ANCHORLINE_CPU").ok().or(of_rustc).unwrap_or_else(|| "native".to_owned())
}

fn compile_shim(dpdk: &pkg_config::Library) {
    let mut build = cc::Build::new();
    build
        .files(["c/shim.c", "c/flow.c", "c/power.c", "c/fanout.c"])
        .includes(&dpdk.include_paths)
        .opt_level(3)
        .flag(format!("-march={}", cpu()));
    build
        .flag("-include")
        .flag("rte_config.h")
        .warnings(true)
        .flag_if_supported("-Wno-deprecated-declarations");
    if let Err(error) = build.try_compile("anchorline_dpdk_shim") {
        stop(&format!("the C shim does not compile: apt-get install gcc libdpdk-dev ({error})"));
    }
}

fn generate_bindings(dpdk: &pkg_config::Library) {
    choose_libclang();
    let mut builder = bindgen::builder()
        .header("c/wrapper.h")
        .clang_args(dpdk.include_paths.iter().map(|path| format!("-I{}", path.display())))
        .clang_args(["-include", "rte_config.h"])
        .allowlist_function(FUNCTIONS)
        .allowlist_var(CONSTANTS)
        .allowlist_type("rte_mbuf|rte_eth_(conf|dev_info|stats|link|rxconf|txconf)|rte_ether_addr")
        .prepend_enum_name(false)
        .derive_debug(false)
        .generate_comments(false)
        .layout_tests(true);
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64") {
        builder = builder.clang_arg(PARSE_CPU);
    }
    builder = OPAQUE.iter().fold(builder, |builder, name| builder.opaque_type(name));
    let bindings = builder.generate().unwrap_or_else(|error| {
        stop(&format!("DPDK's headers cannot be read: apt-get install libdpdk-dev clang-14 ({error})"))
    });
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    if let Err(error) = fs::write(out.join("bindings.rs"), bindings.to_string()) {
        stop(&format!("the bindings cannot be written: {error}"));
    }
}

/// Debian puts libclang where nobody looks; bindgen itself would panic without it.
fn choose_libclang() {
    const DEBIAN: &str = "/usr/lib/llvm-14/lib";
    if env::var_os("LIBCLANG_PATH").is_none() && Path::new(DEBIAN).join("libclang.so.1").exists() {
        // SAFETY: build scripts have one thread.
        unsafe { env::set_var("LIBCLANG_PATH", DEBIAN) };
    }
    let known = Command::new("ldconfig").arg("-p").output();
    let known = known.is_ok_and(|out| {
        let libraries = String::from_utf8_lossy(&out.stdout).replace("libclang-cpp", "");
        libraries.contains("libclang")
    });
    if env::var_os("LIBCLANG_PATH").is_none() && !known {
        stop("libclang is not installed: apt-get install libclang-14-dev clang-14, or set LIBCLANG_PATH");
    }
}

fn link(dpdk: &pkg_config::Library) {
    println!("cargo:rustc-env=ANCHORLINE_DPDK_VERSION={}", dpdk.version);
    for path in &dpdk.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    for library in LIBRARIES {
        println!("cargo:rustc-link-lib={library}");
    }
    if dpdk.libs.iter().any(|library| library == "rte_log") {
        println!("cargo:rustc-link-lib=rte_log");
    }
    // For this crate's own tests and examples; executables of others have to say so themselves.
    println!("cargo:rustc-link-arg=-Wl,--export-dynamic-symbol=setsockopt");
}
