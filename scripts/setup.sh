#!/usr/bin/env bash
# Installs what a fresh Debian 12 lacks to build, test and run Anchorline. Prints one line for each thing it does.
set -euo pipefail

# Build: DPDK, bindgen's clang, a C compiler, a C++ compiler for the fuzzer, and what makes a package. Run and test: the programs the laboratory is made of.
packages=(
    ca-certificates clang-14 dpkg-dev g++ gcc libc6-dev libclang-14-dev libdpdk-dev make pkg-config
    bind9-dnsutils coreutils curl ethtool iperf3 iproute2 iputils-ping openssl procps
    python3-pip python3-scapy tcpdump tshark util-linux wireshark-common
)
# Debian 12 proper has an older Rust; its security archive carries a current one under these names.
rust_packages=(cargo-web rustc-web rustfmt-web)
rust_minimum=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")

missing() {
    local installed
    # It fails where it does not know a package, which is then missing.
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
    installed=$(sed -n 's/^installed //p' <<<"$installed")
    comm -23 <(printf '%s\n' "$@" | sort) <(sort <<<"$installed")
}

has_rust() {
    local tool version
    for tool in cargo rustc; do
        version=$("$tool" --version 2>/dev/null | cut -d ' ' -f 2) || return 1
        printf '%s\n' "$rust_minimum" "$version" | sort -CV || return 1
    done
}

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends "$@" </dev/null >"$log" 2>&1
}

# Package lists may be absent or old: fetch them only when the installation fails without.
install() {
    log=$(mktemp)
    if ! apt install "$@" && ! { apt update && apt install "$@"; }; then
        tail -n 20 "$log" >&2
        echo "setup: cannot install $*" >&2
        exit 1
    fi
    rm -f "$log"
    echo "setup: installed $*"
}

# Puts what is in packages under a folder, and installs none of them.
unpack() {
    local into=$1 log=/dev/null package
    shift
    mkdir -p "$into/packages"
    fetch() { (cd "$into/packages" && apt-get -o APT::Sandbox::User=root download "$@" </dev/null >/dev/null 2>&1); }
    fetch "$@" || { ((EUID == 0)) && apt update && fetch "$@"; } || return 1
    for package in "$into"/packages/*.deb; do
        dpkg-deb -x "$package" "$into" || return 1
    done
}

if ! command -v dpkg-query >/dev/null; then
    echo "setup: this is not Debian; install what matches: ${packages[*]}, Rust $rust_minimum" >&2
    exit 0
fi

mapfile -t wanted < <(missing "${packages[@]}")
has_rust || wanted+=("${rust_packages[@]}")

if ((${#wanted[@]})); then
    if ((EUID)); then
        echo "setup: something is missing; as root, run: apt-get install --no-install-recommends ${wanted[*]}" >&2
        exit 1
    fi
    install "${wanted[@]}"
else
    echo "setup: nothing to install"
fi

# Decoders that are no packages of Debian's, for scripts/decoders.sh: beside the build, so that nothing else sees them. asn1tools
# comes with bitstruct and pyparsing, pycrate needs nothing.
python=$(cd "$(dirname "$0")/.." && realpath -m "${CARGO_TARGET_DIR:-target}")/python
if [ ! -d "$python/pycrate_mobile" ] || [ ! -d "$python/asn1tools" ]; then
    if /usr/bin/python3 -m pip install --quiet --no-deps --upgrade --retries 1 --timeout 10 --root-user-action=ignore \
        --target "$python" pycrate==0.8.1 asn1tools==0.167.0 bitstruct==8.24.0 pyparsing==3.3.3 </dev/null >/dev/null 2>&1; then
        echo "setup: installed pycrate and asn1tools"
    else
        echo "setup: pycrate and asn1tools cannot be had; tshark and scapy decode without them, and no CDRs are decoded"
    fi
fi

# FRR, for the test of programs beside the node: unpacked beside the build, as its package would start daemons on this machine.
frr=$(dirname "$python")/frr
if [ ! -x "$frr/usr/lib/frr/bgpd" ]; then
    if unpack "$frr" frr libyang2 libjson-c5 libprotobuf-c1 libcap2; then
        echo "setup: unpacked FRR"
    else
        rm -rf "$frr"
        echo "setup: FRR cannot be had; the test of it is skipped"
    fi
fi

if ! has_rust; then
    echo "setup: $(command -v cargo) comes first on the path and is older than Rust $rust_minimum; update it" >&2
    exit 1
fi

pages=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)
echo "setup: $pages huge pages of 2 MiB are free; the data plane reserves what it needs where it may"
